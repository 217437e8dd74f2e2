//! Following the logs of all watched conversations, for whoever wants what is said before the next hook.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use segno_core::SessionId;

use crate::Engine;
use crate::Error;

/// Reading a long turn again takes a while: at most this part of the time is spent with it.
const SHARE: u32 = 10;

/// What was seen of the logs when they were last read.
#[derive(Debug, Default)]
pub struct Follower {
    seen: BTreeMap<SessionId, Seen>,
}

#[derive(Debug)]
struct Seen {
    /// The log, how long it was and when it was written; none if there was none yet.
    log: Option<(PathBuf, u64, SystemTime)>,
    /// It is left alone until then.
    rests: Instant,
}

impl Follower {
    /// Takes in what the logs tell by now. Says of which sessions something was read.
    ///
    /// # Errors
    /// If the store cannot be read. A log that cannot be followed keeps nobody from the others.
    pub fn look(&mut self, engine: &Engine) -> Result<Vec<SessionId>, Error> {
        let mut read = Vec::new();
        let leases = engine.store().leases()?;
        self.seen.retain(|session, _| leases.iter().any(|(known, _)| known == session));
        for (session, lease) in leases {
            let Some(dir) = engine.watched_capture(session) else { continue };
            let log = crate::run::followed_log(&dir);
            let before = self.seen.get(&session);
            let is_known = before.is_some_and(|seen| seen.log.is_some() && seen.log == log);
            if is_known || before.is_some_and(|seen| seen.rests > Instant::now()) {
                continue;
            }
            let begun = Instant::now();
            match engine.follow_between(session, lease.epoch) {
                Ok(()) if log.is_some() => read.push(session),
                Ok(()) => {}
                Err(why) => tracing::warn!(%session, %why, "the log of a conversation was not followed"),
            }
            let rests = Instant::now() + (begun.elapsed() * SHARE).min(Duration::from_secs(60));
            self.seen.insert(session, Seen { log, rests });
        }
        Ok(read)
    }
}
