//! The logs of sub-agents, where each has one of its own beside that of the conversation. What they use counts too, and
//! is told nowhere else.

use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use segno_agents::Agent;
use segno_agents::AgentEvent;
use segno_agents::Baseline;
use segno_agents::LogLocation;
use segno_agents::LogUse;

use super::journal::Recorder;
use super::log_beside::Following;
use super::log_beside::LOOK;
use super::log_find::find;

/// More sub-agents than this are not followed.
const MOST: usize = 1_000;

/// The sub-agents of a run.
pub(super) struct Helpers {
    location: LogLocation,
    directory: PathBuf,
    all: Vec<Helper>,
}

struct Helper {
    id: String,
    log: Option<Following>,
    looked: Option<Instant>,
    rest: Duration,
    /// Its log cannot be read.
    lost: bool,
}

impl Helpers {
    /// Those whose logs lie somewhere below a directory.
    pub(super) fn new(location: LogLocation, directory: PathBuf) -> Self {
        Self { location, directory, all: Vec::new() }
    }

    /// Takes note of a sub-agent that the agent's log tells of.
    pub(super) fn hear(&mut self, agent: &dyn Agent, event: &AgentEvent) {
        let id = agent.conversation_log().and_then(|log| log.sub_agent_of(event));
        let Some(id) = id.filter(|id| self.all.iter().all(|known| known.id != *id)) else { return };
        if self.all.len() < MOST {
            self.all.push(Helper { id, log: None, looked: None, rest: LOOK, lost: false });
        }
    }

    /// Reads what is new in their logs. False when there is nothing new.
    pub(super) fn follow(&mut self, agent: &dyn Agent, over: bool, recorder: &mut Recorder<'_>) -> bool {
        let mut more = false;
        let mut heard = Vec::new();
        for helper in &mut self.all {
            helper.look(agent, &self.location, &self.directory, over);
            let Some(log) = &mut helper.log else { continue };
            let read = log.read(&mut |envelope| {
                if matches!(envelope.event, AgentEvent::Tokens { .. }) {
                    recorder.take_helper(&envelope, &helper.id);
                }
                heard.push(envelope.event);
            });
            match read {
                Ok(read) => more |= read,
                Err(_) => (helper.log, helper.lost) = (None, true),
            }
        }
        // They may have sub-agents themselves.
        for event in &heard {
            self.hear(agent, event);
        }
        more
    }
}

impl Helper {
    fn look(&mut self, agent: &dyn Agent, location: &LogLocation, directory: &std::path::Path, over: bool) {
        let rests = !over && self.looked.is_some_and(|looked| looked.elapsed() < self.rest);
        if self.log.is_some() || self.lost || rests {
            return;
        }
        if self.looked.replace(Instant::now()).is_some() {
            self.rest *= 2;
        }
        let usage = LogUse::SubAgent { id: &self.id };
        let found = find(location, directory, &self.id);
        self.log = found.and_then(|path| Following::open(agent, &path, 0, Baseline::Fresh, usage).ok());
    }
}
