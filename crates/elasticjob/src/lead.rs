//! Asking early, to begin in time.
//!
//! A fire becomes a run when the registry has answered, which takes milliseconds, and many where many jobs fire
//! together. So the coordinator is told the time a little ahead, by what the answers took lately, and what it orders
//! begins when it really is time, never before.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use elasticjob_core::coord::Now;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Nothing is asked for earlier than this before its fire: what an operator changes meanwhile comes too late for it.
const MOST: Duration = Duration::from_millis(250);
/// The next answer may take half as long again; a timer, or a server that stands still for a moment, this much.
const SPARE: Duration = Duration::from_millis(10);
/// Of an answer that came quickly, so much is believed.
const QUICK_ANSWERS: u32 = 16;

/// How far ahead of the clock one job is.
#[derive(Debug, Default)]
pub(crate) struct Lead(Duration);

impl Lead {
    /// The time as the coordinator is to see it.
    pub(crate) fn ahead(&self, now: Now) -> Now {
        let lead = SignedDuration::try_from(self.0).unwrap_or_default();
        Now { wall: now.wall.saturating_add(lead).unwrap_or(Timestamp::MAX), ..now }
    }

    /// How long what was asked for early waits for its fire. One that is further away is that of a clock which was wrong
    /// when it was asked for.
    pub(crate) fn left(fire: Timestamp, now: Now) -> Duration {
        let left = Duration::try_from(fire.duration_since(now.wall)).unwrap_or_default();
        if left > MOST { Duration::ZERO } else { left }
    }

    /// This is how long the answer for a fire took.
    pub(crate) fn learn(&mut self, took: Duration) {
        let wanted = took.saturating_mul(3) / 2;
        let wanted = wanted.saturating_add(SPARE).min(MOST);
        match self.0.checked_sub(wanted) {
            Some(more) => self.0 -= more / QUICK_ANSWERS,
            None => self.0 = wanted,
        }
    }
}

/// What waits for its fire on this worker. Many items may begin with the same fire, and the first ones end before the
/// last has begun: they let the others go first, because to tell of an end takes longer than to begin.
#[derive(Clone, Default)]
pub(crate) struct Starts(Arc<Mutex<BTreeMap<Timestamp, Weak<Group>>>>);

/// All that begin with one fire.
#[derive(Default)]
pub(crate) struct Group {
    left: AtomicUsize,
    all_begun: Notify,
}

/// When the items of a round begin, and with whom.
pub(crate) struct Start {
    at: Instant,
    group: Arc<Group>,
}

/// One item that has yet to begin.
pub(crate) struct Waiting {
    pub(crate) at: Instant,
    group: Arc<Group>,
}

impl Starts {
    /// Nothing, if it is to begin at once.
    pub(crate) fn of(&self, fire: Timestamp, now: Now) -> Option<Start> {
        let left = Some(Lead::left(fire, now)).filter(|it| !it.is_zero())?;
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = groups.get(&fire).and_then(Weak::upgrade);
        let group = known.unwrap_or_else(|| {
            let group = Arc::default();
            groups.retain(|_, it| it.strong_count() > 0);
            groups.insert(fire, Arc::downgrade(&group));
            group
        });
        Some(Start { at: Instant::now() + left, group })
    }
}

impl Start {
    pub(crate) fn wait(&self) -> Waiting {
        self.group.left.fetch_add(1, Ordering::Relaxed);
        Waiting { at: self.at, group: self.group.clone() }
    }
}

impl Waiting {
    pub(crate) fn group(&self) -> Arc<Group> {
        self.group.clone()
    }
}

/// It begins, or is given up.
impl Drop for Waiting {
    fn drop(&mut self) {
        if self.group.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.group.all_begun.notify_waiters();
        }
    }
}

impl Group {
    pub(crate) async fn all_begun(&self) {
        // It hears of what comes from here on, so that nothing is missed after the look.
        let all_begun = self.all_begun.notified();
        if self.left.load(Ordering::Acquire) > 0 {
            all_begun.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn after(answers: &[u64]) -> Duration {
        let mut lead = Lead::default();
        answers.iter().for_each(|it| lead.learn(Duration::from_millis(*it)));
        let now = Now { wall: Timestamp::UNIX_EPOCH, mono: Duration::ZERO };
        let ahead = lead.ahead(now).wall.duration_since(now.wall);
        Duration::try_from(ahead).expect("it is never behind")
    }

    #[test]
    fn who_knows_nothing_asks_in_time() {
        assert_eq!(after(&[]), Duration::ZERO);
    }

    #[test]
    fn a_slow_answer_counts_at_once_and_quick_ones_bit_by_bit() {
        assert_eq!(after(&[10]), Duration::from_millis(25));
        assert_eq!(after(&[10, 20]), Duration::from_millis(40));
        let once = after(&[20, 4]);
        assert!(Duration::from_millis(38) < once && once < Duration::from_millis(40), "{once:?}");
        let often = after(&[vec![20], vec![4; 100]].concat());
        assert!(often < Duration::from_millis(17), "{often:?}");
    }

    #[test]
    fn nothing_begins_before_its_fire_and_nothing_waits_for_a_clock_that_was_wrong() {
        let now = Now { wall: Timestamp::UNIX_EPOCH, mono: Duration::ZERO };
        let left = |ms| Lead::left(Timestamp::from_millisecond(ms).expect("it is a time"), now);
        assert_eq!(left(7), Duration::from_millis(7));
        assert_eq!(left(-7), Duration::ZERO);
        assert_eq!(left(3_600_000), Duration::ZERO);
    }

    #[tokio::test]
    async fn who_has_ended_lets_begin_whoever_begins_with_the_same_fire() {
        let (starts, now) = (Starts::default(), Now { wall: Timestamp::UNIX_EPOCH, mono: Duration::ZERO });
        let at = |ms| Timestamp::from_millisecond(ms).expect("it is a time");
        assert!(starts.of(at(0), now).is_none(), "its time has come");
        let of = |ms| starts.of(at(ms), now).expect("it is yet to come").wait();
        let (first, second, other) = (of(5), of(5), of(6));
        let group = first.group();
        drop(first);
        assert!(group.all_begun().now_or_never().is_none(), "the second has not begun");
        let ended = tokio::spawn(async move { group.all_begun().await });
        tokio::task::yield_now().await;
        assert!(!ended.is_finished());
        drop(second);
        ended.await.expect("it is told");
        assert_eq!(other.group().left.load(Ordering::Relaxed), 1);
        let _again = of(7);
        assert_eq!(starts.0.lock().unwrap().len(), 2, "who is gone is forgotten");
    }

    #[test]
    fn an_answer_that_took_hours_counts_a_quarter_of_a_second() {
        assert_eq!(after(&[3_600_000]), MOST);
    }
}
