//! stub
use std::collections::BTreeMap;
fn main() {
    let args: Vec<u64> = std::env::args().skip(1).map(|it| it.parse().expect("a number")).collect();
    if args.len() == 1 {
        let (h, _, trace) = elasticjob_sim::world::live(args[0], true);
        for line in trace {
            println!("{line}");
        }
        for v in elasticjob_sim::invariant::check(&h) {
            println!("VIOLATION {v:?}");
        }
        return;
    }
    let start = std::time::Instant::now();
    let (mut runs, mut steps) = (0, 0);
    let mut by: BTreeMap<&str, Vec<(u64, String)>> = BTreeMap::new();
    let mut bad = 0;
    for seed in args[0]..args[1] {
        let r = std::panic::catch_unwind(|| {
            let (h, t, _) = elasticjob_sim::world::live(seed, false);
            (h.runs.len(), t.steps, elasticjob_sim::invariant::check(&h))
        });
        let Ok((r, s, vs)) = r else {
            by.entry("panic").or_default().push((seed, String::new()));
            bad += 1;
            continue;
        };
        runs += r;
        steps += s;
        if !vs.is_empty() {
            bad += 1;
        }
        let mut seen = std::collections::BTreeSet::new();
        for v in vs {
            if seen.insert(v.invariant) {
                by.entry(v.invariant).or_default().push((seed, format!("{} {}", v.at, v.what)));
            }
        }
    }
    println!("{} runs {} steps {:?} bad {bad}", runs, steps, start.elapsed());
    for (k, v) in by {
        println!("== {k}: {}", v.len());
        for (s, w) in v.iter().take(6) {
            println!("   {s}: {w}");
        }
    }
}
