//! What a round costs on the wire: requests, and bytes both ways, counted by a proxy before each instance.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use elasticjob_testkit::Proxy;

use crate::side::{Member, Setup, Side, Stage, now, sleep_until};

const ITEMS: [usize; 3] = [1, 10, 100];
const SECOND: i64 = 1_000_000;
/// The first round makes nodes that stay.
const WARM_UP: i64 = 1;
const START: Duration = Duration::from_secs(180);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Monitored,
    WithFailover,
    Unmonitored,
}

impl Mode {
    const ALL: [Mode; 3] = [Mode::Monitored, Mode::WithFailover, Mode::Unmonitored];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Monitored => "monitoring on",
            Mode::WithFailover => "monitoring and failover on",
            Mode::Unmonitored => "monitoring off",
        }
    }

    fn flags(self) -> &'static str {
        match self {
            Mode::Monitored => "true:false",
            Mode::WithFailover => "true:true",
            Mode::Unmonitored => "false:false",
        }
    }
}

/// How long is looked, and how closely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Jobs fire one after the other, so many seconds apart, so that what passes between two fires belongs to one of
    /// them.
    pub(crate) apart: i64,
    pub(crate) rounds: i64,
}

impl Pace {
    /// All jobs have fired once, and there is a pause. It divides a minute.
    fn period(self) -> i64 {
        10 * self.apart
    }
}

/// What one round cost: the most of the rounds that were looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Of the instance that sent most of them.
    pub(crate) requests_of_one: u64,
    pub(crate) requests: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// By mode, items and instances.
pub(crate) type Costs = BTreeMap<(Mode, usize, usize), Cost>;

fn jobs() -> Vec<(Mode, usize)> {
    Mode::ALL.into_iter().flat_map(|mode| ITEMS.into_iter().map(move |items| (mode, items))).collect()
}

fn specs(pace: Pace) -> String {
    let spec = |(second, (mode, items)): (i64, (Mode, usize))| {
        let fires = (0..60 / pace.period()).map(|fire| (second + fire * pace.period()).to_string());
        let fires = fires.collect::<Vec<_>>().join(",");
        format!("{items}:{fires} * * * * ?:{}", mode.flags())
    };
    let seconds = (0..).map(|number| number * pace.apart);
    seconds.zip(jobs()).map(spec).collect::<Vec<_>>().join(";")
}

/// All jobs in a fleet of so many instances.
pub(crate) async fn measure(stage: &Stage, side: Side, instances: usize, pace: Pace) -> Result<Costs> {
    let namespace = stage.namespace();
    let mut fleet: Vec<(Proxy, Member)> = Vec::new();
    for _ in 0..instances {
        let proxy = Proxy::start(stage.server.port()).await;
        let setup = Setup {
            specs: specs(pace),
            port: Some(proxy.port()),
            session: Duration::from_secs(40),
            ..Setup::each_second(namespace.clone(), 0, 0)
        };
        let member = stage.start(side, &setup)?;
        fleet.push((proxy, member));
    }
    for (_, member) in &mut fleet {
        member.until(START, "the registration of the last job", |it| it.ready).await?;
    }
    let mut costs = Costs::new();
    // A second before the first job fires.
    let (apart, period) = (pace.apart * SECOND, pace.period() * SECOND);
    let begin = (now() / period + 1) * period - SECOND;
    for round in 0..WARM_UP + pace.rounds {
        for (number, (mode, items)) in jobs().into_iter().enumerate() {
            let from = begin + round * period + number as i64 * apart;
            sleep_until(from).await;
            let _ = take(&fleet);
            sleep_until(from + apart).await;
            let cost = take(&fleet);
            if round >= WARM_UP {
                let most = costs.entry((mode, items, instances)).or_insert(cost);
                if cost.requests > most.requests {
                    *most = cost;
                }
            }
        }
    }
    for (_, member) in fleet {
        member.end().await?;
    }
    Ok(costs)
}

fn take(fleet: &[(Proxy, Member)]) -> Cost {
    let mut cost = Cost::default();
    for (proxy, _) in fleet {
        let requests: u64 = proxy.take_requests().values().sum();
        let (sent, received) = proxy.take_bytes();
        cost.requests_of_one = cost.requests_of_one.max(requests);
        cost.requests += requests;
        cost.sent += sent;
        cost.received += received;
    }
    cost
}
