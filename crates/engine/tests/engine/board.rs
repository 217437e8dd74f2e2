//! What faces show: a page costs and says what it should, wherever it lies.

use segno_core::Command;
use segno_core::Fact;
use segno_core::SessionId;
use segno_core::Text;
use segno_core::event::CallEnd;
use segno_core::event::Channel;
use segno_core::event::PauseReason;
use segno_core::event::Source;
use segno_engine::Engine;
use segno_engine::board::Board;
use segno_engine::board::Course;
use segno_engine::board::Need;
use segno_engine::board::Order;
use segno_engine::board::SessionWish;
use segno_engine::board::TimelineWish;
use segno_engine::board::What;
use segno_engine::board::call_diff;
use serde_json::json;

use crate::common::Room;
use crate::common::note;

fn make(engine: &Engine, room: &Room, topic: &str) -> SessionId {
    let new = segno_engine::NewSession { topic: Some(topic.to_owned()), ..room.new_session() };
    let id = engine.create(new).unwrap().state.session_id;
    room.clock.advance(1);
    id
}

fn call(engine: &Engine, id: SessionId, name: &str, end: Option<CallEnd>) {
    let (source, tool, input) = (Source::Hook, "Bash".to_owned(), json!({ "command": name }));
    let begun = Fact::ToolStarted { call: name.to_owned(), tool, input, write_ahead: true, source };
    engine.act(id, begun).unwrap();
    if let Some(end) = end {
        let output = Some(Text::Whole(format!("{name} is done")));
        engine.act(id, Fact::ToolEnded { call: name.to_owned(), tool: None, end, output, source }).unwrap();
    }
}

fn topics(board: &Board, wish: &SessionWish) -> Vec<String> {
    board.page(wish).sessions.into_iter().filter_map(|row| row.summary.topic).collect()
}

#[test]
fn a_board_knows_who_waits_for_whom_and_hears_of_every_change() {
    let room = Room::new();
    let engine = room.quiet();
    let [plain, asked, stopped, done] =
        ["plain", "asked", "stopped", "done"].map(|topic| make(&engine, &room, topic));
    let pause = |reason| Command::Pause { reason, details: None };
    engine.act(asked, pause(PauseReason::Asked)).unwrap();
    engine.act(stopped, pause(PauseReason::Budget)).unwrap();
    engine.act(done, Command::Complete { summary: None }).unwrap();
    let mut board = Board::default();
    board.refresh(&engine).unwrap();
    let wish = SessionWish { limit: 10, ..SessionWish::default() };
    assert_eq!(topics(&board, &wish), ["stopped", "asked", "plain", "done"]);
    let page = board.page(&wish);
    assert_eq!((page.total, page.groups["you"], page.groups["waits"], page.groups["over"]), (4, 1, 2, 1));
    assert_eq!(board.row(stopped).unwrap().need, Need::You);

    assert!(board.refresh(&engine).unwrap().is_nothing());
    let before = board.change();
    engine.act(plain, Command::ReachBreakpoint { name: "look".to_owned(), details: None }).unwrap();
    assert_eq!(board.refresh(&engine).unwrap().sessions, [plain]);
    assert_eq!((board.change(), board.row(plain).unwrap().need), (before + 1, Need::You));
    engine.delete(done).unwrap();
    assert!(board.refresh(&engine).unwrap().removed);
    assert_eq!(board.len(), 3);
}

#[test]
fn pages_of_a_board_are_narrowed_ordered_and_cut() {
    let room = Room::new();
    let engine = room.quiet();
    for topic in ["Cedar", "birch", "ash"] {
        make(&engine, &room, topic);
    }
    let mut board = Board::default();
    board.refresh(&engine).unwrap();
    let wish = SessionWish { order: Order::Topic, limit: 2, ..SessionWish::default() };
    assert_eq!(topics(&board, &wish), ["ash", "birch"]);
    assert_eq!(topics(&board, &SessionWish { skip: 2, ..wish.clone() }), ["Cedar"]);
    let some = SessionWish { text: Some("CED".to_owned()), ..wish.clone() };
    assert_eq!((topics(&board, &some), board.page(&some).total), (vec!["Cedar".to_owned()], 1));
    let none = SessionWish { needs: vec![Need::Over], ..wish };
    assert_eq!((board.page(&none).total, board.page(&none).groups["waits"]), (0, 3));
}

