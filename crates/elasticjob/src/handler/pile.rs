//! Failures that wait to be told. However many come, it stays small.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Failure, FailureKind, Report};

/// So many different messages are kept; of more, the number.
const KINDS_MAX: usize = 20;
/// So many items are named for each.
const ITEMS_MAX: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Pile {
    kinds: Vec<FailureKind>,
    others: u64,
}

impl Pile {
    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    pub(super) fn add(&mut self, failure: Failure) {
        let last = failure.at;
        let items = failure.item.into_iter().collect();
        self.merge(FailureKind { first: failure, count: 1, items, last });
    }

    /// So many came that could not be looked at.
    pub(super) fn add_unseen(&mut self, count: u64) {
        self.others += count;
    }

    /// What could not be told goes before what came since.
    pub(super) fn put_back(&mut self, report: Report) {
        let since = std::mem::take(&mut self.kinds);
        self.others += report.others;
        report.kinds.into_iter().chain(since).for_each(|kind| self.merge(kind));
    }

    fn merge(&mut self, kind: FailureKind) {
        let same =
            |it: &&mut FailureKind| it.first.message == kind.first.message && it.first.job == kind.first.job;
        if let Some(known) = self.kinds.iter_mut().find(same) {
            known.count += kind.count;
            known.last = known.last.max(kind.last);
            let room = ITEMS_MAX.saturating_sub(known.items.len());
            let new: Vec<u32> = kind.items.difference(&known.items).copied().take(room).collect();
            known.items.extend(new);
        } else if self.kinds.len() < KINDS_MAX {
            self.kinds.push(kind);
        } else {
            self.others += kind.count;
        }
    }

    /// All of it; `None` if there is nothing.
    pub(super) fn take(&mut self, props: Arc<BTreeMap<String, String>>) -> Option<Report> {
        if self.is_empty() {
            return None;
        }
        let Pile { kinds, others } = std::mem::take(self);
        Some(Report { kinds, others, props })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn failure(job: &str, item: u32, message: &str, second: i64) -> Failure {
        Failure {
            job: job.into(),
            item: Some(item),
            run: None,
            at: jiff::Timestamp::from_second(second).unwrap(),
            message: message.into(),
        }
    }

    #[test]
    fn the_same_message_is_kept_once_for_each_job() {
        let mut pile = Pile::default();
        for (job, item, message) in
            [("a", 0, "x"), ("a", 1, "x"), ("b", 0, "x"), ("a", 0, "y"), ("a", 1, "x")]
        {
            pile.add(failure(job, item, message, i64::from(item)));
        }
        let report = pile.take(Arc::default()).unwrap();
        let shown: Vec<String> = report
            .kinds
            .iter()
            .map(|it| format!("{} {} {} {:?}", it.first.job, it.first.message, it.count, it.items))
            .collect();
        assert_eq!(shown, ["a x 3 {0, 1}", "b x 1 {0}", "a y 1 {0}"]);
        assert_eq!((report.count(), report.others), (5, 0));
        assert_eq!(report.kinds[0].last.as_second(), 1);
        assert!(pile.take(Arc::default()).is_none());
    }

    proptest! {
        #[test]
        fn none_is_lost_from_the_count_and_little_is_kept(
            batches in prop::collection::vec(prop::collection::vec((0_u32..200, 0_u32..60), 0..80), 1..6),
            returned in any::<bool>(),
        ) {
            let mut pile = Pile::default();
            let mut total = 0;
            for batch in batches {
                let before = pile.take(Arc::default()).filter(|_| true);
                for (item, message) in &batch {
                    pile.add(failure("j", *item, &message.to_string(), 0));
                    total += 1;
                }
                match before {
                    Some(report) if returned => pile.put_back(report),
                    Some(report) => total -= report.count(),
                    None => {}
                }
            }
            match pile.take(Arc::default()) {
                Some(report) => {
                    prop_assert_eq!(report.count(), total);
                    prop_assert!(report.kinds.len() <= KINDS_MAX);
                    prop_assert!(report.kinds.iter().all(|it| it.items.len() <= ITEMS_MAX));
                }
                None => prop_assert_eq!(total, 0),
            }
        }
    }
}
