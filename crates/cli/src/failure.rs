//! What went wrong, in one line, and the exit code that says which kind it is.

use std::process::ExitCode;

use elasticjob::OpsError;

/// A message for people and a code for scripts.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// It failed.
    pub(crate) fn failed(message: impl Into<String>) -> Failure {
        Failure { code: 1, message: message.into() }
    }

    /// It failed, and everything has been said already.
    pub(crate) fn silent() -> Failure {
        Failure::failed("")
    }

    /// It was not asked for in the right way.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure { code: 2, message: message.into() }
    }

    /// It makes no sense as things are; nothing was changed.
    pub(crate) fn refused(message: impl Into<String>) -> Failure {
        Failure { code: 3, message: message.into() }
    }

    /// The registry cannot be reached.
    pub(crate) fn unreachable(message: impl Into<String>) -> Failure {
        Failure { code: 4, message: message.into() }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn is_refusal(&self) -> bool {
        self.code == 3
    }

    pub(crate) fn report(&self) -> ExitCode {
        if !self.message.is_empty() {
            eprintln!("error: {}", self.message);
        }
        ExitCode::from(self.code)
    }
}

impl From<OpsError> for Failure {
    fn from(error: OpsError) -> Failure {
        let message = error.to_string();
        if error.is_unreachable() {
            Failure::unreachable(message)
        } else if error.is_refusal() || matches!(error, OpsError::NotPermitted { .. }) {
            Failure::refused(message)
        } else if matches!(error, OpsError::Registry(_)) {
            Failure::usage(message) // The url is wrong.
        } else {
            Failure::failed(message)
        }
    }
}
