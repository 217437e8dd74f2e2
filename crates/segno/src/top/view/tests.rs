use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::event::KeyModifiers;
use rstest::rstest;
use segno_engine::conversation::Entry;
use segno_engine::conversation::Spoken;
use segno_engine::core::Event;
use segno_engine::core::Mark;
use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::Summary;
use segno_engine::core::Timestamp;
use segno_engine::core::event::CallEnd;
use segno_engine::core::event::Maker;
use segno_engine::core::event::SessionCreated;
use segno_engine::core::state::OpenCall;
use segno_engine::core::state::Reason;
use segno_engine::waiting::Waiting;
use segno_engine::waiting::WaitingKind;

use super::*;
use crate::commands::ls::Driving;
use crate::output::Palette;
use crate::top::state::Detail;
use crate::top::state::Effect;
use crate::top::state::Msg;
use crate::top::state::Row;
use crate::top::state::Rows;
use crate::top::update::in_order;
use crate::top::update::update;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_795_000_000_000_000).plus_seconds(seconds)
}

fn row(number: i64, status: Status, need: Need) -> Row {
    let summary = Summary {
        session_id: SessionId::at(at(number)),
        topic: Some(format!("piece of work {number}")),
        status,
        project: "/srv/shop".to_owned(),
        agent: Some("claude".to_owned()),
        phase: Some("GREEN".to_owned()),
        step: Some(2),
        of: Some(4),
        created_at: at(number),
        updated_at: at(number + 60),
        tokens_used: 12_400 * number.unsigned_abs().max(1),
        token_budget: 10_000_000,
        cost_micros: 420_000,
        ..Summary::default()
    };
    let driving = (need == Need::Works).then(|| Driving {
        pid: 4_000 + u32::try_from(number).unwrap(),
        host: "here".to_owned(),
        silent: None,
    });
    Row { summary, driving, need, asks: Vec::new() }
}

/// Sessions of which so many are running, beside one of every other kind; none at all for 0.
fn sessions(running: i64) -> Vec<Row> {
    let mut rows: Vec<Row> = (0..running).map(|n| row(100 + n, Status::Active, Need::Works)).collect();
    if running == 0 {
        return rows;
    }
    let mut asks = row(1, Status::Active, Need::You);
    asks.summary.open_questions = 1;
    asks.asks = vec![question()];
    let mut halted = row(2, Status::Halted, Need::You);
    halted.summary.reason = Some(Reason {
        what: "breaker open".to_owned(),
        details: Some("no progress in 3 iterations".to_owned()),
    });
    let mut lost = row(3, Status::Interrupted, Need::You);
    lost.summary.in_doubt = 1;
    lost.summary.reason = Some(Reason { what: "machine restarted".to_owned(), details: None });
    let mut done = row(5, Status::Completed, Need::Over);
    done.summary.topic = Some("\u{1b}]0;owned\u{7}\u{202e}evil".to_owned());
    rows.extend([asks, halted, lost, row(4, Status::Paused, Need::Waits), done]);
    rows
}

fn question() -> Waiting {
    Waiting {
        id: "5f0c5f0c5f0c5f0c".to_owned(),
        kind: WaitingKind::Permission,
        session_id: SessionId::at(at(1)),
        topic: Some("piece of work 1".to_owned()),
        project: "/srv/shop".to_owned(),
        since: at(50),
        until: Some(at(650)),
        text: "may it use Bash? {\"command\":\"cargo sqlx migrate run\"}".to_owned(),
        input: Some("{\"command\":\"cargo sqlx migrate run\",\"why\":\"\\u001b[2J\"}".to_owned()),
        answers: vec!["yes".to_owned(), "no".to_owned(), "TEXT".to_owned()],
    }
}

fn state(session: SessionId) -> State {
    let uid = segno_engine::core::Uid::new(Default::default());
    let mut created = SessionCreated::new(session, uid, Maker::New);
    created.topic = Some("piece of work".to_owned());
    created.project.path = "/srv/shop".to_owned();
    let created = Event::from(created);
    State::begin(&Mark { seq: 1, at: session.timestamp(), run: None }, &created).unwrap()
}

fn said(seconds: i64, text: &str) -> Entry {
    let what = Spoken::Said { agent: "claude".to_owned(), thinking: false, parent: None, text: text.into() };
    Entry { seq: 1, at: at(seconds), what }
}

