//! What can go wrong between a session and its ensemble, with a real server and a network that can be cut.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use elasticjob::registry::{
    self, Change, CommitError, Entry, Focus, Kind, Op, RegistryError, Session, Watch, WatchEvent,
};
use elasticjob_testkit::proxy::Weather;
use elasticjob_testkit::{Ensemble, Proxy, ZooKeeper, free_ports};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

static SERVER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);

const QUICK: &str = "session-timeout=4s&base-sleep=50ms&max-sleep=500ms&max-retries=20";
const TIMEOUT: Duration = Duration::from_secs(4);
const LONG: Duration = Duration::from_secs(90);

async fn connect(url: &str) -> Arc<dyn Session> {
    registry::open(url).unwrap().connect().await.unwrap()
}

async fn error(url: &str) -> String {
    match registry::open(url) {
        Ok(registry) => registry.connect().await.err().unwrap().to_string(),
        Err(error) => error.to_string(),
    }
}

async fn next(watch: &mut Watch) -> WatchEvent {
    timeout(LONG, watch.next()).await.expect("something happens")
}

async fn snapshot(watch: &mut Watch) -> Vec<Entry> {
    match next(watch).await {
        WatchEvent::Snapshot(entries) => entries,
        other => panic!("a snapshot, not {other:?}"),
    }
}

fn paths(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|it| it.path.as_str()).collect()
}

fn create(path: &str, kind: Kind) -> Op {
    Op::Create { path: path.into(), data: String::new(), kind }
}

async fn until_gone(session: &Arc<dyn Session>, parent: &str, name: &str) {
    let mut watch = session.watch(parent);
    let path = format!("/{name}");
    let mut there = paths(&snapshot(&mut watch).await).contains(&&*path);
    while there {
        if let WatchEvent::Changed(changes) = next(&mut watch).await {
            there = !changes.contains(&Change::Gone { path: path.clone() });
        }
    }
}

#[tokio::test]
async fn a_cut_suspends_and_the_same_session_comes_back() {
    let proxy = Proxy::start(SERVER.port()).await;
    let (a, b) = (connect(&proxy.url("cut", QUICK)).await, connect(&SERVER.url("cut", QUICK)).await);
    a.commit("/job", vec![create("/mine", Kind::Ephemeral)]).await.unwrap();
    let mut watch = a.watch("/job");
    assert_eq!(paths(&snapshot(&mut watch).await), ["", "/mine"]);
    for round in 0..3 {
        proxy.set(Weather::Cut);
        assert_eq!(next(&mut watch).await, WatchEvent::Suspended);
        let answer = a.commit("/job", vec![create("/lost", Kind::Ephemeral)]).await;
        assert!(matches!(answer, Err(CommitError::Unknown(_))), "{answer:?}");
        assert!(matches!(a.read("/job").await, Err(RegistryError::Unreachable(_))));
        let trust = a.trusted_for();
        assert!(trust > Duration::ZERO && trust < TIMEOUT, "{trust:?}");
        b.commit("/job", vec![create(&format!("/{round}"), Kind::Persistent)]).await.unwrap();
        proxy.set(Weather::Fair);
        let entries = snapshot(&mut watch).await;
        assert!(paths(&entries).contains(&&*format!("/{round}")) && paths(&entries).contains(&"/mine"));
        // And what follows is followed.
        b.commit("/job", vec![create(&format!("/{round}/after"), Kind::Persistent)]).await.unwrap();
        let WatchEvent::Changed(changes) = next(&mut watch).await else { panic!("a change") };
        assert_eq!(changes[0].path(), format!("/{round}/after"));
    }
}