/// Whatever the size of the pages, they say the same one after the other, forwards and backwards.
#[test]
fn pages_of_a_timeline_fit_together() {
    let room = Room::new();
    let engine = room.quiet();
    let id = make(&engine, &room, "long");
    for n in 0..40 {
        let text = Text::Whole(format!("word {n}"));
        engine.act(id, Fact::Said { channel: Channel::Text, text, message: None, parent: None }).unwrap();
        call(&engine, id, &format!("cargo {n}"), (n % 3 > 0).then_some(CallEnd::Completed));
    }
    let whole = engine.timeline(id, TimelineWish::After(0), 10_000).unwrap();
    assert_eq!((whole.until, whole.head), (whole.head, engine.load(id).unwrap().state.seq));
    for limit in [1, 7, 50] {
        let (mut after, mut forwards) = (0, Vec::new());
        while after < whole.head {
            let page = engine.timeline(id, TimelineWish::After(after), limit).unwrap();
            assert!(page.until > after && page.after == after);
            after = page.until;
            forwards.extend(page.moments);
        }
        assert_eq!(forwards, whole.moments);
        let (mut before, mut backwards) = (whole.head + 1, Vec::new());
        while before > 1 {
            let page = engine.timeline(id, TimelineWish::Before(before), limit).unwrap();
            assert!(page.after < before - 1 || page.after == 0);
            before = page.after + 1;
            backwards.splice(0..0, page.moments);
        }
        assert_eq!(backwards, whole.moments);
    }
}

#[test]
fn a_call_stands_where_it_began_as_it_is_known_now() {
    let room = Room::new();
    let engine = room.quiet();
    let id = make(&engine, &room, "calls");
    call(&engine, id, "make", Some(CallEnd::Failed));
    call(&engine, id, "wait", None);
    engine.act(id, note("after")).unwrap();
    let page = engine.timeline(id, TimelineWish::Before(u64::MAX), 100).unwrap();
    let calls = page.moments.iter().filter_map(|moment| match &moment.what {
        What::Called(line) => {
            Some((line.subject.as_str(), line.state.as_str(), line.output.as_ref().map(Text::excerpt)))
        }
        _ => None,
    });
    assert_eq!(calls.collect::<Vec<_>>(), [("make", "failed", Some("make is done")), ("wait", "open", None)]);
    let What::Called(line) = &page.moments.iter().find(|it| matches!(it.what, What::Called(_))).unwrap().what
    else {
        panic!("a call")
    };
    assert_eq!(engine.call_line(id, &line.key).unwrap().unwrap().tool, "Bash");
    assert_eq!(engine.call_line(id, "../../etc/passwd").unwrap(), None);
}

#[test]
fn a_call_shows_what_it_changes() {
    let signs = |input| {
        call_diff(&input).into_iter().map(|line| format!("{}{}", line.sign, line.text)).collect::<Vec<_>>()
    };
    let edit = json!({ "file_path": "a", "old_string": "one\ntwo\nthree", "new_string": "one\nzwei\nthree" });
    assert_eq!(signs(edit), [" one", "-two", "+zwei", " three"]);
    assert_eq!(signs(json!({ "file_path": "a", "content": "x\ny" })), ["+x", "+y"]);
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch";
    assert_eq!(signs(json!({ "input": patch }))[2..5], ["@@@", "-x", "+y"]);
    assert!(signs(json!({ "command": "ls" })).is_empty());
    let same = json!({ "old_string": "é", "new_string": "é" });
    assert_eq!(signs(same), [" é"]);
}

#[test]
fn the_course_of_money_is_read_on() {
    let room = Room::new();
    let engine = room.quiet();
    let id = make(&engine, &room, "money");
    let spend = |micros| engine.act(id, Fact::CostRecorded { micros, source: Source::Hand }).unwrap();
    spend(100);
    let mut course = Course::default();
    course.read_on(&engine, id).unwrap();
    spend(20);
    course.read_on(&engine, id).unwrap();
    assert_eq!(course.points.iter().map(|point| point.micros).collect::<Vec<_>>(), [100, 120]);
    assert_eq!(course.until, engine.load(id).unwrap().state.seq);
}
