//! The laws that every registry keeps, as a test suite. What it means to break one is that two instances
//! disagree about who runs what.
//!
//! Each law is a function that panics when it is broken. It works below roots of its own, so laws can run
//! side by side and on a server that others use too.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
//! use elasticjob::registry::{self, conformance};
//!
//! let registry = registry::open("embedded://?session-timeout=100ms")?;
//! for law in conformance::LAWS.iter().take(3) {
//!     (law.check)(&registry).await;
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Change, CommitError, Entry, Kind, Op, Registry, RegistryError, Session, Watch, WatchEvent};

/// A law, with the sentence that it is.
///
/// ```
/// use elasticjob::registry::conformance::LAWS;
///
/// assert!(LAWS.iter().any(|law| law.name == "a_transaction_is_done_whole_or_not_at_all"));
/// ```
pub struct Law {
    /// The sentence.
    pub name: &'static str,
    /// Panics if the registry breaks it.
    pub check: for<'a> fn(&'a Arc<dyn Registry>) -> Checking<'a>,
}

/// A law that is being checked.
pub type Checking<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Law").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Holds a registry to all [`LAWS`], one after the other. Its session timeout should be short: one law waits
/// for it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
/// use elasticjob::registry::{self, conformance};
///
/// conformance::run_all(&registry::open("embedded://?session-timeout=100ms")?).await;
/// # Ok(())
/// # }
/// ```
pub async fn run_all(registry: &Arc<dyn Registry>) {
    for law in LAWS {
        (law.check)(registry).await;
    }
}

macro_rules! laws {
    ($($name:ident)*) => {
        /// All laws.
        pub const LAWS: &[Law] = &[
            $(Law { name: stringify!($name), check: |registry| Box::pin($name(registry)) },)*
        ];
    };
}

laws! {
    a_new_registry_shows_nothing_below_a_root
    parents_are_made_persistent_and_empty
    what_a_session_commits_every_session_reads
    ephemeral_nodes_live_with_their_session_and_persistent_ones_longer
    the_ephemeral_nodes_of_a_dropped_session_go_in_time
    a_closed_session_does_nothing_more
    a_session_that_ends_hears_just_that
    closing_twice_is_closing_once
    others_see_a_session_close
    sessions_own_only_their_own_nodes
    a_transaction_is_done_whole_or_not_at_all
    steps_of_a_transaction_see_the_steps_before_them
    a_conflict_names_the_node
    an_old_version_is_refused
    a_check_guards_without_changing
    a_node_with_children_is_not_deleted
    an_ephemeral_node_gets_no_children
    the_token_grows_with_every_life_of_a_node
    a_version_counts_the_settings_of_one_life
    a_line_numbers_its_waiters_in_order
    a_bad_path_is_refused
    a_watch_begins_with_the_whole_and_goes_on_without_gap_or_repetition
    a_commit_is_in_the_watch_when_it_resolves
    a_refusal_comes_after_what_refused_it
    changes_come_in_commit_order_across_sessions
    a_watch_waits_for_what_is_not_there_yet
    a_dropped_watch_disturbs_nobody
    the_names_of_two_roots_may_begin_alike
    children_are_the_names_below
    a_watcher_that_sleeps_wakes_to_the_truth
    many_steps_are_one_transaction
    a_mirror_is_what_a_reader_sees_however_many_write
}

/// Before anything is committed there is nothing.
pub async fn a_new_registry_shows_nothing_below_a_root(registry: &Arc<dyn Registry>) {
    let (session, root) = (connect(registry).await, new_root());
    assert_eq!(read(&session, &root).await, []);
    assert_eq!(children(&session, &root).await, [""; 0]);
    assert_eq!(session.watch(&root).next().await, WatchEvent::Snapshot(vec![]));
    assert!(session.trusted_for() > Duration::ZERO);
}

/// A node's parents come with it, and stay when it goes.
pub async fn parents_are_made_persistent_and_empty(registry: &Arc<dyn Registry>) {
    let (a, b, root) = (connect(registry).await, connect(registry).await, new_root());
    done(&a, &root, vec![ephemeral("/x/y/z", "data")]).await;
    a.close().await;
    let entries = read(&b, &root).await;
    let seen: Vec<_> = entries.iter().map(|it| (it.path.as_str(), it.data.as_str())).collect();
    assert_eq!(seen, [("", ""), ("/x", ""), ("/x/y", "")]);
}

