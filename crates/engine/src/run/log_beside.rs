//! The agent's own log of its conversation, followed beside what it prints.
//!
//! Where an agent keeps one that tells more than its output, calls and tokens are taken from there and passed over in
//! the output: one source, so that nothing has to be matched and nothing counts twice. Which of the two it is, is
//! decided once and written into the note beside the capture before the first call is recorded, so that whoever takes
//! over decides the same.

use std::collections::HashSet;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use segno_agents::Agent;
use segno_agents::AgentEvent;
use segno_agents::Baseline;
use segno_agents::Envelope;
use segno_agents::ExitInfo;
use segno_agents::LogLocation;
use segno_agents::LogUse;
use segno_agents::Outcome;
use segno_agents::OutcomeKind;
use segno_agents::Reader;
use segno_agents::ReaderOptions;
use segno_agents::TokenCounts;
use segno_agents::is_told_by_log;
use segno_core::Fact;
use serde::Deserialize;
use serde::Serialize;
use serde_json::json;

use super::capture;
use super::capture::Note;
use super::journal::Recorder;
use super::log_find::find;
use super::log_find::is_of;
use super::log_helpers::Helpers;
use super::log_tail::CHUNK;
use super::log_tail::LogTail;

/// How long an agent may take to begin its record after it has named the conversation.
const PATIENCE: Duration = Duration::from_secs(5);
/// How soon the log is looked for again; then twice as long each time, for a home may hold many.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// Most that is held back of the output until it is decided.
const HELD: usize = 256;
const HELD_BYTES: usize = 4 * 1024 * 1024;
/// Most calls that are remembered as open.
const OPEN: usize = 10_000;

/// Where the records of an agent are, as far as that is known before it starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogDirectory {
    /// The directory below which they lie.
    pub directory: PathBuf,
    /// The one of the conversation that is gone on with, and how long it was: what is in it is not of this run.
    pub known: Option<(PathBuf, u64)>,
}

/// What calls and tokens are taken from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// It is not decided yet, and none is recorded.
    #[default]
    Undecided,
    /// From the agent's record.
    Record {
        /// Which file.
        path: PathBuf,
        /// Where this run begins in it.
        from: u64,
    },
    /// From what the agent prints.
    Output {
        /// From here on; what was before was taken from the record.
        since: u64,
        /// The tokens that the record had told.
        used: TokenCounts,
    },
}

/// The records of an agent that is to be started with this environment.
pub(super) fn log_directory(
    agent: &dyn Agent,
    resumed: Option<&str>,
    directory: &Path,
    variable: impl Fn(&str) -> Option<PathBuf>,
) -> Option<LogDirectory> {
    let location = location(agent)?;
    let own = |name: &str| variable(name).and_then(|value| value.to_str().map(ToOwned::to_owned));
    let logs = directory.join(location.root(&own)?);
    let known = resumed.and_then(|id| find(&location, &logs, id));
    let known = known.and_then(|path| Some((path.clone(), std::fs::metadata(path).ok()?.len())));
    Some(LogDirectory { directory: logs, known })
}

/// Where the logs of an agent are that tell more than its output.
fn location(agent: &dyn Agent) -> Option<LogLocation> {
    agent.conversation_log().filter(|_| agent.capabilities().log_beside_output)?.location()
}

/// The record of one run.
pub(super) struct LogBeside {
    mode: Mode,
    /// Sub-agents with logs of their own.
    helpers: Option<Helpers>,
    /// How many calls the agent itself made.
    calls: u64,
    /// How far the output was heard.
    heard: u64,
    /// Calls that were seen in the output, passed over there, and not seen to end.
    passed: HashSet<String>,
    /// What the record last said of the plan's windows.
    windows: Option<AgentEvent>,
    over: bool,
}

enum Mode {
    /// There is none.
    None,
    Searching(Box<Searching>),
    Following(Box<Following>),
    /// It could not be had, or was lost.
    Output {
        since: u64,
    },
}

