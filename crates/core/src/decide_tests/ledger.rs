//! Tool calls: one call however often it is reported, and every one accounted for.

use serde_json::json;

use crate::command::Command;

use crate::event::*;
use crate::fact::Fact;
use crate::limits;
use crate::project::List;
use crate::refusal::Refusal;
use crate::state::Applied;
use crate::state::Calls;
use crate::story::*;

fn counts(calls: &Calls) -> [usize; 7] {
    let Calls {
        total,
        completed,
        failed,
        denied,
        open,
        in_doubt,
        open_beyond,
        closed: _,
        done_by_hook: _,
        seen: _,
        newest: _,
    } = calls;
    let sum = completed + failed + denied + open.len() as u64 + in_doubt.len() as u64 + open_beyond;
    assert_eq!(sum, *total, "{calls:?}");
    [*total, *completed, *failed, *denied, open.len() as u64, in_doubt.len() as u64, *open_beyond]
        .map(|count| count as usize)
}

#[test]
fn a_call_seen_by_hook_and_stream_is_one_call() {
    let mut story = Story::told(inputs![start("a", Source::Stream)]);
    assert!(!story.state.calls.open["a"].write_ahead);
    let events = story.ok(start("a", Source::Hook));
    assert_eq!(story.record(&events[0]), Applied::Repeated);
    assert!(story.state.calls.open["a"].write_ahead, "one of both said it before the call ran");
    assert_eq!(counts(&story.state.calls), [1, 0, 0, 0, 1, 0, 0]);
    story.ok(end("a", CallEnd::Completed));
    let events = story.ok(end("a", CallEnd::Failed));
    assert_eq!(story.record(&events[0]), Applied::Repeated);
    assert_eq!(counts(&story.state.calls), [1, 1, 0, 0, 0, 0, 0]);
}

/// Codex' hook tells that a command is over, and nothing of its exit.
#[test]
fn the_record_of_an_agent_knows_better_than_a_hook_that_a_call_failed() {
    let told = |end: CallEnd, source: Source| Fact::ToolEnded {
        call: "a".to_owned(),
        tool: None,
        end,
        output: None,
        source,
    };
    for (end, counted) in [(CallEnd::Failed, [1, 0, 1, 0]), (CallEnd::Denied, [1, 0, 0, 1])] {
        let mut story = Story::told(inputs![start("a", Source::Hook)]);
        story.ok(told(CallEnd::Completed, Source::Hook));
        let before = story.list(List::Tools)[0].clone();
        story.ok(start("a", Source::Stream));
        story.ok(told(end, Source::Stream));
        assert_eq!(counts(&story.state.calls)[..4], counted);
        let row = story.list(List::Tools)[0].clone();
        assert_eq!(row["state"], end.as_str());
        assert_eq!(row["ended_at"], before["ended_at"], "it ended when it was told first");
        // Once, and nobody takes it back.
        for (end, source) in [(end, Source::Stream), (CallEnd::Completed, Source::Hook)] {
            story.ok(told(end, source));
        }
        assert_eq!(counts(&story.state.calls)[..4], counted);
    }
    // The other way round the hook is the late one.
    let mut story = Story::told(inputs![start("a", Source::Stream), start("a", Source::Hook)]);
    story.ok(told(CallEnd::Failed, Source::Stream));
    story.ok(told(CallEnd::Completed, Source::Hook));
    assert_eq!(counts(&story.state.calls)[..4], [1, 0, 1, 0]);
}

#[test]
fn a_late_start_does_not_open_a_call_again() {
    let mut story = Story::told(inputs![
        start("a", Source::Hook),
        end("a", CallEnd::Completed),
        end("b", CallEnd::Denied),
        start("b", Source::Stream),
    ]);
    assert_eq!(counts(&story.state.calls), [2, 1, 0, 1, 0, 0, 0]);
    // Not only the very last ones.
    for n in 0..limits::CLOSED_CALLS - 2 {
        story.ok(end(&format!("c{n}"), CallEnd::Completed));
    }
    story.ok(start("a", Source::Stream));
    assert_eq!(counts(&story.state.calls)[4], 0);
    assert_eq!(story.state.calls.closed.len(), limits::CLOSED_CALLS);
}

