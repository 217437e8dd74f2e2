//! What is known and shown. Nothing here reads, draws or acts.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::tz::TimeZone;
use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::event::MouseEvent;
use segno_engine::board::Need;
use segno_engine::conversation::Entry;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::Summary;
use segno_engine::core::Timestamp;
use segno_engine::core::rows::CheckpointRow;
use segno_engine::core::rows::DecisionRow;
use segno_engine::core::rows::RunRow;
use segno_engine::core::rows::ToolRow;
use segno_engine::search::Findings;
use segno_engine::waiting::Waiting;

use super::dialog::Opened;
use crate::cli;
use crate::commands::ls::Driving;
use crate::output::Palette;
use crate::output::Text;
use crate::output::style::Meaning;

/// One session in the list.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) summary: Summary,
    pub(super) driving: Option<Driving>,
    /// Who or what it waits for.
    pub(super) need: Need,
    /// What waits for a person.
    pub(super) asks: Vec<Waiting>,
}

impl Row {
    pub(super) fn id(&self) -> SessionId {
        self.summary.session_id
    }

    /// Under which heading it stands.
    pub(super) fn heading(&self) -> &'static str {
        match self.need {
            Need::You => "needs you",
            Need::Works => "running",
            Need::Waits => "waits",
            Need::Over => "ended",
        }
    }

    /// Where it stands. Those that go on keep their places, so that the list stands still while they work.
    pub(super) fn order(&self) -> impl Ord + use<> {
        let summary = &self.summary;
        let urgency = match summary.status {
            _ if summary.open_questions > 0 => 0,
            Status::Halted => 1,
            Status::Interrupted => 2,
            Status::Active => 3,
            _ => 4,
        };
        let at = if self.need == Need::Works { summary.created_at } else { summary.updated_at };
        (self.need, urgency, !summary.pinned, std::cmp::Reverse(at), self.id())
    }

    /// Whether it has all of these words somewhere.
    fn has(&self, words: &[String]) -> bool {
        let summary = &self.summary;
        let texts = [
            Some(summary.session_id.to_string()),
            summary.topic.clone(),
            Some(summary.project.clone()),
            summary.agent.clone(),
            summary.phase.clone(),
            summary.work_item.clone(),
            Some(self.heading().to_owned()),
            Some(summary.status.to_string()),
        ];
        let tags = summary.tags.iter().map(|tag| format!("#{tag}"));
        let all: Vec<String> =
            texts.into_iter().flatten().chain(tags).map(|text| text.to_lowercase()).collect();
        words.iter().all(|word| all.iter().any(|text| text.contains(word.as_str())))
    }
}

/// What is shown of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// What was said and done.
    #[default]
    Talk,
    /// Its calls.
    Ledger,
    /// Its phases, the gate and the breaker.
    Phases,
    /// Its tests.
    Tests,
    /// What it used.
    Cost,
    /// The windows of its plan.
    Limits,
    /// Its checkpoints.
    Checkpoints,
    /// Its decisions.
    Decisions,
}

impl Part {
    /// All of them, as their keys are numbered.
    pub(super) const ALL: [Self; 8] = [
        Self::Talk,
        Self::Ledger,
        Self::Phases,
        Self::Tests,
        Self::Cost,
        Self::Limits,
        Self::Checkpoints,
        Self::Decisions,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Talk => "talk",
            Self::Ledger => "ledger",
            Self::Phases => "phases",
            Self::Tests => "tests",
            Self::Cost => "cost",
            Self::Limits => "limits",
            Self::Checkpoints => "checkpoints",
            Self::Decisions => "decisions",
        }
    }

    /// The one so many places further.
    pub(super) fn moved(self, by: isize) -> Self {
        let at = Self::ALL.iter().position(|part| *part == self).unwrap_or(0);
        let count = Self::ALL.len() as isize;
        Self::ALL[(at as isize + by).rem_euclid(count) as usize]
    }
}

/// The rows of one part.
#[derive(Clone, Debug)]
pub(super) enum Rows {
    /// The state says all of it.
    None,
    Talk(Vec<Entry>),
    Ledger(Vec<ToolRow>),
    Runs(Vec<RunRow>),
    Checkpoints(Vec<CheckpointRow>),
    Decisions(Vec<DecisionRow>),
}

/// One session as it was read last.
#[derive(Clone, Debug)]
pub(super) struct Detail {
    pub(super) state: State,
    pub(super) part: Part,
    pub(super) rows: Rows,
    /// What is wrong with its record.
    pub(super) notices: Vec<String>,
}

/// Which screen there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Screen {
    /// All sessions, and a look into one of them.
    #[default]
    List,
    /// One session.
    Session,
}

