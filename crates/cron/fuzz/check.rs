//! What must hold for any text. The fuzzer calls it, and so does a test that goes through the committed corpus.

use elasticjob_cron::{Cron, DstPolicy, Fold, Gap, Schedule, Zone};
use jiff::Timestamp;

/// The text is all of `data`, as far as it is UTF-8.
pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Cron::parse(&text) {
        Err(error) => {
            let message = error.to_string();
            assert!(!message.contains(char::is_control), "{message:?}");
            assert!(error.column() <= text.chars().count() + 1, "{error}");
            assert!(text.contains(error.text()), "{error}");
            assert!(error.suggestion().is_none_or(|suggestion| Cron::parse(suggestion).is_ok()), "{error}");
        }
        Ok(cron) => {
            assert!(!cron.describe().is_empty());
            assert_eq!(Cron::parse(&cron.to_string()).as_ref(), Ok(&cron), "{text:?}");
            for (zone, policy) in [
                ("UTC", DstPolicy::default()),
                ("Europe/Berlin", DstPolicy { gap: Gap::RunAtEnd, fold: Fold::First }),
                ("Antarctica/Troll", DstPolicy { gap: Gap::Skip, fold: Fold::Both }),
            ] {
                let zone = Zone::parse(zone).expect("a zone of the bundled data");
                walk(&Schedule::new(cron.clone(), zone).with_policy(policy));
            }
        }
    }
}

fn walk(schedule: &Schedule) {
    for second in [Timestamp::MIN.as_second(), 0, 1_792_886_399, 4_954_521_599, Timestamp::MAX.as_second()] {
        let instant = Timestamp::from_second(second).expect("within the range of instants");
        let Some(next) = schedule.next_after(instant) else { continue };
        assert!(next > instant);
        assert_eq!(schedule.count_between(instant, next), 1);
        assert!(schedule.previous_before(next).is_none_or(|previous| previous <= instant));
    }
    assert_eq!(schedule.next_after(Timestamp::MAX), None);
    assert_eq!(schedule.previous_before(Timestamp::MIN), None);
}
