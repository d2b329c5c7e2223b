//! Which instance gets which item. The built-in strategies answer as Java's do, bit for bit, so that the
//! assignment does not depend on who leads.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Hands out the items `0..total` of a job.
///
/// A strategy must be a pure function: the leader asks again and again whether the assignment that stands
/// is still the one the strategy wants, and makes it anew when it is not.
///
/// ```
/// use elasticjob_core::strategy::Strategy;
///
/// /// Everything on one instance.
/// struct AllOnFirst;
///
/// impl Strategy for AllOnFirst {
///     fn assign(&self, instances: &[&str], _job: &str, total: u32) -> Vec<Vec<u32>> {
///         let mut result = vec![Vec::new(); instances.len()];
///         if let Some(first) = result.first_mut() {
///             first.extend(0..total);
///         }
///         result
///     }
/// }
/// assert_eq!(AllOnFirst.assign(&["b", "a"], "job", 2), [vec![0, 1], vec![]]);
/// ```
pub trait Strategy: Send + Sync {
    /// The items of each instance, in the order of `instances`. Those come as Java orders them, greatest id
    /// first. What is handed out twice goes to the first, what is out of range is ignored.
    fn assign(&self, instances: &[&str], job: &str, total: u32) -> Vec<Vec<u32>>;
}

/// Equal runs of items first, the remainder one each: Java's `AVG_ALLOCATION`.
#[derive(Clone, Copy, Debug)]
pub struct Average;

impl Strategy for Average {
    fn assign(&self, instances: &[&str], _job: &str, total: u32) -> Vec<Vec<u32>> {
        let count = instances.len() as u32;
        let Some(each) = total.checked_div(count) else { return Vec::new() };
        let items = |at: u32| {
            let rest = (at < total % count).then_some(each * count + at);
            (at * each..(at + 1) * each).chain(rest).collect()
        };
        (0..count).map(items).collect()
    }
}

/// [`Average`], from the other end if the job name's hash is even: Java's `ODEVITY`.
#[derive(Clone, Copy, Debug)]
pub struct OddEven;

impl Strategy for OddEven {
    fn assign(&self, instances: &[&str], job: &str, total: u32) -> Vec<Vec<u32>> {
        let mut result = Average.assign(instances, job, total);
        if java_hash(job) % 2 == 0 {
            result.reverse();
        }
        result
    }
}

/// [`Average`], beginning at an instance that the job name's hash chooses: Java's `ROUND_ROBIN`.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin;

impl Strategy for RoundRobin {
    fn assign(&self, instances: &[&str], job: &str, total: u32) -> Vec<Vec<u32>> {
        let mut result = Average.assign(instances, job, total);
        if !result.is_empty() {
            // Java's `abs` leaves the least int negative and then fails; unsigned is what was meant.
            let offset = java_hash(job).unsigned_abs() as usize % result.len();
            result.rotate_right(offset);
        }
        result
    }
}

/// Java's `String.hashCode`.
///
/// ```
/// assert_eq!(elasticjob_core::strategy::java_hash("myJob"), 104_343_153);
/// ```
pub fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// The name of the strategy that lets instances take turns at a single item.
pub const SINGLE_SHARDING_BALANCE: &str = "SINGLE_SHARDING_BALANCE";

/// The strategies that a configuration may name. Names are compared without regard to case, as Java does.
///
/// ```
/// use elasticjob_core::strategy::{Average, Strategies};
///
/// let strategies = Strategies::default().with("MINE", Average);
/// assert!(strategies.find(Some("mine")).is_some());
/// assert!(strategies.find(Some("typo")).is_none());
/// assert!(strategies.find(None).is_some(), "no name means AVG_ALLOCATION");
/// ```
#[derive(Clone)]
pub struct Strategies(Arc<BTreeMap<String, Arc<dyn Strategy>>>);

impl Default for Strategies {
    fn default() -> Strategies {
        Strategies(Arc::default())
            .with("AVG_ALLOCATION", Average)
            .with("ODEVITY", OddEven)
            .with("ROUND_ROBIN", RoundRobin)
            // Java adds the time of day to the hash, to begin anywhere. Turns are taken by passing a baton,
            // so where they begin does not matter, and a fixed beginning does not reshard for nothing.
            .with(SINGLE_SHARDING_BALANCE, RoundRobin)
    }
}

impl Strategies {
    /// These, and one more.
    pub fn with(mut self, name: &str, strategy: impl Strategy + 'static) -> Strategies {
        Arc::make_mut(&mut self.0).insert(name.to_uppercase(), Arc::new(strategy));
        self
    }

