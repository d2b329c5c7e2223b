//! `elasticjob job watch`: the job's page, drawn anew with every change.

use std::io::{self, IsTerminal};
use std::time::Duration;

use elasticjob::Ops;
use elasticjob::ops::News;
use jiff::Timestamp;

use crate::failure::Failure;
use crate::screen::{Screen, print, say};
use crate::{ask, json, time};

const MOMENT: Duration = Duration::from_millis(100);
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

pub(crate) async fn run(ops: &Ops, screen: &Screen, job: &str) -> Result<(), Failure> {
    let mut watch = ops.watch(job).await?;
    let asked = elasticjob::until_asked_to_end();
    tokio::pin!(asked);
    let mut pause = Duration::ZERO;
    loop {
        // What changes within a moment is drawn once.
        let next = async {
            tokio::time::sleep(pause).await;
            watch.next().await
        };
        let news = tokio::select! {
            asked = &mut asked => return asked.map_err(|error| Failure::failed(error.to_string())),
            news = next => news,
        };
        pause = MOMENT;
        match news {
            News::Now(detail) if detail.spec.is_none() && detail.servers.is_empty() => {
                return Err(Failure::refused(format!("job `{job}` is gone")));
            }
            News::Now(detail) if screen.is_json() => print(&format!("{}\n", json::detail(&detail)))?,
            News::Now(detail) => {
                let clear = if io::stdout().is_terminal() { CLEAR } else { "" };
                let now = time::show(Timestamp::now());
                print(&format!("{clear}{now}; Ctrl-C ends\n\n{}\n", ask::job(screen, &detail)))?;
            }
            News::Suspended => say("the registry is out of reach; waiting for it"),
            News::Ended => {
                return Err(Failure::unreachable("the session with the registry has ended: start again"));
            }
        }
    }
}