struct Searching {
    location: LogLocation,
    directory_of_logs: LogDirectory,
    baseline: Baseline,
    native_id: Option<String>,
    since: Instant,
    looked: Option<Instant>,
    rest: Duration,
    held: Vec<Envelope>,
    held_bytes: usize,
}

pub(super) struct Following {
    tail: LogTail,
    reader: Reader,
    buffer: Vec<u8>,
}

impl LogBeside {
    /// As the note has it. `native_id` is the conversation, if the agent has named it already.
    pub(super) fn new(
        agent: &dyn Agent,
        note: &Note,
        baseline: Baseline,
        native_id: Option<String>,
        recorder: &mut Recorder<'_>,
    ) -> Self {
        let logs = location(agent).zip(note.record.as_ref());
        let helpers = logs.map(|(location, logs)| Helpers::new(location, logs.directory.clone()));
        let (mode, passed) = (Mode::None, HashSet::new());
        let mut beside = Self { mode, helpers, calls: 0, heard: 0, passed, windows: None, over: false };
        match (&note.source, location(agent), &note.record) {
            (Source::Output { since, used }, ..) => {
                recorder.count_ahead(*used);
                beside.mode = Mode::Output { since: *since };
            }
            (Source::Record { path, from }, ..) => {
                match Following::open(agent, path, *from, baseline, LogUse::BesideOutput) {
                    Ok(followed) => beside.mode = Mode::Following(Box::new(followed)),
                    // What was recorded from it stays; what comes now cannot be told apart from it in the output.
                    Err(why) => {
                        told(recorder, "lost", &format!("{}: {why}", path.display()));
                        beside.mode = Mode::Output { since: u64::MAX };
                    }
                }
            }
            (Source::Undecided, Some(location), Some(directory_of_logs)) => {
                beside.mode = Mode::Searching(Box::new(Searching {
                    location,
                    directory_of_logs: directory_of_logs.clone(),
                    baseline,
                    native_id,
                    since: Instant::now(),
                    looked: None,
                    rest: LOOK,
                    held: Vec::new(),
                    held_bytes: 0,
                }));
            }
            (Source::Undecided, ..) => {}
        }
        beside
    }

    /// How many calls were told so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// Whether something of the output is held back.
    pub(super) fn holds(&self) -> bool {
        matches!(&self.mode, Mode::Searching(searching) if !searching.held.is_empty())
    }

    /// The agent has ended: nothing more comes.
    pub(super) fn end(&mut self) {
        self.over = true;
    }

    /// Takes something from the output.
    pub(super) fn on_stdout_event(&mut self, envelope: Envelope, recorder: &mut Recorder<'_>) {
        self.heard = self.heard.max(envelope.offset + 1);
        let both = is_told_by_log(&envelope.event);
        match &mut self.mode {
            Mode::Searching(searching) => {
                if let AgentEvent::SessionStarted { native_id, .. } = &envelope.event
                    && !native_id.is_empty()
                {
                    searching.native_id = Some(native_id.clone());
                    (searching.since, searching.looked, searching.rest) = (Instant::now(), None, LOOK);
                }
                if both {
                    searching.hold(envelope);
                    return;
                }
            }
            Mode::Following(_) if both => return self.skip(&envelope.event),
            Mode::Output { since } if both => {
                if envelope.offset < *since {
                    return self.skip(&envelope.event);
                }
                if self.is_passed(&envelope.event) {
                    return;
                }
            }
            _ => {}
        }
        self.count(&envelope.event);
        recorder.take(&envelope);
    }

