//! stub
use elasticjob_core::spec::JobSpec;
#[derive(Debug, thiserror::Error)]
#[error("x")]
/// e
pub struct FileError;
/// s
#[derive(Default)]
pub struct Settings {
    /// i
    pub preferred_interface: Option<String>,
    /// i
    pub preferred_ip: Option<String>,
    /// i
    pub shutdown_grace: Option<std::time::Duration>,
}
/// w
pub enum FileWork {
    /// c
    Code,
    /// s
    Script,
}
/// j
pub struct FileJob {
    /// s
    pub spec: JobSpec,
    /// w
    pub work: FileWork,
}
/// f
pub struct JobsFile {
    /// r
    pub registry: Option<String>,
    /// w
    pub worker: Settings,
    /// j
    pub jobs: Vec<FileJob>,
}
impl JobsFile {
    /// r
    pub fn read(_: &std::path::Path) -> Result<JobsFile, FileError> {
        Err(FileError)
    }
}
