//! `elasticjob job …`: one job, seen and steered.

use std::path::PathBuf;

use elasticjob::Ops;
use elasticjob::ops::Part;

use crate::failure::Failure;
use crate::screen::{Screen, confirm, print, print_json};
use crate::{ask, edit, json, watch};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Show all that there is to see of a job
    Show {
        /// The job
        job: String,
        /// Show the stored document instead
        #[arg(long)]
        yaml: bool,
    },
    /// Ask all instances to run their shards now
    Trigger {
        /// The job
        job: String,
        /// Only this instance
        #[arg(long, value_name = "ID")]
        instance: Option<String>,
        /// What the runs are to know: code finds it in its shard, scripts and HTTP services in their context
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        param: String,
    },
    /// Let the job work no more, or one of its servers, or one of its shards
    Disable(Which),
    /// Let the job work again, or one of its servers, or one of its shards
    Enable(Which),
    /// Disable the job until it is resumed, also on servers that start later
    Pause {
        /// The job
        job: String,
        /// Who pauses it, to be noted
        #[arg(long, value_name = "NAME", env = "USER", hide_env = true)]
        by: Option<String>,
    },
    /// End a pause
    Resume {
        /// The job
        job: String,
    },
    /// End the job on all its instances, or some; the processes go on without it until they are restarted
    Shutdown {
        /// The job
        job: String,
        /// Only on this server
        #[arg(long, value_name = "IP", conflicts_with = "instance")]
        server: Option<String>,
        /// Only on this instance
        #[arg(long, value_name = "ID")]
        instance: Option<String>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Change the stored settings in an editor, or from a file
    Edit {
        /// The job
        job: String,
        /// Take the document from this file (`-`: from stdin) instead of an editor
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Say what would change, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Remove the job with all its nodes, or forget one of its servers
    Remove {
        /// The job
        job: String,
        /// Only forget this server
        #[arg(long, value_name = "IP")]
        server: Option<String>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Print every node of the job, with addresses masked
    Dump {
        /// The job
        job: String,
        /// Ask the dump port of a process, Rust or Java, instead of the registry
        #[arg(long, value_name = "HOST:PORT")]
        from: Option<String>,
    },
    /// Follow the job as it changes, until Ctrl-C
    Watch {
        /// The job
        job: String,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// The job
    job: String,
    /// Only this server
    #[arg(long, value_name = "IP", conflicts_with = "shard")]
    server: Option<String>,
    /// Only this shard
    #[arg(long, value_name = "N")]
    shard: Option<u32>,
}

impl Which {
    fn part(&self) -> Part {
        match (&self.server, self.shard) {
            (Some(ip), _) => Part::Server(ip.clone()),
            (None, Some(item)) => Part::Item(item),
            (None, None) => Part::Job,
        }
    }
}

pub(crate) async fn run(ops: &Ops, screen: &Screen, command: Command) -> Result<(), Failure> {
    match command {
        Command::Show { job, yaml: true } => print(&ops.config(&job).await?.text),
        Command::Show { job, yaml: false } => {
            let detail = ops.job(&job).await?;
            if screen.is_json() {
                return print_json(&json::detail(&detail));
            }
            print(&ask::job(screen, &detail))
        }
        Command::Trigger { job, instance, param } => {
            screen.done(&ops.trigger_with(&job, instance.as_deref(), &param).await?)
        }
        Command::Disable(which) => screen.done(&ops.disable(&which.job, &which.part()).await?),
        Command::Enable(which) => screen.done(&ops.enable(&which.job, &which.part()).await?),
        Command::Pause { job, by } => {
            screen.done(&ops.pause(&job, by.as_deref().unwrap_or("unknown")).await?)
        }
        Command::Resume { job } => screen.done(&ops.resume(&job).await?),
        Command::Shutdown { job, server, instance, yes } => {
            let part = match (server, instance) {
                (Some(ip), _) => Part::Server(ip),
                (None, Some(id)) => Part::Instance(id),
                (None, None) => Part::Job,
            };
            let count = ops.job(&job).await?.instances.len();
            let whom = match &part {
                Part::Server(ip) => format!("server {ip}"),
                Part::Instance(id) => format!("instance {id}"),
                Part::Job | Part::Item(_) => format!("all of its {count} instance(s)"),
            };
            confirm(&format!("this ends job `{job}` on {whom}"), yes)?;
            screen.done(&ops.shutdown(&job, &part).await?)
        }
        Command::Edit { job, file, dry_run } => edit::run(ops, screen, &job, file.as_deref(), dry_run).await,
        Command::Remove { job, server: Some(ip), yes } => {
            ops.job(&job).await?;
            confirm(&format!("this removes server {ip} from job `{job}`"), yes)?;
            screen.done(&ops.remove_server(&job, &ip).await?)
        }
        Command::Remove { job, server: None, yes } => {
            let detail = ops.job(&job).await?;
            let (instances, shards) = (detail.instances.len(), detail.shards.len());
            let what = format!(
                "this removes job `{job}` ({instances} instance(s), {shards} shard(s)), its settings and all that is known of it"
            );
            confirm(&what, yes)?;
            screen.done(&ops.remove_job(&job).await?)
        }
        Command::Dump { job, .. } => print(&ops.dump(&job).await?),
        Command::Watch { job } => watch::run(ops, screen, &job).await,
    }
}

/// What a process says of a job on its dump port.
pub(crate) async fn dump_from(address: &str, job: &str) -> Result<(), Failure> {
    let text = elasticjob::ops::dump_from(address, job)
        .await
        .map_err(|error| Failure::unreachable(format!("the dump port {address} does not answer: {error}")))?;
    if text.trim().is_empty() {
        return Err(Failure::refused(format!("the process at {address} knows no job `{job}`")));
    }
    print(&text)
}
