//! Whole coordinators, told as stories: `transcripts/*.txt` hold commands and, below `----`, what happened.
//!
//! The registry answers at once and every member hears of everything at once; what a bad network does is the
//! simulator's business. `UPDATE_EXPECT=1 cargo test` rewrites the answers.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use elasticjob_core::coord::{Coordinator, Effect, Input, Local, Now, Verdict};
use elasticjob_core::event::{Event, Outcome};
use elasticjob_core::node::Node;
use elasticjob_core::ops;
use elasticjob_core::spec::JobSpec;
use elasticjob_core::strategy::Strategies;
use elasticjob_core::tree::{Change, Op, SessionId, Tree};
use elasticjob_core::view::{DISABLED, ENABLED, View};
use elasticjob_cron::Zone;
use jiff::{SignedDuration, Timestamp};

const ROOT: &str = "/job";

struct Member {
    coordinator: Coordinator,
    session: SessionId,
    sessions: u32,
    /// The connection stands.
    online: bool,
    clock_off: SignedDuration,
}

struct World {
    tree: Tree,
    operator: SessionId,
    members: BTreeMap<String, Member>,
    spec: JobSpec,
    class: String,
    start: Timestamp,
    elapsed: Duration,
    said: String,
}

impl World {
    fn new() -> World {
        let mut tree = Tree::default();
        let operator = tree.open_session();
        let mut spec = JobSpec::new("job", 3);
        spec.cron = Some("0/10 * * * * ?".into());
        spec.time_zone = Some("GMT+0:00".into());
        let start = "2030-01-01T00:00:00Z".parse().unwrap();
        let (members, class) = (BTreeMap::new(), String::new());
        World { tree, operator, members, spec, class, start, elapsed: Duration::ZERO, said: String::new() }
    }

    fn now(&self) -> Now {
        let wall = self.start + SignedDuration::try_from(self.elapsed).unwrap();
        Now { wall, mono: self.elapsed }
    }

