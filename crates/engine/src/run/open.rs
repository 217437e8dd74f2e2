//! Opening a run, whoever began it: this process a moment ago, or a driver that died. Whoever follows it, finds it dead
//! or stops it to go on reads it through the same [`OpenRun`].

use segno_agents::Agent;
use segno_agents::AgentEvent;
use segno_agents::Baseline;
use segno_agents::ExitInfo;
use segno_agents::Outcome;
use segno_agents::OutcomeKind;
use segno_agents::Reader;
use segno_agents::ReaderOptions;
use segno_agents::plain::Plain;
use segno_core::State;
use segno_core::state::RunMark;

use super::Feed;
use super::capture::Capture;
use super::capture::Note;
use super::interactive::InteractiveTerminal;
use super::journal::Flushed;
use super::journal::Recorder;
use super::log_beside::LogBeside;
use super::proof::OwnCapture;
use super::tree::Tree;
use crate::Engine;
use crate::Error;

/// What is known of a run before its output can be read.
pub(super) struct Opening {
    pub(super) agent: Box<dyn Agent>,
    pub(super) note: Note,
    pub(super) capture: Capture,
    /// If a person sits at the agent's terminal.
    pub(super) terminal: Option<InteractiveTerminal>,
    pub(super) begun: Begun,
}

/// Who began the run.
pub(super) enum Begun {
    /// This process, which knows what the conversation had used before.
    Here(Baseline),
    /// Somebody who is gone. What is read a second time is recorded once.
    Elsewhere,
}

/// A run whose output and own log can be read.
pub(super) struct OpenRun<'a> {
    pub(super) agent: Box<dyn Agent>,
    pub(super) note: Note,
    pub(super) capture: Capture,
    pub(super) reader: Reader,
    pub(super) recorder: Recorder<'a>,
    /// The agent's own log of the conversation, followed beside what it prints.
    pub(super) log: LogBeside,
    /// If a person sits at the agent's terminal.
    pub(super) terminal: Option<InteractiveTerminal>,
}

impl Opening {
    /// A run that somebody else began, from where the journal has it.
    pub(super) fn found(own: OwnCapture) -> Result<Self, Error> {
        let (capture, note) = (own.open()?, own.note);
        let agent = agent_of(&note);
        let terminal = note.interactive.as_ref();
        let terminal = terminal.map(|run| InteractiveTerminal::detached(agent.as_ref(), run, capture.dir()));
        Ok(Self { agent, note, capture, terminal, begun: Begun::Elsewhere })
    }
}

impl Engine {
    /// Opens a run, to be recorded under this driver's number.
    pub(super) fn open_run(&self, opening: Opening, state: State, epoch: u64, feed: Feed) -> OpenRun<'_> {
        let Opening { agent, note, capture, terminal, begun } = opening;
        let (baseline, native_id, taken_over) = match begun {
            Begun::Here(baseline) => (baseline, None, false),
            Begun::Elsewhere => {
                self.learn_secrets_of(capture.dir());
                let native_id = state.run.as_ref().and_then(|run| run.native_id.clone());
                let baseline = if note.resumed { Baseline::Unknown } else { Baseline::Fresh };
                (baseline, native_id, true)
            }
        };
        let reader = reader(self, agent.as_ref(), &note, &capture, baseline);
        let recorder = Recorder::new(self, agent.as_ref(), state, epoch, note.run.as_str(), feed)
            .with_lasting_ids(terminal.is_some());
        let mut recorder = if taken_over { recorder.taken_over() } else { recorder };
        let log = LogBeside::new(agent.as_ref(), &note, baseline, native_id, &mut recorder);
        OpenRun { agent, note, capture, reader, recorder, log, terminal }
    }

    /// A run without files (it was on another machine, or they were removed by hand): only the journal knows of it.
    pub(super) fn read_without_files(
        &self,
        state: State,
        run: &RunMark,
        epoch: u64,
    ) -> (Outcome, Recorder<'_>) {
        let agent = segno_agents::by_name(&run.agent).unwrap_or_else(|| Box::new(Plain::default()));
        let reader = agent.reader(&ReaderOptions::default());
        let mut outcome = reader.finish(&ExitInfo::default(), &mut |_| {});
        outcome.outcome = OutcomeKind::Interrupted;
        outcome.native_id.clone_from(&run.native_id);
        let recorder = Recorder::new(self, agent.as_ref(), state, epoch, &run.id, Feed::default());
        (outcome, recorder.taken_over())
    }
}

impl<'a> OpenRun<'a> {
    /// Reads once what is new in the agent's output and in its own log; true if there was something.
    pub(super) fn read_on(&mut self, mut hear: impl FnMut(&AgentEvent)) -> Result<bool, Error> {
        let Self { agent, capture, reader, recorder, log, .. } = self;
        let mut take = |envelope: segno_agents::Envelope| {
            hear(&envelope.event);
            log.on_stdout_event(envelope, recorder);
        };
        let read = capture.read(|bytes| reader.feed(bytes, &mut take));
        // Who the agent is, is in its output: that is read first.
        let more = log.follow(agent.as_ref(), capture.dir(), recorder);
        Ok(read.map_err(|why| Error::file(capture.dir(), why))? | more)
    }

    /// Reads and records all that was said so far.
    pub(super) fn read_all(&mut self) -> Result<(), Error> {
        loop {
            let more = self.read_on(|_| {})?;
            if let Flushed::NotYet(details) = self.recorder.flush()? {
                return Err(Error::WriteError { details, certainty: segno_store::Certainty::NotWritten });
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// The agent has ended: nothing more comes, and the rest of its own log is copied. An error is of that copy only.
    pub(super) fn ended(&mut self, tree: &Tree) -> std::io::Result<()> {
        self.log.end();
        let native_id = self.recorder.state.run.as_ref().and_then(|run| run.native_id.as_deref());
        self.terminal.as_mut().map_or(Ok(()), |terminal| terminal.finish(native_id, tree))
    }

    /// What it all came to, and its files. Everything that was printed has been read before.
    pub(super) fn conclude(self, exit: &ExitInfo) -> (Outcome, Recorder<'a>, (Capture, Note)) {
        let Self { note, capture, reader, mut recorder, mut log, .. } = self;
        let mut outcome = reader.finish(exit, &mut |envelope| log.on_stdout_event(envelope, &mut recorder));
        log.finish(exit, &mut outcome, &mut recorder);
        recorder.make_fit(&mut outcome);
        (outcome, recorder, (capture, note))
    }
}

/// The agent a note tells of.
fn agent_of(note: &Note) -> Box<dyn Agent> {
    match &note.plain {
        Some(config) => Box::new(Plain::new(config.clone())),
        None => segno_agents::by_name(&note.agent).unwrap_or_else(|| Box::new(Plain::default())),
    }
}

/// A reader that goes on where the capture does.
fn reader(engine: &Engine, agent: &dyn Agent, note: &Note, capture: &Capture, baseline: Baseline) -> Reader {
    let start = capture.offset();
    let options = ReaderOptions {
        line_limit: engine.options.line_limit,
        start_offset: start,
        expected_native_id: note.expected_native_id.clone().filter(|_| note.interactive.is_none()),
        // From the middle of its output nobody can tell what its running totals began with.
        baseline: if start > 0 { Baseline::Unknown } else { baseline },
    };
    match &note.interactive {
        Some(interactive) => segno_agents::interactive_reader(agent, &options, Some(&interactive.since)),
        None => agent.reader(&options),
    }
}
