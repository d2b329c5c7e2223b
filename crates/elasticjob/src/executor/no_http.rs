//! HTTP jobs in a program that is built without them: they say so.

use super::props::{Props, TypeError};
use crate::job::{JobError, Shard};

#[derive(Default)]
pub(super) struct Http;

impl Http {
    #[expect(clippy::unused_async, reason = "it stands in for something that waits")]
    pub(super) async fn run(&self, _: &Shard, _: Props<'_>) -> Result<(), JobError> {
        Err(TypeError::NoHttp.into())
    }
}

pub(super) fn check(_: Props<'_>) -> Result<(), TypeError> {
    Err(TypeError::NoHttp)
}