/// Data, version and creator are the same for everybody, in the order of the paths.
pub async fn what_a_session_commits_every_session_reads(registry: &Arc<dyn Registry>) {
    let (a, b, root) = (connect(registry).await, connect(registry).await, new_root());
    done(&a, &root, vec![persistent("/b", "2"), persistent("/a", "1"), persistent("/a/c", "é\n{}")]).await;
    done(&a, &root, vec![set("/a", "1'", None)]).await;
    let entries = read(&b, &root).await;
    let seen: Vec<_> =
        entries.iter().map(|it| (it.path.as_str(), it.data.as_str(), it.stat.version)).collect();
    assert_eq!(seen, [("", "", 0), ("/a", "1'", 1), ("/a/c", "é\n{}", 0), ("/b", "2", 0)]);
    assert_eq!(entries, read(&a, &root).await);
    assert_eq!(read(&b, &format!("{root}/a")).await.len(), 2, "a root may be any node");
}

/// What is ephemeral goes at once when its session closes, and nothing else does.
pub async fn ephemeral_nodes_live_with_their_session_and_persistent_ones_longer(
    registry: &Arc<dyn Registry>,
) {
    let (a, b, root) = (connect(registry).await, connect(registry).await, new_root());
    done(&a, &root, vec![ephemeral("/e", ""), persistent("/p", ""), enqueue("/line/n-")]).await;
    assert_eq!(paths(&b, &root).await, ["", "/e", "/line", "/line/n-0000000000", "/p"]);
    a.close().await;
    let mut left = paths(&b, &root).await;
    left.retain(|it| it != "/line"); // A registry may clear an empty line away.
    assert_eq!(left, ["", "/p"]);
}

/// A member that vanishes without a word is given up when its timeout has passed.
pub async fn the_ephemeral_nodes_of_a_dropped_session_go_in_time(registry: &Arc<dyn Registry>) {
    let (a, b, root) = (connect(registry).await, connect(registry).await, new_root());
    done(&a, &root, vec![ephemeral("/e", "")]).await;
    let mut mirror = Mirror::of(&b, &root);
    mirror.until(|it| it.contains_key("/e")).await;
    drop(a);
    mirror.until(|it| !it.contains_key("/e")).await;
}

/// An ended session commits nothing, reads nothing, and its watches say that it has ended.
pub async fn a_closed_session_does_nothing_more(registry: &Arc<dyn Registry>) {
    let (session, root) = (connect(registry).await, new_root());
    let mut watch = session.watch(&root);
    session.close().await;
    assert_eq!(session.commit(&root, vec![persistent("/a", "")]).await, Err(CommitError::SessionEnded));
    assert!(matches!(session.read(&root).await, Err(RegistryError::SessionEnded)));
    assert!(matches!(session.children(&root).await, Err(RegistryError::SessionEnded)));
    assert_eq!(session.trusted_for(), Duration::ZERO);
    while let event = soon(watch.next()).await
        && event != WatchEvent::Ended
    {
        assert!(matches!(event, WatchEvent::Snapshot(_)), "{event:?}");
    }
    assert_eq!(soon(watch.next()).await, WatchEvent::Ended, "the end is final");
    assert_eq!(soon(session.watch(&root).next()).await, WatchEvent::Ended, "also of a new watch");
}

/// That its own nodes are gone would sound like an operator's order to stop.
pub async fn a_session_that_ends_hears_just_that(registry: &Arc<dyn Registry>) {
    let (session, root) = (connect(registry).await, new_root());
    done(&session, &root, vec![ephemeral("/e", "")]).await;
    let mut watch = session.watch(&root);
    assert!(matches!(soon(watch.next()).await, WatchEvent::Snapshot(nodes) if nodes.len() == 2));
    session.close().await;
    assert_eq!(soon(watch.next()).await, WatchEvent::Ended);
}

/// Nor does dropping it afterwards matter.
pub async fn closing_twice_is_closing_once(registry: &Arc<dyn Registry>) {
    let (a, b, root) = (connect(registry).await, connect(registry).await, new_root());
    done(&a, &root, vec![ephemeral("/e", "")]).await;
    a.close().await;
    done(&b, &root, vec![ephemeral("/e", "b's")]).await;
    a.close().await;
    drop(a);
    assert_eq!(paths(&b, &root).await, ["", "/e"]);
}

/// The end of a session is a change like any other.
pub async fn others_see_a_session_close(registry: &Arc<dyn Registry>) {
    let (a, b, root) = (connect(registry).await, connect(registry).await, new_root());
    done(&a, &root, vec![ephemeral("/e/1", ""), ephemeral("/e/2", "")]).await;
    let mut mirror = Mirror::of(&b, &root);
    mirror.until(|it| it.contains_key("/e/1") && it.contains_key("/e/2")).await;
    a.close().await;
    mirror.until(|it| it.keys().map(String::as_str).eq(["", "/e"])).await;
}

