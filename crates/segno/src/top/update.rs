//! What happens to what is known and shown when something happens, and what is to be done then.

use std::sync::Arc;

use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::event::KeyEventKind;
use ratatui::crossterm::event::KeyModifiers;
use ratatui::crossterm::event::MouseButton;
use ratatui::crossterm::event::MouseEventKind;
use segno_engine::core::SessionId;
use segno_engine::core::Status;
use segno_engine::core::looping::breaker_status;
use segno_engine::waiting::Waiting;

use super::acts;
use super::dialog;
use super::dialog::Dialog;
use super::dialog::Field;
use super::dialog::Opened;
use super::dialog::Yes;
use super::dialog::title_of;
use super::state::Act;
use super::state::Done;
use super::state::Effect;
use super::state::Msg;
use super::state::Part;
use super::state::Place;
use super::state::Row;
use super::state::Rows;
use super::state::Screen;
use super::state::Top;
use super::view;
use crate::commands::looping::breaker_words;
use crate::output::Text;
use crate::output::style::Meaning;

/// How many lines a page is moved by.
const PAGE: isize = 10;

/// Takes in what happened.
pub(super) fn update(top: &mut Top, msg: Msg) -> Vec<Effect> {
    let effects = take(top, msg);
    // What is selected is seen.
    top.offset = view::list_offset(top);
    effects
}

fn take(top: &mut Top, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(pressed) if pressed.kind == KeyEventKind::Release => Vec::new(),
        Msg::Key(pressed) => key(top, pressed),
        Msg::Mouse(event) => mouse(top, event.kind, (event.column, event.row)),
        Msg::Pasted(text) => {
            if top.filtering {
                dialog::add(&mut top.filter, &text);
                return top.sifted();
            }
            dialog::paste(top, &text);
            Vec::new()
        }
        Msg::Resized(width, height) => {
            top.size = (width, height);
            Vec::new()
        }
        Msg::Tick(now) => {
            top.now = now;
            Vec::new()
        }
        Msg::Sessions(rows, beyond) => {
            (top.store, top.rows, top.beyond) = (true, rows, beyond);
            top.sifted()
        }
        Msg::NoStore => {
            top.store = false;
            Vec::new()
        }
        Msg::Detail(detail) => {
            if Some(detail.state.session_id) == top.selected {
                top.detail = Some(detail);
            }
            Vec::new()
        }
        Msg::Unreadable(session, why) => {
            if Some(session) == top.selected {
                top.detail = None;
                top.warn(&why);
            }
            Vec::new()
        }
        Msg::Broken(why) => {
            top.notice = Some((Meaning::Lost, why));
            Vec::new()
        }
        Msg::Done(done) => {
            top.busy = top.busy.saturating_sub(1);
            finished(top, done);
            Vec::new()
        }
    }
}

fn finished(top: &mut Top, done: Done) {
    match done {
        Done::Said(meaning, words) => top.notice = Some((meaning, words)),
        Done::Preview { place, lines, mark } => {
            let title = title_of("undo", place.session, top.topic_of(place.session));
            let yes = Yes::Act(Box::new(Act::Undo(place, mark)));
            let question = "what is there now is kept first. Do it?".to_owned();
            top.open_dialog(Dialog::Ask { title, lines, question, yes });
        }
        Done::Show { title, lines } => top.open_dialog(Dialog::Show { title, lines }),
        Done::Found(found) if found.hits.is_empty() => {
            top.say(&format!("nothing found in {} texts", found.texts));
        }
        Done::Found(found) => top.open_dialog(Dialog::Found { found, chosen: 0 }),
    }
}

