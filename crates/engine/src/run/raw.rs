//! The agent's own output, passed on as it came to somebody who may be slow.

use std::fs::File;
use std::io::Read;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long it rests when there is nothing to read.
const REST: Duration = Duration::from_millis(15);

/// A thread that copies the capture. It has a place of its own in the file, so it holds up nobody.
pub(super) struct RawTail {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl RawTail {
    pub(super) fn start(mut from: File, position: Arc<AtomicU64>, mut to: Box<dyn Write + Send>) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                // Asked before reading: what was there when the run ended is read in any case.
                let last = flag.load(Ordering::Acquire);
                match from.read(&mut buffer) {
                    Ok(0) if last => break,
                    Ok(0) => std::thread::sleep(REST),
                    Ok(count) => {
                        if to.write_all(&buffer[..count]).and_then(|()| to.flush()).is_err() {
                            break;
                        }
                        position.fetch_add(count as u64, Ordering::AcqRel);
                    }
                    Err(_) => break,
                }
            }
            // Nobody reads any more, so nothing need be kept for it.
            position.store(u64::MAX, Ordering::Release);
        });
        Self { ended, thread }
    }

    /// Waits until all has been passed on.
    pub(super) fn finish(self) {
        self.ended.store(true, Ordering::Release);
        let _ = self.thread.join();
    }
}