/// That somebody else set a node, or watches it, does not make it theirs.
pub async fn sessions_own_only_their_own_nodes(registry: &Arc<dyn Registry>) {
    let (a, b, root) = (connect(registry).await, connect(registry).await, new_root());
    done(&a, &root, vec![ephemeral("/a", "")]).await;
    done(&b, &root, vec![ephemeral("/b", ""), set("/a", "b was here", None)]).await;
    b.close().await;
    assert_eq!(paths(&a, &root).await, ["", "/a"]);
    let c = connect(registry).await;
    done(&c, &root, vec![delete("/a"), ephemeral("/a", "c's")]).await;
    a.close().await;
    assert_eq!(paths(&c, &root).await, ["", "/a"], "a deleted node is nobody's");
}

/// One step that fails takes all others back.
pub async fn a_transaction_is_done_whole_or_not_at_all(registry: &Arc<dyn Registry>) {
    let (session, root) = (connect(registry).await, new_root());
    done(&session, &root, vec![persistent("/a", "1"), ephemeral("/e", "")]).await;
    let before = read(&session, &root).await;
    let good = || {
        vec![
            set("/a", "2", None),
            delete("/e"),
            persistent("/b/c", ""),
            ephemeral("/f", ""),
            enqueue("/l/n-"),
        ]
    };
    let bad = [delete("/nowhere"), persistent("/a", ""), set("/a", "", Some(7)), check("/x", None)];
    for bad in bad {
        let steps: Vec<Op> = good().into_iter().chain([bad.clone()]).collect();
        refused(&session, &root, steps).await;
        assert_eq!(read(&session, &root).await, before, "after {bad:?}");
    }
    done(&session, &root, good()).await;
    assert_eq!(paths(&session, &root).await, ["", "/a", "/b", "/b/c", "/f", "/l", "/l/n-0000000000"]);
}

/// A node can be made, looked at, set and deleted within one transaction.
pub async fn steps_of_a_transaction_see_the_steps_before_them(registry: &Arc<dyn Registry>) {
    let (session, root) = (connect(registry).await, new_root());
    let ops = vec![
        persistent("/a", "1"),
        check("/a", Some(0)),
        set("/a", "2", Some(0)),
        persistent("/b", ""),
        delete("/b"),
    ];
    done(&session, &root, ops).await;
    let entries = read(&session, &root).await;
    assert_eq!(entries.iter().map(|it| it.data.as_str()).collect::<Vec<_>>(), ["", "2"]);
    done(&session, &root, vec![delete("/a"), persistent("/a", "3")]).await;
    refused(&session, &root, vec![delete("/a"), check("/a", None)]).await;
}

/// The first node that does not fit, as the operation spells it.
pub async fn a_conflict_names_the_node(registry: &Arc<dyn Registry>) {
    let (session, root) = (connect(registry).await, new_root());
    done(&session, &root, vec![persistent("/a", "")]).await;
    let cases = [
        (persistent("/a", ""), "/a"),
        (ephemeral("/a", ""), "/a"),
        (check("/b/c", None), "/b/c"),
        (set("/b", "", None), "/b"),
        (set("/a", "", Some(1)), "/a"),
        (delete("/b"), "/b"),
        (delete(""), ""),
    ];
    for (op, path) in cases {
        let answer = session.commit(&root, vec![check("/a", None), op.clone(), delete("/later")]).await;
        assert_eq!(answer, Err(CommitError::Conflict { path: path.into() }), "{op:?}");
    }
}

/// Of several who replace what they have seen, one wins.
pub async fn an_old_version_is_refused(registry: &Arc<dyn Registry>) {
    let (a, b, root) = (connect(registry).await, connect(registry).await, new_root());
    done(&a, &root, vec![persistent("/a", "0")]).await;
    done(&a, &root, vec![set("/a", "1", Some(0))]).await;
    refused(&b, &root, vec![set("/a", "x", Some(0))]).await;
    refused(&b, &root, vec![set("/a", "x", Some(2))]).await;
    refused(&b, &root, vec![check("/a", Some(0))]).await;
    done(&b, &root, vec![check("/a", Some(1)), set("/a", "2", Some(1))]).await;
    assert_eq!(read(&a, &format!("{root}/a")).await[0].data, "2");
}

/// Looking is not touching.
pub async fn a_check_guards_without_changing(registry: &Arc<dyn Registry>) {
    let (session, root) = (connect(registry).await, new_root());
    done(&session, &root, vec![persistent("/a", "")]).await;
    let before = read(&session, &root).await;
    done(&session, &root, vec![check("/a", None), check("/a", Some(0)), check("", None)]).await;
    assert_eq!(read(&session, &root).await, before);
}

