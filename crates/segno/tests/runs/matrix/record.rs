//! The agent's own record beside its output: what only the record tells, and what happens without it.

use rstest::rstest;
use rustix::process::Signal;
use segno_engine::agents::AgentEvent;
use segno_engine::agents::Envelope;
use segno_engine::agents::LogUse;
use segno_engine::agents::ReaderOptions;
use segno_engine::agents::by_name;
use segno_engine::agents::is_told_by_log;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Then;
use segno_testkit::model::Turn;
use segno_testkit::model::Usage;
use segno_testkit::recipe::Patience;
use serde_json::Value;
use serde_json::json;

use super::Real;
use super::waits;
use crate::lab::signal;
use crate::lab::until;

const MUCH: Usage = Usage { input: 3_000, output: 1_000, cache_read: 0, cache_write: 0 };

fn used(real: &Real) -> u64 {
    real.lab.state()["budget"]["tokens_used"].as_u64().unwrap()
}

/// What the journal says of the record of a run.
fn reports(real: &Real) -> Vec<Value> {
    let mut reports = real.lab.journal(Some("reported"));
    reports.retain(|event| event["body"]["what"] == "record");
    reports
}

/// The rollouts of all conversations.
fn rollouts(real: &Real) -> Vec<std::path::PathBuf> {
    let mut found = vec![real.lab.home.path().join(".codex/sessions")];
    for _ in 0..4 {
        let entries = found.iter().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten());
        found = entries.map(|entry| entry.path()).collect();
    }
    found
}

#[test]
fn calls_that_codex_turns_down_are_on_record() {
    let escalated = Op::Tool {
        name: "exec_command".to_owned(),
        input: json!({ "cmd": "echo x", "sandbox_permissions": "require_escalated", "justification": "y" }),
        namespace: None,
        id: None,
    };
    let turns = [
        // Stopped by the sandbox: sometimes Codex does not print it.
        Turn::sh("touch forbidden.txt"),
        Turn::ops([escalated]),
        Turn::ops([Op::write("forbidden.txt", "x\n")]),
        Turn::sh("echo fine"),
        "I see".into(),
    ];
    let Some(real) = Real::with("codex", turns) else { return };
    real.reconfigure(".codex/config.toml", "danger-full-access", "read-only");
    let said = real.run(&[]);
    let result = said.result();
    assert_eq!((&result["outcome"], &result["tool_calls"]), (&"completed".into(), &4.into()), "{result}");
    real.ledger(&["failed", "denied", "denied", "completed"]);
    assert_eq!(result["denials"].as_array().unwrap().len(), 2, "{result}");
    assert!(reports(&real).is_empty());
}

/// With `--ephemeral` Codex writes no record: all there is, is its output.
#[test]
fn without_a_record_the_output_is_all() {
    let turns = [Turn::sh("echo one").usage(MUCH), Turn::text("done").usage(MUCH)];
    let Some(real) = Real::with("codex", turns) else { return };
    let said = real.run(&["--arg", "--ephemeral"]);
    assert_eq!(said.result()["outcome"], "completed", "{}", said.stderr);
    real.ledger(&["completed"]);
    assert_eq!(real.lab.tools()[0]["call"], "item_0", "{:#?}", real.lab.tools());
    assert_eq!(used(&real), 8_000);
    let told = reports(&real);
    assert_eq!((told.len(), &told[0]["body"]["body"]["did"]), (1, &"not followed".into()), "{told:#?}");
}

#[test]
fn a_record_that_is_lost_on_the_way_loses_no_later_call() {
    let turns = [
        Turn::sh("echo one").usage(MUCH),
        waits().usage(MUCH),
        Turn::sh("echo two").usage(MUCH),
        Turn::text("done").usage(MUCH),
    ];
    let Some(real) = Real::with("codex", turns) else { return };
    let live = real.start(&[]);
    real.wait_file("begun");
    until("both calls are recorded", || (real.lab.tools().len() == 2).then_some(()));
    let found = rollouts(&real);
    assert_eq!(found.len(), 1, "{found:?}");
    std::fs::remove_file(&found[0]).unwrap();
    until("the loss is noted", || (!reports(&real).is_empty()).then_some(()));
    std::fs::write(real.file("go"), "").unwrap();
    let said = live.finish();
    real.describe(&said);
    assert_eq!(said.result()["outcome"], "completed");
    // How the call went that was going on, nobody can tell for sure: the output has it by another id.
    real.ledger(&["completed", "in_doubt", "completed"]);
    assert_eq!(used(&real), 16_000, "what the record told is not told again");
    assert_eq!(reports(&real)[0]["body"]["body"]["did"], "lost");
}

