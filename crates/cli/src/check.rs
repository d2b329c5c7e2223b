//! `elasticjob check`: is the fleet healthy?

use elasticjob::Ops;
use elasticjob::ops::Level;
use serde_json::Value;

use crate::failure::Failure;
use crate::json;
use crate::screen::{Screen, Tone, print, print_json, say};

pub(crate) async fn run(ops: &Ops, screen: &Screen, job: Option<&str>) -> Result<(), Failure> {
    let findings = ops.check(job).await?;
    let problems = findings.iter().filter(|it| it.level == Level::Problem).count();
    if screen.is_json() {
        print_json(&Value::Array(findings.iter().map(json::finding).collect()))?;
    } else {
        for it in &findings {
            let level = match it.level {
                Level::Note => screen.paint("note   ", Tone::Careful),
                Level::Problem => screen.paint("PROBLEM", Tone::Bad),
            };
            print(&format!("{level}  {}: {}\n", it.job, it.what))?;
            if !it.remedy.is_empty() {
                print(&format!("         do: {}\n", it.remedy))?;
            }
        }
        say(&match problems {
            0 => "healthy".to_owned(),
            1 => "1 problem".to_owned(),
            many => format!("{many} problems"),
        });
    }
    if problems == 0 { Ok(()) } else { Err(Failure::silent()) }
}