/// Children first.
pub async fn a_node_with_children_is_not_deleted(registry: &Arc<dyn Registry>) {
    let (session, root) = (connect(registry).await, new_root());
    done(&session, &root, vec![persistent("/a/b", "")]).await;
    refused(&session, &root, vec![delete("/a")]).await;
    done(&session, &root, vec![delete("/a/b"), delete("/a")]).await;
    assert_eq!(paths(&session, &root).await, [""]);
    done(&session, &root, vec![delete("")]).await;
    assert_eq!(read(&session, &root).await, []);
}

/// It could not go when its session ends.
pub async fn an_ephemeral_node_gets_no_children(registry: &Arc<dyn Registry>) {
    let (session, root) = (connect(registry).await, new_root());
    done(&session, &root, vec![ephemeral("/e", "")]).await;
    refused(&session, &root, vec![persistent("/e/c", "")]).await;
    refused(&session, &root, vec![enqueue("/e/n-")]).await;
    assert_eq!(paths(&session, &root).await, ["", "/e"]);
}

/// Whoever made a node later has the greater token; fencing rests on it.
pub async fn the_token_grows_with_every_life_of_a_node(registry: &Arc<dyn Registry>) {
    let (mut session, root) = (connect(registry).await, new_root());
    let mut last = 0;
    for life in 0..20 {
        if life % 3 == 2 {
            session.close().await;
            session = connect(registry).await;
        } else if life > 0 {
            done(&session, &root, vec![delete("/e")]).await;
        }
        done(&session, &root, vec![ephemeral("/e", "")]).await;
        done(&session, &root, vec![set("/e", "x", None)]).await;
        let token = read(&session, &format!("{root}/e")).await[0].stat.created;
        assert!(token > last, "{token} follows {last}");
        last = token;
    }
}

/// It begins at zero, in every life anew.
pub async fn a_version_counts_the_settings_of_one_life(registry: &Arc<dyn Registry>) {
    let (session, root) = (connect(registry).await, new_root());
    let at = format!("{root}/a");
    for life in 0..3 {
        done(&session, &root, vec![persistent("/a", "")]).await;
        for version in 0..5 {
            let entry = read(&session, &at).await.remove(0);
            assert_eq!(entry.stat.version, version, "in life {life}");
            done(&session, &root, vec![set("/a", "same", None)]).await;
        }
        done(&session, &root, vec![delete("/a")]).await;
    }
}

/// The number says who came first, whatever stands before it and whoever has left.
pub async fn a_line_numbers_its_waiters_in_order(registry: &Arc<dyn Registry>) {
    let (a, b, root) = (connect(registry).await, connect(registry).await, new_root());
    for turn in 0..6 {
        let (session, ticket) = if turn % 2 == 0 { (&a, "z") } else { (&b, "y") };
        done(session, &root, vec![enqueue(&format!("/line/{ticket}-{turn}-latch-"))]).await;
    }
    let mut names = children(&b, &format!("{root}/line")).await;
    names.sort_by_key(|it| it.rsplit('-').next().map(str::to_owned));
    let number = |name: &String| {
        let digits = name.rsplit('-').next().unwrap_or_default();
        assert_eq!(digits.len(), 10, "{name}");
        digits.parse::<u64>().unwrap_or_else(|_| panic!("`{name}` has no number"))
    };
    let turns: Vec<_> = names.iter().map(|it| it.split('-').nth(1).unwrap_or_default()).collect();
    assert_eq!(turns, ["0", "1", "2", "3", "4", "5"], "the numbers order the turns");
    let last = names.last().map(number).unwrap_or_default();
    done(&b, &root, vec![delete(&format!("/line/{}", names[5]))]).await;
    done(&b, &root, vec![enqueue("/line/x-6-latch-")]).await;
    let names = children(&b, &format!("{root}/line")).await;
    let newest = names.iter().find(|it| it.starts_with("x-")).map(number);
    assert!(newest > Some(last), "a number is not given twice: {newest:?} after {last}");
    a.close().await;
    assert_eq!(children(&b, &format!("{root}/line")).await.len(), 3);
}

/// Also one that would end up in another job.
pub async fn a_bad_path_is_refused(registry: &Arc<dyn Registry>) {
    let (session, root) = (connect(registry).await, new_root());
    for path in ["-2/a", "a", "/", "/a/", "/a//b"] {
        let answer = session.commit(&root, vec![persistent(path, "")]).await;
        assert!(matches!(answer, Err(CommitError::Invalid(_))), "{path}: {answer:?}");
        assert!(matches!(session.read(path).await, Err(RegistryError::BadPath { .. })), "{path}");
        assert!(matches!(session.children(path).await, Err(RegistryError::BadPath { .. })), "{path}");
    }
    assert_eq!(read(&session, &root).await, []);
}

