//! Reads what is shown, in a thread of its own: again when something was recorded, and at most four times a second.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::Sender;
use std::time::Duration;
use std::time::Instant;

use segno_engine::Engine;
use segno_engine::Page;
use segno_engine::board;
use segno_engine::board::Board;
use segno_engine::board::Need;
use segno_engine::conversation::Following;
use segno_engine::core::List;
use segno_engine::core::SessionId;
use segno_engine::core::Status;
use segno_engine::core::rows::CheckpointRow;
use segno_engine::core::rows::Row as _;
use segno_engine::setup::CatchUp;
use segno_engine::waiting::Waiting;

use super::state::Detail;
use super::state::Msg;
use super::state::Part;
use super::state::Row;
use super::state::Rows;
use super::update::in_order;
use crate::command_context::CommandContext;
use crate::commands::ls::Driving;
use crate::error::Outcome;
use crate::perform::Surroundings;

/// How long what was read is shown before it is read again.
const PAUSE: Duration = Duration::from_millis(250);
/// How often it is looked whether drivers died. They say nothing, so whoever watches finds out.
const SETTLE: Duration = Duration::from_secs(2);
/// How often somebody who has no store looks whether there is one.
const NO_STORE: Duration = Duration::from_secs(2);
/// So many sessions that have ended are in the list.
const ENDED: usize = 200;
/// How many of the last events a talk begins with.
const EVENTS: u64 = 1_500;
/// How many entries of a talk are shown at most.
const ENTRIES: usize = 600;
/// How many rows of a list are shown.
const ROWS: usize = 300;

/// What is asked of the reader.
#[derive(Debug)]
pub(super) enum Ask {
    /// Look at this part of this session from now on.
    Watch(SessionId, Part),
    /// Something was done here: look again.
    Again,
}

/// Reads until nobody listens any more.
pub(super) fn read(around: &Surroundings, asks: &Receiver<Ask>, tell: &Sender<Msg>) -> Outcome {
    let context = around.context()?;
    let ctx = loop {
        match CommandContext::open_to_list(&context) {
            Ok(ctx) => break ctx,
            Err(error) if error.code() == "no_store" => {
                let _ = tell.send(Msg::NoStore);
                if matches!(asks.recv_timeout(NO_STORE), Err(RecvTimeoutError::Disconnected)) {
                    return Ok(());
                }
            }
            Err(error) => return Err(context.fit(error)),
        }
    };
    let mut reader = Reader::new(&ctx.engine, tell);
    let mut wait = Duration::ZERO;
    loop {
        match asks.recv_timeout(wait) {
            Ok(Ask::Watch(session, part)) => {
                // Only the last one of several counts.
                let mut wanted = (session, part);
                while let Ok(ask) = asks.try_recv() {
                    match ask {
                        Ask::Watch(session, part) => wanted = (session, part),
                        Ask::Again => reader.again = true,
                    }
                }
                reader.watch(wanted);
            }
            Ok(Ask::Again) => reader.again = true,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        reader.look();
        wait = PAUSE.saturating_sub(reader.looked.elapsed()).max(Duration::from_millis(1));
    }
}

struct Reader<'a> {
    engine: &'a Engine,
    tell: &'a Sender<Msg>,
    board: Board,
    mark: Option<u64>,
    again: bool,
    looked: Instant,
    settled: Instant,
    watched: Option<(SessionId, Part)>,
    /// The event up to which the watched part was read.
    seen: Option<u64>,
    following: Option<Following>,
    asks: BTreeMap<SessionId, (u64, Vec<Waiting>)>,
}

impl<'a> Reader<'a> {
    fn new(engine: &'a Engine, tell: &'a Sender<Msg>) -> Self {
        let now = Instant::now();
        Self {
            engine,
            tell,
            board: Board::default(),
            mark: None,
            again: true,
            looked: now.checked_sub(PAUSE).unwrap_or(now),
            settled: now,
            watched: None,
            seen: None,
            following: None,
            asks: BTreeMap::new(),
        }
    }

    /// Looks at another part, or another session, at once.
    fn watch(&mut self, wanted: (SessionId, Part)) {
        self.watched = Some(wanted);
        self.seen = None;
        self.detail();
    }

