//! Why an operator's wish was not, or may not have been, granted.

use elasticjob_core::ops::Refusal;

use crate::registry::{CommitError, RegistryError};

/// Why a question has no answer, or a command was not done.
///
/// ```
/// use elasticjob::{Ops, OpsError};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), OpsError> {
/// let ops = Ops::connect("embedded://").await?;
/// let error = ops.trigger("nightly", None).await.unwrap_err();
/// assert_eq!(error.to_string(), "there is no job `nightly`: the registry has no jobs");
/// assert!(error.is_refusal());
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpsError {
    /// No such job.
    #[error("there is no job `{job}`: {hint}")]
    UnknownJob {
        /// What was asked for.
        job: String,
        /// Names that are spelled alike, or how many jobs there are.
        hint: String,
    },
    /// No job knows that server.
    #[error("no job knows a server `{ip}`; known: {}", known.join(", "))]
    UnknownServer {
        /// What was asked for.
        ip: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// The command makes no sense for the job as it is. Nothing was done.
    #[error("job `{job}`: {refusal}")]
    Refused {
        /// The job.
        job: String,
        /// Why.
        refusal: Refusal,
    },
    /// The registry does not let us. Nothing was done.
    #[error("not permitted: {what}; use an account that may")]
    NotPermitted {
        /// What was tried, and what the registry said.
        what: String,
    },
    /// Others kept changing the job. Nothing was done.
    #[error("job `{job}` kept changing while this was planned: nothing was done; try again")]
    Busy {
        /// The job.
        job: String,
    },
    /// The connection broke at the wrong moment.
    #[error("job `{job}`: it is not known whether this was done ({cause}): look before you repeat it")]
    InDoubt {
        /// The job.
        job: String,
        /// What broke.
        cause: String,
    },
    /// The registry refused for a reason of its own. Nothing was done.
    #[error("job `{job}`: {error}")]
    Commit {
        /// The job.
        job: String,
        /// The reason.
        error: CommitError,
    },
    /// The registry cannot be opened, reached or read.
    #[error(transparent)]
    Registry(RegistryError),
}

impl OpsError {
    /// What was asked for does not exist, or makes no sense as things are: asking again will not help.
    pub fn is_refusal(&self) -> bool {
        match self {
            OpsError::UnknownJob { .. } | OpsError::UnknownServer { .. } | OpsError::Refused { .. } => true,
            OpsError::NotPermitted { .. }
            | OpsError::Busy { .. }
            | OpsError::InDoubt { .. }
            | OpsError::Commit { .. }
            | OpsError::Registry(_) => false,
        }
    }

    /// The registry cannot be worked with: it is out of reach, in use, or not what it should be.
    pub fn is_unreachable(&self) -> bool {
        match self {
            OpsError::Registry(error) => !matches!(
                error,
                RegistryError::BadUrl { .. }
                    | RegistryError::MissingFeature { .. }
                    | RegistryError::BadPath { .. }
            ),
            OpsError::Commit { error: CommitError::SessionEnded, .. } => true,
            OpsError::UnknownJob { .. }
            | OpsError::UnknownServer { .. }
            | OpsError::Refused { .. }
            | OpsError::NotPermitted { .. }
            | OpsError::Busy { .. }
            | OpsError::InDoubt { .. }
            | OpsError::Commit { .. } => false,
        }
    }
}

impl From<RegistryError> for OpsError {
    fn from(error: RegistryError) -> OpsError {
        match &error {
            RegistryError::Denied(_) => OpsError::NotPermitted { what: error.to_string() },
            RegistryError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                OpsError::NotPermitted { what: error.to_string() }
            }
            _ => OpsError::Registry(error),
        }
    }
}
