//! Every command of an operator, against a registry on disk and against a real ZooKeeper: the same words.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::needless_pass_by_value, reason = "an expectation is written where it is used")]

#[path = "ops/alone.rs"]
mod alone;
mod common;
#[path = "ops/edited.rs"]
mod edited;
#[path = "ops/imported.rs"]
mod imported;
#[path = "ops/judged.rs"]
mod judged;
#[path = "ops/seen.rs"]
mod seen;
#[path = "ops/servers.rs"]
mod servers;
#[path = "ops/steered.rs"]
mod steered;

use common::{Place, Store, spec};
use expect_test::Expect;

/// Runs each of these on both kinds of registry. To rewrite what is expected, run one kind only:
/// `UPDATE_EXPECT=1 cargo test -p elasticjob-cli --test ops on_disk`.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod on_disk {
            $(#[test] fn $test() { super::$test(crate::common::Place::Disk); })*
        }
        mod in_zookeeper {
            $(#[test] fn $test() { super::$test(crate::common::Place::ZooKeeper); })*
        }
    };
}
use on_both;

/// A fleet of two hosts with two jobs, one of them with troubles.
fn fleet(place: Place) -> Store {
    let store = Store::at(place);
    let mut nightly = spec("nightly", "0 0 2 * * ?", 3);
    nightly.description = "settles the day".into();
    nightly.sharding_item_parameters = "0=Beijing,1=上海,2=Guangzhou".into();
    store.job(&nightly);
    store.job(&spec("hourly", "0 0 * * * ?", 2));
    store.write(
        "hourly",
        &[
            ("/sharding/0/cursor", "1767229200000"),
            ("/sharding/0/misfire", ""),
            ("/sharding/1/running", "10.0.0.99@-@5.dead.1"),
            ("/servers/10.0.0.99", "DISABLED"),
        ],
    );
    store
}

fn check(store: &Store, arguments: &[&str], expected: Expect) {
    expected.assert_eq(&store.shows(arguments));
}

/// It fails with this code, says this, and changes nothing.
fn refuses(store: &Store, arguments: &[&str], expected: Expect) {
    let before = store.everything();
    expected.assert_eq(&store.shows(arguments));
    assert_eq!(store.everything(), before, "{arguments:?} changed something");
}