fn called(seconds: i64, tool: &str, subject: &str, end: Option<CallEnd>) -> Entry {
    let what = Spoken::Called {
        call: "c".to_owned(),
        tool: tool.to_owned(),
        subject: subject.to_owned(),
        end,
        took_ms: end.map(|_| 6_200),
        output: end.map(|_| "test result: FAILED".into()),
    };
    Entry { seq: 2, at: at(seconds), what }
}

fn talk() -> Vec<Entry> {
    let started = Spoken::RunStarted { agent: "claude".to_owned(), version: Some("2.1.325".to_owned()) };
    let asked = Spoken::Asked { brief: false, text: "add a login form, with tests".into() };
    vec![
        Entry { seq: 1, at: at(61), what: started },
        Entry { seq: 1, at: at(61), what: asked },
        said(62, "I look at what is there.\n\tand then \u{1b}[31mwrite the form\u{202e}."),
        called(63, "Read", "src/auth/mod.rs", Some(CallEnd::Completed)),
        called(64, "Bash", "cargo test auth", Some(CallEnd::Failed)),
        called(65, "Bash", "cargo sqlx migrate run", Some(CallEnd::InDoubt)),
        called(66, "Edit", "src/auth/mod.rs", None),
    ]
}

fn shown(top: &Top) -> String {
    let mut terminal = Terminal::new(TestBackend::new(top.size.0, top.size.1)).unwrap();
    terminal.draw(|frame| view(top, frame)).unwrap();
    terminal.backend().to_string()
}

fn top_of(running: i64, size: (u16, u16)) -> Top {
    let mut top = Top::new(at(300), TimeZone::UTC, Palette::plain(), size);
    update(&mut top, Msg::Sessions(in_order(sessions(running)), 0));
    if let Some(session) = top.selected {
        tell(&mut top, session, Part::Talk, Rows::Talk(talk()));
    }
    top
}

fn tell(top: &mut Top, session: SessionId, part: Part, rows: Rows) {
    let mut state = state(session);
    let call = OpenCall {
        tool: "Bash".to_owned(),
        seq: 9,
        at: at(65),
        write_ahead: true,
        input: "{\"command\":\"cargo sqlx migrate run\"}".to_owned(),
    };
    state.calls.in_doubt.insert("c9".to_owned(), call);
    update(top, Msg::Detail(Box::new(Detail { state, part, rows, notices: Vec::new() })));
}

fn press(top: &mut Top, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '↓' => KeyCode::Down,
            '↑' => KeyCode::Up,
            key => KeyCode::Char(key),
        };
        effects.extend(update(top, Msg::Key(KeyEvent::new(code, KeyModifiers::NONE))));
    }
    effects
}

#[rstest]
fn the_list(#[values(0, 3, 100)] running: i64, #[values((80, 24), (120, 40), (200, 60))] size: (u16, u16)) {
    let name = format!("list_{running}_at_{}x{}", size.0, size.1);
    insta::assert_snapshot!(name, shown(&top_of(running, size)));
}

#[rstest]
fn one_session(#[values((80, 24), (120, 40), (200, 60))] size: (u16, u16)) {
    let mut top = top_of(3, size);
    press(&mut top, "\n");
    insta::assert_snapshot!(format!("session_at_{}x{}", size.0, size.1), shown(&top));
}

#[test]
fn calls_in_doubt_come_first() {
    let mut top = top_of(3, (100, 20));
    press(&mut top, "\n2");
    let session = top.selected.unwrap();
    tell(&mut top, session, Part::Ledger, Rows::Ledger(Vec::new()));
    insta::assert_snapshot!("ledger", shown(&top));
}

#[test]
fn a_question_is_shown_whole_and_the_answer_names_it() {
    let mut top = top_of(3, (100, 24));
    assert!(press(&mut top, "a").is_empty());
    insta::assert_snapshot!("question", shown(&top));
    let effects = press(&mut top, "y");
    let told = format!("{effects:?}");
    assert!(told.contains("5f0c5f0c5f0c5f0c") && told.contains("answer: [\"yes\"]"), "{told}");
    assert!(top.dialog.is_none());
}

#[test]
fn help_is_shown() {
    let mut top = top_of(3, (80, 24));
    press(&mut top, "?");
    insta::assert_snapshot!("help", shown(&top));
    press(&mut top, "\u{1b}");
    assert!(top.dialog.is_none());
}

