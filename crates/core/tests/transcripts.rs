//! Whole coordinators, told as stories: `transcripts/*.txt` hold commands and, below `----`, what happened.
//!
//! The registry answers at once and every member hears of everything at once, unless a story says otherwise;
//! what a bad network does in general is the simulator's business. `UPDATE_EXPECT=1 cargo test` rewrites the
//! answers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::{self, Write};
use std::time::Duration;

use elasticjob_core::coord::{
    Coordinator, Deadlines, Effect, HookOrder, Hooks, Input, Local, Now, Run, Verdict,
};
use elasticjob_core::event::{Event, Outcome};
use elasticjob_core::node::Node;
use elasticjob_core::ops;
use elasticjob_core::spec::JobSpec;
use elasticjob_core::strategy::Strategies;
use elasticjob_core::tree::{Change, Kind, Op, SessionId, Tree, Zxid};
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
    /// What the registry has told and has not arrived yet, if the way is slow.
    held_back: Option<VecDeque<Input>>,
    task_ids: BTreeSet<String>,
    /// The last round whose items were told to stop.
    cancelled: Option<u64>,
    /// What becomes of the next transaction.
    loses: Option<Loss>,
    /// It lags once so many more of its transactions have been answered.
    lags_after: Option<usize>,
    /// The sizes of its transactions since somebody asked.
    transactions: Vec<usize>,
    /// Hooks that it is calling.
    calls: VecDeque<HookOrder>,
}

#[derive(Clone, Copy, Debug)]
enum Loss {
    /// It never arrives.
    Request,
    /// It is done, and nobody hears of it.
    Reply,
    /// The same, and nothing else arrives until it catches up.
    Everything,
}