fn key(top: &mut Top, key: KeyEvent) -> Vec<Effect> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        match key.code {
            KeyCode::Char('c') => return vec![Effect::Quit],
            KeyCode::Char('z') => return vec![Effect::Suspend],
            KeyCode::Char('l') => return vec![Effect::Redraw],
            _ => {}
        }
    }
    if top.dialog.is_some() {
        return dialog::key(top, key);
    }
    if top.filtering {
        return filter_key(top, key);
    }
    top.notice = None;
    match key.code {
        KeyCode::Char('q') => vec![Effect::Quit],
        KeyCode::Char('?') | KeyCode::F(1) => {
            top.open_dialog(Dialog::Help);
            Vec::new()
        }
        KeyCode::Esc => back(top),
        KeyCode::Enter => enter(top),
        KeyCode::Tab | KeyCode::Right => top.show_part(top.part.moved(1)),
        KeyCode::BackTab | KeyCode::Left => top.show_part(top.part.moved(-1)),
        KeyCode::Char(digit @ '1'..='8') => {
            let at = digit as usize - '1' as usize;
            top.show_part(Part::ALL[at])
        }
        KeyCode::Up | KeyCode::Char('k') => top.step(-1),
        KeyCode::Down | KeyCode::Char('j') => top.step(1),
        KeyCode::PageUp => top.step(-PAGE),
        KeyCode::PageDown => top.step(PAGE),
        KeyCode::Home | KeyCode::Char('g') => top.step(isize::MIN / 2),
        KeyCode::End | KeyCode::Char('G') => top.step(isize::MAX / 2),
        KeyCode::Char('[') => top.scroll_pane(1),
        KeyCode::Char(']') => top.scroll_pane(-1),
        KeyCode::Char('w') => {
            let here = top.row().map(|row| row.summary.project.clone());
            top.project = if top.project.is_some() { None } else { here };
            let words = if top.project.is_some() {
                "the sessions of this project"
            } else {
                "the sessions of all projects"
            };
            top.say(words);
            top.sifted()
        }
        KeyCode::Char('/') => {
            (top.filtering, top.screen) = (true, Screen::List);
            Vec::new()
        }
        KeyCode::Char('S') => {
            let (title, about) =
                ("search in everything that was recorded", "words, \"a phrase\", agent:codex, since:7d");
            top.type_into(Field::Search, title, about)
        }
        KeyCode::Char('m') => {
            top.mouse = !top.mouse;
            top.say(if top.mouse { "mouse: on" } else { "mouse: off" });
            vec![Effect::Mouse(top.mouse)]
        }
        KeyCode::Char(pressed) => action(top, pressed),
        _ => Vec::new(),
    }
}

/// What is done to the selected session.
fn action(top: &mut Top, pressed: char) -> Vec<Effect> {
    let Some(row) = top.row().cloned() else { return Vec::new() };
    let place = place(&row);
    match pressed {
        'a' => answer(top, &row),
        'p' => top.act(acts::pause(&place)),
        'r' => resume(top, &row),
        's' => {
            let title = title_of("stop", row.id(), row.summary.topic.as_deref());
            let yes = Yes::Act(Box::new(acts::stop(&place)));
            let lines =
                vec!["The agent is stopped politely. The session is paused and can be resumed.".into()];
            top.open_dialog(Dialog::Ask { title, lines, question: "stop it?".to_owned(), yes });
            Vec::new()
        }
        'e' => top.type_into(Field::Budget(place), "allow more", "tokens such as 50k, or money such as $5"),
        'b' => breaker(top, &row),
        'n' => {
            let tells = row.summary.breaker.is_some() && row.summary.status.is_open();
            let about = match tells {
                true => "the agent of the loop is told with its next prompt",
                false => "for the history of the session",
            };
            top.type_into(Field::Note(place, tells), "note", about)
        }
        'c' => {
            top.type_into(Field::Checkpoint(place), "checkpoint", "its name; one is made up if it has none")
        }
        'u' => top.act(Act::PreviewUndo(place)),
        'd' => diff(top, place),
        _ => Vec::new(),
    }
}

fn place(row: &Row) -> Place {
    Place { session: row.id(), project: row.summary.project.clone().into() }
}

fn answer(top: &mut Top, row: &Row) -> Vec<Effect> {
    let Some(waiting) = row.asks.first() else {
        top.say("nothing waits for an answer in this session");
        return Vec::new();
    };
    top.open_answer(place(row), waiting);
    Vec::new()
}

