//! stub
fn main() {
    let args: Vec<u64> = std::env::args().skip(1).map(|it| it.parse().expect("a number")).collect();
    if args.len() == 1 {
        let (_, _, trace) = elasticjob_sim::world::live(args[0], true);
        for line in trace {
            println!("{line}");
        }
        return;
    }
    let start = std::time::Instant::now();
    let (mut runs, mut steps) = (0, 0);
    for seed in args[0]..args[1] {
        let (h, t, _) = elasticjob_sim::world::live(seed, false);
        runs += h.runs.len();
        steps += t.steps;
    }
    println!("{} runs {} steps {:?}", runs, steps, start.elapsed());
}
