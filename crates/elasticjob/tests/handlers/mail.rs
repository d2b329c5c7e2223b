//! EMAIL, with a real mail server.

use std::time::Duration;

use elasticjob::{Extensions, Job, Worker, testing};
use elasticjob_testkit::{Smtp, SmtpBehaviour, SmtpTls};
use serde_json::Value;

use super::failing;

const LOGIN: (&str, &str) = ("ann", "s3cret");

fn start(tls: SmtpTls, behaviour: SmtpBehaviour) -> Smtp {
    Smtp::start(tls, Some(LOGIN), behaviour)
}

/// A job that mails its failures there, with the password in a file.
fn mailing(server: &Smtp, password: &str) -> Job {
    let file = server.ca().with_file_name("password");
    std::fs::write(&file, format!("{password}\n")).unwrap();
    to(server, failing("settle"))
        .prop("email.username", LOGIN.0)
        .prop("email.password", format!("${{file:{}}}", file.display()))
}

fn to(server: &Smtp, job: Job) -> Job {
    job.error_handlers(["EMAIL"])
        .prop("email.host", "localhost")
        .prop("email.port", server.port().to_string())
        .prop("email.from", "Jobs <jobs@example.com>")
        .prop("email.to", "ops@example.com, Ärger <trouble@example.com>")
        .prop("elasticjob.error.ca", server.ca().to_str().unwrap())
        .prop("elasticjob.error.interval", "100ms")
}

async fn tell(job: &Job) -> Result<(), String> {
    testing::tell(&Extensions::new(), job, "no <rows> & more").await.map_err(|error| error.to_string())
}

fn mail(server: &Smtp) -> Value {
    serde_json::from_str(&server.mail()).unwrap()
}