fn resume(top: &mut Top, row: &Row) -> Vec<Effect> {
    let status = row.summary.status;
    if status.is_terminal() || row.driving.is_some() {
        let why = if status.is_terminal() { "it has ended" } else { "it is running" };
        top.say(&format!("{why}: there is nothing to resume"));
        return Vec::new();
    }
    if status == Status::Halted {
        top.say("its breaker is open: b closes it");
        return Vec::new();
    }
    let title = title_of("resume", row.id(), row.summary.topic.as_deref());
    let command = format!("segno resume {}", row.id());
    let lines = vec![
        "Going on takes over this terminal: segno top ends, and this begins:".into(),
        Text::new(),
        Text::new().plain("  ").painted(Meaning::Strong, command),
        Text::new(),
        "It asks before it starts anything. To stay here, type it in another terminal.".into(),
    ];
    let yes = Yes::Leave(Box::new(acts::resume(&place(row))));
    top.open_dialog(Dialog::Ask { title, lines, question: "leave and resume?".to_owned(), yes });
    Vec::new()
}

fn breaker(top: &mut Top, row: &Row) -> Vec<Effect> {
    let looping = top.seen().and_then(|detail| detail.state.looping.as_deref());
    let Some(looping) = looping else {
        top.say("this session is no loop: it has no breaker");
        return Vec::new();
    };
    let status = breaker_status(looping);
    let mut lines = vec![Text::from(breaker_words(&status))];
    lines.extend(status.would_count.iter().map(|what| format!("  would count as progress: {what}").into()));
    lines.push(Text::new());
    lines.push("r closes it and resets its counters   s leaves the phase without its gate".into());
    top.open_dialog(Dialog::Breaker { place: place(row), lines });
    Vec::new()
}

/// What changed from the chosen checkpoint to the next one.
fn diff(top: &mut Top, place: Place) -> Vec<Effect> {
    let chosen = match top.seen().map(|detail| (&detail.rows, detail.part)) {
        Some((Rows::Checkpoints(rows), Part::Checkpoints)) => {
            // The newest one stands first.
            let at = top.chosen.min(rows.len().saturating_sub(1));
            rows.get(at).map(|row| (row.id.clone(), at.checked_sub(1).and_then(|next| rows.get(next))))
        }
        _ => None,
    };
    let Some((since, until)) = chosen else {
        top.say("7 shows the checkpoints; d shows what changed after one of them");
        return Vec::new();
    };
    let until = until.map(|row| row.id.clone());
    top.act(Act::Diff(place, since, until))
}

fn back(top: &mut Top) -> Vec<Effect> {
    if top.screen == Screen::Session {
        top.screen = Screen::List;
        (top.scroll, top.chosen) = (0, 0);
    } else if !top.filter.is_empty() {
        top.filter.clear();
    }
    top.sifted()
}

fn enter(top: &mut Top) -> Vec<Effect> {
    match (top.screen, top.selected) {
        (Screen::List, Some(session)) => top.open_session(session),
        (Screen::Session, Some(_)) if top.part == Part::Checkpoints => action(top, 'd'),
        _ => Vec::new(),
    }
}

fn filter_key(top: &mut Top, key: KeyEvent) -> Vec<Effect> {
    if dialog::edits(key, &mut top.filter) {
        return top.sifted();
    }
    match key.code {
        KeyCode::Enter => top.filtering = false,
        KeyCode::Esc => {
            top.filtering = false;
            top.filter.clear();
        }
        KeyCode::Up => return top.step(-1),
        KeyCode::Down => return top.step(1),
        _ => {}
    }
    top.sifted()
}