#[test]
fn a_filter_finds_by_any_word_and_goes_again() {
    let mut top = top_of(3, (80, 24));
    press(&mut top, "/halted work\n");
    assert_eq!(top.visible().map(|row| row.summary.status).collect::<Vec<_>>(), [Status::Halted]);
    assert_eq!(top.row().map(|row| row.summary.status), Some(Status::Halted));
    press(&mut top, "\u{1b}");
    assert_eq!(top.shown.len(), 8);
    // Whoever is selected stays selected.
    assert_eq!(top.row().map(|row| row.summary.status), Some(Status::Halted));
}

#[test]
fn who_needs_somebody_comes_first_and_the_rest_stands_still() {
    let mut top = top_of(3, (80, 24));
    let order = |top: &Top| top.visible().map(|row| row.summary.topic.clone().unwrap()).collect::<Vec<_>>();
    let before = order(&top);
    let numbers: Vec<&str> = before.iter().map(|topic| topic.rsplit(' ').next().unwrap()).collect();
    assert_eq!(numbers[..7], ["1", "2", "3", "102", "101", "100", "4"]);
    let mut rows = sessions(3);
    rows[0].summary.updated_at = at(10_000);
    update(&mut top, Msg::Sessions(in_order(rows), 0));
    assert_eq!(order(&top), before);
}

#[test]
fn what_is_selected_is_seen() {
    let mut top = top_of(100, (80, 24));
    for _ in 0..60 {
        press(&mut top, "↓");
    }
    let topic = top.row().unwrap().summary.topic.clone().unwrap();
    assert!(shown(&top).contains(&topic));
    press(&mut top, "g");
    assert_eq!(top.offset, 0);
    press(&mut top, "G");
    assert!(shown(&top).contains("ended (1)"));
}

#[test]
fn nothing_that_an_agent_wrote_reaches_the_terminal_as_it_is() {
    for part in ["1", "2", "3", "5"] {
        let mut top = top_of(100, (200, 60));
        press(&mut top, part);
        let mut terminal = Terminal::new(TestBackend::new(200, 60)).unwrap();
        terminal.draw(|frame| view(&top, frame)).unwrap();
        let raw: String = terminal.backend().buffer().content().iter().map(|cell| cell.symbol()).collect();
        assert!(!raw.chars().any(crate::output::sanitize::is_unsafe), "part {part}");
    }
}

#[test]
fn an_undo_is_done_only_as_it_was_shown() {
    let mut top = top_of(3, (80, 24));
    let effects = press(&mut top, "u");
    assert!(format!("{effects:?}").contains("PreviewUndo"));
    let place = crate::top::state::Place { session: top.selected.unwrap(), project: "/srv/shop".into() };
    let lines = vec!["back to cp-02: 1 to write, 0 to remove, 0 left as they are".into()];
    let preview = crate::top::state::Done::Preview { place, lines, mark: "the-mark".to_owned() };
    assert!(update(&mut top, Msg::Done(preview)).is_empty());
    insta::assert_snapshot!("undo", shown(&top));
    assert!(press(&mut top, "n").is_empty());
    assert_eq!(top.notice.as_ref().unwrap().1, "nothing was done");
}

#[test]
fn what_is_typed_goes_to_the_field_and_nowhere_else() {
    let mut top = top_of(3, (80, 24));
    press(&mut top, "e");
    assert!(press(&mut top, "quarter\n").is_empty());
    // It is no number: the field stays open, and says so.
    assert!(top.dialog.is_some() && top.notice.is_some());
    update(&mut top, Msg::Key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
    let effects = press(&mut top, "50k\n");
    assert!(format!("{effects:?}").contains("Extend { tokens: 50000 }"));
}

#[test]
fn without_colour_everything_is_said_in_words() {
    let top = top_of(3, (80, 24));
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| view(&top, frame)).unwrap();
    let plain = |cell: &ratatui::buffer::Cell| {
        cell.fg == ratatui::style::Color::Reset && cell.bg == ratatui::style::Color::Reset
    };
    assert!(terminal.backend().buffer().content().iter().all(plain));
}

#[test]
fn a_tiny_terminal_is_told_so() {
    let mut top = top_of(3, (80, 24));
    update(&mut top, Msg::Resized(20, 5));
    assert!(shown(&top).contains("this needs 40 colum"));
    update(&mut top, Msg::Resized(0, 0));
}