    /// The strategy of that name; without a name, the default one.
    pub fn find(&self, name: Option<&str>) -> Option<Arc<dyn Strategy>> {
        let name = name.filter(|it| !it.trim().is_empty()).unwrap_or("AVG_ALLOCATION");
        self.0.get(&name.trim().to_uppercase()).cloned()
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl fmt::Debug for Strategies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// Who gets each item. Items that the strategy forgot are missing.
pub fn assignment<'a>(
    strategy: &dyn Strategy,
    instances: &[&'a str],
    job: &str,
    total: u32,
) -> BTreeMap<u32, &'a str> {
    let mut result = BTreeMap::new();
    for (instance, items) in instances.iter().zip(strategy.assign(instances, job, total)) {
        for item in items.into_iter().filter(|item| *item < total) {
            result.entry(item).or_insert(*instance);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    /// `3:[0, 1, 2, 9] 2:[3, 4, 5] …`: the last octet of each instance with its items, greatest id first.
    fn check(strategy: &dyn Strategy, job: &str, count: usize, total: u32, expected: &str) {
        let ids: Vec<String> = (1..=count).rev().map(|n| format!("10.0.0.{n}@-@1")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut shown: Vec<(u32, String)> = Vec::new();
        for (id, items) in ids.iter().zip(strategy.assign(&ids, job, total)) {
            let octet = id.trim_start_matches("10.0.0.").trim_end_matches("@-@1");
            let items: Vec<String> = items.iter().map(u32::to_string).collect();
            let first = items.first().map_or(u32::MAX, |it| it.parse().unwrap());
            shown.push((first, format!("{octet}:[{}]", items.join(","))));
        }
        shown.sort();
        let shown: Vec<String> = shown.into_iter().map(|(_, text)| text).collect();
        assert_eq!(shown.join(" "), expected, "{job}");
    }

    #[test]
    fn the_answers_are_those_of_the_java_classes() {
        let avg_3_10 = "3:[0,1,2,9] 2:[3,4,5] 1:[6,7,8]";
        let avg_4_7 = "4:[0,4] 3:[1,5] 2:[2,6] 1:[3]";
        for (job, odd_even, round_robin) in [
            ("myJob", avg_3_10, avg_3_10),
            ("javaSimpleJob", avg_3_10, "1:[0,1,2,9] 3:[3,4,5] 2:[6,7,8]"),
            ("test_job", "1:[0,1,2,9] 2:[3,4,5] 3:[6,7,8]", avg_3_10),
        ] {
            check(&Average, job, 3, 10, avg_3_10);
            check(&OddEven, job, 3, 10, odd_even);
            check(&RoundRobin, job, 3, 10, round_robin);
        }
        for (job, odd_even, round_robin) in [
            ("myJob", avg_4_7, "3:[0,4] 2:[1,5] 1:[2,6] 4:[3]"),
            ("作业", "1:[0,4] 2:[1,5] 3:[2,6] 4:[3]", "2:[0,4] 1:[1,5] 4:[2,6] 3:[3]"),
        ] {
            check(&Average, job, 4, 7, avg_4_7);
            check(&OddEven, job, 4, 7, odd_even);
            check(&RoundRobin, job, 4, 7, round_robin);
        }
        check(&Average, "job-2", 3, 2, "3:[0] 2:[1] 1:[]");
        check(&OddEven, "job-2", 3, 2, "1:[0] 2:[1] 3:[]");
        check(&RoundRobin, "job-2", 3, 2, "1:[0] 3:[1] 2:[]");
    }

    #[test]
    fn the_hash_is_javas() {
        for (text, hash) in [
            ("myJob", 104_343_153),
            ("javaSimpleJob", -694_093_655),
            ("test_job", -1_146_456_432),
            ("作业", 649_790),
        ] {
            assert_eq!(java_hash(text), hash);
        }
        assert_eq!(java_hash("polygenelubricants"), i32::MIN, "the one whose absolute value Java gets wrong");
        assert_eq!(RoundRobin.assign(&["c", "b", "a"], "polygenelubricants", 3).len(), 3);
    }

    proptest! {
        #[test]
        fn every_item_goes_to_exactly_one_instance_and_loads_differ_by_one(job in ".*", count in 1_usize..20, total in 0_u32..200) {
            let ids: Vec<String> = (0..count).map(|n| format!("i{n}")).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            for strategy in [&Average as &dyn Strategy, &OddEven, &RoundRobin] {
                let mut items: Vec<u32> = strategy.assign(&ids, &job, total).concat();
                items.sort_unstable();
                prop_assert_eq!(items, (0..total).collect::<Vec<_>>());
                let loads: Vec<usize> = strategy.assign(&ids, &job, total).iter().map(Vec::len).collect();
                prop_assert!(loads.iter().max().unwrap() - loads.iter().min().unwrap() <= 1);
            }
        }
    }
}