fn mouse(top: &mut Top, what: MouseEventKind, (column, line): (u16, u16)) -> Vec<Effect> {
    if top.dialog.is_some() {
        return Vec::new();
    }
    let areas = view::Areas::of(top);
    let inside = areas.list.contains((column, line).into());
    match what {
        MouseEventKind::ScrollUp if inside => top.step(-1),
        MouseEventKind::ScrollDown if inside => top.step(1),
        MouseEventKind::ScrollUp => top.scroll_pane(3),
        MouseEventKind::ScrollDown => top.scroll_pane(-3),
        MouseEventKind::Down(MouseButton::Left) if inside => {
            match view::session_at(top, usize::from(line.saturating_sub(areas.list.y))) {
                Some(session) if Some(session) == top.selected => top.open_session(session),
                Some(session) => top.select(session),
                None => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

impl Top {
    /// Says something on the last line.
    pub(super) fn say(&mut self, words: &str) {
        self.notice = Some((Meaning::Plain, words.to_owned()));
    }

    /// The same for what went wrong.
    pub(super) fn warn(&mut self, words: &str) {
        self.notice = Some((Meaning::Waiting, words.to_owned()));
    }

    pub(super) fn open_dialog(&mut self, dialog: Dialog) {
        self.dialog = Some(Opened { dialog, scroll: 0 });
    }

    fn type_into(&mut self, field: Field, title: &str, about: &str) -> Vec<Effect> {
        let (title, about) = (title.to_owned(), about.to_owned());
        self.open_dialog(Dialog::Type { field, title, about, typed: String::new() });
        Vec::new()
    }

    fn open_answer(&mut self, place: Place, waiting: &Waiting) {
        let lines = dialog::answer_lines(waiting);
        self.open_dialog(Dialog::Answer { place, waiting: Box::new(waiting.clone()), lines });
    }

    /// Begins something.
    pub(super) fn act(&mut self, act: Act) -> Vec<Effect> {
        self.busy += 1;
        vec![Effect::Act(act)]
    }

    pub(super) fn topic_of(&self, session: SessionId) -> Option<&str> {
        self.rows.iter().find(|row| row.id() == session)?.summary.topic.as_deref()
    }

    /// Opens the screen of one session.
    pub(super) fn open_session(&mut self, session: SessionId) -> Vec<Effect> {
        if !self.rows.iter().any(|row| row.id() == session) {
            self.say(&format!("that session ended long ago: segno show {session}"));
            return Vec::new();
        }
        self.screen = Screen::Session;
        (self.scroll, self.chosen) = (0, 0);
        self.selected = Some(session);
        self.watch()
    }

    fn select(&mut self, session: SessionId) -> Vec<Effect> {
        self.selected = Some(session);
        (self.scroll, self.chosen) = (0, 0);
        self.watch()
    }

    fn show_part(&mut self, part: Part) -> Vec<Effect> {
        self.part = part;
        (self.scroll, self.chosen) = (0, 0);
        self.watch()
    }

    /// Looks at what is shown now.
    fn watch(&self) -> Vec<Effect> {
        self.selected.map(|session| Effect::Watch(session, self.part)).into_iter().collect()
    }

    /// Finds out what is shown, and looks at what is selected then.
    fn sifted(&mut self) -> Vec<Effect> {
        let before = self.selected;
        self.sift();
        if self.selected == before { Vec::new() } else { self.watch() }
    }

    /// Moves in whatever the keys go to.
    fn step(&mut self, by: isize) -> Vec<Effect> {
        match (self.screen, self.part) {
            (Screen::List, _) => {
                let last = self.shown.len().saturating_sub(1);
                let to = self.place().unwrap_or(0).saturating_add_signed(by).min(last);
                let there = self.visible().nth(to).map(Row::id);
                match there {
                    Some(session) if Some(session) != self.selected => self.select(session),
                    _ => Vec::new(),
                }
            }
            (Screen::Session, Part::Checkpoints) => {
                let last = match self.seen().map(|detail| &detail.rows) {
                    Some(Rows::Checkpoints(rows)) => rows.len().saturating_sub(1),
                    _ => 0,
                };
                self.chosen = self.chosen.saturating_add_signed(by).min(last);
                Vec::new()
            }
            // The talk is read from its end.
            (Screen::Session, Part::Talk) => self.scroll_pane(by.saturating_neg()),
            (Screen::Session, _) => self.scroll_pane(by),
        }
    }

    /// Moves in what is shown of a session: away from where it begins to be read.
    fn scroll_pane(&mut self, by: isize) -> Vec<Effect> {
        let most = view::lines_of_part(self);
        self.scroll = self.scroll.saturating_add_signed(by).min(most.saturating_sub(1));
        Vec::new()
    }
}

/// The rows of a list, for whoever makes them.
pub(super) fn in_order(mut rows: Vec<Row>) -> Arc<Vec<Row>> {
    rows.sort_by_cached_key(Row::order);
    Arc::new(rows)
}