/// Some models give the same id to one call after the other.
#[test]
fn an_id_that_comes_again_is_another_call() {
    let start = |source: Source, command: &str| Fact::ToolStarted {
        call: "a".to_owned(),
        tool: "Bash".to_owned(),
        input: serde_json::json!({ "command": command }),
        write_ahead: source == Source::Hook,
        source,
    };
    let mut story = Story::told(inputs![
        attach(1),
        // Told by both, whoever is first, each is one call.
        start(Source::Hook, "one"),
        start(Source::Stream, "one"),
        end("a", CallEnd::Completed),
        start(Source::Stream, "two"),
        start(Source::Hook, "two"),
        // The same source, the same words, and still open: said twice.
        start(Source::Hook, "two"),
        end("a", CallEnd::Failed),
        end("a", CallEnd::Failed),
        start(Source::Hook, "three"),
    ]);
    let calls = &story.state.calls;
    assert_eq!(counts(calls), [3, 1, 1, 0, 1, 0, 0]);
    assert_eq!(calls.open.keys().collect::<Vec<_>>(), ["a#3"]);
    story.ok(interrupt());
    assert_eq!(story.state.calls.in_doubt.keys().collect::<Vec<_>>(), ["a#3"]);
    let rows: Vec<(String, String)> = story
        .list(List::Tools)
        .iter()
        .map(|row| (row["call"].as_str().unwrap().to_owned(), row["state"].as_str().unwrap().to_owned()))
        .collect();
    let wanted = [("a", "completed"), ("a#2", "failed"), ("a#3", "in_doubt")];
    assert_eq!(rows, wanted.map(|(call, state)| (call.to_owned(), state.to_owned())));
}

/// Several at once: each end is that of the oldest that is open.
#[test]
fn calls_with_one_id_at_the_same_time() {
    let start = |command: &str| Fact::ToolStarted {
        call: "a".to_owned(),
        tool: "Bash".to_owned(),
        input: serde_json::json!(command),
        write_ahead: false,
        source: Source::Stream,
    };
    let story = Story::told(inputs![
        start("one"),
        start("two"),
        start("three"),
        end("a", CallEnd::Completed),
        end("a", CallEnd::Failed),
    ]);
    assert_eq!(counts(&story.state.calls), [3, 1, 1, 0, 1, 0, 0]);
    assert_eq!(story.state.calls.open.keys().collect::<Vec<_>>(), ["a#3"]);
}

/// In journals of earlier versions an id is one call for ever.
#[test]
fn an_older_journal_folds_as_it_did() {
    let mut story = Story::new();
    let started = |write_ahead| crate::event::ToolStarted {
        call: "a".to_owned(),
        tool: "Bash".to_owned(),
        input: serde_json::Value::Null,
        write_ahead,
        source: Source::Stream,
        recurs: false,
    };
    let ended = crate::event::ToolEnded {
        call: "a".to_owned(),
        tool: None,
        end: CallEnd::Completed,
        output: None,
        source: Source::Stream,
        evidence: None,
        recurs: false,
    };
    for event in [Event::from(started(false)), ended.into(), started(true).into()] {
        let seq = story.state.seq + 1;
        let mark = crate::state::Mark { seq, at: story.state.updated_at, run: None };
        story.state.apply(&mark, &event);
    }
    assert_eq!(counts(&story.state.calls), [1, 1, 0, 0, 0, 0, 0]);
    assert!(story.state.calls.seen.is_empty() && story.state.calls.newest.is_none());
}

#[test]
fn every_end_is_counted_as_what_it_is() {
    let story = Story::told(inputs![
        start("a", Source::Hook),
        start("b", Source::Hook),
        start("c", Source::Hook),
        start("d", Source::Hook),
        end("a", CallEnd::Completed),
        end("b", CallEnd::Failed),
        end("c", CallEnd::Denied),
        end("d", CallEnd::InDoubt),
    ]);
    assert_eq!(counts(&story.state.calls), [4, 1, 1, 1, 0, 1, 0]);
}

#[test]
fn a_call_whose_start_was_never_seen_is_a_call() {
    let mut story = Story::told(inputs![end("a", CallEnd::Failed)]);
    assert_eq!(counts(&story.state.calls), [1, 0, 1, 0, 0, 0, 0]);
    story.ok(end("b", CallEnd::InDoubt));
    assert_eq!(counts(&story.state.calls), [1, 0, 1, 0, 0, 0, 0], "doubt alone makes no call");
}