/// Everything that is known and shown.
pub(super) struct Top {
    pub(super) now: Timestamp,
    pub(super) zone: TimeZone,
    pub(super) palette: Palette,
    pub(super) size: (u16, u16),
    /// Whether there is a store.
    pub(super) store: bool,
    pub(super) rows: Arc<Vec<Row>>,
    /// How many sessions there are that are not in the list.
    pub(super) beyond: u64,
    /// Which of the rows are shown.
    pub(super) shown: Vec<usize>,
    /// The project whose sessions are shown; all if none.
    pub(super) project: Option<String>,
    pub(super) filter: String,
    /// Whether what is typed goes to the filter.
    pub(super) filtering: bool,
    pub(super) selected: Option<SessionId>,
    /// The first line of the list that is seen.
    pub(super) offset: usize,
    pub(super) screen: Screen,
    pub(super) part: Part,
    /// How many lines above the end of the talk, or below the beginning of anything else.
    pub(super) scroll: usize,
    /// The line of a list in a part that is chosen.
    pub(super) chosen: usize,
    pub(super) detail: Option<Box<Detail>>,
    pub(super) dialog: Option<Opened>,
    pub(super) notice: Option<(Meaning, String)>,
    pub(super) mouse: bool,
    /// Actions that were begun and not answered.
    pub(super) busy: usize,
}

impl Top {
    pub(super) fn new(now: Timestamp, zone: TimeZone, palette: Palette, size: (u16, u16)) -> Self {
        Self {
            now,
            zone,
            palette,
            size,
            store: true,
            rows: Arc::default(),
            beyond: 0,
            shown: Vec::new(),
            project: None,
            filter: String::new(),
            filtering: false,
            selected: None,
            offset: 0,
            screen: Screen::default(),
            part: Part::default(),
            scroll: 0,
            chosen: 0,
            detail: None,
            dialog: None,
            notice: None,
            mouse: false,
            busy: 0,
        }
    }

    /// The rows that are shown, in order.
    pub(super) fn visible(&self) -> impl Iterator<Item = &Row> {
        self.shown.iter().filter_map(|index| self.rows.get(*index))
    }

    /// Where the selected row stands among those that are shown.
    pub(super) fn place(&self) -> Option<usize> {
        let selected = self.selected?;
        self.visible().position(|row| row.id() == selected)
    }

    /// The row of the selected session, also if the filter hides it.
    pub(super) fn row(&self) -> Option<&Row> {
        let selected = self.selected?;
        self.rows.iter().find(|row| row.id() == selected)
    }

    /// What was read of the selected session, if that has come.
    pub(super) fn seen(&self) -> Option<&Detail> {
        self.detail.as_deref().filter(|detail| Some(detail.state.session_id) == self.selected)
    }

    /// Finds out what is shown, after rows or the filter changed.
    pub(super) fn sift(&mut self) {
        let before = self.place();
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let fits = |row: &Row| {
            let here = self.project.as_ref().is_none_or(|project| *project == row.summary.project);
            here && row.has(&words)
        };
        self.shown = (0..self.rows.len()).filter(|index| fits(&self.rows[*index])).collect();
        // One session's screen stays with it, wherever its row has gone.
        if self.place().is_none() && (self.screen == Screen::List || self.row().is_none()) {
            let place = before.unwrap_or(0).min(self.shown.len().saturating_sub(1));
            let there = self.visible().nth(place).map(Row::id);
            self.selected = there;
            self.screen = Screen::List;
        }
    }
}

/// Something to do that may take a while.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// A command of the program.
    Do(Box<Doing>),
    /// What an undo would do.
    PreviewUndo(Place),
    /// That undo, if it is still what was confirmed.
    Undo(Place, String),
    /// What changed from a checkpoint to the next one, or until now.
    Diff(Place, String, Option<String>),
    /// Words to look for.
    Search(String),
}

/// A session and its project.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) session: SessionId,
    pub(super) project: PathBuf,
}

/// A command, and what is said when it is done.
#[derive(Clone, Debug)]
pub(super) struct Doing {
    pub(super) place: Place,
    pub(super) command: cli::Command,
    pub(super) said: String,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Done {
    /// Words for the last line.
    Said(Meaning, String),
    /// An undo to be confirmed: what it would do, and the mark of that.
    Preview { place: Place, lines: Vec<Text>, mark: String },
    /// Something to read.
    Show { title: String, lines: Vec<Text> },
    /// What was found.
    Found(Findings),
}

/// What happens.
#[derive(Debug)]
pub(super) enum Msg {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Pasted(String),
    Resized(u16, u16),
    /// Time goes by.
    Tick(Timestamp),
    /// The sessions, in order; and how many there are beyond.
    Sessions(Arc<Vec<Row>>, u64),
    /// There is no store.
    NoStore,
    Detail(Box<Detail>),
    /// The session cannot be read.
    Unreadable(SessionId, String),
    /// Nothing can be read any more.
    Broken(String),
    Done(Done),
}

/// What is to be done about it.
#[derive(Debug)]
pub(super) enum Effect {
    Quit,
    /// Stop, as a shell asks for with Ctrl-Z.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Look at this part of this session from now on.
    Watch(SessionId, Part),
    Act(Act),
    /// Leave, and run this.
    Leave(Box<cli::Command>),
    Mouse(bool),
}
