//! The command, as somebody in a shell would use it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use elasticjob_testkit::{Smtp, SmtpBehaviour, SmtpTls, Web};
use rustix::process::{Pid, Signal, kill_process};

fn elasticjob(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_elasticjob"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn jobs_file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.yaml");
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

/// Exit code, what went to stdout, and to stderr.
fn ended(child: Child) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn fails(with: i32, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = ended(elasticjob(arguments).spawn().unwrap());
    assert_eq!((code, stdout.as_str()), (Some(with), ""), "{stderr}");
    stderr
}

fn interrupt(child: &Child) {
    let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

/// Reads until all of these have been seen.
fn read_until(child: &mut Child, mut wanted: Vec<&str>) -> Vec<String> {
    let mut seen = Vec::new();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    while !wanted.is_empty() {
        let line = lines.next().expect("the command goes on").unwrap();
        wanted.retain(|it| !line.contains(it));
        seen.push(line);
    }
    seen
}

#[test]
fn the_first_command_of_the_readme_shows_which_shard_ran_where_and_when() {
    let hello = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/hello.yaml");
    let mut child = elasticjob(&["run", hello.to_str().unwrap()]).spawn().unwrap();
    let seen = read_until(&mut child, vec!["shard 0 ok", "shard 1 ok", "shard 2 ok"]);
    interrupt(&child);
    let shown = seen.iter().find(|line| line.contains("shard 0 ok")).unwrap();
    for part in ["greet", "due ", "next ", "@-@", " ms on "] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(seen.iter().any(|line| line.contains(r#""shardingParameter":"Guangzhou""#)), "{seen:?}");
    let (code, _, stderr) = ended(child);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("every 5 seconds"), "{stderr}");
    assert!(stderr.contains("leaving"), "{stderr}");
}

#[test]
fn ctrl_c_lets_a_running_script_end() {
    let (dir, path) = jobs_file(
        "registry: embedded://\njobs:\n  slow:\n    script: sh -c 'echo begun; sleep 1; touch \"$0\"/done' ${OUT}\n    cron: '* * * * * ?'\n",
    );
    let mut command = elasticjob(&["run", "--quiet", path.to_str().unwrap()]);
    let mut child = command.env("OUT", dir.path()).spawn().unwrap();
    read_until(&mut child, vec!["begun"]);
    interrupt(&child);
    let (code, ..) = ended(child);
    assert_eq!(code, Some(0));
    assert!(dir.path().join("done").exists());
}

#[test]
fn two_processes_cannot_share_a_registry_on_disk() {
    let home = tempfile::tempdir().unwrap();
    let text = format!(
        "registry: embedded://{}\njobs:\n  tick: {{ script: echo tick, cron: '* * * * * ?' }}\n",
        home.path().join("store").display()
    );
    let (_dir, path) = jobs_file(&text);
    let mut first = elasticjob(&["run", path.to_str().unwrap()]).spawn().unwrap();
    read_until(&mut first, vec!["tick"]);
    let error = fails(4, &["run", path.to_str().unwrap()]);
    assert!(error.contains("store") && error.contains("another process"), "{error}");
    interrupt(&first);
    assert_eq!(ended(first).0, Some(0));
    // What was stored is there for the next one.
    let mut again = elasticjob(&["run", path.to_str().unwrap()]).spawn().unwrap();
    read_until(&mut again, vec!["shard 0 ok"]);
    interrupt(&again);
    let mut rest = String::new();
    again.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!(ended(again).0, Some(0));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let said = fails(1, &["run", "/no/such/jobs.yaml"]);
    assert!(said.contains("/no/such/jobs.yaml"), "{said}");
    let (_dir, path) =
        jobs_file("registry: embedded://\njobs:\n  a:\n    script: echo\n    failover: maybe\n");
    let said = fails(1, &["run", path.to_str().unwrap()]);
    assert!(said.contains("jobs.yaml:5:15: jobs.a.failover `maybe` is no boolean"), "{said}");
    let (_dir, path) = jobs_file("registry: embedded://\njobs:\n  a: { cron: 0 0 2 * * ? }\n");
    let said = fails(1, &["run", path.to_str().unwrap()]);
    assert!(said.contains("job `a` has neither a script nor code here"), "{said}");
    let (_dir, path) = jobs_file("jobs:\n  a: { script: echo }\n");
    let said = fails(1, &["run", path.to_str().unwrap()]);
    assert!(said.contains("no registry"), "{said}");
    let (_dir, path) = jobs_file("registry: nowhere://x\njobs:\n  a: { script: echo }\n");
    let said = fails(2, &["run", path.to_str().unwrap()]);
    assert!(said.contains("nowhere"), "{said}");
    let nobody = elasticjob_testkit::free_ports(1)[0];
    let url = format!("zookeeper://127.0.0.1:{nobody}/jobs?max-sleep=100ms&max-retries=1");
    let (_dir, path) = jobs_file(&format!("registry: {url}\njobs:\n  a: {{ script: echo }}\n"));
    let said = fails(4, &["run", path.to_str().unwrap()]);
    assert!(said.contains("cannot be reached") && said.lines().count() == 1, "{said}");
}

#[test]
fn the_example_of_error_handlers_sends_a_mail_and_calls_a_hook() {
    let mail_server = Smtp::start(SmtpTls::None, Some(("jobs", "s3cret")), SmtpBehaviour::Take);
    let hook = Web::start();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/error-handlers.yaml");
    let start = |password: Option<&str>| {
        let mut command = elasticjob(&["run", "--quiet", file.to_str().unwrap()]);
        command.env("SMTP_HOST", "localhost").env("SMTP_PORT", mail_server.port().to_string());
        command.env("HOOK_URL", hook.url()).env("HOOK_TOKEN", "t0ken");
        password.map(|it| command.env("SMTP_PASSWORD", it));
        command.spawn().unwrap()
    };
    let (code, _, stderr) = ended(start(None));
    assert_eq!(code, Some(1));
    assert!(stderr.contains("job `settle`: error handler EMAIL: property email.password needs the environment variable SMTP_PASSWORD"), "{stderr}");

    let child = start(Some("s3cret"));
    let mail: serde_json::Value = serde_json::from_str(&mail_server.mail()).unwrap();
    assert_eq!((mail["user"].as_str(), mail["to"][0].as_str()), (Some("jobs"), Some("ops@example.com")));
    let text = mail["data"].as_str().unwrap().replace("=\r\n", "");
    assert!(text.contains("Job 'settle' exception occur in job processing"), "{text}");
    let request = hook.request();
    assert_eq!(request.header("authorization"), Some("Bearer t0ken"));
    assert!(request.body.contains("the database is away"), "{request:?}");
    interrupt(&child);
    let (code, _, stderr) = ended(child);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("Job 'settle' exception occur in job processing: `sh` ended"), "{stderr}");
    assert!(!stderr.contains("s3cret") && !stderr.contains("t0ken"), "{stderr}");
}

/// The lines of stderr that say where ports are.
fn ports(child: &mut Child) -> (String, String) {
    let (mut status, mut dump) = (None, None);
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    while status.is_none() || dump.is_none() {
        let line = lines.next().expect("the command goes on").unwrap();
        status = status.or_else(|| line.strip_prefix("status port: ").map(str::to_owned));
        dump = dump.or_else(|| line.strip_prefix("dump port: ").map(str::to_owned));
    }
    (status.unwrap(), dump.unwrap())
}

fn get(address: &str, path: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn ports_and_an_event_file_are_opened_when_asked_for() {
    let (dir, path) = jobs_file(
        "registry: embedded://\nworker: {statusPort: 99, dumpPort: 0}\njobs:\n  tick: { script: echo tick, cron: '* * * * * ?' }\n",
    );
    let events = dir.path().join("events.jsonl");
    let file = events.to_str().unwrap();
    // The command line comes before the file.
    let asked = ["run", path.to_str().unwrap(), "--status-port", "127.0.0.1:0", "--event-file", file];
    let mut child = elasticjob(&asked).spawn().unwrap();
    let (status, dump) = ports(&mut child);
    read_until(&mut child, vec!["shard 0 ok"]);
    assert!(get(&status, "/readyz").ends_with("\r\n\r\nready\n"));
    assert!(get(&status, "/metrics").contains("elasticjob_rounds_total{job=\"tick\",source=\"schedule\"} "));
    assert!(get(&status, "/events").contains("\"event\":\"item-finished\""));
    let (code, out, _) = ended(elasticjob(&["job", "dump", "tick", "--from", &dump]).spawn().unwrap());
    assert!(code == Some(0) && out.contains("/tick/servers/ip1 | ENABLED\n"), "{out}");
    interrupt(&child);
    assert_eq!(ended(child).0, Some(0));
    let kept = std::fs::read_to_string(&events).unwrap();
    assert!(kept.lines().last().unwrap().contains("\"event\":\"stopped\",\"reason\":\"left\""), "{kept}");

    let said = fails(1, &["run", path.to_str().unwrap(), "--status-port", "8.8.8.8:1"]);
    assert!(said.starts_with("error: cannot open the status port at 8.8.8.8:1: "), "{said}");
    let wrong = elasticjob(&["run", path.to_str().unwrap(), "--dump-port", "here"]).spawn().unwrap();
    let (code, _, said) = ended(wrong);
    assert!(code == Some(2) && said.contains("'here'") && said.contains("write 9400"), "{said}");
}