    /// Looks for the record, or reads what is new in it. False when there is nothing new.
    pub(super) fn follow(&mut self, agent: &dyn Agent, dir: &Path, recorder: &mut Recorder<'_>) -> bool {
        let over = self.over;
        match &mut self.mode {
            Mode::Searching(searching) => match searching.look(agent, over) {
                Look::NotYet => false,
                Look::Found(followed, from) => {
                    let source = Source::Record { path: followed.tail.path().to_owned(), from };
                    match decide(dir, source) {
                        Ok(()) => {
                            let held = std::mem::take(&mut searching.held);
                            self.mode = Mode::Following(followed);
                            held.iter().for_each(|envelope| self.skip(&envelope.event));
                            true
                        }
                        Err(why) => self.give_up(dir, recorder, &why.to_string()),
                    }
                }
                Look::InVain(why) => self.give_up(dir, recorder, &why),
            },
            Mode::Following(followed) => {
                let (mut calls, windows, helpers) = (0, &mut self.windows, &mut self.helpers);
                let read = followed.read(&mut |envelope| {
                    calls += u64::from(is_call(&envelope.event));
                    if let AgentEvent::Limit { .. } = &envelope.event {
                        *windows = Some(envelope.event.clone());
                    }
                    if let Some(helpers) = helpers {
                        helpers.hear(agent, &envelope.event);
                    }
                    recorder.take_record(&envelope);
                });
                self.calls += calls;
                let theirs = helpers.as_mut().is_some_and(|helpers| helpers.follow(agent, over, recorder));
                match read {
                    Ok(read) => read | theirs,
                    Err(why) => self.fall_back(dir, recorder, &why),
                }
            }
            Mode::None | Mode::Output { .. } => false,
        }
    }

    /// Adds what only the record tells to what the output made of the run.
    pub(super) fn finish(self, exit: &ExitInfo, outcome: &mut Outcome, recorder: &mut Recorder<'_>) {
        let followed = match self.mode {
            Mode::Following(followed) => followed,
            // Somebody recorded what the record told before it was lost; how much that was, nobody can tell.
            Mode::Output { since: u64::MAX } => return recorder.count_ahead(outcome.tokens),
            _ => return,
        };
        // A last line that is not whole was never told: nothing is made of it.
        let theirs = followed.reader.finish(exit, &mut |_| {});
        outcome.tool_calls = theirs.tool_calls;
        outcome.open_calls = theirs.open_calls;
        outcome.tokens = recorder.used();
        if theirs.tokens_total.is_some() {
            outcome.tokens_total = theirs.tokens_total;
        }
        outcome.context = theirs.context.or(outcome.context);
        let gave_up = theirs.outcome == OutcomeKind::Denied;
        outcome.denials = theirs.denials;
        if let Some(windows) = &self.windows {
            outcome.learn_windows(windows);
        }
        if outcome.outcome == OutcomeKind::Completed && gave_up {
            outcome.outcome = OutcomeKind::Denied;
            outcome.reason = theirs.reason;
        }
    }

    fn count(&mut self, event: &AgentEvent) {
        self.calls += u64::from(is_call(event));
    }

    fn skip(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ToolStarted { call_id, .. } if self.passed.len() < OPEN => {
                self.passed.insert(call_id.clone());
            }
            event => {
                if let Some(call) = ends(event) {
                    self.passed.remove(call);
                }
            }
        }
    }

    /// Whether an end belongs to a call that the record told of.
    fn is_passed(&mut self, event: &AgentEvent) -> bool {
        ends(event).is_some_and(|call| self.passed.remove(call))
    }

    /// From now on, and for what was held back, there is only the output.
    fn give_up(&mut self, dir: &Path, recorder: &mut Recorder<'_>, why: &str) -> bool {
        let Mode::Searching(searching) = &mut self.mode else { return false };
        let held = std::mem::take(&mut searching.held);
        // If this cannot be written, whoever takes over may find the record after all; calls would be there twice.
        let written = decide(dir, Source::Output { since: 0, used: TokenCounts::default() });
        let why = written.err().map_or_else(|| why.to_owned(), |bad| format!("{why}; {bad}"));
        self.mode = Mode::Output { since: 0 };
        told(recorder, "not followed", &why);
        let some = !held.is_empty();
        for envelope in held {
            self.count(&envelope.event);
            recorder.take(&envelope);
        }
        some
    }

    fn fall_back(&mut self, dir: &Path, recorder: &mut Recorder<'_>, why: &str) -> bool {
        let used = recorder.used();
        let written = decide(dir, Source::Output { since: self.heard, used });
        let why = written.err().map_or_else(|| why.to_owned(), |bad| format!("{why}; {bad}"));
        recorder.count_ahead(used);
        self.mode = Mode::Output { since: self.heard };
        told(recorder, "lost", &why);
        false
    }
}

