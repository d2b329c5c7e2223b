//! What reports say. One failure begins with Java's words, so that whoever looks for them finds them.

use super::{Failure, FailureKind, Report};

/// More of a message is not told: it would be in nobody's interest, and chats refuse it.
const MESSAGE_MAX: usize = 8 * 1024;

/// What Java's LOG says, before the error.
pub(super) fn headline(job: &str) -> String {
    format!("Job '{job}' exception occur in job processing")
}

pub(super) fn of(report: &Report) -> String {
    let mut parts: Vec<String> = report.kinds.iter().map(kind).collect();
    let count = report.count();
    if count > 1 {
        let first = report.kinds.iter().map(|it| it.first.at).min();
        let last = report.kinds.iter().map(|it| it.last).max();
        let span = first.zip(last).map(|(first, last)| format!(", from {first:.0} to {last:.0}"));
        parts.insert(0, format!("{count} failures{}", span.unwrap_or_default()));
    }
    match report.others {
        0 => {}
        others => parts.push(format!("And {others} more, which are not told apart.")),
    }
    parts.join("\n\n")
}

fn kind(kind: &FailureKind) -> String {
    let Failure { job, item, run, at, message } = &kind.first;
    let mut facts = Vec::new();
    if kind.count > 1 {
        facts.push(format!("{} times", kind.count));
    }
    match (kind.items.len(), item) {
        (0 | 1, Some(item)) => facts.push(format!("item {item}")),
        (2.., _) => {
            let items: Vec<String> = kind.items.iter().map(u32::to_string).collect();
            facts.push(format!("items {}", items.join(", ")));
        }
        (_, None) => {}
    }
    facts.extend(run.as_ref().map(|run| format!("run {run}")));
    facts.push(format!("at {at:.0}"));
    format!("{}, caused by {}\n({})", headline(job), cut(message, MESSAGE_MAX), facts.join("; "))
}

/// At most so many bytes of a text, and a mark if this is not all.
pub(super) fn cut(text: &str, max: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max.saturating_sub(MARK.len()));
    format!("{}{MARK}", &text[..end])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use expect_test::expect;

    use super::*;
    use crate::handler::pile::Pile;

    fn report(failures: &[(&str, Option<u32>, &str, i64)]) -> Report {
        let mut pile = Pile::default();
        for (job, item, message, second) in failures {
            pile.add(Failure {
                job: (*job).into(),
                item: *item,
                run: item.map(|item| format!("{job}@-@{item}@-@READY@-@10.0.0.1@-@1").into()),
                at: jiff::Timestamp::from_second(*second).unwrap(),
                message: (*message).into(),
            });
        }
        pile.take(Arc::default()).unwrap()
    }

    #[test]
    fn one_failure_is_said_as_java_says_it() {
        expect![[r#"
            Job 'settle' exception occur in job processing, caused by no rows
            (item 3; run settle@-@3@-@READY@-@10.0.0.1@-@1; at 1970-01-01T00:00:07Z)"#]]
        .assert_eq(&report(&[("settle", Some(3), "no rows", 7)]).text());
        expect![[r#"
            Job 'settle' exception occur in job processing, caused by the strategy broke
            (at 1970-01-01T00:00:07Z)"#]]
        .assert_eq(&report(&[("settle", None, "the strategy broke", 7)]).text());
    }

    #[test]
    fn many_are_counted() {
        let mut it = report(&[
            ("settle", Some(3), "no rows", 7),
            ("settle", Some(1), "no rows", 8),
            ("settle", Some(1), "no rows", 9),
            ("bill", Some(0), "no rows", 9),
        ]);
        it.others = 12;
        expect![[r#"
            16 failures, from 1970-01-01T00:00:07Z to 1970-01-01T00:00:09Z

            Job 'settle' exception occur in job processing, caused by no rows
            (3 times; items 1, 3; run settle@-@3@-@READY@-@10.0.0.1@-@1; at 1970-01-01T00:00:07Z)

            Job 'bill' exception occur in job processing, caused by no rows
            (item 0; run bill@-@0@-@READY@-@10.0.0.1@-@1; at 1970-01-01T00:00:09Z)

            And 12 more, which are not told apart."#]]
        .assert_eq(&it.text());
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("作业作业", 12), "作业作业");
        assert_eq!(cut("作业作业", 11), "作业…");
        assert_eq!(cut("作业", 3), "…");
        assert!(report(&[("j", Some(0), &"x".repeat(100_000), 0)]).text().len() < MESSAGE_MAX + 200);
    }
}