/// Whoever begins to watch while others write misses nothing and hears nothing twice.
pub async fn a_watch_begins_with_the_whole_and_goes_on_without_gap_or_repetition(
    registry: &Arc<dyn Registry>,
) {
    const NODES: usize = 300;
    let (a, b, root) = (connect(registry).await, connect(registry).await, new_root());
    done(&a, &root, vec![persistent("/000", "")]).await;
    let write = async {
        for n in 1..=NODES {
            done(&a, &root, vec![persistent(&format!("/{n:03}"), "")]).await;
            tokio::task::yield_now().await;
        }
    };
    let follow = async {
        for _ in 0..20 {
            let mut watch = b.watch(&root);
            let WatchEvent::Snapshot(entries) = soon(watch.next()).await else {
                panic!("a snapshot is first")
            };
            let mut heard: Vec<String> = entries.into_iter().map(|it| it.path).skip(1).collect();
            let enough = (heard.len() + 10).min(NODES + 1);
            while heard.len() < enough {
                let WatchEvent::Changed(changes) = soon(watch.next()).await else { panic!("then changes") };
                heard.extend(changes.iter().map(|it| it.path().to_owned()));
            }
            let expected: Vec<String> = (0..heard.len()).map(|n| format!("/{n:03}")).collect();
            assert_eq!(heard, expected);
        }
    };
    tokio::join!(write, follow);
}

/// Whoever has an answer has seen what it answers.
pub async fn a_commit_is_in_the_watch_when_it_resolves(registry: &Arc<dyn Registry>) {
    let (session, root) = (connect(registry).await, new_root());
    let mut mirror = Mirror::of(&session, &root);
    mirror.catch_up();
    for n in 0..100 {
        done(&session, &root, vec![persistent(&format!("/{n}"), ""), ephemeral(&format!("/{n}/e"), "")])
            .await;
        mirror.catch_up();
        assert!(mirror.nodes.contains_key(&format!("/{n}/e")), "{n}");
        done(&session, &root, vec![delete(&format!("/{n}/e"))]).await;
        mirror.catch_up();
        assert!(!mirror.nodes.contains_key(&format!("/{n}/e")), "{n}");
    }
    assert_eq!(mirror.entries(), read(&session, &root).await);
}

/// Whoever is refused looks again, and must then see why.
pub async fn a_refusal_comes_after_what_refused_it(registry: &Arc<dyn Registry>) {
    let (a, b, root) = (connect(registry).await, connect(registry).await, new_root());
    let mut mirror = Mirror::of(&b, &root);
    mirror.catch_up();
    for n in 0..100 {
        let path = format!("/{n}");
        let (mine, theirs) = tokio::join!(
            b.commit(&root, vec![ephemeral(&path, "b")]),
            a.commit(&root, vec![ephemeral(&path, "a")]),
        );
        assert!(mine.is_ok() != theirs.is_ok(), "one of two: {mine:?}, {theirs:?}");
        mirror.catch_up();
        let winner = if mine.is_ok() { "b" } else { "a" };
        assert_eq!(mirror.nodes.get(&path).map(|it| it.data.as_str()), Some(winner), "{n}");
    }
}

