//! Where the registry is: an argument, the environment, or a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use elasticjob::Ops;
use elasticjob::file::JobsFile;

use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// Where the fleet meets, such as zookeeper://host:2181/namespace or embedded:///var/lib/jobs
    #[arg(long, global = true, value_name = "URL", env = "ELASTICJOB_REGISTRY", hide_env_values = true)]
    registry: Option<String>,
    /// A file with a line `registry: URL`; a jobs file will do [default: ~/.config/elasticjob/config.yaml]
    #[arg(long, global = true, value_name = "FILE", env = "ELASTICJOB_CONFIG")]
    config: Option<PathBuf>,
}

impl Place {
    pub(crate) async fn connect(&self) -> Result<Ops, Failure> {
        connect(&self.url()?).await
    }

    pub(crate) fn url(&self) -> Result<String, Failure> {
        if let Some(url) = &self.registry {
            return Ok(url.clone());
        }
        let own = own_config();
        let (path, wanted) = match (&self.config, &own) {
            (Some(path), _) => (path, true),
            (None, Some(path)) => (path, false),
            (None, None) => return Err(nowhere(None)),
        };
        match from_file(path) {
            Ok(Some(url)) => Ok(url),
            Ok(None) => Err(Failure::usage(format!("{}: no line `registry: URL`", path.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !wanted => Err(nowhere(Some(path))),
            Err(error) => Err(Failure::usage(format!("{}: {error}", path.display()))),
        }
    }
}

/// An operator joins what is there; a mistyped path must not become a new, empty registry.
pub(crate) async fn connect(url: &str) -> Result<Ops, Failure> {
    if let Some(place) = url.strip_prefix("embedded://") {
        let place = place.split('?').next().unwrap_or_default();
        if !place.starts_with('/') && !place.contains('/') {
            return Err(Failure::usage(format!(
                "registry `{url}` lives in the memory of one process, where no command can see it: give a worker a registry on disk, `embedded:///directory`, or a shared one"
            )));
        }
        if place.starts_with('/') && !Path::new(place).exists() {
            return Err(Failure::unreachable(format!(
                "there is no registry in {place}: no worker has stored anything there yet"
            )));
        }
    }
    Ok(Ops::connect(url).await?)
}

fn nowhere(path: Option<&Path>) -> Failure {
    let path = path.map_or_else(|| "~/.config/elasticjob/config.yaml".into(), |it| it.display().to_string());
    Failure::usage(format!(
        "no registry: give --registry URL, set ELASTICJOB_REGISTRY, or write `registry: URL` into {path}"
    ))
}

fn own_config() -> Option<PathBuf> {
    let filled = |name| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let home = filled("XDG_CONFIG_HOME").or_else(|| Some(filled("HOME")?.join(".config")))?;
    Some(home.join("elasticjob").join("config.yaml"))
}

fn from_file(path: &Path) -> io::Result<Option<String>> {
    let text = fs::read_to_string(path)?;
    if text.lines().any(|line| line.starts_with("jobs:")) {
        let file = JobsFile::read(path).map_err(|error| io::Error::other(error.to_string()))?;
        return Ok(file.registry);
    }
    let value = text.lines().find_map(|line| line.strip_prefix("registry:"));
    let value = value.map(|it| it.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']));
    Ok(value.filter(|it| !it.is_empty()).map(str::to_owned))
}
