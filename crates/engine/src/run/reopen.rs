//! A run whose beginning somebody else heard, opened again where the journal has it: by whoever adopts it, finds it
//! dead, or stops it to go on.

use segno_agents::Agent;
use segno_agents::AgentEvent;
use segno_agents::Baseline;
use segno_agents::ExitInfo;
use segno_agents::Outcome;
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
use crate::Engine;
use crate::Error;

/// All that is needed to hear on.
pub(super) struct Reopened<'a> {
    pub(super) agent: Box<dyn Agent>,
    pub(super) note: Note,
    pub(super) capture: Capture,
    pub(super) reader: Reader,
    pub(super) recorder: Recorder<'a>,
    pub(super) record: LogBeside,
    /// If a person sits at the agent's terminal.
    pub(super) person: Option<InteractiveTerminal>,
}

/// What is left of a run when all of it is taken in.
pub(super) struct Rest<'a> {
    pub(super) outcome: Outcome,
    pub(super) recorder: Recorder<'a>,
    /// Its files, if there are any.
    pub(super) files: Option<(Capture, Note)>,
}

impl Engine {
    /// Opens a run again. What is read twice is recorded once.
    pub(super) fn reopen(
        &self,
        own: OwnCapture,
        state: State,
        run: &RunMark,
        epoch: u64,
        feed: Feed,
    ) -> Result<Reopened<'_>, Error> {
        let (capture, note) = (own.open()?, own.note);
        self.learn_secrets_of(capture.dir());
        let agent = agent_of(&note);
        let person = note.attended.as_ref();
        let person =
            person.map(|attended| InteractiveTerminal::detached(agent.as_ref(), attended, capture.dir()));
        let mut recorder = Recorder::new(self, agent.as_ref(), state, epoch, &run.id, feed)
            .with_lasting_ids(person.is_some())
            .taken_over();
        let reader = reader(self, agent.as_ref(), &note, &capture);
        let baseline = if note.resumed { Baseline::Unknown } else { Baseline::Fresh };
        let record = LogBeside::new(agent.as_ref(), &note, baseline, run.native_id.clone(), &mut recorder);
        Ok(Reopened { agent, note, capture, reader, recorder, record, person })
    }
}

impl<'a> Reopened<'a> {
    /// Takes in all that was said so far.
    pub(super) fn take_in(&mut self) -> Result<(), Error> {
        let Self { agent, capture, reader, recorder, record, .. } = self;
        loop {
            let more = read_on(agent.as_ref(), capture, reader, record, recorder, |_| {})
                .map_err(|why| Error::file(capture.dir(), why))?;
            if let Flushed::NotYet(details) = recorder.flush()? {
                return Err(Error::WriteError { details, certainty: segno_store::Certainty::NotWritten });
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Takes in the rest of one that will say no more, and lets go of it.
    pub(super) fn take_in_rest(mut self, exit: &ExitInfo) -> Result<Rest<'a>, Error> {
        self.record.end();
        self.take_in()?;
        let Self { note, capture, reader, mut recorder, mut record, .. } = self;
        let mut outcome =
            reader.finish(exit, &mut |envelope| record.on_stdout_event(envelope, &mut recorder));
        record.finish(exit, &mut outcome, &mut recorder);
        recorder.make_fit(&mut outcome);
        Ok(Rest { outcome, recorder, files: Some((capture, note)) })
    }
}

/// Reads on once, in the agent's output and in its own log; true if there was something new.
pub(super) fn read_on(
    agent: &dyn Agent,
    capture: &mut Capture,
    reader: &mut Reader,
    record: &mut LogBeside,
    recorder: &mut Recorder<'_>,
    mut hear: impl FnMut(&AgentEvent),
) -> std::io::Result<bool> {
    let mut take = |envelope: segno_agents::Envelope| {
        hear(&envelope.event);
        record.on_stdout_event(envelope, recorder);
    };
    let read = capture.read(|bytes| reader.feed(bytes, &mut take));
    // Who the agent is, is in its output: that is read first.
    let more = record.follow(agent, capture.dir(), recorder);
    Ok(read? | more)
}

/// The agent a note tells of.
fn agent_of(note: &Note) -> Box<dyn Agent> {
    match &note.plain {
        Some(config) => Box::new(Plain::new(config.clone())),
        None => segno_agents::by_name(&note.agent).unwrap_or_else(|| Box::new(Plain::default())),
    }
}

/// A reader that goes on where the capture does.
fn reader(engine: &Engine, agent: &dyn Agent, note: &Note, capture: &Capture) -> Reader {
    let start = capture.offset();
    let options = ReaderOptions {
        line_limit: engine.options.line_limit,
        start_offset: start,
        expected_native_id: note.expected_native_id.clone().filter(|_| note.attended.is_none()),
        // From the middle of its output nobody can tell what its running totals began with.
        baseline: if start > 0 || note.resumed { Baseline::Unknown } else { Baseline::Fresh },
    };
    match &note.attended {
        Some(attended) => segno_agents::attended_reader(agent, &options, Some(&attended.since)),
        None => agent.reader(&options),
    }
}
