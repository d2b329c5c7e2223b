//! The error handlers that are always there, by name.

use std::sync::Arc;

use super::Handler;
use crate::extensions::Named;

/// What a name stands for.
#[derive(Clone)]
pub(crate) enum Known {
    Log,
    Throw,
    Ignore,
    /// Called away from the jobs, with many failures at a time.
    Told(Arc<dyn Handler>),
}

/// Those that Java has no name for.
pub(super) const OURS: [&str; 2] = ["SLACK", "WEBHOOK"];

pub(crate) fn builtins() -> Named<Known> {
    let mut known = Named::default();
    let told =
        [("EMAIL", email())].into_iter().chain(hooks()).map(|(name, handler)| (name, Known::Told(handler)));
    let local = [("LOG", Known::Log), ("THROW", Known::Throw), ("IGNORE", Known::Ignore)];
    for (name, handler) in local.into_iter().chain(told) {
        known.insert(name, handler);
    }
    known
}

#[cfg(feature = "email")]
fn email() -> Arc<dyn Handler> {
    Arc::new(super::mail::Mail)
}

#[cfg(not(feature = "email"))]
fn email() -> Arc<dyn Handler> {
    Arc::new(Missing { name: "EMAIL", feature: "email" })
}

#[cfg(feature = "http")]
fn hooks() -> [(&'static str, Arc<dyn Handler>); 4] {
    use super::hook::Hook;
    [
        ("DINGTALK", Arc::new(Hook::dingtalk())),
        ("WECHAT", Arc::new(Hook::wechat())),
        ("SLACK", Arc::new(Hook::slack())),
        ("WEBHOOK", Arc::new(Hook::webhook())),
    ]
}

#[cfg(not(feature = "http"))]
fn hooks() -> [(&'static str, Arc<dyn Handler>); 4] {
    ["DINGTALK", "WECHAT", "SLACK", "WEBHOOK"].map(|name| {
        let missing: Arc<dyn Handler> = Arc::new(Missing { name, feature: "http" });
        (name, missing)
    })
}

/// A handler that this program is built without: it says so.
#[cfg(not(all(feature = "email", feature = "http")))]
struct Missing {
    name: &'static str,
    feature: &'static str,
}

#[cfg(not(all(feature = "email", feature = "http")))]
impl Missing {
    fn error(&self) -> crate::job::JobError {
        let Missing { name, feature } = self;
        let text = format!(
            "{name} needs the feature `{feature}` of the crate elasticjob, which this program is built without"
        );
        text.into()
    }
}

#[cfg(not(all(feature = "email", feature = "http")))]
impl super::ErrorHandler for Missing {
    fn check(&self, _: &std::collections::BTreeMap<String, String>) -> Result<(), crate::job::JobError> {
        Err(self.error())
    }

    async fn handle(&self, _: super::Report) -> Result<(), crate::job::JobError> {
        Err(self.error())
    }
}