    /// Looks whether something was recorded, if it is time.
    fn look(&mut self) {
        if self.looked.elapsed() < PAUSE {
            return;
        }
        self.looked = Instant::now();
        if self.settled.elapsed() >= SETTLE {
            self.settled = Instant::now();
            // What cannot be settled now is looked at again.
            let _ = self.engine.catch_up(CatchUp::Mark);
            // Whoever begins or ends to drive need not have recorded anything.
            self.again = true;
        }
        let Ok(mark) = self.engine.change_mark() else { return };
        if self.mark == Some(mark) && !self.again {
            return;
        }
        (self.mark, self.again) = (Some(mark), false);
        let Ok(changed) = self.board.refresh(self.engine) else { return };
        if !changed.is_nothing() || self.board.change() == 0 {
            self.sessions();
        }
        self.detail();
    }

    fn sessions(&mut self) {
        let shown = |row: &&board::Row| !row.summary.archived;
        let (mut ended, open): (Vec<&board::Row>, Vec<&board::Row>) =
            self.board.rows().filter(shown).partition(|row| row.need == Need::Over);
        let all = ended.len();
        ended.sort_unstable_by_key(|row| std::cmp::Reverse(row.summary.updated_at));
        ended.truncate(ENDED);
        let beyond = (all - ended.len()) as u64;
        let rows: Vec<board::Row> = open.into_iter().chain(ended).cloned().collect();
        self.asks.retain(|id, _| self.board.row(*id).is_some());
        let rows = rows.into_iter().map(|row| self.row(row)).collect();
        let _ = self.tell.send(Msg::Sessions(in_order(rows), beyond));
    }

    fn row(&mut self, row: board::Row) -> Row {
        let driving = row.pid.map(|pid| Driving { pid, host: String::new(), silent: None });
        Row { asks: self.asks_of(&row), driving, need: row.need, summary: row.summary }
    }

    /// What waits for a person in a session, read again when something happened there.
    fn asks_of(&mut self, row: &board::Row) -> Vec<Waiting> {
        let summary = &row.summary;
        let stopped = match summary.status {
            Status::Halted => true,
            Status::Interrupted => summary.in_doubt > 0,
            _ => false,
        };
        if summary.status.is_terminal() || (summary.open_questions == 0 && !stopped) {
            self.asks.remove(&summary.session_id);
            return Vec::new();
        }
        if let Some((seq, asks)) = self.asks.get(&summary.session_id)
            && *seq == summary.seq
        {
            return asks.clone();
        }
        let asks = self.engine.waiting_of(summary.session_id).unwrap_or_default();
        self.asks.insert(summary.session_id, (summary.seq, asks.clone()));
        asks
    }

    /// Reads what is watched, if it is not what was read last.
    fn detail(&mut self) {
        let Some((session, part)) = self.watched else { return };
        let head = self.board.row(session).map(|row| row.summary.seq);
        if self.seen.is_some() && self.seen == head {
            return;
        }
        let told = match self.read_detail(session, part) {
            Ok(detail) => {
                self.seen = Some(detail.state.seq);
                Msg::Detail(Box::new(detail))
            }
            Err(why) => Msg::Unreadable(session, why.to_string()),
        };
        let _ = self.tell.send(told);
    }

    fn read_detail(&mut self, session: SessionId, part: Part) -> Result<Detail, segno_engine::Error> {
        let engine = self.engine;
        let loaded = engine.load(session)?;
        let page = |list: List| engine.page(session, list, &Page::newest(ROWS)).map(|page| page.items);
        let rows = match part {
            Part::Talk => {
                let mut following = self.following.take().filter(|following| following.session() == session);
                let talk = following.get_or_insert_with(|| Following::the_last(&loaded.state, EVENTS));
                talk.read_on(engine)?;
                let entries = talk.entries();
                let rows = Rows::Talk(entries[entries.len().saturating_sub(ENTRIES)..].to_vec());
                self.following = following;
                rows
            }
            Part::Ledger => Rows::Ledger(page(List::Tools)?.iter().map(|item| item.row()).collect()),
            Part::Cost => Rows::Runs(page(List::Runs)?.iter().map(|item| item.row()).collect()),
            Part::Checkpoints => {
                let rows = page(List::Checkpoints)?;
                Rows::Checkpoints(rows.iter().filter_map(|item| CheckpointRow::read(&item.body)).collect())
            }
            Part::Decisions => {
                Rows::Decisions(page(List::Decisions)?.iter().map(|item| item.row()).collect())
            }
            Part::Phases | Part::Tests | Part::Limits => Rows::None,
        };
        Ok(Detail { state: loaded.state, part, rows, notices: loaded.notices })
    }
}