#[test]
fn an_interruption_puts_open_calls_in_doubt() {
    let mut story = Story::told(inputs![
        attach(1),
        start("a", Source::Hook),
        start("b", Source::Hook),
        start("c", Source::Hook),
        end("b", CallEnd::Completed),
    ]);
    let events = story.ok(interrupt());
    assert_eq!(kinds(&events), ["tool_ended", "tool_ended", "session_interrupted"]);
    assert_eq!(counts(&story.state.calls), [3, 1, 0, 0, 0, 2, 0]);
    assert_eq!(story.state.calls.in_doubt.keys().collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(story.column(crate::project::List::Tools, "state"), ["in_doubt", "completed", "in_doubt"]);
    // Pausing is not dying.
    let mut paused = Story::told(inputs![attach(1), start("a", Source::Hook)]);
    assert_eq!(kinds(&paused.ok(pause())), ["session_paused"]);
    assert_eq!(counts(&paused.state.calls), [1, 0, 0, 0, 1, 0, 0]);
}

#[test]
fn doubt_is_settled_by_what_is_learnt_later_and_never_the_other_way_round() {
    let mut story = Story::told(inputs![attach(1), start("a", Source::Hook), interrupt()]);
    story.ok(start("a", Source::Stream));
    assert_eq!(counts(&story.state.calls), [1, 0, 0, 0, 0, 1, 0], "a late start settles nothing");
    story.ok(end("a", CallEnd::InDoubt));
    assert_eq!(counts(&story.state.calls), [1, 0, 0, 0, 0, 1, 0]);
    story.ok(end("a", CallEnd::Completed));
    assert_eq!(counts(&story.state.calls), [1, 1, 0, 0, 0, 0, 0]);
    story.ok(end("a", CallEnd::InDoubt));
    assert_eq!(counts(&story.state.calls), [1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(story.column(crate::project::List::Tools, "state"), ["completed"]);
}

#[test]
fn open_calls_past_the_limit_are_counted_but_not_kept() {
    let mut story = Story::new();
    for n in 0..limits::OPEN_CALLS + 5 {
        story.ok(start(&format!("call-{n:05}"), Source::Hook));
    }
    assert_eq!(counts(&story.state.calls), [1_005, 0, 0, 0, 1_000, 0, 5]);
    // The end of one that is not kept, and the same once more.
    story.ok(end("call-01003", CallEnd::Completed));
    story.ok(end("call-01003", CallEnd::Completed));
    assert_eq!(counts(&story.state.calls), [1_005, 1, 0, 0, 1_000, 0, 4]);
    // One that is kept makes room for a new one.
    story.ok(end("call-00000", CallEnd::Failed));
    story.ok(start("call-09999", Source::Hook));
    assert_eq!(counts(&story.state.calls), [1_006, 1, 1, 0, 1_000, 0, 4]);
    // All in the list, kept or not.
    assert_eq!(story.list(crate::project::List::Tools).len(), 1_006);
}

#[test]
fn calls_in_doubt_past_the_limit_are_counted_too() {
    let mut story = Story::new();
    for round in 0..2 {
        story.ok(attach(round));
        for n in 0..limits::OPEN_CALLS - 1 {
            story.ok(start(&format!("{round}-{n:05}"), Source::Hook));
        }
        story.ok(interrupt());
        story.ok(resume());
    }
    assert_eq!(counts(&story.state.calls), [1_998, 0, 0, 0, 0, 1_000, 998]);
    let in_doubt = story.column(crate::project::List::Tools, "state");
    assert!(in_doubt.iter().all(|state| state == "in_doubt"), "the list knows them all");
    story.ok(end("1-00900", CallEnd::Completed));
    assert_eq!(counts(&story.state.calls), [1_998, 1, 0, 0, 0, 1_000, 997]);
}

#[test]
fn what_an_open_call_does_is_kept_in_short() {
    let call = "a".to_owned();
    let input = json!({ "content": "x".repeat(10_000) });
    let command =
        Fact::ToolStarted { call, tool: "Write".to_owned(), input, write_ahead: true, source: Source::Hook };
    let story = Story::told(inputs![command]);
    let open = &story.state.calls.open["a"];
    assert_eq!((open.tool.as_str(), open.seq, open.write_ahead), ("Write", 2, true));
    assert_eq!(open.input.chars().count(), limits::NAME);
    assert!(open.input.starts_with(r#"{"content":"xxx"#) && open.input.ends_with('…'));
    assert!(story.state.last_action.unwrap().starts_with(r#"Write {"content":"xxx"#));
}

#[test]
fn what_was_found_out_afterwards_counts_once_and_says_where() {
    let mut story =
        Story::told(inputs![attach(1), start("a", Source::Hook), start("b", Source::Hook), interrupt()]);
    let settle = |call: &str, end: CallEnd| Command::SettleCall {
        call: call.to_owned(),
        end,
        output: Some("all of it".into()),
        evidence: "its own record".to_owned(),
    };
    assert!(matches!(story.refused(settle("a", CallEnd::InDoubt)), Refusal::BadValue { .. }));
    story.ok(settle("a", CallEnd::Completed));
    assert!(matches!(story.refused(settle("a", CallEnd::Failed)), Refusal::Unknown { .. }), "it is known");
    assert!(matches!(story.refused(settle("c", CallEnd::Failed)), Refusal::Unknown { .. }), "there is none");
    let calls = &story.state.calls;
    assert_eq!((calls.total, calls.completed, calls.in_doubt.len()), (2, 1, 1));
    let recovery = story.state.recovery.as_ref().unwrap();
    assert_eq!((recovery.in_doubt, recovery.settled), (2, 1));
}
