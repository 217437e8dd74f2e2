//! However long a loop lasts, an iteration costs the same: what is read is counted, not timed.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use rustix::fs::inotify;
use segno_core::event::WokenHow;
use segno_core::looping::GateRule;
use segno_engine::looping::FakeSleeper;
use segno_engine::looping::LoopListener;
use segno_engine::looping::LoopNews;
use segno_engine::run::Stop;

use super::Yard;
use super::counted_store::CountedStore;

/// How often a directory was opened: whoever walks through the tree opens each once.
struct Walks {
    notices: OwnedFd,
    seen: u64,
}

impl Walks {
    fn through(directory: &std::path::Path) -> Self {
        let notices = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        // Two notices of the same kind in a row become one: what closes it comes between.
        let kinds = inotify::WatchFlags::OPEN | inotify::WatchFlags::CLOSE_NOWRITE;
        inotify::add_watch(&notices, directory, kinds).unwrap();
        Self { notices, seen: 0 }
    }

    fn so_far(&mut self) -> u64 {
        let mut room = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = inotify::Reader::new(&self.notices, &mut room);
        while let Ok(notice) = reader.next() {
            self.seen +=
                u64::from(notice.events().contains(inotify::ReadFlags::OPEN | inotify::ReadFlags::ISDIR));
        }
        self.seen
    }
}

/// What had been read whenever an iteration began.
struct Meter {
    rows: Arc<AtomicU64>,
    walks: Mutex<Walks>,
    at: Mutex<Vec<(u64, u64)>>,
}

impl LoopListener for Meter {
    fn hear(&self, news: &LoopNews) {
        if let LoopNews::IterationBegan { .. } = news {
            let walks = self.walks.lock().unwrap().so_far();
            self.at.lock().unwrap().push((self.rows.load(Ordering::SeqCst), walks));
        }
    }
}

/// The agent changes a file that the loop has not seen before each time, and is never done.
const STEP: &str = "echo $n > boat.txt; finish 'one plank more'";

#[test]
fn what_an_iteration_reads_does_not_grow_with_the_loop() {
    let yard = Yard::new();
    yard.always(STEP);
    std::fs::create_dir(yard.project().join("deck")).unwrap();
    yard.write("deck/plank", "oak");
    let session = yard.begin("true", |new| {
        // Nothing is measured: what the loop itself reads is counted.
        new.plan.phases[0].evidence.clear();
        new.plan.phases[0].gate = GateRule::Signal;
        new.plan.caps.iterations = Some(90);
    });
    let rows = Arc::new(AtomicU64::new(0));
    let engine = yard.engine_on(Box::new(CountedStore::new(Box::new(yard.store()), rows.clone())));
    let meter = Meter {
        rows,
        walks: Mutex::new(Walks::through(&yard.project().join("deck"))),
        at: Mutex::new(Vec::new()),
    };
    let (stop, sleeper) = (Stop::default(), FakeSleeper(yard.clock()));
    engine.loop_drive(session, &yard.host(&meter, WokenHow::Person, true, &stop, &sleeper)).unwrap();

    let at = meter.at.into_inner().unwrap();
    assert_eq!(at.len(), 90, "each iteration was heard of");
    let between = |from: usize| (at[from + 10].0 - at[from].0, at[from + 10].1 - at[from].1);
    // By the sixtieth iteration it has more checkpoints than are kept, and gives the oldest up each time.
    let (early, late, later) = (between(10), between(60), between(79));
    eprintln!("rows and walks of ten iterations: {early:?}, {late:?}, {later:?}");
    assert_eq!((early.1, late.1), (20, 20), "one walk before the agent and one after it");
    assert_eq!(late.0, later.0, "rows read in ten iterations");
}