/// Everybody sees the same story.
pub async fn changes_come_in_commit_order_across_sessions(registry: &Arc<dyn Registry>) {
    let root = new_root();
    let (a, b, c) = (connect(registry).await, connect(registry).await, connect(registry).await);
    let mut watches = [a.watch(&root), b.watch(&root), c.watch(&root)];
    for watch in &mut watches {
        assert_eq!(soon(watch.next()).await, WatchEvent::Snapshot(vec![]));
    }
    let write = async |session: &Arc<dyn Session>, name: &str| {
        for n in 0..50 {
            done(session, &root, vec![persistent(&format!("/{name}{n}"), "")]).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(write(&a, "a"), write(&b, "b"), write(&c, "c"));
    let mut stories = Vec::new();
    for watch in &mut watches {
        let mut story = Vec::new();
        while story.len() < 151 {
            let WatchEvent::Changed(changes) = soon(watch.next()).await else { panic!("changes only") };
            story.extend(changes);
        }
        let token = |it: &Change| match it {
            Change::Put(entry) => entry.stat.created,
            Change::Gone { path } => panic!("nobody deleted {path}"),
        };
        assert!(story.is_sorted_by_key(token), "tokens are given in commit order");
        stories.push(story);
    }
    assert!(stories[0] == stories[1] && stories[1] == stories[2], "everybody sees the same");
}

/// It does not return before there is something to know, and loses nothing when it is cancelled.
pub async fn a_watch_waits_for_what_is_not_there_yet(registry: &Arc<dyn Registry>) {
    let (a, b, root) = (connect(registry).await, connect(registry).await, new_root());
    done(&a, &root, vec![persistent("", "")]).await;
    let mut watch = b.watch(&root);
    assert!(matches!(soon(watch.next()).await, WatchEvent::Snapshot(_)));
    for n in 0..20 {
        assert_eq!(watch.try_next(), None);
        let write = async {
            tokio::task::yield_now().await;
            done(&a, &root, vec![persistent(&format!("/{n}"), "")]).await;
        };
        let event = tokio::select! {
            biased;
            event = watch.next() => event, // Cancelled as soon as the write is done.
            () = write => soon(watch.next()).await,
        };
        let WatchEvent::Changed(changes) = event else { panic!("a change") };
        assert_eq!(changes.last().map(Change::path), Some(&*format!("/{n}")));
    }
}

/// Watches come and go while others write.
pub async fn a_dropped_watch_disturbs_nobody(registry: &Arc<dyn Registry>) {
    let (session, root) = (connect(registry).await, new_root());
    let mut kept = Mirror::of(&session, &root);
    for n in 0..20 {
        let mut dropped = session.watch(&root);
        if n % 2 == 0 {
            assert!(matches!(soon(dropped.next()).await, WatchEvent::Snapshot(_)));
        }
        done(&session, &root, vec![persistent(&format!("/{n}"), "")]).await;
    }
    kept.catch_up();
    assert_eq!(kept.entries(), read(&session, &root).await);
}

/// `/job` does not see `/job-2`, which stands between it and its children in the order of paths.
pub async fn the_names_of_two_roots_may_begin_alike(registry: &Arc<dyn Registry>) {
    let (session, top) = (connect(registry).await, new_root());
    let roots = [format!("{top}/job"), format!("{top}/job-2"), format!("{top}/jo")];
    let mut mirrors: Vec<Mirror> = roots.iter().map(|root| Mirror::of(&session, root)).collect();
    for mirror in &mut mirrors {
        mirror.until(BTreeMap::is_empty).await;
    }
    for (at, root) in roots.iter().enumerate() {
        done(&session, root, vec![persistent(&format!("/of-{at}"), "")]).await;
    }
    for (at, (root, mirror)) in roots.iter().zip(&mut mirrors).enumerate() {
        mirror.catch_up();
        let own = format!("/of-{at}");
        assert_eq!(mirror.nodes.keys().map(String::as_str).collect::<Vec<_>>(), ["", &*own]);
        assert_eq!(paths(&session, root).await, ["", &*own]);
    }
    assert_eq!(children(&session, &top).await, ["jo", "job", "job-2"]);
    assert_eq!(children(&session, &roots[0]).await, ["of-0"]);
}

/// The direct ones, each once, least first; at the top they are the jobs.
pub async fn children_are_the_names_below(registry: &Arc<dyn Registry>) {
    let (session, root) = (connect(registry).await, new_root());
    done(&session, &root, vec![persistent("/b/x/y", ""), ephemeral("/a", ""), persistent("/b/z", "")]).await;
    assert_eq!(children(&session, &root).await, ["a", "b"]);
    assert_eq!(children(&session, &format!("{root}/b")).await, ["x", "z"]);
    assert_eq!(children(&session, &format!("{root}/a")).await, [""; 0]);
    assert_eq!(children(&session, &format!("{root}/nowhere")).await, [""; 0]);
    let jobs = children(&session, "").await;
    assert_eq!(jobs.iter().filter(|it| **it == root[1..]).count(), 1, "{jobs:?}");
}

/// Whoever falls behind is not told everything late, and does not make the registry remember it all.
pub async fn a_watcher_that_sleeps_wakes_to_the_truth(registry: &Arc<dyn Registry>) {
    let (a, b, root) = (connect(registry).await, connect(registry).await, new_root());
    let mut mirror = Mirror::of(&b, &root);
    mirror.until(|_| true).await;
    for round in 0..60 {
        let ops = (0..200).map(|n| persistent(&format!("/{round}-{n}"), ""));
        done(&a, &root, ops.chain([persistent(&format!("/{round}"), "")]).collect()).await;
    }
    mirror.until(|it| it.contains_key("/59")).await;
    assert_eq!(mirror.entries(), read(&b, &root).await);
    done(&a, &root, vec![persistent("/after", "")]).await;
    mirror.until(|it| it.contains_key("/after")).await;
    assert_eq!(mirror.entries(), read(&b, &root).await);
}

/// Ten thousand, all or nothing like two.
pub async fn many_steps_are_one_transaction(registry: &Arc<dyn Registry>) {
    many_steps(registry, 10_000).await;
}

/// [`many_steps_are_one_transaction`], for a registry that takes fewer.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
/// use elasticjob::registry::{self, conformance};
///
/// conformance::many_steps(&registry::open("embedded://")?, 100).await;
/// # Ok(())
/// # }
/// ```
pub async fn many_steps(registry: &Arc<dyn Registry>, steps: usize) {
    let (session, root) = (connect(registry).await, new_root());
    let mut mirror = Mirror::of(&session, &root);
    mirror.catch_up();
    let create =
        |n| if n % 2 == 0 { persistent(&format!("/{n}"), "") } else { ephemeral(&format!("/{n}"), "") };
    refused(&session, &root, (0..steps - 1).map(create).chain([delete("/nowhere")]).collect()).await;
    assert_eq!(read(&session, &root).await, []);
    done(&session, &root, (0..steps).map(create).collect()).await;
    mirror.catch_up();
    assert_eq!(mirror.nodes.len(), steps + 1);
    assert_eq!(mirror.entries(), read(&session, &root).await);
    done(&session, &root, (0..steps).map(|n| delete(&format!("/{n}"))).collect()).await;
    mirror.catch_up();
    assert_eq!(mirror.entries(), read(&session, &root).await);
}

/// Several sessions write at random, some of them end; mirrors that only follow their watches end up with
/// exactly what a reader sees, and never saw a node grow younger.
pub async fn a_mirror_is_what_a_reader_sees_however_many_write(registry: &Arc<dyn Registry>) {
    let (reader, root) = (connect(registry).await, new_root());
    let mut observer = Mirror::of(&reader, &root);
    let mut writers = tokio::task::JoinSet::new();
    for seed in 1..=5 {
        writers.spawn(write_at_random(registry.clone(), root.clone(), Random(seed)));
    }
    loop {
        tokio::select! {
            () = observer.step() => {}
            writer = writers.join_next() => match writer {
                Some(outcome) => outcome.expect("a writer ends well"),
                None => break,
            },
        }
    }
    // Resolves after the reader's own watches have everything that was committed before.
    done(&reader, &root, vec![persistent("/end", "")]).await;
    observer.catch_up();
    assert!(observer.nodes.contains_key("/end"));
    // A registry may clear the line away once it is empty, at any moment.
    let but_the_line =
        |entries: Vec<Entry>| entries.into_iter().filter(|it| it.path != "/line").collect::<Vec<_>>();
    assert_eq!(but_the_line(observer.entries()), but_the_line(read(&reader, &root).await));
    let alive: BTreeSet<&String> = observer.nodes.keys().filter(|it| it.contains("ephemeral")).collect();
    assert!(alive.is_empty(), "all their sessions are closed: {alive:?}");
}

async fn write_at_random(registry: Arc<dyn Registry>, root: String, mut random: Random) {
    let mut session = connect(&registry).await;
    let mut mirror = Mirror::of(&session, &root);
    for _ in 0..300 {
        let ops = (0..1 + random.below(4)).map(|_| random.op()).collect();
        match session.commit(&root, ops).await {
            Ok(()) | Err(CommitError::Conflict { .. }) => mirror.catch_up(),
            Err(error) => panic!("{error}"),
        }
        if random.below(40) == 0 {
            session.close().await;
            session = connect(&registry).await;
            mirror = Mirror::of(&session, &root);
        }
        tokio::task::yield_now().await;
    }
    session.close().await;
}

/// Nobody sees half of it. Not among the [`LAWS`]: not every registry can keep it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
/// use elasticjob::registry::{self, conformance};
///
/// conformance::one_transaction_is_one_event(&registry::open("embedded://")?).await;
/// # Ok(())
/// # }
/// ```
pub async fn one_transaction_is_one_event(registry: &Arc<dyn Registry>) {
    let (a, b, root) = (connect(registry).await, connect(registry).await, new_root());
    done(&a, &root, vec![persistent("/old", "")]).await;
    let mut watch = b.watch(&root);
    assert!(matches!(soon(watch.next()).await, WatchEvent::Snapshot(_)));
    done(&a, &root, vec![delete("/old"), persistent("/new", "1"), set("/new", "2", None), check("", None)])
        .await;
    let WatchEvent::Changed(changes) = soon(watch.next()).await else { panic!("a change") };
    // A backend may tell the outcome only, or each step.
    let mut mirror = BTreeMap::from([("/old".to_owned(), "".to_owned())]);
    for change in changes {
        match change {
            Change::Put(entry) => drop(mirror.insert(entry.path, entry.data)),
            Change::Gone { path } => drop(mirror.remove(&path)),
        }
    }
    assert_eq!(mirror, BTreeMap::from([("/new".to_owned(), "2".to_owned())]));
    assert_eq!(watch.try_next(), None);
}

/// A mirror of a subtree that knows only what its watch says.
struct Mirror {
    watch: Watch,
    nodes: BTreeMap<String, Entry>,
    /// The youngest life and version of every node that was ever seen.
    youngest: BTreeMap<String, (u64, u32)>,
}

impl Mirror {
    fn of(session: &Arc<dyn Session>, root: &str) -> Mirror {
        Mirror { watch: session.watch(root), nodes: BTreeMap::new(), youngest: BTreeMap::new() }
    }

    fn entries(&self) -> Vec<Entry> {
        // In the order of absolute paths, the root being the shortest.
        self.nodes.values().cloned().collect()
    }

    /// Takes in everything that is there.
    fn catch_up(&mut self) {
        while let Some(event) = self.watch.try_next() {
            self.take(event);
        }
    }

    async fn step(&mut self) {
        let event = self.watch.next().await;
        self.take(event);
    }

    /// Takes in one event after the other until something is true.
    async fn until(&mut self, is_true: impl Fn(&BTreeMap<String, Entry>) -> bool) {
        soon(async {
            self.step().await;
            while !is_true(&self.nodes) {
                self.step().await;
            }
        })
        .await;
    }

    fn take(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::Snapshot(entries) => {
                self.nodes.clear();
                entries.into_iter().for_each(|it| self.put(it));
            }
            WatchEvent::Changed(changes) => {
                assert!(!changes.is_empty(), "an event says something");
                for change in changes {
                    match change {
                        Change::Put(entry) => self.put(entry),
                        Change::Gone { path } => {
                            let gone = self.nodes.remove(&path);
                            assert!(gone.is_some(), "`{path}` was not there to go");
                        }
                    }
                }
            }
            WatchEvent::Suspended | WatchEvent::Sees(_) => {}
            WatchEvent::Ended => panic!("the session has ended"),
        }
    }

    fn put(&mut self, entry: Entry) {
        let now = (entry.stat.created, entry.stat.version);
        let before = self.youngest.insert(entry.path.clone(), now);
        assert!(before <= Some(now), "`{}` grew younger: {now:?} after {before:?}", entry.path);
        self.nodes.insert(entry.path.clone(), entry);
    }
}

/// A small generator (xorshift), so that a run can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }

    fn op(&mut self) -> Op {
        let path = format!("/{}/{}", self.below(3), self.below(4));
        let temporary = format!("/{}/ephemeral-{}", self.below(3), self.below(4));
        let data = self.below(1000).to_string();
        match self.below(8) {
            0 | 1 => persistent(&path, &data),
            2 => ephemeral(&temporary, &data),
            3 => set(&path, &data, None),
            4 => set(&temporary, &data, None),
            5 => delete(&path),
            6 => delete(&temporary),
            _ => enqueue("/line/ephemeral-"),
        }
    }
}