/// What a run used that was killed is known, and the next one does not pay for it.
#[test]
fn tokens_of_a_killed_run_are_its_own() {
    let turns = [waits().usage(MUCH), Turn::text("done").usage(MUCH)];
    let Some(real) = Real::with("codex", turns) else { return };
    let new = real.lab.run(&["new"]);
    let session = new.text().trim().to_owned();
    let live = real.start(&["--session", &session]);
    real.wait_file("begun");
    until("its tokens are recorded", || (used(&real) == 4_000).then_some(()));
    signal(u32::try_from(real.lab.running()["pid"].as_u64().unwrap()).unwrap(), Signal::KILL);
    let said = live.finish();
    let first = said.result();
    assert_eq!(
        (&first["outcome"], &first["tokens"]["input"]),
        (&"interrupted".into(), &3_000.into()),
        "{first}"
    );
    real.ledger(&["in_doubt"]);
    let resumed = real.lab.run(&["resume", "--json"]);
    real.describe(&resumed);
    let second = resumed.result();
    assert_eq!(
        (&second["native_id"], &second["tokens"]["input"]),
        (&first["native_id"], &3_000.into()),
        "{second}"
    );
    assert_eq!(used(&real), 8_000);
}

/// Nobody saw the last calls of an agent that died after its driver: they are read in its record.
#[test]
fn a_dead_run_is_settled_with_its_record() {
    let call =
        Op::Tool { name: "no_such_tool".to_owned(), input: json!({ "x": 1 }), namespace: None, id: None };
    let turns = [
        waits().usage(MUCH),
        Turn::ops([call]).usage(MUCH),
        Turn::sh("touch after; while :; do sleep 0.1; done").usage(MUCH),
    ];
    let script = Script::new(turns).then(Then::Repeat);
    let Some(real) = Real::new("codex", script, Patience::default()) else { return };
    let live = real.start(&[]);
    real.wait_file("begun");
    until("the call is recorded", || (real.lab.tools().len() == 1).then_some(()));
    let pid = u32::try_from(real.lab.running()["pid"].as_u64().unwrap()).unwrap();
    live.signal(Signal::KILL);
    live.finish();
    std::fs::write(real.file("go"), "").unwrap();
    real.wait_file("after");
    signal(pid, Signal::KILL);
    until("the session is interrupted", || (real.lab.state()["status"] == "interrupted").then_some(()));
    let attach = real.lab.run(&["attach", "last"]);
    assert_ne!(attach.code, Some(0), "there is nothing to follow");
    real.ledger(&["completed", "failed", "in_doubt"]);
    assert_eq!(used(&real), 12_000);
    real.lab.assert_nothing_left();
}

/// What one way of reading a rollout makes of its calls, files and tokens.
fn told(bytes: &[u8], usage: LogUse<'_>) -> Vec<AgentEvent> {
    let log = by_name("codex").unwrap().conversation_log().unwrap();
    let mut reader = log.reader(&ReaderOptions::default(), usage).unwrap();
    let mut events = Vec::new();
    let mut take = |envelope: Envelope| events.extend(Some(envelope.event).filter(is_told_by_log));
    reader.feed(bytes, &mut take);
    reader.flush(&mut take);
    events
}

/// How each call ended, and what became of files.
fn ends(events: &[AgentEvent]) -> (Vec<&'static str>, Vec<String>) {
    let calls = events.iter().filter_map(|event| match event {
        AgentEvent::ToolFinished { .. } => Some("completed"),
        AgentEvent::ToolFailed { interrupted: true, .. } => Some("cut off"),
        AgentEvent::ToolFailed { .. } => Some("failed"),
        AgentEvent::ToolDenied { .. } => Some("denied"),
        _ => None,
    });
    let files = events.iter().filter_map(|event| match event {
        AgentEvent::FileChanged { path, change, .. } => {
            let name = path.rsplit('/').next().unwrap_or(path);
            Some(format!("{name} {}", json!(change).as_str().unwrap()))
        }
        _ => None,
    });
    (calls.collect(), files.collect())
}

