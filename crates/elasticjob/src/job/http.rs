//! Jobs that are requests to an HTTP service. The properties are Java's, and those with our prefix are ours.

use std::time::Duration;

use super::{Job, Work};

/// The class that Java gives to HTTP jobs.
pub(crate) const CLASS: &str = "HTTP";

pub(crate) const URI: &str = "http.uri";
pub(crate) const METHOD: &str = "http.method";
pub(crate) const DATA: &str = "http.data";
pub(crate) const CONTENT_TYPE: &str = "http.content.type";
pub(crate) const CONNECT_TIMEOUT: &str = "http.connect.timeout.milliseconds";
pub(crate) const READ_TIMEOUT: &str = "http.read.timeout.milliseconds";

/// How long a request may take altogether.
#[cfg(feature = "http")]
pub(crate) const TIMEOUT: &str = "elasticjob.http.timeout";
/// How many redirects are followed.
#[cfg(feature = "http")]
pub(crate) const REDIRECTS: &str = "elasticjob.http.redirects";
/// How often a request is sent again.
#[cfg(feature = "http")]
pub(crate) const RETRIES: &str = "elasticjob.http.retries";
/// A file of certificates to trust besides the host's.
#[cfg(feature = "http")]
pub(crate) const CA: &str = "elasticjob.http.ca";

impl Job {
    /// A job that sends a request for each shard, with the shard as JSON in the header `shardingContext`. An
    /// answer with status 400 or above is a failure. It needs the feature `http`: without it, the start of a
    /// worker says so.
    ///
    /// What has no method here is a property, see `docs/jobs.md`: redirects, retries, certificates, a limit for
    /// the whole request.
    ///
    /// ```
    /// use elasticjob::Job;
    ///
    /// let ping = Job::http("ping", "https://example.com/ping").cron("0 0/5 * * * ?");
    /// let patient = ping.prop("elasticjob.http.retries", "3");
    /// # drop(patient);
    /// ```
    pub fn http(name: impl Into<String>, uri: impl Into<String>) -> Job {
        let job = Job { class: CLASS.to_owned(), ..Job::new(name, Work::Http) };
        job.prop(URI, uri).method("GET")
    }

    /// The method of an HTTP job, `GET` by default. It is the property `http.method`.
    ///
    /// ```
    /// let job = elasticjob::Job::http("flush", "https://example.com/cache").method("DELETE");
    /// # drop(job);
    /// ```
    pub fn method(self, method: impl Into<String>) -> Job {
        self.prop(METHOD, method)
    }

    /// What an HTTP job sends, if its method is POST, PUT, PATCH or DELETE. It is the property `http.data`.
    ///
    /// ```
    /// let job = elasticjob::Job::http("index", "https://example.com/index")
    ///     .method("POST")
    ///     .data(r#"{"full": true}"#)
    ///     .content_type("application/json");
    /// # drop(job);
    /// ```
    pub fn data(self, data: impl Into<String>) -> Job {
        self.prop(DATA, data)
    }

    /// What that is. It is the property `http.content.type`; without it, data is sent as a form, and for PUT
    /// without saying what it is, as Java does.
    ///
    /// ```
    /// # fn f(job: elasticjob::Job) -> elasticjob::Job {
    /// job.content_type("application/json")
    /// # }
    /// ```
    pub fn content_type(self, content_type: impl Into<String>) -> Job {
        self.prop(CONTENT_TYPE, content_type)
    }

    /// How long an HTTP job waits for a connection, 3 seconds by default; zero is for ever. It is the property
    /// `http.connect.timeout.milliseconds`.
    ///
    /// ```
    /// # fn f(job: elasticjob::Job) -> elasticjob::Job {
    /// job.connect_timeout(std::time::Duration::from_secs(1))
    /// # }
    /// ```
    pub fn connect_timeout(self, limit: Duration) -> Job {
        self.prop(CONNECT_TIMEOUT, limit.as_millis().to_string())
    }

    /// How long an HTTP job waits for the next part of an answer, 5 seconds by default; zero is for ever. It is
    /// the property `http.read.timeout.milliseconds`.
    ///
    /// ```
    /// # fn f(job: elasticjob::Job) -> elasticjob::Job {
    /// job.read_timeout(std::time::Duration::from_secs(60))
    /// # }
    /// ```
    pub fn read_timeout(self, limit: Duration) -> Job {
        self.prop(READ_TIMEOUT, limit.as_millis().to_string())
    }
}
