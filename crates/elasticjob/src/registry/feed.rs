//! What one watcher has yet to be told: a queue with a bound, which forgets in favour of a fresh snapshot
//! rather than grow.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use super::{Change, Focus, WatchEvent};

/// How many changes wait for a watcher before they are replaced by a snapshot. A single transaction may be
/// larger.
pub(super) const CHANGES_MAX: usize = 4096;

/// The events between a registry and one watcher. Nothing is allocated for a watcher that keeps up.
#[derive(Debug)]
pub(super) struct Feed {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    flow: Flow,
    /// Oldest first; what the watcher gets before it learns of the flow.
    queue: VecDeque<News>,
    /// The number of changes in the queue.
    waiting: usize,
    waker: Option<Waker>,
}

/// What waits for a watcher.
#[derive(Debug)]
#[cfg_attr(not(feature = "zookeeper"), expect(dead_code, reason = "only a remote registry follows less"))]
enum News {
    /// What one transaction did.
    Changes(Arc<Vec<Change>>),
    /// What is followed from here on.
    Sees(Focus),
}

impl News {
    /// How much it counts.
    fn weight(&self) -> usize {
        match self {
            News::Changes(changes) => changes.len(),
            News::Sees(_) => 1,
        }
    }
}

/// What stands at the end of the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flow {
    /// More changes will follow.
    Following,
    /// A snapshot is due. It is taken when the watcher asks for it, so changes until then are part of it.
    Behind,
    /// The connection is down; `told` when the watcher knows.
    Cut { told: bool },
    /// The connection was down and is not any more, before the watcher knew: it learns both.
    Back,
    /// The session is over.
    Ended,
}

/// What a watcher that asks gets.
pub(super) enum Next {
    Event(WatchEvent),
    /// Take a snapshot, but only if [`Feed::follow`] then says so.
    Snapshot,
    /// Nothing yet; the waker is kept.
    Nothing,
}

impl Feed {
    /// A feed that begins with a snapshot.
    pub(super) fn new() -> Feed {
        let state = State { flow: Flow::Behind, queue: VecDeque::new(), waiting: 0, waker: None };
        Feed { state: Mutex::new(state) }
    }

    /// A feed whose snapshot has yet to be fetched: it begins with [`Feed::resume`].
    #[cfg(feature = "zookeeper")]
    pub(super) fn waiting() -> Feed {
        let feed = Feed::new();
        feed.lock().flow = Flow::Cut { told: true };
        feed
    }

    /// The next event, if there is one.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Next {
        let mut state = self.lock();
        if let Some(news) = state.queue.pop_front() {
            state.waiting -= news.weight();
            if state.queue.is_empty() {
                state.queue = VecDeque::new(); // A burst's memory is not kept.
            }
            drop(state);
            return Next::Event(match news {
                News::Changes(changes) => WatchEvent::Changed(Arc::unwrap_or_clone(changes)),
                News::Sees(focus) => WatchEvent::Sees(focus),
            });
        }
        match state.flow {
            Flow::Behind => return Next::Snapshot,
            Flow::Back => {
                state.flow = Flow::Behind;
                return Next::Event(WatchEvent::Suspended);
            }
            Flow::Cut { told: false } => {
                state.flow = Flow::Cut { told: true };
                return Next::Event(WatchEvent::Suspended);
            }
            Flow::Ended => return Next::Event(WatchEvent::Ended),
            Flow::Following | Flow::Cut { told: true } => {}
        }
        if !state.waker.as_ref().is_some_and(|it| it.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        Next::Nothing
    }

    /// Whether a snapshot is still wanted; if so, changes are queued from now on. To be called where no
    /// change can come between this and the snapshot.
    pub(super) fn follow(&self) -> bool {
        let mut state = self.lock();
        let wanted = state.flow == Flow::Behind && state.queue.is_empty();
        if wanted {
            state.flow = Flow::Following;
        }
        wanted
    }

    /// Queues what one transaction did.
    pub(super) fn push(&self, changes: &Arc<Vec<Change>>) -> Option<Waker> {
        self.tell(News::Changes(changes.clone()))
    }