enum Look {
    NotYet,
    Found(Box<Following>, u64),
    InVain(String),
}

impl Searching {
    fn hold(&mut self, envelope: Envelope) {
        self.held_bytes += match &envelope.event {
            AgentEvent::ToolStarted { input, .. } => input.get().len(),
            AgentEvent::ToolFinished { output, .. } => output.get().len(),
            _ => 0,
        };
        self.held.push(envelope);
    }

    fn look(&mut self, agent: &dyn Agent, over: bool) -> Look {
        let full = self.held.len() >= HELD || self.held_bytes >= HELD_BYTES;
        if !over && !full && self.looked.is_some_and(|looked| looked.elapsed() < self.rest) {
            return Look::NotYet;
        }
        if self.looked.replace(Instant::now()).is_some() {
            self.rest *= 2;
        }
        let mut why = "the conversation has no name".to_owned();
        if let Some(id) = &self.native_id {
            why = format!("no record of {id} below {}", self.directory_of_logs.directory.display());
            let known =
                self.directory_of_logs.known.clone().filter(|(path, _)| is_of(&self.location, path, id));
            let found =
                known.or_else(|| Some((find(&self.location, &self.directory_of_logs.directory, id)?, 0)));
            if let Some((path, from)) = found {
                match Following::open(agent, &path, from, self.baseline, LogUse::BesideOutput) {
                    Ok(followed) => return Look::Found(Box::new(followed), from),
                    Err(problem) => why = format!("{}: {problem}", path.display()),
                }
            }
        }
        let late = self.native_id.is_some() && self.since.elapsed() >= PATIENCE;
        if over || full || late { Look::InVain(why) } else { Look::NotYet }
    }
}

impl Following {
    pub(super) fn open(
        agent: &dyn Agent,
        path: &Path,
        from: u64,
        baseline: Baseline,
        usage: LogUse<'_>,
    ) -> std::io::Result<Self> {
        let tail = LogTail::open(path, from)?;
        let options = ReaderOptions {
            line_limit: segno_agents::DEFAULT_LINE_LIMIT,
            start_offset: from,
            expected_native_id: None,
            baseline,
        };
        let reader = agent.conversation_log().and_then(|log| log.reader(&options, usage));
        let reader = reader.ok_or_else(|| std::io::Error::other("nobody can read it"))?;
        Ok(Self { tail, reader, buffer: vec![0; CHUNK] })
    }

    pub(super) fn read(&mut self, out: &mut impl FnMut(Envelope)) -> Result<bool, String> {
        let count = self.tail.read(&mut self.buffer);
        let count = count.map_err(|why| format!("{}: {why}", self.tail.path().display()))?;
        self.reader.feed(&self.buffer[..count], &mut |envelope| {
            // Too long to be read, or no event of the log: there is nothing to record of it.
            if !envelope.event.is_unparsed() {
                out(envelope);
            }
        });
        Ok(count > 0)
    }
}

fn is_call(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::ToolStarted { parent: None, .. })
}

fn ends(event: &AgentEvent) -> Option<&String> {
    match event {
        AgentEvent::ToolFinished { call_id, .. }
        | AgentEvent::ToolFailed { call_id, .. }
        | AgentEvent::ToolDenied { call_id, .. } => Some(call_id),
        _ => None,
    }
}

/// The journal says where a run's calls come from when that is not as it should be.
fn told(recorder: &mut Recorder<'_>, did: &str, why: &str) {
    let body = json!({ "did": did, "why": why });
    recorder.note(Fact::Reported { what: "record".to_owned(), body });
}

/// Writes down what calls are taken from; on the disk before the first of them is in the journal.
fn decide(dir: &Path, source: Source) -> Result<(), crate::Error> {
    let mut note = capture::read_note(dir)?;
    note.source = source;
    capture::write_note_durably(dir, &note)
}
