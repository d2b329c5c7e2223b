//! DINGTALK, WECHAT, SLACK and WEBHOOK, with a server that behaves, and one that does not.

use std::io::Write;

use elasticjob::registry::{self, Kind, Op};
use elasticjob::{Extensions, Job, JobSpec, Worker, testing};
use serde_json::{Value, json};

use super::failing;
use super::server::{Request, Server};

fn secret(text: &str) -> (tempfile::NamedTempFile, String) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let reference = format!("${{file:{}}}", file.path().display());
    (file, reference)
}

async fn tell_text(job: &Job, message: &str) -> Result<(), String> {
    testing::tell(&Extensions::new(), job, message).await.map_err(|error| error.to_string())
}

async fn tell(job: &Job) -> Result<(), String> {
    tell_text(job, "no rows").await
}

fn body(request: &Request) -> Value {
    serde_json::from_str(&request.body).unwrap()
}

fn content(request: &Request) -> String {
    let body = body(request);
    assert_eq!(body, json!({ "msgtype": "text", "text": { "content": body["text"]["content"] } }));
    body["text"]["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_robot_of_dingtalk_gets_what_java_posts() {
    let mut server = Server::start().await;
    let (_file, token) = secret("t0ken");
    let (_other, sign) = secret("SEC-test");
    let job = failing("settle").error_handlers(["DINGTALK"]).prop("dingtalk.keyword", "ALERT: ");
    let job = job.prop("dingtalk.webhook", server.url(&format!("/robot?access_token={token}")));
    tell(&job).await.unwrap();
    let request = server.request().await;
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/robot?access_token=t0ken"));
    assert!(request.headers["content-type"].starts_with("application/json"));
    let text = content(&request);
    let begin = "ALERT: Job 'settle' exception occur in job processing, caused by no rows\n";
    assert!(text.starts_with(begin), "{text}");
    tell(&job.prop("dingtalk.secret", sign)).await.unwrap();
    let path = server.request().await.path;
    let (_, query) = path.split_once("access_token=t0ken&timestamp=").unwrap();
    let (millis, signature) = query.split_once("&sign=").unwrap();
    assert!(millis.parse::<u64>().unwrap() > 1_700_000_000_000, "{query}");
    assert!(signature.len() >= 44 && signature.ends_with("%3D"), "{query}");
}

#[tokio::test]
async fn a_robot_of_wechat_gets_no_more_than_it_takes() {
    let mut server = Server::start().await;
    let (_file, key) = secret("k3y");
    let job = failing("settle").error_handlers(["WECHAT"]);
    let job = job.prop("wechat.webhook", server.url(&format!("/robot?key={key}")));
    tell(&job).await.unwrap();
    let text = content(&server.request().await);
    assert!(
        text.starts_with("Job 'settle' exception occur in job processing, caused by no rows\n"),
        "{text}"
    );
    tell_text(&job, &"作业".repeat(5000)).await.unwrap();
    let text = content(&server.request().await);
    assert!((2040..=2048).contains(&text.len()) && text.ends_with('…'), "{}", text.len());
}

#[tokio::test]
async fn slack_and_any_hook_get_the_report() {
    let mut server = Server::start().await;
    let (_file, path) = secret("ok");
    let (_other, bearer) = secret("Bearer t0ken");
    let slack = failing("settle").error_handlers(["SLACK"]);
    tell(&slack.prop("elasticjob.slack.webhook", server.url(&format!("/{path}")))).await.unwrap();
    let text = body(&server.request().await);
    assert!(text["text"].as_str().unwrap().starts_with("Job 'settle' exception occur"), "{text}");
    let hook =
        failing("settle").error_handlers(["WEBHOOK"]).prop("elasticjob.webhook.url", server.url("/empty"));
    tell(&hook.prop("elasticjob.webhook.authorization", bearer)).await.unwrap();
    let request = server.request().await;
    assert_eq!(request.headers["authorization"], "Bearer t0ken");
    let body = body(&request);
    assert_eq!((&body["count"], &body["others"]), (&json!(1), &json!(0)));
    let failure = &body["failures"][0];
    assert_eq!(failure["job"], "settle");
    assert_eq!((&failure["item"], &failure["items"], &failure["count"]), (&json!(0), &json!([0]), &json!(1)));
    assert_eq!(failure["message"], "no rows");
}

#[tokio::test]
async fn a_secret_that_was_changed_counts_at_once() {
    let mut server = Server::start().await;
    let (file, key) = secret("old");
    let job = failing("settle").error_handlers(["SLACK"]);
    let job = job.prop("elasticjob.slack.webhook", server.url(&format!("/ok?{key}")));
    tell(&job).await.unwrap();
    assert_eq!(server.request().await.path, "/ok?old");
    std::fs::write(file.path(), "new").unwrap();
    tell(&job).await.unwrap();
    assert_eq!(server.request().await.path, "/ok?new");
    drop(file);
    let error = tell(&job).await.unwrap_err();
    assert!(error.contains("property elasticjob.slack.webhook cannot read the file"), "{error}");
}

#[tokio::test]
async fn a_secret_that_java_stored_in_clear_is_used_as_it_stands() {
    let mut server = Server::start().await;
    let registry = registry::open("embedded://").unwrap();
    let mut spec = JobSpec::new("settle", 1);
    spec.job_error_handler_type = Some("WECHAT".into());
    spec.props.insert("wechat.webhook".into(), server.url("/robot?key=k3y"));
    let session = registry.connect().await.unwrap();
    let create = |path: &str, data: String| Op::Create { path: path.into(), data, kind: Kind::Persistent };
    let ops = vec![create("/config", spec.to_yaml())];
    session.commit("/settle", ops).await.unwrap();
    let worker = Worker::new(registry).job(failing("settle")).start().await.unwrap();
    worker.trigger("settle").await.unwrap();
    assert_eq!(server.request().await.path, "/robot?key=k3y");
    worker.shutdown().await;
}

#[tokio::test]
async fn a_server_that_misbehaves_is_an_error_in_time() {
    let mut server = Server::start().await;
    let (_file, key) = secret("k3y");
    let wechat = |path: &str| {
        failing("settle")
            .error_handlers(["WECHAT"])
            .prop("wechat.webhook", server.url(&format!("{path}?key={key}")))
    };
    let slow = |path: &str| {
        wechat(path).prop("wechat.readTimeoutMilliseconds", "300").prop("elasticjob.error.timeout", "5s")
    };
    for (job, said) in [
        (wechat("/unkind-robot"), "refused it with errcode 310000: sign not match"),
        (wechat("/ok"), "answered something else than JSON with an errcode: fine"),
        (wechat("/empty"), "answered 204 No Content"),
        (wechat("/missing"), "answered 404 Not Found"),
        (wechat("/away"), "answered 302 Found, a redirect, which is not followed"),
        (wechat("/garbage"), "cannot post to 127.0.0.1"),
        (wechat("/reset"), "cannot post to 127.0.0.1"),
        (wechat("/cut"), "cannot post to 127.0.0.1"),
        (slow("/hang"), "cannot post to 127.0.0.1"),
        (slow("/stall"), "cannot post to 127.0.0.1"),
        (wechat("/endless"), "answered something else than JSON"),
        (wechat("/endless-error"), "answered 500"),
        // It never stops, but it is not read for ever.
        (wechat("/drip").prop("elasticjob.error.timeout", "1s"), "it took longer than 1s and was stopped"),
    ] {
        let error = tell(&job).await.unwrap_err();
        assert!(error.starts_with("job `settle`: error handler WECHAT: "), "{error}");
        assert!(error.contains(said), "{error}");
        assert!(!error.contains("k3y"), "{error}");
    }
    assert!(server.unseen() >= 13);
}
