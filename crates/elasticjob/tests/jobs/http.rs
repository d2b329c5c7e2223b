//! HTTP jobs, against a server of our own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use elasticjob::{Job, Outcome, Worker};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::server::{Seen, Server};
use super::{LONG, failure, finished, registry, run_once};

#[tokio::test]
async fn a_request_carries_the_shard_as_java_sends_it() {
    let mut server = Server::start().await;
    let job = Job::http("ping", server.url("/ok?a=b")).parameter("it's 中 😀\u{7f}\r\nX-Forged: 1");
    assert_eq!(run_once(&job).await, Outcome::Succeeded);
    let request = server.request().await;
    assert_eq!(
        (request.method.as_str(), request.path.as_str(), request.body.as_str()),
        ("GET", "/ok?a=b", "")
    );
    assert_eq!(
        request.headers["shardingcontext"],
        r#"{"jobName":"ping","taskId":"ping@-@0@-@READY@-@127.0.0.1@-@1.test.1-1","shardingTotalCount":1,"jobParameter":"it\u0027s \u4e2d \ud83d\ude00\u007f\r\nX-Forged: 1","shardingItem":0}"#
    );
    assert!(!request.headers.contains_key("x-forged"));
    assert!(!request.headers.contains_key("content-type"));
    assert!(request.headers["user-agent"].starts_with("elasticjob/"));
}

#[tokio::test]
async fn data_goes_with_the_methods_that_have_some() {
    let mut server = Server::start().await;
    let data = |method: &str| Job::http("send", server.url("/ok")).method(method).data("a=中");
    let jobs = [
        data("POST"),
        data("put"),
        data("DELETE").content_type("text/plain;charset=utf-8"),
        data("GET"),
        Job::http("send", server.url("/empty")).method("HEAD"),
    ];
    let form = "application/x-www-form-urlencoded";
    let sent = [
        ("POST", "a=中", Some(form)),
        ("PUT", "a=中", None),
        ("DELETE", "a=中", Some("text/plain;charset=utf-8")),
        ("GET", "", None),
        ("HEAD", "", None),
    ];
    for (job, sent) in jobs.iter().zip(sent) {
        assert_eq!(run_once(job).await, Outcome::Succeeded);
        let request = server.request().await;
        let content_type = request.headers.get("content-type").map(String::as_str);
        assert_eq!((request.method.as_str(), request.body.as_str(), content_type), sent);
    }
}

#[tokio::test]
async fn an_answer_of_400_or_more_is_a_failure_that_says_what_it_said() {
    let server = Server::start().await;
    let at = |path: &str| format!("GET {}", server.url(path));
    let failure = |path: &'static str| {
        let job = Job::http("j", server.url(path));
        async move { failure(&job).await }
    };
    let said = failure("/missing?token=secret").await;
    let lines = "<html>\n    no such thing\n  \\u{1b}[31m</html>";
    assert_eq!(said, format!("{} answered 404 Not Found:\n  {lines}", at("/missing")));
    assert_eq!(failure("/bare").await, format!("{} answered 500 Internal Server Error", at("/bare")));
    assert!(failure("/odd").await.starts_with(&format!("{} answered 999", at("/odd"))));
    assert_eq!(run_once(&Job::http("j", server.url("/not-modified"))).await, Outcome::Succeeded);
}

#[tokio::test]
async fn what_breaks_is_a_failure_that_says_how() {
    let server = Server::start().await;
    let failure = |path: &'static str| {
        let job = Job::http("j", server.url(path));
        async move { failure(&job).await }
    };
    for path in ["/cut", "/garbage", "/reset"] {
        let said = failure(path).await;
        assert!(said.starts_with(&format!("GET {}: the answer broke off: ", server.url(path))), "{said}");
    }
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let said = super::failure(&Job::http("j", format!("http://{unused}/x?token=secret"))).await;
    assert!(said.starts_with(&format!("GET http://{unused}/x: cannot connect: ")), "{said}");
    assert!(said.to_lowercase().contains("refused") && !said.contains("secret"), "{said}");
}