/// A root that nobody has used, also on a server that has been tested before.
fn new_root() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    format!("/law-{}-{now}-{number}", std::process::id())
}

/// What takes longer than this never comes.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.expect("it comes within a minute")
}

async fn connect(registry: &Arc<dyn Registry>) -> Arc<dyn Session> {
    registry.connect().await.expect("a session begins")
}

async fn done(session: &Arc<dyn Session>, root: &str, ops: Vec<Op>) {
    session.commit(root, ops).await.expect("a transaction is done");
}

async fn refused(session: &Arc<dyn Session>, root: &str, ops: Vec<Op>) {
    let answer = session.commit(root, ops).await;
    assert!(matches!(answer, Err(CommitError::Conflict { .. })), "{answer:?}");
}

async fn read(session: &Arc<dyn Session>, root: &str) -> Vec<Entry> {
    session.read(root).await.expect("a session reads")
}

async fn paths(session: &Arc<dyn Session>, root: &str) -> Vec<String> {
    read(session, root).await.into_iter().map(|it| it.path).collect()
}

async fn children(session: &Arc<dyn Session>, root: &str) -> Vec<String> {
    session.children(root).await.expect("a session reads")
}

fn persistent(path: &str, data: &str) -> Op {
    Op::Create { path: path.into(), data: data.into(), kind: Kind::Persistent }
}

fn ephemeral(path: &str, data: &str) -> Op {
    Op::Create { path: path.into(), data: data.into(), kind: Kind::Ephemeral }
}

fn set(path: &str, data: &str, version: Option<u32>) -> Op {
    Op::Set { path: path.into(), data: data.into(), version }
}

fn check(path: &str, version: Option<u32>) -> Op {
    Op::Check { path: path.into(), version }
}

fn delete(path: &str) -> Op {
    Op::Delete { path: path.into() }
}

fn enqueue(prefix: &str) -> Op {
    Op::Enqueue { prefix: prefix.into() }
}