    /// Queues that from here on this is followed.
    #[cfg(feature = "zookeeper")]
    pub(super) fn sees(&self, focus: Focus) -> Option<Waker> {
        self.tell(News::Sees(focus))
    }

    fn tell(&self, news: News) -> Option<Waker> {
        let mut state = self.lock();
        if state.flow != Flow::Following {
            return None;
        }
        if !state.queue.is_empty() && state.waiting + news.weight() > CHANGES_MAX {
            state.queue = VecDeque::new();
            state.waiting = 0;
            state.flow = Flow::Behind;
        } else {
            state.waiting += news.weight();
            state.queue.push_back(news);
        }
        state.waker.take()
    }

    /// The connection went down.
    pub(super) fn cut(&self) -> Option<Waker> {
        let mut state = self.lock();
        match state.flow {
            Flow::Following | Flow::Behind | Flow::Back => state.flow = Flow::Cut { told: false },
            Flow::Cut { .. } | Flow::Ended => {}
        }
        state.waker.take()
    }

    /// The connection is up again.
    pub(super) fn resume(&self) -> Option<Waker> {
        let mut state = self.lock();
        match state.flow {
            Flow::Cut { told: true } => state.flow = Flow::Behind,
            Flow::Cut { told: false } => state.flow = Flow::Back,
            Flow::Following | Flow::Behind | Flow::Back | Flow::Ended => {}
        }
        state.waker.take()
    }

    /// The session is over.
    pub(super) fn end(&self) -> Option<Waker> {
        let mut state = self.lock();
        state.flow = Flow::Ended;
        state.waker.take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(number: usize) -> Arc<Vec<Change>> {
        Arc::new(vec![Change::Gone { path: "/a".into() }; number])
    }

    /// What a watcher reads until there is nothing more, one letter each.
    fn read(feed: &Feed) -> String {
        let mut text = String::new();
        loop {
            text.push(match feed.poll(&mut Context::from_waker(Waker::noop())) {
                Next::Event(WatchEvent::Changed(_)) => 'c',
                Next::Event(WatchEvent::Suspended) => 's',
                Next::Event(WatchEvent::Ended) => return text + "e",
                Next::Event(WatchEvent::Sees(_)) => 'f',
                Next::Event(WatchEvent::Snapshot(_)) => unreachable!("a feed holds no snapshots"),
                Next::Snapshot if feed.follow() => 'S',
                Next::Snapshot => unreachable!("nobody interferes"),
                Next::Nothing => return text,
            });
        }
    }

    #[test]
    fn it_begins_with_a_snapshot_that_covers_what_came_before() {
        let feed = Feed::new();
        feed.push(&changes(1));
        assert_eq!(read(&feed), "S");
        feed.push(&changes(1));
        assert_eq!(read(&feed), "c");
    }

    #[test]
    fn too_much_becomes_one_snapshot() {
        let feed = Feed::new();
        assert_eq!(read(&feed), "S");
        for _ in 0..10 * CHANGES_MAX {
            feed.push(&changes(1));
            assert!(feed.lock().queue.len() <= CHANGES_MAX);
        }
        assert_eq!(read(&feed), "S");
        feed.push(&changes(2 * CHANGES_MAX)); // One large transaction is told as it is.
        assert_eq!(read(&feed), "c");
        assert_eq!(feed.lock().queue.capacity(), 0);
    }

    #[test]
    fn an_outage_is_told_once_however_often_the_link_flaps() {
        let feed = Feed::new();
        read(&feed);
        feed.push(&changes(1));
        for _ in 0..3 {
            feed.cut();
            feed.push(&changes(1));
            feed.resume();
        }
        assert_eq!(read(&feed), "csS");
        feed.cut();
        assert_eq!(read(&feed), "s");
        feed.resume();
        feed.cut();
        assert_eq!(read(&feed), "s");
        feed.resume();
        assert_eq!(read(&feed), "S");
    }

    #[test]
    fn the_end_comes_after_what_was_known_and_is_final() {
        let feed = Feed::new();
        read(&feed);
        feed.push(&changes(1));
        feed.end();
        feed.push(&changes(1));
        feed.cut();
        feed.resume();
        assert_eq!(read(&feed), "ce");
        assert_eq!(read(&feed), "e");
    }
}