#[tokio::test]
async fn a_slow_answer_is_given_up_on() {
    let server = Server::start().await;
    for path in ["/hang", "/stall"] {
        let job = Job::http("slow", server.url(path)).read_timeout(Duration::from_millis(300));
        assert_eq!(failure(&job).await, format!("GET {}: no answer within 300ms", server.url(path)));
    }
    // One that always sends a little more is never late, and yet has to end.
    let job = Job::http("drip", server.url("/drip")).prop("elasticjob.http.timeout", "500ms");
    assert_eq!(failure(&job).await, format!("GET {}: not done within 500ms", server.url("/drip")));
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_is_given_up_on() {
    // It accepts, and never answers the greeting of TLS.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("https://{}/x", listener.local_addr().unwrap());
    let job = Job::http("deaf", at.clone()).connect_timeout(Duration::from_millis(300));
    assert_eq!(failure(&job).await, format!("GET {at}: no connection within 300ms"));
}

#[tokio::test]
async fn of_an_answer_without_end_only_the_beginning_is_read() {
    let mut server = Server::start().await;
    let began = Instant::now();
    assert_eq!(run_once(&Job::http("much", server.url("/endless"))).await, Outcome::Succeeded);
    server.request().await;
    assert!(matches!(server.seen().await, Seen::Gone));
    let said = failure(&Job::http("much", server.url("/endless-error"))).await;
    assert!(said.starts_with(&format!("GET {} answered 500 ", server.url("/endless-error"))), "{said}");
    assert_eq!(said.lines().count(), 21, "{said}");
    assert!(began.elapsed() < LONG);
}

#[tokio::test]
async fn a_redirect_is_followed_only_if_that_is_allowed() {
    let mut server = Server::start().await;
    let at = server.url("/away");
    assert_eq!(
        failure(&Job::http("away", at.clone())).await,
        format!(
            "GET {at} answered 302 Found, a redirect to `/ok`, which is not followed: correct http.uri, or allow it with elasticjob.http.redirects"
        )
    );
    assert_eq!(server.unseen(), 1);
    for allowed in ["true", "1"] {
        let job = Job::http("away", at.clone()).prop("elasticjob.http.redirects", allowed);
        assert_eq!(run_once(&job).await, Outcome::Succeeded);
        assert_eq!(server.request().await.path, "/away");
        let followed = server.request().await;
        assert_eq!(followed.path, "/ok");
        assert!(followed.headers.contains_key("shardingcontext"));
    }
    let job = Job::http("round", server.url("/round")).prop("elasticjob.http.redirects", "3");
    assert!(failure(&job).await.contains("answered 302 Found, a redirect to `/round`"));
    assert_eq!(server.unseen(), 4);
}

#[tokio::test]
async fn retries_are_made_only_if_asked_for_and_only_if_they_may_help() {
    let mut server = Server::start().await;
    let said = failure(&Job::http("once", server.url("/flaky"))).await;
    assert!(said.ends_with("answered 503 Service Unavailable: not yet"), "{said}");
    assert_eq!(server.unseen(), 1);
    let again = |path: &str| Job::http("again", server.url(path)).prop("elasticjob.http.retries", "2");
    let (flaky, bare, missing) = (again("/flaky"), again("/bare"), again("/missing"));
    assert_eq!(run_once(&flaky).await, Outcome::Succeeded);
    assert_eq!(server.unseen(), 2);
    let said = failure(&bare).await;
    assert!(said.starts_with("gave up after 3 attempts: GET http://127.0.0.1:"), "{said}");
    assert!(said.ends_with("/bare answered 500 Internal Server Error"), "{said}");
    assert_eq!(server.unseen(), 3);
    let said = failure(&missing).await;
    assert!(said.contains("answered 404 Not Found:\n"), "{said}");
    assert_eq!(server.unseen(), 1, "what is not there will not be there a moment later");
}

#[tokio::test]
async fn a_worker_that_leaves_aborts_the_request() {
    let mut server = Server::start().await;
    let job = Job::http("hang", server.url("/hang")).read_timeout(Duration::ZERO).one_off();
    let worker = Worker::new(registry()).job(job).shutdown_grace(Duration::ZERO).start().await.unwrap();
    let mut records = worker.records();
    worker.trigger("hang").await.unwrap();
    server.request().await;
    tokio::time::timeout(LONG, worker.shutdown()).await.expect("it does not wait for the answer");
    assert_eq!(finished(&mut records).await.1, Outcome::Cancelled);
    assert!(matches!(server.seen().await, Seen::Gone));
}

#[tokio::test]
async fn tls_trusts_whom_the_host_trusts_and_whom_the_file_names() {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let pem = dir.path().join("ca.pem");
    std::fs::write(&pem, key.cert.pem()).unwrap();
    let private = PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private)
        .unwrap();
    let mut server = Server::start_with(Some(TlsAcceptor::from(Arc::new(config)))).await;

    let job = Job::http("secret", server.url("/ok"));
    let said = failure(&job).await;
    assert!(said.contains("certificate") || said.contains("certificates"), "{said}");
    let job = job.prop("elasticjob.http.ca", pem.to_str().unwrap());
    assert_eq!(run_once(&job).await, Outcome::Succeeded);
    assert_eq!(server.request().await.path, "/ok");
    let down = Job::http("down", server.url("/down"))
        .prop("elasticjob.http.ca", pem.to_str().unwrap())
        .prop("elasticjob.http.redirects", "true");
    let said = failure(&down).await;
    assert!(said.contains("a redirect to `http://127.0.0.1:1/ok`, which is not followed"), "{said}");

    let job = Job::http("secret", server.url("/ok"));
    let said = failure(&job.clone().prop("elasticjob.http.ca", "/no/such/file")).await;
    assert!(said.starts_with("cannot read the certificates of /no/such/file: "), "{said}");
    std::fs::write(&pem, "no certificate\n").unwrap();
    let said = failure(&job.prop("elasticjob.http.ca", pem.to_str().unwrap())).await;
    assert!(said.ends_with("ca.pem: there are none in PEM format"), "{said}");
}

