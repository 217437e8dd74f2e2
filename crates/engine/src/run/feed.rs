//! Listeners inside the process: they hear of what is journaled, and can never hold up the journal.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use segno_core::Event;
use segno_core::Timestamp;

/// Something that is durable in the journal, or that only concerns those who watch.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// An event was journaled.
    Recorded {
        /// Its number.
        seq: u64,
        /// When.
        at: Timestamp,
        /// What.
        event: Box<Event>,
    },
    /// Something the user should know, in words.
    Notice(String),
}

/// What a listener hears next.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// This.
    News(Arc<News>),
    /// So many before the next one were dropped, because it listened too slowly. They are in the journal.
    Missed(u64),
    /// Nothing yet.
    Nothing,
    /// Nothing any more.
    Closed,
}

/// Where news come from. Cloning it gives the same one.
#[derive(Clone, Debug, Default)]
pub struct Feed {
    queues: Arc<Mutex<Vec<Arc<Queue>>>>,
    /// Whether more comes after the end of a run.
    lasting: bool,
}

#[derive(Debug)]
struct Queue {
    content: Mutex<Content>,
    changed: Condvar,
    capacity: usize,
    /// Whether it hears what is journaled, or only what is said in words.
    events: bool,
}

#[derive(Debug, Default)]
struct Content {
    news: VecDeque<Arc<News>>,
    missed: u64,
    closed: bool,
}

/// A place in the audience. Dropping it leaves.
#[derive(Debug)]
pub struct Subscription(Arc<Queue>);

impl Feed {
    /// Listens from now on, keeping at most `capacity` unheard news; the oldest go first.
    pub fn subscribe(&self, capacity: usize) -> Subscription {
        self.listen(capacity, true)
    }

    /// Listens to what is said in words only; then nothing that is journaled has to be copied for it.
    pub fn subscribe_to_notices(&self, capacity: usize) -> Subscription {
        self.listen(capacity, false)
    }

    fn listen(&self, capacity: usize, events: bool) -> Subscription {
        let content = Mutex::new(Content::default());
        let queue = Arc::new(Queue { content, changed: Condvar::new(), capacity: capacity.max(1), events });
        lock(&self.queues).push(Arc::clone(&queue));
        Subscription(queue)
    }

    /// Whether anybody listens to what is journaled.
    pub fn is_heard(&self) -> bool {
        let mut queues = lock(&self.queues);
        // The one here is the only one left: its listener has gone.
        queues.retain(|queue| Arc::strong_count(queue) > 1);
        queues.iter().any(|queue| queue.events)
    }

    /// Tells everybody. Never waits.
    pub fn publish(&self, news: News) {
        let news = Arc::new(news);
        let is_event = matches!(*news, News::Recorded { .. });
        for queue in lock(&self.queues).iter().filter(|queue| queue.events || !is_event) {
            let mut content = lock(&queue.content);
            if content.news.len() >= queue.capacity {
                content.news.pop_front();
                content.missed += 1;
            }
            content.news.push_back(Arc::clone(&news));
            queue.changed.notify_all();
        }
    }

    /// The same one for a run that others follow: its end does not close it.
    pub(crate) fn lasting(&self) -> Self {
        Self { lasting: true, ..self.clone() }
    }

    /// Says that nothing will come any more.
    pub fn close(&self) {
        if self.lasting {
            return;
        }
        for queue in lock(&self.queues).drain(..) {
            lock(&queue.content).closed = true;
            queue.changed.notify_all();
        }
    }
}

impl Subscription {
    /// The next news, waiting for it at most so long.
    pub fn next(&self, patience: Duration) -> Heard {
        let until = Instant::now() + patience;
        let mut content = lock(&self.0.content);
        loop {
            if content.missed > 0 {
                return Heard::Missed(std::mem::take(&mut content.missed));
            }
            if let Some(news) = content.news.pop_front() {
                return Heard::News(news);
            }
            if content.closed {
                return Heard::Closed;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Heard::Nothing;
            }
            content = self.0.changed.wait_timeout(content, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A listener that panicked leaves the queue as it is, which is fit for use.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(text: &str) -> News {
        News::Notice(text.to_owned())
    }

    fn heard(subscription: &Subscription) -> String {
        match subscription.next(Duration::ZERO) {
            Heard::News(news) => match &*news {
                News::Notice(text) => text.clone(),
                News::Recorded { seq, .. } => seq.to_string(),
            },
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_slow_listener_loses_the_oldest_and_is_told() {
        let feed = Feed::default();
        let (slow, quick) = (feed.subscribe(2), feed.subscribe(10));
        for text in ["a", "b", "c", "d"] {
            feed.publish(notice(text));
        }
        assert_eq!([(); 4].map(|()| heard(&slow)), ["Missed(2)", "c", "d", "Nothing"]);
        assert_eq!([(); 4].map(|()| heard(&quick)), ["a", "b", "c", "d"]);
        feed.close();
        assert_eq!([heard(&slow), heard(&quick)], ["Closed", "Closed"]);
    }

    #[test]
    fn the_end_of_one_run_among_several_closes_nothing() {
        let feed = Feed::default();
        let listener = feed.subscribe(9);
        feed.lasting().close();
        feed.publish(notice("x"));
        assert_eq!([heard(&listener), heard(&listener)], ["x", "Nothing"]);
        feed.close();
        assert_eq!(heard(&listener), "Closed");
    }

    #[test]
    fn who_leaves_is_forgotten() {
        let feed = Feed::default();
        assert!(!feed.is_heard());
        let listener = feed.subscribe(1);
        assert!(feed.is_heard());
        drop(listener);
        assert!(!feed.is_heard());
    }

    #[test]
    fn who_wants_words_only_hears_no_events() {
        let feed = Feed::default();
        let listener = feed.subscribe_to_notices(9);
        assert!(!feed.is_heard());
        let event = segno_core::event::DriverDetached { epoch: 1 }.into();
        let at = Timestamp::from_micros(0);
        feed.publish(News::Recorded { seq: 1, at, event: Box::new(event) });
        feed.publish(notice("x"));
        assert_eq!([heard(&listener), heard(&listener)], ["x", "Nothing"]);
    }

    #[test]
    fn waiting_ends_when_news_come() {
        let feed = Feed::default();
        let listener = feed.subscribe(1);
        let other = feed.clone();
        let thread = std::thread::spawn(move || listener.next(Duration::from_secs(60)));
        other.publish(notice("x"));
        assert_eq!(thread.join().unwrap(), Heard::News(Arc::new(notice("x"))));
    }
}