/// With a person at the terminal the rollout is the only source, without one it is read beside the output, and after a
/// crash it is evidence: the same file means the same ledger each time.
#[rstest]
#[case::accepted("danger-full-access", &[Turn::sh("echo one"), Turn::ops([Op::write("made.txt", "x\n")]), "ok".into()],
    &["completed", "completed"], &["made.txt created"])]
#[case::refused("read-only", &[escalated(), Turn::ops([Op::write("never.txt", "x\n")]), "I see".into()],
    &["denied", "denied"], &[])]
#[case::unfit_patch("danger-full-access", &[unfit(), "I see".into()], &["failed"], &[])]
#[case::failed("danger-full-access", &[Turn::sh("exit 3"), "I see".into()], &["failed"], &[])]
fn a_rollout_means_the_same_however_it_is_read(
    #[case] sandbox: &str,
    #[case] turns: &[Turn],
    #[case] calls: &[&str],
    #[case] files: &[&str],
) {
    let Some(real) = Real::with("codex", turns.to_vec()) else { return };
    if sandbox != "danger-full-access" {
        real.reconfigure(".codex/config.toml", "danger-full-access", sandbox);
    }
    real.run(&[]);
    let path = rollouts(&real).pop().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let beside = told(&bytes, LogUse::BesideOutput);
    assert_eq!(ends(&beside), (calls.to_vec(), files.iter().map(|name| (*name).to_owned()).collect()));
    let since = Some("2000-01-01T00:00:00.000Z");
    assert_eq!(told(&bytes, LogUse::Alone { since }), beside, "at the terminal");
    assert_eq!(told(&bytes, LogUse::Whole), beside, "as evidence");
    // And that is what the ledger has.
    let states: Vec<String> =
        real.lab.tools().iter().map(|row| row["state"].as_str().unwrap().to_owned()).collect();
    assert_eq!(states, calls);
    // What evidence says of the calls is the same again.
    let transcript = by_name("codex").unwrap().conversation_log().unwrap().transcript(&bytes);
    let statuses: Vec<Value> = transcript.calls.iter().map(|call| json!(call.status)).collect();
    let words: Vec<Value> = calls.iter().map(|word| json!(word.replace("completed", "finished"))).collect();
    assert_eq!(statuses, words);
}

/// A command that still ran when everything died has no end in any way of reading.
#[test]
fn a_call_without_an_end_has_none_however_it_is_read() {
    let Some(real) = Real::with("codex", [waits(), "never said".into()]) else { return };
    let live = real.start(&[]);
    real.wait_file("begun");
    until("the call is recorded", || (real.lab.tools().len() == 1).then_some(()));
    let pid = u32::try_from(real.lab.running()["pid"].as_u64().unwrap()).unwrap();
    signal(pid, Signal::KILL);
    live.finish();
    let bytes = std::fs::read(rollouts(&real).pop().unwrap()).unwrap();
    let beside = told(&bytes, LogUse::BesideOutput);
    assert_eq!(ends(&beside).0, [] as [&str; 0]);
    assert_eq!(told(&bytes, LogUse::Alone { since: None }), beside);
    assert_eq!(real.lab.tools()[0]["state"], "in_doubt");
}

/// A turn that a usage limit ended leaves the calls before it as they were. (Why it ended is only in the output.)
#[test]
fn a_limit_changes_no_call_however_it_is_read() {
    let Some(real) = Real::with("codex", [Turn::sh("echo one"), Turn::error(429).times(20)]) else { return };
    assert_eq!(real.run(&[]).result()["outcome"], "limit");
    let bytes = std::fs::read(rollouts(&real).pop().unwrap()).unwrap();
    let beside = told(&bytes, LogUse::BesideOutput);
    assert_eq!(ends(&beside).0, ["completed"]);
    assert_eq!(told(&bytes, LogUse::Alone { since: None }), beside);
    assert_eq!(told(&bytes, LogUse::Whole), beside);
    assert_eq!(real.lab.tools()[0]["state"], "completed");
}

pub(super) fn escalated() -> Turn {
    Turn::ops([Op::Tool {
        name: "exec_command".to_owned(),
        input: json!({ "cmd": "echo x", "sandbox_permissions": "require_escalated", "justification": "y" }),
        namespace: None,
        id: None,
    }])
}

/// A patch for a file that is not there.
fn unfit() -> Turn {
    let (path, old, new) = ("nowhere.txt".to_owned(), "old".to_owned(), "new".to_owned());
    Turn::ops([Op::Edit { path, old, new }])
}