    fn command(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["job", settings @ ..] => settings.iter().for_each(|it| configure(&mut self.spec, it)),
            ["class", class] => self.class = (*class).to_owned(),
            ["start", name] => self.start(name),
            ["at", time] => self.advance_to(time),
            ["finish", name, items @ ..] => self.finish(name, items, &Outcome::Succeeded),
            ["fail", name, items @ ..] => self.finish(name, items, &Outcome::Failed("broken".into())),
            ["suspend", name] => self.suspend(name),
            ["resume", name] => self.connect(name, true),
            ["distrust", name] => self.step(name, Input::Distrusted),
            ["expire", name] => self.expire(name),
            ["reconnect", name] => self.reconnect(name),
            ["crash", name] => {
                let member = self.members.remove(*name).expect("a member");
                let changes = self.tree.end_session(member.session);
                self.tell(&changes);
            }
            ["leave", name, grace] => self.step(name, Input::Leave { grace: parse_duration(grace) }),
            ["clock", name, by] => {
                let by = SignedDuration::try_from(parse_duration(by)).unwrap();
                self.members.get_mut(*name).expect("a member").clock_off = by;
            }
            ["tree"] => self.show_tree(),
            ["owners"] => self.show_owners(),
            operator => self.operate(operator),
        }
        self.wake();
    }

    fn operate(&mut self, words: &[&str]) {
        let view = View::new(&self.tree.snapshot(ROOT));
        let server = |name: &str| Node::Server(ip(name));
        let ops = match words {
            ["disable", "server", name] => vec![server(name).set(DISABLED)],
            ["enable", "server", name] => vec![server(name).set(ENABLED)],
            ["remove", "server", name] => vec![server(name).delete()],
            ["disable", "item", item] => vec![Node::Disabled(item.parse().unwrap()).create("")],
            ["enable", "item", item] => vec![Node::Disabled(item.parse().unwrap()).delete()],
            ["trigger"] => ops::trigger(&view),
            ["shutdown", name] => {
                vec![Node::Instance(self.members[*name].coordinator.me().to_owned()).delete()]
            }
            ["set", settings @ ..] => {
                let mut spec = JobSpec::from_yaml(&view.config.expect("a configuration").text).unwrap();
                settings.iter().for_each(|it| configure(&mut spec, it));
                vec![Node::Config.set(spec.to_yaml())]
            }
            ["write", path, data @ ..] => {
                let path = (*path).to_owned();
                let data = data.join(" ").replace("\\n", "\n");
                match self.tree.get(&format!("{ROOT}{path}")) {
                    Some(_) => vec![Op::Set { path, data, version: None }],
                    None => vec![Op::Create { path, data, kind: elasticjob_core::tree::Kind::Persistent }],
                }
            }
            ["delete", path] => vec![Op::Delete { path: (*path).to_owned() }],
            ["remove"] => {
                let paths = self.tree.snapshot(ROOT).into_iter().rev();
                paths.map(|it| Op::Delete { path: it.path }).collect()
            }
            unknown => panic!("unknown command: {unknown:?}"),
        };
        let changes = self.tree.commit(self.operator, ROOT, &ops, self.now().wall);
        match changes {
            Ok(changes) => self.tell(&changes),
            Err(error) => writeln!(self.said, "refused: {error}").unwrap(),
        }
    }

    fn start(&mut self, name: &str) {
        let local =
            Local { spec: self.spec.clone(), class: self.class.clone(), zone: Zone::parse("UTC").unwrap() };
        let coordinator = Coordinator::new(local, Strategies::default(), self.now());
        let session = self.tree.open_session();
        let clock_off = SignedDuration::ZERO;
        let member = Member { coordinator, session, sessions: 1, online: true, clock_off };
        self.members.insert(name.to_owned(), member);
        self.connect(name, false);
    }

    fn connect(&mut self, name: &str, same_session: bool) {
        let member = self.members.get_mut(name).expect("a member");
        member.online = true;
        let me = format!("{}@-@{name}.1.{}", ip(name), member.sessions);
        let nodes = self.tree.snapshot(ROOT);
        self.step(name, Input::Connected { me, nodes, same_session });
    }

    fn suspend(&mut self, name: &str) {
        self.members.get_mut(name).expect("a member").online = false;
        self.step(name, Input::Suspended);
    }

    /// The registry gives up on a member that does not know yet.
    fn expire(&mut self, name: &str) {
        let changes = self.tree.end_session(self.members[name].session);
        self.tell(&changes);
    }

    fn reconnect(&mut self, name: &str) {
        let session = self.tree.open_session();
        let member = self.members.get_mut(name).expect("a member");
        (member.session, member.sessions) = (session, member.sessions + 1);
        self.connect(name, false);
    }

    fn finish(&mut self, name: &str, items: &[&str], outcome: &Outcome) {
        for item in items {
            let (item, round) = match item.split_once('#') {
                Some((item, round)) => (item, round.parse().unwrap()),
                None => (*item, self.current_round(name)),
            };
            let item = item.parse().unwrap();
            self.step(name, Input::ItemFinished { round, item, outcome: outcome.clone() });
        }
    }

    fn current_round(&self, name: &str) -> u64 {
        match self.members[name].coordinator.run() {
            elasticjob_core::coord::Run::Running { round, .. } => round.number,
            run => panic!("{name} is {}", run.name()),
        }
    }

    fn advance_to(&mut self, time: &str) {
        let target: Timestamp = format!("2030-01-01T{time}Z").parse().unwrap();
        let target = Duration::try_from(target.duration_since(self.start)).unwrap();
        while let Some(next) = self.next_wakeup().filter(|at| *at <= target) {
            self.elapsed = next.max(self.elapsed);
            self.wake();
        }
        self.elapsed = target;
    }

    fn next_wakeup(&self) -> Option<Duration> {
        let at = |member: &Member| {
            let wakeup = member.coordinator.next_wakeup();
            let wall = wakeup.wall.map(|at| at.duration_since(self.start) - member.clock_off);
            let wall = wall.map(|it| Duration::try_from(it).unwrap_or_default());
            wall.into_iter().chain(wakeup.mono).min()
        };
        self.members.values().filter_map(at).min()
    }

    /// Steps everybody whose time has come, until all are at rest.
    fn wake(&mut self) {
        while self.next_wakeup().is_some_and(|at| at <= self.elapsed) {
            for name in self.members.keys().cloned().collect::<Vec<_>>() {
                self.step(&name, Input::Tick);
            }
        }
    }

    fn tell(&mut self, changes: &[Change]) {
        let relative: Vec<Change> = changes.iter().filter_map(|it| it.relative_to(ROOT)).collect();
        for name in self.members.keys().cloned().collect::<Vec<_>>() {
            if self.members.get(&name).is_some_and(|it| it.online) {
                self.step(&name, Input::Changed(relative.clone()));
            }
        }
    }

    fn step(&mut self, name: &str, input: Input) {
        let mut now = self.now();
        let mut effects = Vec::new();
        let Some(member) = self.members.get_mut(name) else { return };
        now.wall += member.clock_off;
        member.coordinator.step(now, input, &mut effects);
        for effect in effects {
            self.perform(name, effect);
        }
    }

    fn perform(&mut self, name: &str, effect: Effect) {
        match effect {
            Effect::Commit { slot, ops } => {
                let member = &self.members[name];
                if !member.online {
                    return;
                }
                let result = self.tree.commit(member.session, ROOT, &ops, self.now().wall);
                let verdict = if result.is_ok() { Verdict::Done } else { Verdict::Refused };
                self.tell(&result.unwrap_or_default());
                self.step(name, Input::Settled(slot, verdict));
            }
            Effect::Run(order) => {
                let items: Vec<u32> = order.items.iter().map(|it| it.item).collect();
                let nominal = order.nominal.map(|at| format!(" for {}", at.strftime("%H:%M:%S")));
                let merged = (order.merged > 0).then(|| format!(" and {} before", order.merged));
                let (nominal, merged) = (nominal.unwrap_or_default(), merged.unwrap_or_default());
                self.say(name, &format!("runs {items:?} ({}{nominal}{merged})", order.source));
            }
            Effect::Yield { .. } => self.say(name, "tells its items to yield"),
            Effect::Cancel { .. } => self.say(name, "cancels its items"),
            Effect::Resync => self.connect(name, true),
            Effect::Record(event) => self.record(name, &event),
            Effect::Stop(reason) => {
                self.say(name, &format!("stops: {reason}"));
            }
        }
    }

    fn record(&mut self, name: &str, event: &Event) {
        match event {
            Event::Missed { nominal, items } => {
                self.say(name, &format!("missed {} for {items:?}", nominal.strftime("%H:%M:%S")));
            }
            Event::Skipped { nominal, items, why } => {
                let nominal =
                    nominal.map_or_else(|| "a trigger".into(), |at| at.strftime("%H:%M:%S").to_string());
                self.say(name, &format!("skipped {nominal} for {items:?}: {why}"));
            }
            Event::Elected => self.say(name, "leads"),
            Event::Abdicated => self.say(name, "steps down"),
            Event::Resharded { moved } => self.say(name, &format!("hands out {moved} items")),
            Event::ConfigRefused { error } => self.say(name, &format!("keeps its configuration: {error}")),
            Event::Crashed { items } => self.say(name, &format!("finds {items:?} crashed")),
            Event::TookOver { item } => self.say(name, &format!("takes over {item}")),
            Event::TriggerHandedOn { items, .. } => {
                self.say(name, &format!("hands a trigger on to {items:?}"))
            }
            Event::ItemFinished { outcome: Outcome::Failed(error), item, .. } => {
                self.say(name, &format!("item {item} failed: {error}"));
            }
            Event::Registered { .. }
            | Event::Suspended
            | Event::Distrusted
            | Event::Reconnected
            | Event::ConfigChanged
            | Event::RoundStarted { .. }
            | Event::ItemFinished { .. }
            | Event::RoundFinished { .. }
            | Event::Stopped { .. } => {}
        }
    }

    fn say(&mut self, name: &str, what: &str) {
        let time = self.now().wall.strftime("%H:%M:%S").to_string();
        writeln!(self.said, "{time} {name} {what}").unwrap();
    }

    fn show_tree(&mut self) {
        for entry in self.tree.snapshot(ROOT) {
            let parent = self.tree.children(&format!("{ROOT}{}", entry.path)).is_empty();
            if parent && !entry.path.starts_with("/config") {
                let ephemeral =
                    if self.tree.is_ephemeral(&format!("{ROOT}{}", entry.path)) { " (e)" } else { "" };
                let data = entry.data.trim_end().replace('\n', " | ");
                writeln!(self.said, "{}{ephemeral} {data}", entry.path).unwrap();
            }
        }
    }

    fn show_owners(&mut self) {
        let view = View::new(&self.tree.snapshot(ROOT));
        for (item, state) in &view.items {
            let owner = state.owner.as_ref().map_or("nobody", |it| it.by.as_str());
            writeln!(self.said, "{item} {owner}").unwrap();
        }
    }
}

