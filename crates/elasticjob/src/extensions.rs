//! What a program adds to the library, by the names that configurations use.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use elasticjob_core::strategy::{Strategies, Strategy};

use crate::error::Error;
use crate::handler::{self, ErrorHandler, Known};
use crate::job::listener::{Call, Each, Listener, Once, OnceListener};
use crate::job::typed::{JobType, Runner};

/// The job types that are always there.
const BUILT_IN: [&str; 2] = ["HTTP", "SCRIPT"];

/// Job types, sharding strategies, error handlers and listeners of your own, by name, besides those that are always there. A
/// [`Worker`](crate::Worker) has one of these; made apart, it can be given to several. Names have no case.
///
/// ```
/// use elasticjob::{Extensions, Report, Worker};
///
/// let ours = Extensions::new().error_handler("pager", async |report: Report| {
///     println!("{}", report.text());
///     Ok(())
/// });
/// let workers = ["embedded://a", "embedded://b"].map(|url| Worker::new(url).extensions(ours.clone()));
/// # drop(workers);
/// ```
#[derive(Clone)]
pub struct Extensions {
    pub(crate) strategies: Strategies,
    pub(crate) handlers: Named<Known>,
    pub(crate) types: Named<Arc<dyn Runner>>,
    pub(crate) listeners: Named<Arc<dyn Call>>,
    /// The first name that was given twice.
    clash: Option<(&'static str, String)>,
}

impl Default for Extensions {
    fn default() -> Extensions {
        Extensions::new()
    }
}

impl Extensions {
    /// What is always there.
    #[must_use]
    pub fn new() -> Extensions {
        Extensions {
            strategies: Strategies::default(),
            handlers: handler::builtins(),
            types: Named::default(),
            listeners: Named::default(),
            clash: None,
        }
    }

    /// A sharding strategy, by the name that [`Job::strategy`](crate::Job::strategy) and `jobShardingStrategyType` use.
    #[must_use]
    pub fn strategy(mut self, name: &str, strategy: impl Strategy + 'static) -> Extensions {
        if self.strategies.find(Some(name)).is_some() {
            return self.clashing("strategy", name);
        }
        self.strategies = self.strategies.with(name, strategy);
        self
    }

    /// An error handler, by the name that [`Job::error_handlers`](crate::Job::error_handlers) and
    /// `jobErrorHandlerType` use.
    #[must_use]
    pub fn error_handler(mut self, name: &str, handler: impl ErrorHandler) -> Extensions {
        if self.handlers.insert(name, Known::Told(Arc::new(handler))) {
            return self;
        }
        self.clashing("error handler", name)
    }

    /// A type of job, by the name that [`Job::typed`](crate::Job::typed) and `elasticJobType` use.
    #[must_use]
    pub fn job_type(mut self, name: &str, job_type: impl JobType) -> Extensions {
        let is_taken = BUILT_IN.iter().chain(&["SIMPLE", "DATAFLOW"]).any(|it| it.eq_ignore_ascii_case(name));
        if !is_taken && self.types.insert(name, Arc::new(job_type)) {
            return self;
        }
        self.clashing("job type", name)
    }

    /// A listener around the rounds on every worker, by the name that `jobListenerTypes` uses.
    #[must_use]
    pub fn listener(self, name: &str, listener: impl Listener) -> Extensions {
        self.called(name, Arc::new(Each(listener)))
    }

    /// A listener that is called once for a round, by the name that `jobListenerTypes` uses.
    #[must_use]
    pub fn once_listener(self, name: &str, listener: impl OnceListener) -> Extensions {
        self.called(name, Arc::new(Once(listener)))
    }

    fn called(mut self, name: &str, listener: Arc<dyn Call>) -> Extensions {
        if self.listeners.insert(name, listener) {
            return self;
        }
        self.clashing("listener", name)
    }

    fn clashing(mut self, what: &'static str, name: &str) -> Extensions {
        self.clash.get_or_insert_with(|| (what, name.to_owned()));
        self
    }

    /// The types that a configuration may name.
    pub(crate) fn type_names(&self) -> String {
        let ours = self.types.0.keys().map(String::as_str);
        BUILT_IN.into_iter().chain(ours).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.clash {
            Some((what, name)) => Err(Error::NameTaken { what, name: name.clone() }),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions")
            .field("strategies", &self.strategies)
            .field("error_handlers", &self.handlers.list())
            .field("job_types", &self.types.list())
            .field("listeners", &self.listeners.list())
            .finish_non_exhaustive()
    }
}

/// Things by their names, which have no case, as Java's have none.
#[derive(Clone)]
pub(crate) struct Named<T>(Arc<BTreeMap<String, T>>);

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named(Arc::default())
    }
}

impl<T: Clone> Named<T> {
    /// Says whether the name was free; if not, nothing is changed. A blank name, or one with a comma, is never free:
    /// nobody could write it.
    pub(crate) fn insert(&mut self, name: &str, value: T) -> bool {
        let key = name.trim().to_uppercase();
        if key.is_empty() || key.contains(',') || self.0.contains_key(&key) {
            return false;
        }
        Arc::make_mut(&mut self.0).insert(key, value);
        true
    }

    pub(crate) fn find(&self, name: &str) -> Option<&T> {
        self.0.get(&name.trim().to_uppercase())
    }

    /// All names, for messages.
    pub(crate) fn list(&self) -> String {
        if self.0.is_empty() {
            return "none".to_owned();
        }
        self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}
