//! `elasticjob servers` and `elasticjob server …`.

use elasticjob::Ops;
use elasticjob::ops::ServerDeed;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::json;
use crate::screen::{Screen, Tone, confirm, print, print_json, say};
use crate::table::{Cell, Table};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Let no job work on the server
    Disable {
        /// Its address
        ip: String,
    },
    /// Let all jobs work on the server again
    Enable {
        /// Its address
        ip: String,
    },
    /// End all jobs on the server; its processes go on without them until they are restarted
    Shutdown {
        /// Its address
        ip: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Forget the server; what still runs there is shut down
    Remove {
        /// Its address
        ip: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

pub(crate) async fn list(ops: &Ops, screen: &Screen) -> Result<(), Failure> {
    let servers = ops.servers().await?;
    if screen.is_json() {
        return print_json(&Value::Array(servers.iter().map(json::server).collect()));
    }
    if servers.is_empty() {
        say("no servers");
        return Ok(());
    }
    let mut table = Table::new(["SERVER", "STATUS", "INSTANCES", "JOBS", "DISABLED JOBS"]);
    for it in &servers {
        let status = if it.instances.is_empty() {
            Cell::toned("OFFLINE", Tone::Bad)
        } else if it.disabled.len() == it.jobs.len() {
            Cell::toned("DISABLED", Tone::Careful)
        } else {
            Cell::toned("OK", Tone::Good)
        };
        let counts = [it.instances.len(), it.jobs.len(), it.disabled.len()].map(|it| it.to_string().into());
        table.row([it.ip.clone().into(), status].into_iter().chain(counts));
    }
    print(&table.show(screen))
}

pub(crate) async fn run(ops: &Ops, screen: &Screen, command: Command) -> Result<(), Failure> {
    let (ip, deed) = match command {
        Command::Disable { ip } => (ip, ServerDeed::Disable),
        Command::Enable { ip } => (ip, ServerDeed::Enable),
        Command::Shutdown { ip, yes } => {
            confirm(&format!("this ends all jobs on server {ip}"), yes)?;
            (ip, ServerDeed::Shutdown)
        }
        Command::Remove { ip, yes } => {
            confirm(&format!("this removes server {ip} from all jobs"), yes)?;
            (ip, ServerDeed::Remove)
        }
    };
    let outcomes = ops.on_server(&ip, deed).await?;
    let mut failed = None;
    let mut all = Map::new();
    for (job, outcome) in outcomes {
        match outcome {
            Ok(done) if screen.is_json() => {
                let value = json!({ "changes": done.changes, "consequences": done.consequences });
                all.insert(job, value);
            }
            Ok(done) => {
                for change in &done.changes {
                    print(&format!("{job}: {change}\n"))?;
                }
                if done.changes.is_empty() {
                    say(&format!("{job}: nothing to do: it is so already"));
                }
                for consequence in &done.consequences {
                    say(&format!("  then: {consequence}"));
                }
            }
            Err(error) => {
                all.insert(job, json!({ "error": error.to_string() }));
                let failure = Failure::from(error);
                say(&format!("error: {}", failure.message()));
                failed = Some(failure);
            }
        }
    }
    if screen.is_json() {
        print_json(&Value::Object(all))?;
    }
    match failed {
        None => Ok(()),
        Some(failure) if failure.is_refusal() => {
            Err(Failure::refused("some jobs refused; the others are done"))
        }
        Some(_) => Err(Failure::failed("some jobs failed; the others are done")),
    }
}