fn configure(spec: &mut JobSpec, setting: &str) {
    let (key, value) = setting.split_once('=').expect("key=value");
    let value = value.replace('_', " ");
    match key {
        "shards" => spec.sharding_total_count = value.parse().unwrap(),
        "cron" => spec.cron = Some(value).filter(|it| !it.is_empty()),
        "zone" => spec.time_zone = Some(value),
        "failover" => spec.failover = value.parse().unwrap(),
        "misfire" => spec.misfire = value.parse().unwrap(),
        "monitor" => spec.monitor_execution = value.parse().unwrap(),
        "static" => spec.static_sharding = value.parse().unwrap(),
        "disabled" => spec.disabled = value.parse().unwrap(),
        "overwrite" => spec.overwrite = value.parse().unwrap(),
        "strategy" => spec.job_sharding_strategy_type = Some(setting["strategy=".len()..].to_owned()),
        "diff" => spec.max_time_diff_seconds = value.parse().unwrap(),
        "parameters" => spec.sharding_item_parameters = value,
        unknown => panic!("unknown setting: {unknown}"),
    }
}

/// `a` is 10.0.0.1, `b` is 10.0.0.2, and so on; `a2` is a second process on the host of `a`.
fn ip(name: &str) -> String {
    format!("10.0.0.{}", name.as_bytes()[0] - b'a' + 1)
}

fn parse_duration(text: &str) -> Duration {
    let seconds = text.strip_suffix('s').expect("seconds");
    Duration::from_secs_f64(seconds.parse().unwrap())
}

/// Runs the commands of a transcript and writes what they do below them.
fn replay(script: &str) -> String {
    let mut world = World::new();
    let mut transcript = String::new();
    for block in script.split("\n\n") {
        let commands = block.split("\n----").next().unwrap().trim_end();
        if commands.trim().is_empty() {
            continue;
        }
        world.said.clear();
        for line in commands.lines().filter(|line| !line.starts_with('#')) {
            world.command(line);
        }
        if !transcript.is_empty() {
            transcript.push('\n');
        }
        writeln!(transcript, "{commands}\n----\n{}", world.said.trim_end()).unwrap();
    }
    transcript
}

#[test]
fn the_stories_go_as_they_are_told() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let script = std::fs::read_to_string(&file).unwrap();
        println!("{}", file.display());
        expect_test::expect_file![file].assert_eq(&replay(&script));
    }
}
