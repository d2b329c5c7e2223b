//! The same job, run by Java and by us: scripts get the same words, services the same requests, dataflow jobs the
//! same calls.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use elasticjob::{DataflowJob, Job, JobError, RunningWorker, Shard, Worker};
use elasticjob_testkit::Web;
use elasticjob_testkit::web::Request;

use crate::notes::{Notes, note};
use crate::world::{Member, World};

/// Text that every layer between a document and a program might treat in its own way.
const ODD: &str = "a b<c>&d'e\"f\\g\u{2028}中";
const ITEMS: &str = "0=Beijing,1=x y";

pub(crate) fn words(pairs: &[(&str, &str)]) -> Vec<String> {
    pairs.iter().flat_map(|(name, value)| [format!("--{name}"), (*value).to_owned()]).collect()
}

/// Asks for a run once this is the only member.
pub(crate) async fn ask(world: &World, job: &str) {
    world.tree(job, "it is alone", |it| it.instances.len() == 1).await;
    world.ops().await.trigger(job, None).await.unwrap();
}

async fn start_rust(world: &World, job: Job) -> RunningWorker {
    Worker::new(world.url()).job(job).start().await.unwrap()
}

async fn java(world: &World, name: &str, notes: Option<&Notes>, job: &[(&str, &str)]) -> Member {
    let notes: Vec<&str> = notes.iter().flat_map(|it| ["--notes", it.path.to_str().unwrap()]).collect();
    let member = world.java_with(name, 1, &notes, &words(job));
    world.ready(&member).await;
    member
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_script_gets_the_same_words_from_both() {
    let world = World::new("scripts").await;
    let mut said = Notes::new(&world, "said");
    let script = world.home.path().join("script.sh");
    // How many words, and then these, in one piece.
    std::fs::write(&script, "printf '%s\\n' \"$#\" \"$@\" > \"$1\"\n").unwrap();
    let line = format!("sh {} {} 'one word' \"and another\" plain", script.display(), said.path.display());
    let of_java = [
        ("job", "report"),
        ("kind", "script"),
        ("count", "2"),
        ("parameter", ODD),
        ("item-parameters", ITEMS),
        ("pool", "SINGLE_THREAD"),
        ("prop.script.command.line", &line),
    ];
    let member = java(&world, "j1", Some(&said), &of_java).await;
    ask(&world, "report").await;
    let by_java = said.take(12, &world).await;
    member.leave().await;

    // The stored document counts: the job is Java's, not what is written here.
    let worker = start_rust(&world, Job::script("report", "false")).await;
    ask(&world, "report").await;
    let by_rust = said.take(12, &world).await;
    worker.shutdown().await;
    // Java leaves quotes around a word with a blank; `docs/jobs.md` says so.
    let by_rust: Vec<String> = by_rust.iter().map(|it| as_java_quotes(it)).collect();
    assert_eq!(anonymous(&by_rust), anonymous(&by_java));
    let context = by_java.iter().find(|it| it.starts_with('{')).unwrap();
    assert!(
        context.starts_with(r#"{"jobName":"report","taskId":"report@-@0,1@-@READY@-@10.0.0.1@-@"#),
        "{context}"
    );
}

fn as_java_quotes(word: &str) -> String {
    if word.contains(' ') && !word.starts_with('{') { format!("\"{word}\"") } else { word.to_owned() }
}

/// Without the instance in the task's name, which differs, and sorted: items run in any order.
fn anonymous(lines: &[String]) -> Vec<String> {
    let strip = |line: &String| match (line.find("@-@READY@-@"), line.find("\",\"shardingTotalCount\"")) {
        (Some(from), Some(to)) => format!("{}{}", &line[..from], &line[to..]),
        _ => line.clone(),
    };
    let mut lines: Vec<String> = lines.iter().map(strip).collect();
    lines.sort();
    lines
}

/// What a service sees of two requests, without the address, sorted.
async fn requests(web: Arc<Web>) -> Vec<String> {
    let take = move || [web.request(), web.request()];
    let requests = tokio::task::spawn_blocking(take).await.unwrap();
    let said = requests.map(|it| {
        let of = |name| it.header(name).unwrap_or("none").to_owned();
        format!("{} {} {} {}", it.line, of("content-type"), of("shardingcontext"), it.body)
    });
    anonymous(&said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_service_gets_the_same_requests_from_both() {
    let world = World::new("http").await;
    let web = Arc::new(Web::start());
    let url = web.url();
    let methods =
        [("GET", None), ("POST", None), ("POST", Some("application/json")), ("PUT", None), ("DELETE", None)];
    for (number, (method, content_type)) in methods.into_iter().enumerate() {
        let job = format!("call-{number}");
        let mut of_java = vec![
            ("job", &*job),
            ("kind", "http"),
            ("count", "2"),
            ("parameter", ODD),
            ("item-parameters", ITEMS),
            ("prop.http.uri", &url),
            ("prop.http.method", method),
            ("prop.http.data", "a=中"),
        ];
        of_java.extend(content_type.map(|it| ("prop.http.content.type", it)));
        let member = java(&world, &job, None, &of_java).await;
        ask(&world, &job).await;
        let by_java = requests(web.clone()).await;
        member.leave().await;

        // The stored document counts.
        let worker = start_rust(&world, Job::http(&job, "http://127.0.0.1:1/")).await;
        ask(&world, &job).await;
        let by_rust = requests(web.clone()).await;
        worker.shutdown().await;
        // What is not ASCII we escape, so that every header can carry it; `docs/jobs.md` says so.
        let by_rust: Vec<String> = by_rust.iter().map(|it| it.replace("\\u4e2d", "中")).collect();
        assert_eq!(by_rust, by_java, "{method} {content_type:?}");
        let begins = format!("{method} / HTTP/1.1 ");
        assert!(
            by_java.iter().all(|it| it.starts_with(&begins) && it.contains("\"shardingItem\":")),
            "{by_java:?}"
        );
    }
}

/// A context without what differs between the two halves of one round: the name of the run, and the number.
fn of_either(context: &str, item: u32) -> String {
    let (from, to) = (context.find("\"taskId\"").unwrap(), context.find("\"shardingTotalCount\"").unwrap());
    let number = format!("\"shardingItem\":{item}");
    assert!(context.contains(&number), "{context}");
    format!("{}{}", &context[..from], &context[to..]).replace(&number, "\"shardingItem\":_")
}

/// Of two contexts one is Java's, and they say the same.
fn are_alike(mut contexts: [String; 2]) {
    contexts.sort_by_key(|it| it.contains("\"shardingItem\":1"));
    let by_java = contexts.iter().filter(|it| it.contains("@-@READY@-@10.0.0.1@-@")).count();
    assert_eq!(by_java, 1, "{contexts:#?}");
    let [first, second] = [0, 1].map(|item| of_either(&contexts[item as usize], item));
    assert_eq!(first, second);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn the_halves_of_a_round_that_both_share_are_alike() {
    let world = World::new("halves").await;
    let (mut said, web) = (Notes::new(&world, "said"), Arc::new(Web::start()));
    let script = world.home.path().join("script.sh");
    // The context, in one piece.
    std::fs::write(&script, "for it; do :; done\nprintf '%s\\n' \"$it\" > \"$1\"\n").unwrap();
    let line = format!("sh {} {}", script.display(), said.path.display());
    let shared = |job, kind| {
        let of_both = [("job", job), ("kind", kind), ("count", "2"), ("parameter", "a&b")];
        of_both.into_iter().chain([("item-parameters", "0=x y,1=x y")])
    };
    let scripts = shared("report", "script").chain([("prop.script.command.line", &*line)]);
    let (url, method) = (web.url(), ("prop.http.method", "POST"));
    let calls = shared("call", "http").chain([("prop.http.uri", &*url), method, ("prop.http.data", "a=1")]);
    let of_java: Vec<_> = scripts.chain(calls).collect();
    let member = java(&world, "j1", None, &of_java).await;
    // The stored documents count.
    let [report, call] = [Job::script("report", "false"), Job::http("call", "http://127.0.0.1:1/")];
    let worker = Worker::new(world.url()).job(report).job(call).start().await.unwrap();
    for job in ["report", "call"] {
        world.tree(job, "both are there", |it| it.instances.len() == 2).await;
        world.ops().await.trigger(job, None).await.unwrap();
    }
    let contexts = said.take(2, &world).await;
    are_alike(contexts.try_into().unwrap());
    let take = move || [web.request(), web.request()];
    let requests = tokio::task::spawn_blocking(take).await.unwrap();
    let seen =
        |it: &Request| (it.line.clone(), it.body.clone(), it.header("content-type").map(str::to_owned));
    assert_eq!(seen(&requests[0]), seen(&requests[1]));
    are_alike(requests.map(|it| it.header("shardingcontext").unwrap().to_owned()));
    worker.shutdown().await;
    member.leave().await;
}

/// The twin of `Jobs.Dataflow` in Java.
struct Batches {
    notes: PathBuf,
    next: Mutex<[u32; 2]>,
}

impl DataflowJob for Batches {
    type Item = u32;

    async fn fetch(&self, shard: &Shard) -> Result<Vec<u32>, JobError> {
        let data: Vec<u32> = {
            let mut next = self.next.lock().unwrap();
            let from = &mut next[shard.item as usize];
            let to = (*from + 2).min(5);
            let data = (*from..to).map(|it| shard.item * 10 + it).collect();
            *from = to;
            data
        };
        note(&self.notes, &format!("{} fetch {data:?}", shard.item))?;
        Ok(data)
    }

    async fn process(&self, shard: &Shard, data: Vec<u32>) -> Result<(), JobError> {
        note(&self.notes, &format!("{} process {data:?}", shard.item))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_dataflow_job_is_called_alike_by_both() {
    let world = World::new("dataflow").await;
    // Three batches and an empty one, or one batch, for each of two items.
    for (job, streaming, calls) in [("streaming", "true", 14), ("single", "false", 4)] {
        let mut notes = Notes::new(&world, job);
        let of_java =
            [("job", job), ("kind", "dataflow"), ("count", "2"), ("prop.streaming.process", streaming)];
        let member = java(&world, job, Some(&notes), &of_java).await;
        ask(&world, job).await;
        let by_java = notes.take(calls, &world).await;
        member.leave().await;

        let batches = Batches { notes: notes.path.clone(), next: Mutex::default() };
        let worker = start_rust(&world, Job::dataflow(job, batches)).await;
        ask(&world, job).await;
        let by_rust = notes.take(calls, &world).await;
        worker.shutdown().await;
        assert_eq!(per_item(&by_rust), per_item(&by_java), "{job}");
    }
}

/// Items run side by side; the calls of one have an order.
fn per_item(lines: &[String]) -> [Vec<&String>; 2] {
    ["0 ", "1 "].map(|item| lines.iter().filter(|it| it.starts_with(item)).collect())
}