#[tokio::test]
async fn what_cannot_work_is_said_at_the_start() {
    let said =
        |job: Job| async { Worker::new("embedded://").job(job).start().await.unwrap_err().to_string() };
    assert_eq!(
        said(Job::http("j", "example.com")).await,
        "job `j`: property http.uri `example.com` is no address: write one that begins with http:// or https://"
    );
    assert_eq!(
        said(Job::http("j", "https://example.com").method("FETCH")).await,
        "job `j`: property http.method `FETCH` is no method: write GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS or TRACE"
    );
}

#[tokio::test]
async fn a_file_says_it_in_one_line_or_as_java_does() {
    let mut server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.yaml");
    let text = format!(
        "
registry: embedded://
jobs:
  ours: {{ http: '{0}' }}
  java:
    elasticJobType: HTTP
    props:
      http.uri: {0}
      http.method: POST
      http.data: full=true
",
        server.url("/ok")
    );
    std::fs::write(&path, text).unwrap();
    let worker = Worker::from_file(&path).unwrap().start().await.unwrap();
    let mut records = worker.records();
    for (name, method, body) in [("ours", "GET", ""), ("java", "POST", "full=true")] {
        worker.trigger(name).await.unwrap();
        assert_eq!(finished(&mut records).await.1, Outcome::Succeeded);
        let request = server.request().await;
        assert_eq!((request.method.as_str(), request.body.as_str()), (method, body));
    }
    worker.shutdown().await;
}
