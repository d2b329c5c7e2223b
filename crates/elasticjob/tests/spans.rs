//! Whatever user code logs says which run it belongs to. Alone in its process: the subscriber is everybody's.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use elasticjob::{Job, Shard, testing};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// The fields of a span or an event.
#[derive(Clone, Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

/// Every line of the job's, with the fields of the spans around it.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<BTreeMap<String, String>>>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = Fields::default();
        event.record(&mut line);
        for span in context.event_scope(event).into_iter().flatten() {
            line.0.insert("span".to_owned(), span.name().to_owned());
            line.0.extend(span.extensions().get::<Fields>().unwrap().0.clone());
        }
        if line.0.get("message").is_some_and(|it| it == "at work") {
            self.0.lock().unwrap().push(line.0);
        }
    }
}

#[tokio::test]
async fn what_user_code_logs_carries_job_item_run_and_token() {
    let lines = Lines::default();
    // What is filtered must not take the spans with it.
    let filter = tracing_subscriber::EnvFilter::new("warn");
    let subscriber = tracing_subscriber::registry().with(filter).with(lines.clone());
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let code = Job::simple("code", async |_: Shard| {
        tokio::task::yield_now().await;
        tracing::warn!("at work");
        Ok(())
    });
    let blocking = Job::blocking("blocking", |_: Shard| {
        tracing::warn!("at work");
        Ok(())
    });
    for job in [code.shards(2), blocking.shards(2)] {
        testing::run_once(&job).await.unwrap();
    }
    let mut said: Vec<String> = lines.0.lock().unwrap().iter().map(|it| format!("{it:?}")).collect();
    said.sort();
    let line = |job: &str, item: u32| {
        let run = format!("{job}@-@0@-@READY@-@127.0.0.1@-@1.test.1-1");
        format!(
            r#"{{"item": "{item}", "job": "{job}", "message": "at work", "run": "{run}", "span": "shard", "token": "1"}}"#
        )
    };
    let expected = [line("blocking", 0), line("code", 0), line("blocking", 1), line("code", 1)];
    assert_eq!(said, expected);
}
