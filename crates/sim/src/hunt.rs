//! Planted bugs, and how many seeds it takes to find each.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use elasticjob_core::mutants::{Mutant, plant};

use crate::runner::judge;

/// Seeds that a bug may hide in at most.
pub const SEEDS_MAX: u64 = 30_000;

/// What takes longer than this to find is hunted once only.
const LONG: u64 = 1_000;

/// Where the hunts begin.
const HUNTS: [u64; 3] = [0, 1_000_000, 2_000_000];

/// How a planted bug was found.
#[derive(Clone, Debug)]
pub struct Catch {
    /// The bug.
    pub mutant: Mutant,
    /// The median number of seeds that it took; `None` if it was not found.
    pub seeds: Option<u64>,
    /// The sentence that it made false, and how.
    pub how: String,
}

/// Hunts every planted bug. `progress` is told of each.
pub fn hunt(threads: usize, only: Option<&str>, progress: impl Fn(&Catch) + Sync) -> Vec<Catch> {
    let named = |it: &&Mutant| only.is_none_or(|name| format!("{it:?}") == name);
    let mutants: Vec<Mutant> = Mutant::ALL.iter().filter(named).copied().collect();
    let next = AtomicUsize::new(0);
    let caught = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = hunt_one(*mutant);
                    progress(&found);
                    caught.lock().expect("nobody panics with it").push(found);
                }
            });
        }
    });
    caught.into_inner().expect("nobody panics with it")
}

fn hunt_one(mutant: Mutant) -> Catch {
    let mut hunts: Vec<(u64, String)> = Vec::new();
    for first in HUNTS {
        let Some(found) = find(mutant, first) else {
            return Catch { mutant, seeds: None, how: String::new() };
        };
        let long = found.0 > LONG;
        hunts.push(found);
        if long {
            break;
        }
    }
    hunts.sort();
    let (seeds, how) = hunts.swap_remove(hunts.len() / 2);
    Catch { mutant, seeds: Some(seeds), how }
}

/// The number of seeds until one is bad with the bug and good without.
fn find(mutant: Mutant, first: u64) -> Option<(u64, String)> {
    for seed in first..first + SEEDS_MAX {
        plant(Some(mutant));
        let violations = judge(seed).0.violations;
        plant(None);
        if let Some(violation) = violations.first()
            && judge(seed).0.violations.is_empty()
        {
            let how = format!("{}: {} (seed {seed})", violation.invariant, violation.what);
            return Some((seed - first + 1, how));
        }
    }
    None
}

/// The median of what was caught.
pub fn median(caught: &[Catch]) -> Option<u64> {
    let mut seeds: Vec<u64> = caught.iter().filter_map(|it| it.seeds).collect();
    seeds.sort_unstable();
    seeds.get(seeds.len() / 2).copied()
}
