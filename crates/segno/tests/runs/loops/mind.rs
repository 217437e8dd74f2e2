//! What the scripted model has in mind when it plays an agent in a loop.

use segno_testkit::model::Script;
use segno_testkit::model::Then;
use segno_testkit::model::Track;
use segno_testkit::model::Turn;
use segno_testkit::model::When;

/// How many iterations of a phase a mind is made for.
const ITERATIONS: u64 = 10;

/// What is done in an iteration: a command runs, and then the agent says something and ends with its status block.
/// `@N` stands for the number of the iteration.
#[derive(Clone, Copy, Default)]
pub(crate) struct Act<'a> {
    /// The command; none if it only talks.
    pub(crate) command: &'a str,
    /// What it says.
    pub(crate) words: &'a str,
    /// Whether it gives the signal that it is done.
    pub(crate) done: bool,
    /// More lines of the status block.
    pub(crate) more: &'a str,
}

/// A mind goes by what it is asked and by what the conversation shows, never by how often it was asked: after a kill
/// it does what it would have done.
#[derive(Default)]
pub(crate) struct Mind {
    tracks: Vec<Track>,
}

impl Mind {
    /// In every iteration of a phase that nothing else was said of before.
    pub(crate) fn phase(mut self, phase: &str, act: Act<'_>) -> Self {
        for number in 1..=ITERATIONS {
            self = self.iteration(phase, number, act);
        }
        self
    }

    /// In one iteration of a phase.
    pub(crate) fn iteration(self, phase: &str, number: u64, act: Act<'_>) -> Self {
        self.when(&format!(r"## Phase {phase}, iteration {number}\b"), (phase, number), act)
    }

    /// In the first iteration of an item of a queue.
    pub(crate) fn item(self, id: &str, act: Act<'_>) -> Self {
        self.when(&format!(r"(?s){id}\b.*## Phase WORK, iteration 1\b"), (id, 1), act)
    }

    /// When it is asked like this, outside of any iteration.
    pub(crate) fn asked(self, asked: &str, name: &str, act: Act<'_>) -> Self {
        self.when(asked, (name, 1), act)
    }

    fn when(mut self, asked: &str, (phase, number): (&str, u64), act: Act<'_>) -> Self {
        let filled = |text: &str| text.replace("@N", &number.to_string());
        let asked = asked.to_owned();
        if !act.command.is_empty() {
            let did = format!("did {phase} {number}.");
            // The words are not in the command itself.
            let command = format!("{}\necho di''d {phase} {number}.", filled(act.command));
            let lacks = Some(did.replace('.', r"\."));
            self.tracks.push(Track {
                name: format!("{phase} {number} acts"),
                when: When { last_user: Some(asked.clone()), lacks, tools: Some(true), ..When::default() },
                turns: vec![Turn::sh(&command)],
                then: Then::Repeat,
                ..Track::default()
            });
        }
        let (status, signal) = if act.done { ("COMPLETE", "true") } else { ("IN_PROGRESS", "false") };
        let (words, more) = (filled(act.words), filled(act.more));
        let says = format!(
            "{words}\n\n---PRP_PHASE_STATUS---\nPHASE: {phase}\nSTATUS: {status}\nITERATION: {number}\n\
             EXIT_SIGNAL: {signal}\n{more}RECOMMENDATION: see above\n---END_PRP_PHASE_STATUS---"
        );
        self.tracks.push(Track {
            name: format!("{phase} {number} says"),
            when: When { last_user: Some(asked), tools: Some(true), ..When::default() },
            turns: vec![Turn::text(&says)],
            then: Then::Repeat,
            ..Track::default()
        });
        self
    }

    /// What it says at the end of this iteration waits for a gate of the model.
    pub(crate) fn held(mut self, phase: &str, number: u64, gate: &str) -> Self {
        let name = format!("{phase} {number} says");
        let turns =
            self.tracks.iter_mut().filter(|track| track.name == name).flat_map(|track| &mut track.turns);
        turns.for_each(|turn| *turn = turn.clone().gate(gate));
        self
    }

    /// The first request with tools is answered like this.
    pub(crate) fn at_first(mut self, api: Option<segno_testkit::model::Api>, turn: Turn) -> Self {
        let track = Track {
            name: "at first".to_owned(),
            when: When { tools: Some(true), api, ..When::default() },
            turns: vec![turn],
            then: Then::Pass,
            ..Track::default()
        };
        self.tracks.insert(0, track);
        self
    }

    pub(crate) fn script(self) -> Script {
        let lost = Turn::text("I do not know what I was asked.");
        Script { tracks: self.tracks, ..Script::new([lost]) }.then(Then::Repeat)
    }
}
