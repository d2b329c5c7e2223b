//! Settings that are changed, and wishes that make no sense.

use std::fs;

use expect_test::expect;

use super::common::{self, Place};
use super::{check, fleet, on_both, refuses};

on_both!(
    settings_are_edited_from_a_file_and_in_an_editor,
    an_edit_that_is_wrong_is_refused_and_changes_nothing,
    what_does_not_exist_is_named_with_what_does
);

fn settings_are_edited_from_a_file_and_in_an_editor(place: Place) {
    let store = fleet(place);
    let file = store.home().join("new.yaml");
    let (_, stored, _) = store.run(&["job", "show", "nightly", "--yaml"]);
    fs::write(&file, stored.replace("0 0 2 * * ?", "0 30 2 * * ?").replace("Count: 3", "Count: 4")).unwrap();
    let file = file.to_str().unwrap();
    refuses(
        &store,
        &["job", "edit", "nightly", "--dry-run", "--file", file],
        expect![[r#"
        - cron: 0 0 2 * * ?
        + cron: 0 30 2 * * ?
        - shardingTotalCount: 3
        + shardingTotalCount: 4
        ! this is what would change; nothing was changed
        !   then: it fires next at 0000-00-00 00:00:00 UTC
        !   then: the shards are handed out anew when those that move are at rest
    "#]],
    );
    check(
        &store,
        &["job", "edit", "nightly", "--file", file],
        expect![[r#"
        - cron: 0 0 2 * * ?
        + cron: 0 30 2 * * ?
        - shardingTotalCount: 3
        + shardingTotalCount: 4
        !   then: it fires next at 0000-00-00 00:00:00 UTC
        !   then: the shards are handed out anew when those that move are at rest
    "#]],
    );
    check(
        &store,
        &["job", "edit", "nightly", "--file", file],
        expect![[r#"
        ! nothing to do: it is so already
    "#]],
    );
    let edit = |editor: &str| {
        let mut command = store.command(&["job", "edit", "nightly"]);
        command.env("EDITOR", editor).env("TMPDIR", store.home());
        let (code, out, words) = common::ended(command);
        let draft = words.find("elasticjob-nightly-").map(|at| words[at..].trim().to_owned());
        let words = draft.iter().fold(words.clone(), |words, draft| words.replace(draft, "DRAFT"));
        (format!("exit {code}\n{}{}", store.normal(&out), store.normal(&words)), draft)
    };
    let (said, draft) = edit("sed -i 's/failover: false/failover: true/'");
    expect![[r#"
        exit 0
        - failover: false
        + failover: true
    "#]]
    .assert_eq(&said);
    assert_eq!(draft, None);
    expect![[r#"
        exit 0
        nothing was changed
    "#]]
    .assert_eq(&edit("true").0);
    expect![[r#"
        exit 1
        error: the editor `false` ended with exit status: 1; nothing was changed
    "#]]
    .assert_eq(&edit("false").0);
    let before = store.everything();
    let (said, draft) = edit("sed -i 's/^cron: .*/cron: 0 61 * * * ?/'");
    expect![[r#"
        exit 3
        error: job `nightly`: the new configuration is refused: cron `0 61 * * * ?` is no schedule: minute `61` at column 3: the minute is 0 to 59
          nothing was changed; your draft is in DIR/DRAFT
    "#]].assert_eq(&said);
    // What somebody wrote is not thrown away.
    assert!(fs::read_to_string(store.home().join(draft.unwrap())).unwrap().contains("0 61 * * * ?"));
    assert_eq!(store.everything(), before);
}

fn an_edit_that_is_wrong_is_refused_and_changes_nothing(place: Place) {
    let store = fleet(place);
    let (_, stored, _) = store.run(&["job", "show", "nightly", "--yaml"]);
    let path = store.home().join("new.yaml");
    let cases = [
        (
            stored.replace("0 0 2 * * ?", "0 0 25 * * ?"),
            expect![[r#"
            ! error: job `nightly`: the new configuration is refused: cron `0 0 25 * * ?` is no schedule: hour `25` at column 5: the hour is 0 to 23
            exit 3
        "#]],
        ),
        (
            stored.replace("shardingTotalCount: 3", "shardingTotalCount: 0"),
            expect![[r#"
            ! error: job `nightly`: the new configuration is refused: shardingTotalCount `0` is out of range: write a number from 1 to 1000000
            exit 3
        "#]],
        ),
        (
            stored.replace("shardingTotalCount: 3", "shardingTotalCount: 2"),
            expect![[r#"
            ! error: job `nightly`: the new configuration is refused: shardingItemParameters names item 2, but shardingTotalCount is 2: raise the count or drop the parameter
            exit 3
        "#]],
        ),
        (
            stored.replace("failover: false", "failover: [maybe"),
            expect![[r#"
            ! error: job `nightly`: the new configuration is refused: line 5, column 8: illegal placement of ':' indicator
            exit 3
        "#]],
        ),
        (
            stored.replace("failover: false", "failoverr: true"),
            expect![[r#"
            ! error: job `nightly`: the new configuration has an unknown setting `failoverr` (did you mean `failover`?): peers would refuse the whole of it
            exit 3
        "#]],
        ),
        (
            stored.replace("jobName: nightly", "jobName: daily"),
            expect![[r#"
            ! error: job `nightly`: the new configuration names job `daily`: a job keeps its name; write jobName: nightly
            exit 3
        "#]],
        ),
        (
            stored.replace("GMT+0:00", "Mars/Olympus"),
            expect![[r#"
            ! error: job `nightly`: the new configuration is refused: timeZone `Mars/Olympus` is unknown: write GMT+8:00 or the like, or an IANA name such as Europe/Vienna
            exit 3
        "#]],
        ),
        (
            String::new(),
            expect![[r#"
            ! error: job `nightly`: the new configuration is refused: line 1, column 1: the document is empty: write `key: value` lines
            exit 3
        "#]],
        ),
    ];
    for (text, expected) in cases {
        fs::write(&path, text).unwrap();
        refuses(&store, &["job", "edit", "nightly", "--file", path.to_str().unwrap()], expected);
    }
}

fn what_does_not_exist_is_named_with_what_does(place: Place) {
    let store = fleet(place);
    refuses(
        &store,
        &["job", "show", "nigthly"],
        expect![[r#"
        ! error: there is no job `nigthly`: did you mean `nightly`?
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["job", "trigger", "backup"],
        expect![[r#"
        ! error: there is no job `backup`: none of the 2 job(s) is spelled alike; see `elasticjob jobs`
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["job", "show", "nightly/config"],
        expect![[r#"
        ! error: there is no job `nightly/config`: did you mean `nightly`?
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["job", "disable", "nightly", "--shard", "3"],
        expect![[r#"
        ! error: job `nightly`: there is no shard 3: the job has shards 0 to 2
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["job", "disable", "nightly", "--server", "10.0.0.2"],
        expect![[r#"
        ! error: job `nightly`: it has no server `10.0.0.2`; known: 10.0.0.1, 10.0.0.12
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["server", "disable", "10.0.0.2"],
        expect![[r#"
        ! error: no job knows a server `10.0.0.2`; known: 10.0.0.1, 10.0.0.12, 10.0.0.99
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["job", "edit", "nightly", "--file", "/no/such/file"],
        expect![[r#"
        ! error: /no/such/file: No such file or directory (os error 2)
        exit 2
    "#]],
    );
    refuses(
        &store,
        &["explain", "nightly", "--at", "yesterday"],
        expect![[r#"
        ! error: invalid value 'yesterday' for '--at <TIME>': `yesterday` is no time: write 0000-00-00 00:00:00Z, 2026-11-15 02:00 or 02:00
        ! 
        ! For more information, try '--help'.
        exit 2
    "#]],
    );
}