struct World {
    tree: Tree,
    operator: SessionId,
    members: BTreeMap<String, Member>,
    /// Peers that are no coordinators of ours: they do what the story says.
    peers: BTreeMap<String, SessionId>,
    /// How many transactions were sent, and what becomes of one of them.
    sent: usize,
    loss: Option<(usize, Loss)>,
    /// The fencing tokens that each item has run with.
    tokens: BTreeMap<u32, Vec<Zxid>>,
    spec: JobSpec,
    class: String,
    hooks: Hooks,
    start: Timestamp,
    elapsed: Duration,
    /// What members will be told, in order.
    inbox: VecDeque<(String, Input)>,
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
        let (members, class, inbox) = (BTreeMap::new(), String::new(), VecDeque::new());
        World {
            tree,
            operator,
            members,
            peers: BTreeMap::new(),
            sent: 0,
            loss: None,
            tokens: BTreeMap::new(),
            spec,
            class,
            hooks: Hooks::default(),
            start,
            elapsed: Duration::ZERO,
            inbox,
            said: String::new(),
        }
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
            ["hooks", "each"] => self.hooks.each = true,
            ["hooks", "once", started, completed] => {
                let (started, completed) = (parse_duration(started), parse_duration(completed));
                self.hooks.once = Some(Deadlines { started, completed });
            }
            ["return", name] => self.end_call(name, None),
            ["return", name, "with", error] => self.end_call(name, Some((*error).to_owned())),
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
            ["clock", name, by] => self.member(name).clock_off = parse_offset(by),
            ["lag", name] => self.member(name).held_back = Some(VecDeque::new()),
            ["lag", name, "after", answers] => {
                self.member(name).lags_after = Some(answers.parse().unwrap());
            }
            ["catch", "up", name] => {
                let held_back = self.member(name).held_back.take().expect("one that lags");
                held_back.into_iter().for_each(|input| self.step(name, input));
            }
            ["lose", "request", name] => self.member(name).loses = Some(Loss::Request),
            ["lose", "reply", name] => self.member(name).loses = Some(Loss::Reply),
            ["lose", "reply", "and", "lag", name] => self.member(name).loses = Some(Loss::Everything),
            ["java", pid, deed @ ..] => self.java(pid, deed),
            ["cost"] => self.show_cost(),
            ["tokens"] => self.show_tokens(),
            ["tree"] => self.show_tree(),
            ["owners"] => self.show_owners(),
            operator => self.operate(operator),
        }
        self.deliver();
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
            ["trigger", "with", words @ ..] => ops::trigger_with(&view, &words.join(" ")),
            ["shutdown", name] => {
                vec![Node::Instance(self.members[*name].coordinator.me().to_owned()).delete()]
            }
            ["set", settings @ ..] => {
                let mut spec = JobSpec::from_yaml(&view.config.expect("a configuration").text).unwrap();
                settings.iter().for_each(|it| configure(&mut spec, it));
                vec![Node::Config.set(spec.to_yaml())]
            }
            ["write", path, data @ ..] => vec![self.put(path, &data.join(" "), Kind::Persistent)],
            ["delete", path] => vec![Op::Delete { path: (*path).to_owned() }],
            ["remove"] => {
                let paths = self.tree.snapshot(ROOT).into_iter().rev();
                paths.map(|it| Op::Delete { path: it.path }).collect()
            }
            unknown => panic!("unknown command: {unknown:?}"),
        };
        self.commit(self.operator, &ops);
    }

    /// A Java peer on 10.0.0.9: it is where it says it is, and writes what it would. `me` is its id.
    fn java(&mut self, pid: &str, deed: &[&str]) {
        let id = format!("10.0.0.9@-@{pid}");
        let data = |words: &[&str]| words.join(" ").replace("me", &id);
        let ops = match deed {
            ["joins"] => {
                self.peers.insert(id.clone(), self.tree.open_session());
                let document = format!("jobInstanceId: {id}\nserverIp: 10.0.0.9\n");
                let instance = Node::Instance(id.clone()).create_ephemeral(document);
                vec![self.put("/servers/10.0.0.9", ENABLED, Kind::Persistent), instance]
            }
            ["dies"] => {
                let session = self.peers.remove(&id).expect("a peer");
                let changes = self.tree.end_session(session);
                return self.tell(&changes);
            }
            ["writes", path, words @ ..] => vec![self.put(path, &data(words), Kind::Persistent)],
            ["holds", path, words @ ..] => vec![self.put(path, &data(words), Kind::Ephemeral)],
            ["lines", "up", "at", prefix] => vec![Op::Enqueue { prefix: (*prefix).to_owned() }],
            ["deletes", path] => vec![Op::Delete { path: (*path).to_owned() }],
            unknown => panic!("unknown deed: {unknown:?}"),
        };
        self.commit(self.peers[&id], &ops);
    }

    fn put(&self, path: &str, data: &str, kind: Kind) -> Op {
        let path = path.trim_end_matches('/').to_owned();
        let data = data.replace("\\n", "\n");
        match self.tree.get(&format!("{ROOT}{path}")) {
            Some(_) => Op::Set { path, data, version: None },
            None => Op::Create { path, data, kind },
        }
    }

    fn commit(&mut self, session: SessionId, ops: &[Op]) {
        match self.tree.commit(session, ROOT, ops, self.now().wall) {
            Ok(changes) => self.tell(&changes),
            Err(error) => writeln!(self.said, "refused: {error}").unwrap(),
        }
    }

    fn member(&mut self, name: &str) -> &mut Member {
        self.members.get_mut(name).expect("a member")
    }

    fn start(&mut self, name: &str) {
        let local = Local {
            spec: self.spec.clone(),
            class: self.class.clone(),
            zone: Zone::parse("UTC").unwrap(),
            hooks: self.hooks,
        };
        let coordinator = Coordinator::new(local, Strategies::default(), self.now());
        let session = self.tree.open_session();
        let member = Member {
            coordinator,
            session,
            sessions: 1,
            online: true,
            clock_off: SignedDuration::ZERO,
            held_back: None,
            task_ids: BTreeSet::new(),
            cancelled: None,
            loses: None,
            lags_after: None,
            transactions: Vec::new(),
            calls: VecDeque::new(),
        };
        self.members.insert(name.to_owned(), member);
        self.connect(name, false);
    }

    fn connect(&mut self, name: &str, same_session: bool) {
        let member = self.member(name);
        member.online = true;
        let me = format!("{}@-@{name}.1.{}", ip(name), member.sessions);
        let nodes = self.tree.snapshot(ROOT);
        self.step(name, Input::Connected { me, nodes, same_session });
    }

    fn suspend(&mut self, name: &str) {
        self.member(name).online = false;
        self.step(name, Input::Suspended);
    }

    /// The registry gives up on a member that does not know yet.
    fn expire(&mut self, name: &str) {
        let changes = self.tree.end_session(self.members[name].session);
        self.tell(&changes);
    }

    fn reconnect(&mut self, name: &str) {
        let session = self.tree.open_session();
        let member = self.member(name);
        (member.session, member.sessions) = (session, member.sessions + 1);
        // What was on its way in the old session never arrives.
        member.held_back.iter_mut().for_each(VecDeque::clear);
        self.connect(name, false);
    }

    fn finish(&mut self, name: &str, items: &[&str], outcome: &Outcome) {
        for item in items {
            self.deliver();
            let (item, round) = match item.split_once('#') {
                Some((item, round)) => (item, Some(round.parse().unwrap())),
                None => (*item, self.current_round(name)),
            };
            let Some(round) = round else {
                let state = self.members[name].coordinator.run().name();
                self.say(name, &format!("has nothing to finish: it is {state}"));
                return;
            };
            let item = item.parse().unwrap();
            self.step(name, Input::ItemFinished { round, item, outcome: outcome.clone(), output: None });
        }
    }

    fn end_call(&mut self, name: &str, error: Option<String>) {
        self.deliver();
        match self.member(name).calls.pop_front() {
            Some(HookOrder { hook, round }) => {
                self.step(name, Input::HookFinished { round: round.round, hook, error });
            }
            None => self.say(name, "calls nothing"),
        }
    }

    /// Ends whatever runs, until nothing does.
    fn finish_all(&mut self) {
        self.deliver();
        let mut rounds = 0;
        while self.end_any_call() || self.finish_any() {
            rounds += 1;
            assert!(rounds < 100, "there is always something to do:\n{}", self.said);
            self.deliver();
            self.wake();
        }
    }

    fn end_any_call(&mut self) -> bool {
        let caller = self.members.iter().find(|(_, it)| !it.calls.is_empty()).map(|(name, _)| name.clone());
        caller.inspect(|name| self.end_call(name, None)).is_some()
    }

    fn finish_any(&mut self) -> bool {
        let found = self.members.iter().find_map(|(name, it)| match it.coordinator.run() {
            Run::Running { left, .. } => Some((name.clone(), left.clone())),
            _ => None,
        });
        let Some((name, items)) = found else { return false };
        let items: Vec<String> = items.iter().map(u32::to_string).collect();
        let items: Vec<&str> = items.iter().map(String::as_str).collect();
        self.finish(&name, &items, &Outcome::Succeeded);
        true
    }

    fn current_round(&self, name: &str) -> Option<u64> {
        match self.members[name].coordinator.run() {
            Run::Running { round, .. } => Some(round.number),
            _ => None,
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
        let mut steps = 0;
        while self.next_wakeup().is_some_and(|at| at <= self.elapsed) {
            steps += 1;
            assert!(steps < 100, "somebody wakes up again and again at {}:\n{}", self.now().wall, self.said);
            for name in self.members.keys().cloned().collect::<Vec<_>>() {
                self.step(&name, Input::Tick);
            }
            self.deliver();
        }
    }

    fn deliver(&mut self) {
        while let Some((name, input)) = self.inbox.pop_front() {
            self.take(&name, input);
        }
    }

    fn tell(&mut self, changes: &[Change]) {
        self.tell_others(changes, "");
    }

    fn tell_others(&mut self, changes: &[Change], but: &str) {
        let relative: Vec<Change> = changes.iter().filter_map(|it| it.relative_to(ROOT)).collect();
        for name in self.members.keys().filter(|it| *it != but).cloned().collect::<Vec<_>>() {
            if self.members.get(&name).is_some_and(|it| it.online) {
                self.step(&name, Input::Changed(relative.clone()));
            }
        }
    }

    fn step(&mut self, name: &str, input: Input) {
        self.inbox.push_back((name.to_owned(), input));
    }

    fn take(&mut self, name: &str, input: Input) {
        let mut now = self.now();
        let mut effects = Vec::new();
        let Some(member) = self.members.get_mut(name) else { return };
        if let Some(held_back) = &mut member.held_back
            && matches!(input, Input::Changed(_) | Input::Settled(..) | Input::Connected { .. })
        {
            return held_back.push_back(input);
        }
        now.wall += member.clock_off;
        member.coordinator.step(now, input, &mut effects);
        for effect in effects {
            self.perform(name, effect);
        }
    }

    fn perform(&mut self, name: &str, effect: Effect) {
        match effect {
            Effect::Commit { slot, ops } => {
                let member = self.members.get_mut(name).expect("a member");
                if !member.online {
                    return;
                }
                member.transactions.push(ops.len());
                match member.lags_after {
                    Some(0) => (member.lags_after, member.held_back) = (None, Some(VecDeque::new())),
                    answers => member.lags_after = answers.map(|it| it - 1),
                }
                self.sent += 1;
                let planned = self.loss.filter(|(number, _)| *number == self.sent).map(|it| it.1);
                let (session, loses) = (member.session, member.loses.take().or(planned));
                if matches!(loses, Some(Loss::Request)) {
                    return self.step(name, Input::Settled(slot, Verdict::Unknown));
                }
                if matches!(loses, Some(Loss::Everything)) {
                    member.held_back = Some(VecDeque::new());
                }
                let result = self.tree.commit(session, ROOT, &ops, self.now().wall);
                let verdict = match loses {
                    Some(_) => Verdict::Unknown,
                    None if result.is_ok() => Verdict::Done,
                    None => Verdict::Refused,
                };
                let changes = result.unwrap_or_default();
                match loses {
                    Some(_) => self.tell_others(&changes, name), // It sees them when it looks again.
                    None => self.tell(&changes),
                }
                self.step(name, Input::Settled(slot, verdict));
            }
            Effect::Run(order) => {
                let items: Vec<u32> = order.items.iter().map(|it| it.item).collect();
                let nominal = order.nominal.map(|at| format!(" for {}", at.strftime("%H:%M:%S")));
                let merged = (order.merged > 0).then(|| format!(" and {} before", order.merged));
                let (nominal, merged) = (nominal.unwrap_or_default(), merged.unwrap_or_default());
                let is_new = self.member(name).task_ids.insert(order.task_id);
                assert!(is_new, "two rounds of {name} have one name");
                let beside = self.who_else_runs(name, &items);
                let with: BTreeSet<&str> =
                    order.items.iter().filter_map(|it| it.trigger_parameter.as_deref()).collect();
                let with = if with.is_empty() { String::new() } else { format!(" with {with:?}") };
                self.say(
                    name,
                    &format!("runs {} ({}{nominal}{merged}){with}{beside}", few(&items), order.source),
                );
                for it in order.items {
                    self.tokens.entry(it.item).or_default().push(it.token);
                }
            }
            Effect::Hook(call) => {
                let items: Vec<u32> = call.round.items.iter().map(|it| it.item).collect();
                self.say(name, &format!("calls the {} for {items:?}", call.hook));
                self.member(name).calls.push_back(call);
            }
            Effect::Yield { .. } => self.say(name, "tells its items to yield"),
            Effect::Cancel { round } => {
                self.member(name).cancelled = Some(round);
                self.say(name, "cancels its items");
            }
            Effect::Resync => self.connect(name, true),
            Effect::Record(event) => self.record(name, &event),
            Effect::Stop(reason) => {
                self.say(name, &format!("stops: {reason}"));
            }
        }
    }

    /// Loud on purpose: what a story shows to run twice had better be meant to.
    fn who_else_runs(&self, name: &str, items: &[u32]) -> String {
        let runs = |it: &Member| match it.coordinator.run() {
            Run::Running { round, left } => {
                it.cancelled != Some(round.number) && items.iter().any(|item| left.contains(item))
            }
            _ => false,
        };
        let others = self.members.iter().filter(|(other, it)| *other != name && runs(it));
        others.map(|(other, _)| format!(" WHILE {other} STILL RUNS IT")).collect()
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
                self.say(name, &format!("hands a trigger on to {}", few(items)));
            }
            Event::ItemFinished { outcome: Outcome::Failed(error), item, .. } => {
                self.say(name, &format!("item {item} failed: {error}"));
            }
            Event::HookFailed { hook, error, .. } => self.say(name, &format!("{hook} failed: {error}")),
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
                let ephemeral = if entry.stat.ephemeral { " (e)" } else { "" };
                // Behind the fire of a cursor stands what its writer's clock showed.
                let cursor = matches!(Node::parse(&entry.path), Node::Cursor(_));
                let data = entry.data.split(if cursor { ' ' } else { '\0' }).next().unwrap_or_default();
                let data = data.trim_end().replace('\n', " | ");
                writeln!(self.said, "{}{ephemeral} {data}", entry.path).unwrap();
            }
        }
    }

    /// What everybody has asked of the registry since the last time somebody looked.
    fn show_cost(&mut self) {
        for (name, member) in &mut self.members {
            let sizes = std::mem::take(&mut member.transactions);
            let most = sizes.iter().max().map(|most| format!(" of at most {most} steps"));
            writeln!(self.said, "{name}: {} transactions{}", sizes.len(), most.unwrap_or_default()).unwrap();
        }
    }

    fn show_tokens(&mut self) {
        for (item, tokens) in &self.tokens {
            let grow = tokens.is_sorted_by(|earlier, later| earlier < later);
            let how = if grow { "each token greater than the one before" } else { "OLD TOKENS COME BACK" };
            writeln!(self.said, "{item}: {} runs, {how}", tokens.len()).unwrap();
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

/// Which they are, or how many, if nobody would read it.
fn few<'a, T: fmt::Debug>(items: &'a T) -> String
where
    &'a T: IntoIterator,
{
    match items.into_iter().count() {
        0..=20 => format!("{items:?}"),
        many => format!("{many} items"),
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
        "prop" => {
            let (key, value) = value.split_once('=').expect("prop=key=value");
            spec.props.insert(format!("elasticjob.{key}"), value.to_owned());
        }
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

fn parse_offset(text: &str) -> SignedDuration {
    let by = |text| SignedDuration::try_from(parse_duration(text)).unwrap();
    text.strip_prefix('-').map_or_else(|| by(text), |text| -by(text))
}

/// Runs the commands of a transcript and writes what they do below them.
fn replay(script: &str) -> String {
    let mut world = World::new();
    let mut transcript = String::new();
    for block in script.split("\n\n") {
        let commands = block.split("\n----").next().unwrap().trim();
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
        writeln!(transcript, "{commands}\n----").unwrap();
        transcript.push_str(&world.said);
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

/// What a cluster did in a life with everything in it: who joins, leaves, dies, is asked, is too slow. Returns
/// what ran, and what the registry holds at the end.
fn an_eventful_life(hooks: Hooks, loss: Option<(usize, Loss)>) -> (Vec<String>, String, usize) {
    let mut world = World { loss, hooks, ..World::new() };
    let commands = "
        job shards=4 failover=true
        start a
        start b
        at 00:00:10
        finish all
        at 00:00:20
        at 00:00:31
        finish all
        start c
        at 00:00:40
        crash a
        finish all
        trigger with day=1
        finish all
        start d
        trigger with day=2
        crash d
        finish all
        set shards=3
        at 00:00:50
        finish all
        leave b 30s
        disable item 0
        at 00:01:00
        finish all";
    for line in commands.lines().map(str::trim).filter(|it| !it.is_empty()) {
        match line {
            "finish all" => world.finish_all(),
            line => world.command(line),
        }
    }
    let calls = world.said.lines().filter(|it| it.contains(" calls the hook") && it.contains("cluster"));
    // Who dies while he calls one leaves it to the next: how often does not matter either.
    let calls: BTreeSet<String> = calls
        .map(|line| {
            let time = line.split_once(' ').unwrap().0;
            format!("{time} {}", line.split_once(" calls ").unwrap().1.split_once(" for ").unwrap().0)
        })
        .collect();
    // Who runs what does not matter, and which of the crashed items goes first.
    let runs = world.said.lines().filter(|it| it.contains(" runs ")).flat_map(|line| {
        let (time, rest) = line.split_once(' ').unwrap();
        let (items, why) = rest.split_once('[').unwrap().1.split_once(']').unwrap();
        items.split(", ").map(|item| format!("{time} {item}{why}")).collect::<Vec<_>>()
    });
    let mut runs: Vec<String> = runs.chain(calls).collect();
    runs.sort();
    world.said.clear();
    world.show_tree();
    (runs, world.said, world.sent)
}

#[test]
fn whichever_answer_is_lost_everything_runs_as_if_none_were() {
    lose_every_answer(Hooks::default());
}

#[test]
fn whichever_answer_is_lost_hooks_are_called_as_if_none_were() {
    let deadlines = Deadlines { started: Duration::from_secs(60), completed: Duration::from_secs(600) };
    lose_every_answer(Hooks { each: true, once: Some(deadlines) });
}

fn lose_every_answer(hooks: Hooks) {
    let (runs, tree, sent) = an_eventful_life(hooks, None);
    assert!(runs.len() > 25 && sent > 50, "{} runs in {sent} transactions", runs.len());
    for why in ["(trigger) with {\"day=1\"}", "(failover) with {\"day=2\"}"] {
        assert!(runs.iter().any(|it| it.ends_with(why)), "nothing is {why}: {runs:#?}");
    }
    for number in 1..=sent {
        for loss in [Loss::Request, Loss::Reply] {
            let (runs_now, tree_now, _) = an_eventful_life(hooks, Some((number, loss)));
            assert_eq!(runs.join("\n"), runs_now.join("\n"), "{loss:?} of transaction {number} is lost");
            assert_eq!(tree, tree_now, "{loss:?} of transaction {number} is lost");
        }
    }
}