#[tokio::test]
async fn a_mail_is_what_java_sends() {
    let server = start(SmtpTls::Implicit, SmtpBehaviour::Take);
    let job =
        mailing(&server, LOGIN.1).prop("email.cc", "boss@example.com").prop("email.bcc", "log@example.com");
    tell(&job).await.unwrap();
    let mail = mail(&server);
    assert_eq!(mail["from"], "jobs@example.com");
    let to: Vec<&str> = mail["to"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(to, ["ops@example.com", "trouble@example.com", "boss@example.com", "log@example.com"]);
    assert_eq!((&mail["tls"], &mail["user"]), (&Value::Bool(true), &Value::String("ann".into())));
    let text = mail["data"].as_str().unwrap();
    assert!(text.contains("Subject: ElasticJob error message\r\n"), "{text}");
    assert!(text.contains("Message-ID: <") && text.contains("Date: "), "{text}");
    assert!(text.contains("Content-Type: multipart/mixed;"), "{text}");
    assert!(text.contains("Content-Type: text/html; charset=utf-8\r\n"), "{text}");
    assert!(text.contains("Cc: boss@example.com") && !text.contains("log@example.com"), "{text}");
    let words = text.replace("=\r\n", "").replace("=3D", "=");
    assert!(
        words
            .contains("Job 'settle' exception occur in job processing, caused by no &lt;rows&gt; &amp; more"),
        "{text}"
    );
}

#[tokio::test]
async fn a_connection_is_as_secret_as_it_is_asked_to_be() {
    let plain = start(SmtpTls::None, SmtpBehaviour::Take);
    let it = mailing(&plain, LOGIN.1);
    tell(&it.clone().prop("email.useSsl", "false")).await.unwrap();
    assert_eq!(mail(&plain)["tls"], false);
    assert!(tell(&it.clone().prop("elasticjob.error.timeout", "2s")).await.is_err(), "no TLS there");

    let upgrading = start(SmtpTls::StartTls, SmtpBehaviour::Take);
    let it = mailing(&upgrading, LOGIN.1);
    tell(&it.clone().prop("elasticjob.email.tls", "starttls")).await.unwrap();
    assert_eq!(mail(&upgrading)["tls"], true);
    let refused = tell(&it.clone().prop("email.useSsl", "false")).await.unwrap_err();
    assert!(refused.to_lowercase().contains("starttls"), "{refused}");
    // One that does not offer it is not told the password in clear.
    let it = mailing(&plain, LOGIN.1);
    assert!(tell(&it.clone().prop("elasticjob.email.tls", "starttls")).await.is_err());
    assert_eq!(plain.unseen(), 0);
}

#[tokio::test]
async fn a_server_must_be_who_it_says_unless_it_is_trusted_blindly() {
    let server = start(SmtpTls::Implicit, SmtpBehaviour::Take);
    let it = mailing(&server, LOGIN.1);
    let stranger = it.clone().prop("elasticjob.error.ca", "");
    let refused = tell(&stranger).await.unwrap_err();
    assert!(refused.contains("certificate"), "{refused}");
    assert_eq!(server.unseen(), 0);
    for trust in ["*", "localhost"] {
        tell(&stranger.clone().prop("email.ssl.trust", trust)).await.unwrap();
        assert_eq!(mail(&server)["user"], "ann");
    }
    let missing = tell(&it.clone().prop("elasticjob.error.ca", "/no/such/ca.pem")).await.unwrap_err();
    assert!(missing.contains("cannot read the certificates of /no/such/ca.pem"), "{missing}");
}

#[tokio::test]
async fn what_goes_wrong_is_said() {
    let server = start(SmtpTls::Implicit, SmtpBehaviour::Take);
    let said = tell(&mailing(&server, "wr0ng")).await.unwrap_err();
    assert!(said.starts_with("job `settle`: error handler EMAIL: ") && said.contains("535"), "{said}");
    assert!(!said.contains("wr0ng"), "{said}");

    let refusing = start(SmtpTls::Implicit, SmtpBehaviour::Refuse);
    let said = tell(&mailing(&refusing, LOGIN.1)).await.unwrap_err();
    assert!(said.contains("not from you"), "{said}");

    let hanging = start(SmtpTls::Implicit, SmtpBehaviour::Hang);
    let it = mailing(&hanging, LOGIN.1);
    let said = tell(&it.clone().prop("elasticjob.error.timeout", "1s")).await.unwrap_err();
    assert!(said.ends_with("it took longer than 1s and was stopped"), "{said}");

    let open = Smtp::start(SmtpTls::None, None, SmtpBehaviour::Take);
    tell(&to(&open, failing("settle")).prop("email.useSsl", "false")).await.unwrap();
    assert_eq!(mail(&open)["user"], Value::Null);
    let port = open.port();
    drop(open);
    let job = to(&server, failing("settle")).prop("email.port", port.to_string());
    let said = tell(&job).await.unwrap_err();
    assert!(said.to_lowercase().contains("refused"), "{said}");
}

#[tokio::test]
async fn a_storm_is_few_mails_and_the_last_is_sent_before_a_worker_has_left() {
    let server = start(SmtpTls::Implicit, SmtpBehaviour::Take);
    let it = mailing(&server, LOGIN.1);
    let job = it.clone().shards(50).prop("elasticjob.error.interval", "1h");
    let worker = Worker::new("embedded://").job(job).start().await.unwrap();
    let mut records = worker.records();
    let mut rounds = 0;
    while rounds < 20 {
        worker.trigger("settle").await.unwrap();
        super::items_finished(&mut records, 50).await;
        rounds += 1;
    }
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, worker.shutdown()).await.expect("it leaves");
    let mut told = 0;
    let mut mails = 0;
    while told < 20 * 50 {
        let text = mail(&server)["data"].as_str().unwrap().replace("=\r\n", "");
        let count = text.split(" failures, from ").next().unwrap().rsplit("<pre>").next().unwrap();
        told += count.parse::<u64>().unwrap_or(1); // One alone is not counted.
        mails += 1;
    }
    assert_eq!(told, 20 * 50);
    assert!(mails <= 2, "{mails}");
    assert_eq!(server.unseen(), 0);
}
