//! What operators ask for: read, plan (in the core), commit, and again on conflict.

use elasticjob_core::ops as plans;
use elasticjob_core::view::View;

use crate::error::Error;
use crate::registry::{CommitError, Session};

/// A plan meets the registry as it was read at most this often.
const ATTEMPTS: usize = 10;

/// Asks every instance of the job to run its items now.
pub(crate) async fn trigger(session: &dyn Session, job: &str) -> Result<(), Error> {
    let root = format!("/{job}");
    let failed = |error| Error::Commit { job: job.to_owned(), error };
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let view = View::new(&session.read(&root).await?);
        let ops = plans::trigger(&view);
        if ops.is_empty() {
            return Ok(()); // Everybody has been asked already.
        }
        match session.commit(&root, ops).await {
            Ok(()) => return Ok(()),
            Err(error @ CommitError::Conflict { .. }) => last = Some(error),
            Err(error) => return Err(failed(error)),
        }
    }
    Err(failed(last.expect("there was an attempt")))
}