#[tokio::test]
async fn a_half_open_connection_is_noticed_while_the_session_can_be_trusted() {
    let proxy = Proxy::start(SERVER.port()).await;
    let url = proxy.url("half-open", "session-timeout=8s&base-sleep=50ms&max-sleep=200ms&max-retries=20");
    let session = connect(&url).await;
    session.commit("/job", vec![create("/mine", Kind::Ephemeral)]).await.unwrap();
    let mut watch = session.watch("/job");
    snapshot(&mut watch).await;
    proxy.set(Weather::HalfOpen);
    let answer = timeout(LONG, session.commit("/job", vec![create("/x", Kind::Ephemeral)])).await.unwrap();
    assert!(matches!(answer, Err(CommitError::Unknown(_))), "{answer:?}");
    assert_eq!(next(&mut watch).await, WatchEvent::Suspended);
    assert!(session.trusted_for() > Duration::ZERO, "there is time left to come back");
    proxy.set(Weather::Cut);
    proxy.set(Weather::Fair);
    assert!(paths(&snapshot(&mut watch).await).contains(&"/mine"), "it is the same session");
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_the_snapshot_tells() {
    let proxy = Proxy::start(SERVER.port()).await;
    let session = connect(&proxy.url("lost", QUICK)).await;
    session.commit("/job", vec![create("", Kind::Persistent)]).await.unwrap();
    let mut watch = session.watch("/job");
    snapshot(&mut watch).await;
    proxy.set(Weather::Deaf);
    let answer = timeout(LONG, session.commit("/job", vec![create("/done", Kind::Ephemeral)])).await.unwrap();
    assert!(matches!(answer, Err(CommitError::Unknown(_))), "{answer:?}");
    assert_eq!(next(&mut watch).await, WatchEvent::Suspended);
    proxy.set(Weather::Cut);
    proxy.set(Weather::Fair);
    assert_eq!(paths(&snapshot(&mut watch).await), ["", "/done"]);
}

#[tokio::test]
async fn a_session_that_is_away_for_too_long_has_ended() {
    let proxy = Proxy::start(SERVER.port()).await;
    let (a, b) = (connect(&proxy.url("expiry", QUICK)).await, connect(&SERVER.url("expiry", QUICK)).await);
    a.commit("/job", vec![create("/mine", Kind::Ephemeral)]).await.unwrap();
    let mut watch = a.watch("/job");
    snapshot(&mut watch).await;
    proxy.set(Weather::Cut);
    assert_eq!(next(&mut watch).await, WatchEvent::Suspended);
    until_gone(&b, "/job", "mine").await;
    assert_eq!(a.trusted_for(), Duration::ZERO, "trust ended before the session did");
    assert_eq!(watch.try_next(), None, "it cannot know yet");
    proxy.set(Weather::Fair);
    assert_eq!(next(&mut watch).await, WatchEvent::Ended);
    assert_eq!(a.commit("/job", vec![]).await, Err(CommitError::SessionEnded));
    assert!(matches!(a.children("").await, Err(RegistryError::SessionEnded)));
    assert_eq!(a.watch("/job").next().await, WatchEvent::Ended);
    a.close().await;
}

#[tokio::test]
async fn a_slow_network_changes_nothing_but_the_time() {
    let proxy = Proxy::start(SERVER.port()).await;
    proxy.set(Weather::Slow(Duration::from_millis(30)));
    let registry = registry::open(&proxy.url("slow", QUICK)).unwrap();
    registry::conformance::a_refusal_comes_after_what_refused_it(&registry).await;
    registry::conformance::changes_come_in_commit_order_across_sessions(&registry).await;
}

#[tokio::test]
async fn a_mirror_is_true_again_after_every_outage() {
    let proxy = Proxy::start(SERVER.port()).await;
    let (a, b) = (connect(&proxy.url("flap", QUICK)).await, connect(&SERVER.url("flap", QUICK)).await);
    let mut watch = a.watch("/job");
    let mut mirror: BTreeMap<String, Entry> = BTreeMap::new();
    let writing = tokio::spawn(async move {
        for n in 0..600 {
            let path = format!("/{}", n % 7);
            let ops = vec![create(&path, Kind::Persistent)];
            if b.commit("/job", ops).await.is_err() {
                b.commit("/job", vec![Op::Delete { path }]).await.unwrap();
            }
            if n % 60 == 30 {
                proxy.break_connections();
            }
        }
        b.commit("/job", vec![create("/end", Kind::Persistent)]).await.unwrap();
        (proxy, b)
    });
    let mut outages = 0;
    while !mirror.contains_key("/end") {
        match next(&mut watch).await {
            WatchEvent::Snapshot(entries) => {
                mirror = entries.into_iter().map(|it| (it.path.clone(), it)).collect();
            }
            WatchEvent::Changed(changes) => {
                for change in changes {
                    match change {
                        Change::Put(entry) => drop(mirror.insert(entry.path.clone(), entry)),
                        Change::Gone { path } => assert!(mirror.remove(&path).is_some(), "{path} was there"),
                    }
                }
            }
            WatchEvent::Suspended => outages += 1,
            WatchEvent::Ended | WatchEvent::Sees(_) => panic!("it goes on"),
        }
    }
    let (_proxy, b) = writing.await.unwrap();
    assert_eq!(mirror.into_values().collect::<Vec<_>>(), b.read("/job").await.unwrap());
    assert!(outages > 0, "there was an outage");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_keeps_sessions_and_watches() {
    let mut server = ZooKeeper::start();
    let url = server.url("restart", "session-timeout=8s&base-sleep=50ms&max-sleep=200ms&max-retries=20");
    let session = connect(&url).await;
    session.commit("/job", vec![create("/mine", Kind::Ephemeral)]).await.unwrap();
    let mut watch = session.watch("/job");
    snapshot(&mut watch).await;
    server.kill();
    assert_eq!(next(&mut watch).await, WatchEvent::Suspended);
    let server = tokio::task::spawn_blocking(move || {
        server.restart();
        server
    });
    assert!(paths(&snapshot(&mut watch).await).contains(&"/mine"));
    let other = connect(&url).await;
    other.commit("/job", vec![create("/theirs", Kind::Ephemeral)]).await.unwrap();
    assert!(matches!(next(&mut watch).await, WatchEvent::Changed(_)));
    drop(server.await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ensemble_that_loses_its_leader_goes_on() {
    let mut ensemble = tokio::task::spawn_blocking(Ensemble::start).await.unwrap();
    let url = ensemble.url("ensemble", "session-timeout=20s&base-sleep=50ms&max-sleep=500ms&max-retries=29");
    let mut sessions = Vec::new();
    for n in 0..3 {
        let session = connect(&url).await;
        session.commit("/job", vec![create(&format!("/member-{n}"), Kind::Ephemeral)]).await.unwrap();
        let mut watch = session.watch("/job");
        snapshot(&mut watch).await;
        sessions.push((session, watch));
    }
    registry::conformance::a_mirror_is_what_a_reader_sees_however_many_write(&registry::open(&url).unwrap())
        .await;
    let leader = ensemble.leader().expect("there is a leader");
    ensemble.servers[leader].kill();
    for (n, (session, watch)) in sessions.iter_mut().enumerate() {
        let path = format!("/after-{n}");
        let begin = Instant::now();
        // Until a new leader is there.
        while session.commit("/job", vec![create(&path, Kind::Persistent)]).await.is_err() {
            assert!(begin.elapsed() < LONG, "a new leader is found");
            tokio::time::sleep(Duration::from_millis(100)).await;
            if session.children("/job").await.is_ok_and(|it| it.contains(&path[1..].to_owned())) {
                break;
            }
        }
        let mut seen: Vec<String> = Vec::new();
        while !seen.contains(&path) {
            match next(watch).await {
                WatchEvent::Snapshot(entries) => seen.extend(entries.into_iter().map(|it| it.path)),
                WatchEvent::Changed(changes) => seen.extend(changes.iter().map(|it| it.path().to_owned())),
                WatchEvent::Suspended => {}
                WatchEvent::Ended | WatchEvent::Sees(_) => panic!("the session lives"),
            }
        }
        assert!(session.children("/job").await.unwrap().contains(&format!("member-{n}")), "it kept its node");
    }
}

#[tokio::test]
async fn what_cannot_be_reached_is_named_after_the_configured_wait() {
    let port = free_ports(1)[0];
    let begin = Instant::now();
    let said = error(&format!(
        "zookeeper://127.0.0.1:{port},localhost:{port}/n?max-sleep=300ms&max-retries=2&base-sleep=50ms"
    ))
    .await;
    assert!(begin.elapsed() >= Duration::from_millis(600), "{:?}", begin.elapsed());
    assert!(
        said.contains(&format!("127.0.0.1:{port},localhost:{port} does not serve us within 600ms")),
        "{said}"
    );
    assert!(said.contains("refused"), "{said}");
}

#[tokio::test]
async fn a_wrong_digest_is_said_and_not_shown() {
    let with = |digest: &str| SERVER.url("secret/place", &format!("{QUICK}&digest={digest}"));
    let owner = connect(&with("me:open-sesame")).await;
    owner
        .commit("/job", vec![create("/a/b", Kind::Persistent), Op::Enqueue { prefix: "/l/n-".into() }])
        .await
        .unwrap();
    assert_eq!(owner.children("/job").await.unwrap(), ["a", "l"]);
    assert_eq!(connect(&with("me:open-sesame")).await.read("/job").await.unwrap().len(), 5);
    for url in [with("me:wrong-sesame"), SERVER.url("secret/place", QUICK)] {
        let said = error(&url).await;
        assert!(said.contains("denies access to `/secret/place`: the digest is missing"), "{said}");
        assert!(!said.contains("sesame"), "{said}");
        let shown = format!("{:?}", registry::open(&url).unwrap());
        assert!(!shown.contains("sesame"), "{shown}");
    }
    let said = error(&with("sesame")).await;
    assert!(
        said.contains("is not a digest: write it as `user:password`") && !said.contains("sesame"),
        "{said}"
    );
    // A job inside an open namespace that somebody else protects.
    let (open, locked) = ("shared", "shared/locked");
    connect(&SERVER.url(open, QUICK)).await.commit("", vec![create("/x", Kind::Persistent)]).await.unwrap();
    let owner = connect(&SERVER.url(locked, &format!("{QUICK}&digest=me:open-sesame"))).await;
    owner.commit("", vec![create("/job", Kind::Persistent)]).await.unwrap();
    let stranger = connect(&SERVER.url(open, QUICK)).await;
    let answer = stranger.commit("/locked", vec![create("/mine", Kind::Persistent)]).await;
    assert_eq!(answer, Err(CommitError::Denied { path: "/shared/locked".into() }));
    assert!(matches!(stranger.read("/locked").await, Err(RegistryError::Denied(_))));
}

#[tokio::test]
async fn a_digest_can_come_from_a_file_or_the_environment() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("digest");
    std::fs::write(&file, "me:from-a-file\n").unwrap();
    let by_file = connect(&SERVER.url("digests", &format!("{QUICK}&digest-file={}", file.display()))).await;
    by_file.commit("/job", vec![create("/a", Kind::Persistent)]).await.unwrap();
    let direct = connect(&SERVER.url("digests", &format!("{QUICK}&digest=me:from-a-file"))).await;
    assert_eq!(direct.children("/job").await.unwrap(), ["a"]);
    let said = error(&SERVER.url("digests", &format!("{QUICK}&digest-env=NO_SUCH_VARIABLE"))).await;
    assert!(said.contains("the environment has no variable `NO_SUCH_VARIABLE`"), "{said}");
    let said = error(&SERVER.url("digests", &format!("{QUICK}&digest-file=/no/such/file"))).await;
    assert!(said.contains("/no/such/file"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_too_old_is_said_to_be() {
    let server = tokio::task::spawn_blocking(ZooKeeper::start_old).await.unwrap();
    let said = error(&server.url("n", QUICK)).await;
    let port = server.port();
    assert!(said.contains(&format!("ZooKeeper at 127.0.0.1:{port} is older than 3.6")), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_can_only_be_read_is_not_enough() {
    let server = tokio::task::spawn_blocking(ZooKeeper::start_read_only).await.unwrap();
    assert!(server.ask("srvr").unwrap().contains("Mode: read-only"));
    let said = error(&server.url("n", "max-sleep=300ms&max-retries=2&base-sleep=50ms")).await;
    let port = server.port();
    assert!(
        said.contains(&format!("ZooKeeper at 127.0.0.1:{port} does not serve us within 600ms")),
        "{said}"
    );
    assert!(said.contains("without a majority does, or a read-only one"), "{said}");
    assert!(said.contains("check the addresses, and that a majority of the servers runs"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_wants_to_know_who_we_are_is_told_or_said_to_ask_for_what_we_have_not() {
    let start = |settings: &'static str| async move {
        tokio::task::spawn_blocking(move || ZooKeeper::start_with(settings)).await.unwrap()
    };
    let wants_digest = start("enforce.auth.enabled=true\nenforce.auth.schemes=digest").await;
    let said = error(&wants_digest.url("n", QUICK)).await;
    assert!(said.contains("only those who say who they are: give a digest"), "{said}");
    connect(&wants_digest.url("n", &format!("{QUICK}&digest=me:sesame"))).await;
    let wants_sasl = start(
        "sessionRequireClientSASLAuth=true\nauthProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    )
    .await;
    for settings in [QUICK.to_owned(), format!("{QUICK}&digest=me:sesame")] {
        let said = error(&wants_sasl.url("n", &settings)).await;
        assert!(said.contains("nothing but SASL cannot be used"), "{said}");
    }
}

#[tokio::test]
async fn a_peer_that_speaks_something_else_is_not_a_server() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let said = error(&format!("zookeeper://127.0.0.1:{port}/n?max-sleep=300ms&max-retries=1")).await;
    assert!(said.contains("what answers is not ZooKeeper"), "{said}");
}

#[tokio::test]
async fn what_is_too_large_is_refused_before_it_is_sent() {
    let session = connect(&SERVER.url("large", QUICK)).await;
    let data = "x".repeat(600_000);
    let op = |path: &str| Op::Create { path: path.into(), data: data.clone(), kind: Kind::Persistent };
    let answer = session.commit("/job", vec![op("/a"), op("/b")]).await;
    let Err(CommitError::TooLarge { size, limit }) = answer else { panic!("{answer:?}") };
    assert!(size > 1_200_000 && limit == 1_048_575, "{size} {limit}");
    session.commit("/job", vec![op("/a")]).await.unwrap();
    session.commit("/job", vec![op("/b")]).await.unwrap();
    assert_eq!(session.read("/job").await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_vanished_is_made_again() {
    let server = tokio::task::spawn_blocking(|| {
        ZooKeeper::start_with_containers_cleared_every(Duration::from_millis(300))
    });
    let server = server.await.unwrap();
    let (a, b) = (connect(&server.url("lines", QUICK)).await, connect(&server.url("lines", QUICK)).await);
    let mut watch = b.watch("/job");
    snapshot(&mut watch).await;
    for _ in 0..2 {
        a.commit("/job", vec![Op::Enqueue { prefix: "/leader/latch/_c_x-latch-".into() }]).await.unwrap();
        let names = a.children("/job/leader/latch").await.unwrap();
        assert_eq!(names, ["_c_x-latch-0000000000"], "a new line counts anew");
        a.commit("/job", vec![Op::Delete { path: format!("/leader/latch/{}", names[0]) }]).await.unwrap();
        until_gone(&b, "/job/leader", "latch").await;
        assert_eq!(b.children("/job").await.unwrap(), ["leader"], "only the line goes");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_needs_the_right_certificates_on_both_sides() {
    let (server, tls) = tokio::task::spawn_blocking(ZooKeeper::start_with_tls).await.unwrap();
    let port = server.secure_port();
    // What is to fail is tried for two seconds; what is to work has all the time that a busy machine needs.
    let with = |wait: &str, settings: String| {
        format!("zookeeper://127.0.0.1:{port}/tls?max-sleep={wait}&max-retries=4&{settings}")
    };
    let url = |settings: String| with("500ms", settings);
    let (ca, cert, key) = (tls.ca.display(), tls.certificate.display(), tls.key.display());
    let session = connect(&with("15s", format!("tls-ca={ca}&tls-cert={cert}&tls-key={key}"))).await;
    session.commit("/job", vec![create("/a", Kind::Persistent)]).await.unwrap();
    let data = "x".repeat(700_000);
    let large = Op::Create { path: "/large".into(), data, kind: Kind::Persistent };
    session.commit("/job", vec![large]).await.unwrap();
    assert_eq!(session.read("/job").await.unwrap().len(), 3);
    let said = error(&url(format!("tls-ca={ca}"))).await;
    assert!(said.contains("does not serve us"), "{said}");
    let said = error(&url(format!("tls-ca={cert}&tls-cert={cert}&tls-key={key}"))).await;
    assert!(said.contains("certificate"), "{said}");
    let said = error(&url(format!("tls-ca={key}"))).await;
    assert!(said.contains("there is no certificate in it"), "{said}");
}

#[tokio::test]
async fn less_is_followed_when_less_is_wanted_and_it_is_said_when() {
    let (a, b) = (connect(&SERVER.url("focus", QUICK)).await, connect(&SERVER.url("focus", QUICK)).await);
    let put =
        |path: &str, data: &str| Op::Create { path: path.into(), data: data.into(), kind: Kind::Persistent };
    let ops = (0..4).flat_map(|n| {
        [put(&format!("/sharding/{n}/instance"), "x"), put(&format!("/sharding/{n}/running"), "x")]
    });
    a.commit(
        "/job",
        ops.chain([put("/config", "c"), put("/servers/1", "ENABLED"), put("/strange", "")]).collect(),
    )
    .await
    .unwrap();
    let owners =
        ["/sharding/0/instance", "/sharding/1/instance", "/sharding/2/instance", "/sharding/3/instance"];
    let common = ["", "/config", "/servers", "/servers/1"];
    let items = |it: &[u32]| Focus::Items(it.iter().copied().collect());

    let mut watch = b.watch("/job");
    watch.set_focus(items(&[]));
    assert_eq!(next(&mut watch).await, WatchEvent::Sees(items(&[])));
    assert_eq!(paths(&snapshot(&mut watch).await), [&common[..], &owners].concat());
    a.commit("/job", vec![Op::Delete { path: "/sharding/3/running".into() }, put("/instances/a", "")])
        .await
        .unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        // They may come in one piece or in two.
        let WatchEvent::Changed(changes) = next(&mut watch).await else { panic!("a change") };
        seen.extend(changes.iter().map(|it| it.path().to_owned()));
    }
    assert_eq!(seen, ["/instances", "/instances/a"]);

    watch.set_focus(items(&[1, 2]));
    let WatchEvent::Changed(changes) = next(&mut watch).await else { panic!("first what there is to see") };
    let added = ["/sharding/1", "/sharding/1/running", "/sharding/2", "/sharding/2/running"];
    assert_eq!(changes.iter().map(Change::path).collect::<Vec<_>>(), added);
    assert_eq!(next(&mut watch).await, WatchEvent::Sees(items(&[1, 2])));

    watch.set_focus(items(&[2, 3]));
    assert_eq!(next(&mut watch).await, WatchEvent::Sees(items(&[2])), "first what is left");
    let WatchEvent::Changed(changes) = next(&mut watch).await else { panic!("then what is forgotten") };
    let gone = |path: &str| Change::Gone { path: path.into() };
    assert_eq!(changes, [gone("/sharding/1"), gone("/sharding/1/running")]);
    let WatchEvent::Changed(changes) = next(&mut watch).await else { panic!("then what is new") };
    assert_eq!(changes.iter().map(Change::path).collect::<Vec<_>>(), ["/sharding/3"]);
    assert_eq!(next(&mut watch).await, WatchEvent::Sees(items(&[2, 3])));

    // Owners are looked at when an assignment is done.
    let necessary = "/leader/sharding/necessary";
    a.commit("/job", vec![put(necessary, "")]).await.unwrap();
    while !matches!(next(&mut watch).await, WatchEvent::Changed(it) if it.iter().any(|it| it.path() == necessary))
    {
    }
    let moved = vec![
        Op::Delete { path: owners[0].into() },
        Op::Set { path: owners[1].into(), data: "y".into(), version: None },
        put("/sharding/4/instance", "z"),
        Op::Delete { path: necessary.into() },
    ];
    a.commit("/job", moved).await.unwrap();
    let WatchEvent::Changed(changes) = next(&mut watch).await else { panic!("a change") };
    let changed: Vec<&str> = changes.iter().map(Change::path).collect();
    assert_eq!(changed, ["/sharding/0/instance", "/sharding/1/instance", "/sharding/4/instance", necessary]);

    watch.set_focus(Focus::Everything);
    let WatchEvent::Changed(changes) = next(&mut watch).await else { panic!("the rest") };
    assert!(changes.iter().any(|it| it.path() == "/strange"));
    assert_eq!(next(&mut watch).await, WatchEvent::Sees(Focus::Everything));
    let mut whole = b.watch("/job");
    assert_eq!(snapshot(&mut whole).await, b.read("/job").await.unwrap());
    assert_eq!(watch.try_next(), None);
}

#[tokio::test]
async fn a_focus_survives_an_outage() {
    let proxy = Proxy::start(SERVER.port()).await;
    let session = connect(&proxy.url("focus-outage", QUICK)).await;
    let put = |path: &str| create(path, Kind::Persistent);
    session.commit("/job", vec![put("/sharding/0/running"), put("/sharding/1/running")]).await.unwrap();
    let mut watch = session.watch("/job");
    let first = Focus::Items([0].into());
    watch.set_focus(first.clone());
    assert_eq!(next(&mut watch).await, WatchEvent::Sees(Focus::Items([].into())));
    assert_eq!(paths(&snapshot(&mut watch).await), ["", "/sharding/0", "/sharding/0/running"]);
    assert_eq!(next(&mut watch).await, WatchEvent::Sees(first));
    proxy.set(Weather::Cut);
    assert_eq!(next(&mut watch).await, WatchEvent::Suspended);
    watch.set_focus(Focus::Items([1].into()));
    proxy.set(Weather::Fair);
    assert_eq!(next(&mut watch).await, WatchEvent::Sees(Focus::Items([].into())));
    assert_eq!(paths(&snapshot(&mut watch).await), ["", "/sharding/1", "/sharding/1/running"]);
    assert_eq!(next(&mut watch).await, WatchEvent::Sees(Focus::Items([1].into())));
    session.commit("/job", vec![put("/sharding/1/misfire"), put("/sharding/0/misfire")]).await.unwrap();
    let Some(WatchEvent::Changed(changes)) = watch.try_next() else {
        panic!("a commit is seen when it resolves")
    };
    assert_eq!(changes.iter().map(Change::path).collect::<Vec<_>>(), ["/sharding/1/misfire"]);
}
