//! `elasticjob import`: jobs of 1.x and 2.x become jobs of 3.x.

use elasticjob::Ops;
use elasticjob::ops::Import;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::place::{self, Place};
use crate::screen::{Screen, confirm, print, print_json, say};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only these jobs
    jobs: Vec<String>,
    /// The registry that holds the old jobs; if it is not given, they are replaced where they are
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Print every node that would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(
    target: &Ops,
    screen: &Screen,
    place: &Place,
    arguments: &Arguments,
) -> Result<(), Failure> {
    let elsewhere = arguments.from.as_ref().filter(|from| place.url().is_ok_and(|url| url != **from));
    let source = match elsewhere {
        Some(url) => place::connect(url).await?,
        None => target.clone(),
    };
    let mut found = source.imports().await?;
    if let Some(missing) = arguments.jobs.iter().find(|job| !found.contains_key(*job)) {
        return Err(Failure::refused(format!("there is no job `{missing}` of 1.x or 2.x")));
    }
    found.retain(|job, _| arguments.jobs.is_empty() || arguments.jobs.contains(job));
    let mut imports = Vec::new();
    let mut refused = 0;
    for (_, outcome) in found {
        match outcome {
            Ok(import) => imports.push(import),
            Err(error) => {
                refused += 1;
                say(&format!("error: {error}"));
            }
        }
    }
    show(screen, &imports)?;
    if imports.is_empty() && refused == 0 {
        say("no job of 1.x or 2.x is there");
    }
    if !arguments.dry_run && !imports.is_empty() {
        let how =
            if elsewhere.is_some() { "writes these nodes" } else { "replaces these jobs where they are" };
        confirm(&format!("this {how}"), arguments.yes)?;
        for import in &imports {
            match elsewhere {
                Some(_) => target.import(import).await?,
                None => drop(target.import_in_place(&import.job).await?),
            }
            say(&format!("job {} is imported", import.job));
        }
    } else if arguments.dry_run {
        say("dry run: nothing was written");
    }
    if elsewhere.is_some() {
        source.close().await;
    }
    if refused == 0 { Ok(()) } else { Err(Failure::refused(format!("{refused} job(s) cannot be imported"))) }
}

fn show(screen: &Screen, imports: &[Import]) -> Result<(), Failure> {
    if screen.is_json() {
        let all = imports.iter().map(|it| {
            let nodes: Vec<Value> = it
                .nodes
                .iter()
                .map(|(path, data)| json!({ "path": format!("/{}{path}", it.job), "data": data }))
                .collect();
            json!({ "jobName": it.job, "generation": it.generation, "nodes": nodes, "warnings": it.warnings })
        });
        return print_json(&Value::Array(all.collect()));
    }
    for it in imports {
        say(&format!("job {} of {}:", it.job, it.generation));
        for (path, data) in &it.nodes {
            let mut lines = data.lines();
            let first = lines.next().unwrap_or_default();
            print(format!("/{}{path} | {first}", it.job).trim_end())?;
            print("\n")?;
            for line in lines {
                print(&format!("    {line}\n"))?;
            }
        }
        for warning in &it.warnings {
            say(&format!("  warning: {warning}"));
        }
    }
    Ok(())
}
