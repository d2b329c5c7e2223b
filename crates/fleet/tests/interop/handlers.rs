//! The same failure, told by Java's error handlers and by ours: chats get the same requests, mail servers the same mails,
//! but for the stack trace, which we do not have.

use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use elasticjob::{Job, JobError, Shard, Worker};
use elasticjob_testkit::web::Request;
use elasticjob_testkit::{Smtp, SmtpBehaviour, SmtpTls, Web};
use ring::hmac;
use serde_json::Value;

use crate::kinds::{ask, words};
use crate::world::World;

const KEYWORD: &str = "jobs: ";
const SECRET: &str = "s3cret";

/// What both say of the same failure: Java's first, then ours. The stored document is Java's.
async fn told<T: Send + 'static>(
    world: &World,
    job: &str,
    handler: &str,
    props: &[(&str, &str)],
    next: impl Fn() -> T + Send + Sync + 'static,
) -> [T; 2] {
    let next = Arc::new(next);
    let take = async || {
        let next = next.clone();
        tokio::task::spawn_blocking(move || next()).await.unwrap()
    };
    let mut of_java = vec![("job", job), ("kind", "failing"), ("error-handler", handler)];
    of_java.extend(props);
    let member = world.java_with(job, 1, &[], &words(&of_java));
    world.ready(&member).await;
    ask(world, job).await;
    let by_java = take().await;
    member.leave().await;

    let failing = async |_: Shard| Err::<(), JobError>("the database is away".into());
    let worker = Worker::new(world.url()).job(Job::simple(job, failing)).start().await.unwrap();
    ask(world, job).await;
    let by_rust = take().await;
    worker.shutdown().await;
    [by_java, by_rust]
}

/// What stands before the reason, and that the reason is there.
fn without_trace(text: &str) -> &str {
    let (before, reason) = text.split_once(", caused by ").unwrap_or_else(|| panic!("no cause: {text}"));
    let first = reason.lines().next().unwrap_or_default();
    assert!(first.ends_with("the database is away"), "{text}");
    before
}

/// Path, type and body, without the trace.
fn chat(request: &Request) -> (String, Option<&str>, Value) {
    let mut body: Value = serde_json::from_str(&request.body).unwrap();
    let text = without_trace(body["text"]["content"].as_str().unwrap()).to_owned();
    body["text"]["content"] = text.into();
    let line = request.line.split("&timestamp=").next().unwrap().to_owned();
    (line, request.header("content-type"), body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_chat_gets_the_same_messages_from_both() {
    let world = World::new("chats").await;
    for (job, handler, keyword) in [("wechat", "WECHAT", ""), ("dingtalk", "DINGTALK", KEYWORD)] {
        // One for each: it says nothing, which counts as no, so that we come again when we leave.
        let web = Web::start();
        let url = format!("{}robot/send?access_token=t0ken", web.url());
        let webhook = format!("prop.{job}.webhook");
        let mut props = vec![(&*webhook, &*url)];
        if job == "dingtalk" {
            props.extend([("prop.dingtalk.keyword", keyword), ("prop.dingtalk.secret", SECRET)]);
        }
        let [by_java, by_rust] = told(&world, job, handler, &props, move || web.request()).await;
        assert_eq!(chat(&by_rust), chat(&by_java), "{job}");
        let text = format!("{keyword}Job '{job}' exception occur in job processing");
        assert_eq!(chat(&by_java).2["text"]["content"], text);
        for request in [&by_java, &by_rust] {
            assert_eq!(is_signed(request), job == "dingtalk", "{request:?}");
        }
    }
}

/// Whether there is a signature. A wrong one is no sooner found than here.
fn is_signed(request: &Request) -> bool {
    let Some((_, rest)) = request.line.split_once("&timestamp=") else { return false };
    let (timestamp, rest) = rest.split_once("&sign=").unwrap();
    let sign = rest.split(' ').next().unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signed = hmac::sign(&key, format!("{timestamp}\n{SECRET}").as_bytes());
    let wanted = BASE64_STANDARD.encode(signed);
    let wanted = wanted.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    assert_eq!(sign, wanted, "{}", request.line);
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_mail_server_gets_the_same_mails_from_both() {
    let world = World::new("mails").await;
    let server = Smtp::start(SmtpTls::None, Some(("jobs", SECRET)), SmtpBehaviour::Take);
    let (port, server) = (server.port().to_string(), Mutex::new(server));
    let props = [
        ("prop.email.host", "localhost"),
        ("prop.email.port", &port),
        ("prop.email.username", "jobs"),
        ("prop.email.password", SECRET),
        ("prop.email.useSsl", "false"),
        ("prop.email.from", "jobs@example.com"),
        ("prop.email.to", "ops@example.com,night-shift@example.com"),
        ("prop.email.cc", "boss@example.com"),
        ("prop.email.bcc", "archive@example.com"),
    ];
    let [by_java, by_rust] =
        told(&world, "mail", "EMAIL", &props, move || server.lock().unwrap().mail()).await;
    assert_eq!(mail(&by_rust), mail(&by_java));
    let seen = mail(&by_java);
    assert_eq!(seen["subject"], "ElasticJob error message");
    assert_eq!(seen["text"], "Job 'mail' exception occur in job processing");
}

/// Who gets it, and what is in it, without the trace and without what is another in every mail.
fn mail(taken: &str) -> Value {
    let taken: Value = serde_json::from_str(taken).unwrap();
    let data = taken["data"].as_str().unwrap().replace("\r\n", "\n");
    let (head, parts) = data.split_once("\n\n").unwrap();
    let head = head.replace("\n\t", " ").replace("\n ", " ");
    let of = |head: &str, name: &str| {
        let line = head.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("no {name}: {data}")).to_owned()
    };
    let kind = of(&head, "Content-Type");
    let (kind, boundary) =
        kind.split_once("; boundary=").or_else(|| kind.split_once(";  boundary=")).unwrap();
    let parts: Vec<&str> = parts.split(&format!("--{}", boundary.trim_matches('"'))).collect();
    // Nothing before the first, the first, and the end.
    assert_eq!(parts.len(), 3, "{data}");
    let (part_head, text) = parts[1].trim_start().split_once("\n\n").unwrap();
    let text = text.replace("=\n", ""); // Ours are quoted, to keep lines short.
    let text = without_trace(&text).trim_start_matches("<pre>");
    serde_json::json!({
        "envelope": [&taken["from"], &taken["to"], &taken["user"]],
        "from": of(&head, "From"),
        "to": of(&head, "To"),
        "cc": of(&head, "Cc"),
        "subject": of(&head, "Subject"),
        "kind": kind,
        "part": of(part_head, "Content-Type"),
        "text": text,
    })
}
