//! `segno hook`: recorded before it is answered, never in the way, and the few cases in which it says no.

use std::path::PathBuf;

use rstest::rstest;
use rustix::process::Signal;
use segno_testkit::lines::claude;
use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::Said;
use crate::lab::signal;
use crate::lab::until;

/// What Claude Code sends before it runs a command.
fn before(call: &str) -> Vec<u8> {
    json!({
        "hook_event_name": "PreToolUse", "session_id": "a", "cwd": "/", "tool_name": "Bash",
        "tool_use_id": call, "tool_input": { "command": "echo hi" },
    })
    .to_string()
    .into_bytes()
}

/// A lab with a session that was made by hand.
fn session(more: &[&str]) -> (Lab, String) {
    let lab = Lab::new();
    let args: Vec<&str> = ["new"].iter().chain(more).copied().collect();
    let said = lab.run(&args);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let id = said.text().trim().to_owned();
    (lab, id)
}

fn hook(lab: &Lab, agent: &str, env: &[(&str, &str)], payload: &[u8]) -> Said {
    let mut command = lab.segno(&["hook", agent]);
    command.envs(env.iter().copied());
    lab.start_command(&mut command, Some(payload)).finish()
}

/// The answer must be a denial; gives its reason.
fn denied(said: &Said) -> String {
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let answer: Value = serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("{}", said.text()));
    let output = &answer["hookSpecificOutput"];
    assert_eq!(output["permissionDecision"], "deny", "{answer}");
    output["permissionDecisionReason"].as_str().unwrap().to_owned()
}

/// The files of the store, in the home of a lab.
fn store(lab: &Lab) -> PathBuf {
    lab.home.path().join(".local/share/segno")
}

#[test]
fn a_call_is_recorded_and_allowed() {
    let (lab, id) = session(&[]);
    let said = hook(&lab, "claude", &[("SEGNO_SESSION", &id)], &before("t1"));
    assert_eq!((said.code, said.text().as_str(), said.stderr.as_str()), (Some(0), "", ""));
    // Told twice is one call.
    hook(&lab, "claude", &[("SEGNO_SESSION", &id)], &before("t1"));
    let calls = lab.tools();
    assert_eq!(
        (calls.len(), &calls[0]["state"], &calls[0]["write_ahead"]),
        (1, &json!("open"), &json!(true))
    );
}

#[test]
fn outside_of_a_session_it_does_nothing() {
    let lab = Lab::new();
    let said = hook(&lab, "claude", &[], &before("t1"));
    assert_eq!((said.code, said.text().as_str()), (Some(0), ""));
    assert!(!store(&lab).exists());
}

#[test]
fn a_broken_store_means_the_spool() {
    let (lab, id) = session(&[]);
    let (place, aside) = (store(&lab), lab.home.beside("aside"));
    std::fs::rename(&place, &aside).unwrap();
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join("segno.db"), "this is no database".repeat(1_000)).unwrap();
    let said = hook(&lab, "claude", &[("SEGNO_SESSION", &id)], &before("t1"));
    assert_eq!((said.code, said.text().as_str()), (Some(0), ""), "{}", said.stderr);
    std::fs::remove_dir_all(&place).unwrap();
    std::fs::rename(&aside, &place).unwrap();
    // The next command takes it in.
    let calls = lab.tools();
    assert_eq!((calls.len(), &calls[0]["call"]), (1, &json!("t1")));
    assert_eq!(lab.tools().len(), 1, "and once only");
}

#[test]
fn a_busy_store_means_the_spool() {
    let (lab, id) = session(&[]);
    // Whoever holds the lock for a write holds it for good.
    let mut sqlite = crate::lab::program("sqlite3");
    sqlite.arg(store(&lab).join("segno.db")).env_clear().env("PATH", &lab.env["PATH"]);
    if crate::lab::program("sqlite3").arg("--version").output().is_err() {
        return crate::lab::skip("there is no sqlite3 to hold the lock");
    }
    let gate = lab.path("gate");
    let script = format!(
        "BEGIN IMMEDIATE;\n.shell touch {gate}\n.shell while [ ! -e {gate}.go ]; do sleep 0.05; done\nROLLBACK;\n"
    );
    let holder = lab.start_command(&mut sqlite, Some(script.as_bytes()));
    until("the lock is held", || std::fs::exists(&gate).unwrap().then_some(()));
    let said = hook(&lab, "claude", &[("SEGNO_SESSION", &id)], &before("t1"));
    assert_eq!((said.code, said.text().as_str()), (Some(0), ""), "{}", said.stderr);
    std::fs::write(format!("{gate}.go"), "").unwrap();
    holder.finish();
    assert_eq!(lab.tools().len(), 1);
}

#[test]
fn a_replaced_driver_may_not_start_a_tool() {
    let (lab, id) = session(&[]);
    let first = lab.run(&["run", "--session", &id, "--", "true"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let go = lab.path("go");
    let agent = lab.scripted("agent", &[Step::WaitFor { path: go.clone(), seconds: 60 }]);
    let mut args = vec!["run", "--json", "--session", &id, "--"];
    args.extend(agent.iter().map(String::as_str));
    let live = lab.start(&args, None);
    let run = lab.running();
    let old = [
        ("SEGNO_SESSION", id.as_str()),
        ("SEGNO_RUN", "0192f0c4a1b27c3d8e4f5a6b7c8d9e0f"),
        ("SEGNO_EPOCH", "1"),
    ];
    let said = hook(&lab, "claude", &old, &before("t1"));
    assert!(denied(&said).contains("replaced by another driver"), "{}", said.text());
    let now =
        [("SEGNO_SESSION", id.as_str()), ("SEGNO_RUN", run["id"].as_str().unwrap()), ("SEGNO_EPOCH", "2")];
    let said = hook(&lab, "claude", &now, &before("t2"));
    assert_eq!((said.code, said.text().as_str()), (Some(0), ""), "the present one may: {}", said.stderr);
    std::fs::write(go, "").unwrap();
    assert_eq!(live.finish().code, Some(0));
    let calls = lab.tools();
    assert_eq!(calls.iter().map(|call| &call["call"]).collect::<Vec<_>>(), ["t2"], "{calls:#?}");
    let late: Vec<Value> =
        lab.journal(None).into_iter().filter(|event| event.to_string().contains("\"t1\"")).collect();
    assert_eq!(late.len(), 1, "it is kept: {late:#?}");
    assert!(late[0]["kind"].as_str().unwrap().contains("late"), "{late:#?}");
}

#[test]
fn a_hard_budget_that_is_used_up() {
    let (lab, id) = session(&["--budget", "100"]);
    lab.run(&["tokens", "--session", &id, "150"]);
    let said = hook(&lab, "claude", &[("SEGNO_SESSION", &id)], &before("t1"));
    assert!(denied(&said).contains("150 of 100"), "{}", said.text());
    // What is over is heard all the same.
    let after = json!({ "hook_event_name": "Stop", "session_id": "a", "cwd": "/" }).to_string();
    let said = hook(&lab, "claude", &[("SEGNO_SESSION", &id)], after.as_bytes());
    assert_eq!((said.code, said.text().as_str()), (Some(0), ""));
}

#[rstest]
#[case::nothing(b"")]
#[case::no_json(b"{\"hook_event_name\": \"PreToolUse\", ")]
#[case::no_text(b"\xff\xfe\x00\x01")]
#[case::another_shape(b"[1, 2, 3]")]
#[case::wrong_types(b"{\"hook_event_name\": 7, \"tool_input\": \"x\"}")]
#[case::an_unknown_event(b"{\"hook_event_name\": \"Sneeze\", \"session_id\": \"a\"}")]
fn a_payload_that_is_none(#[case] payload: &[u8]) {
    let (lab, id) = session(&[]);
    let said = hook(&lab, "claude", &[("SEGNO_SESSION", &id)], payload);
    assert_eq!((said.code, said.text().as_str()), (Some(0), ""), "{}", said.stderr);
    let reports = lab.journal(Some("reported"));
    assert_eq!(reports.len(), 1, "it is kept as it is: {reports:#?}");
}

#[test]
fn nonsense_around_it_breaks_nothing() {
    let (lab, id) = session(&[]);
    for env in [
        vec![("SEGNO_SESSION", "no session")],
        vec![("SEGNO_SESSION", "session_20000101_000000_000000")],
        vec![("SEGNO_SESSION", id.as_str()), ("SEGNO_EPOCH", "many")],
        vec![("SEGNO_SESSION", id.as_str()), ("SEGNO_HOOK", "/nowhere")],
    ] {
        let said = hook(&lab, "claude", &env, &before("t1"));
        assert_eq!((said.code, said.text().as_str()), (Some(0), ""), "{env:?}: {}", said.stderr);
    }
    let said = hook(&lab, "nobody", &[("SEGNO_SESSION", &id)], &before("t1"));
    assert_eq!((said.code, said.text().as_str()), (Some(0), ""));
    assert!(said.stderr.contains("no agent is called nobody"), "{}", said.stderr);
}

/// The point of it all: a call is on record before it runs, so that after a crash nobody has to guess.
#[test]
fn a_call_is_on_record_before_it_runs() {
    let mut lab = Lab::new();
    let (asked, go) = (lab.path("asked"), lab.path("go"));
    let payload = json!({ "tool_name": "Bash", "tool_use_id": "t1", "tool_input": { "command": "rm x" } });
    lab.stand_in(
        "claude",
        &[
            Step::Stdin(0),
            Step::Json(claude::init("${session}")),
            Step::Hook {
                event: "PreToolUse".to_owned(),
                payload: payload.as_object().unwrap().clone(),
                command: None,
                allowed: vec![Step::Write { path: asked.clone(), content: String::new() }],
                denied: vec![Step::Exit(9)],
            },
            Step::WaitFor { path: go, seconds: 60 },
        ],
    );
    let live = lab.start(&["run", "--json", "--prompt", "x"], None);
    until("the call is allowed", || std::fs::exists(&asked).unwrap().then_some(()));
    let calls = lab.tools();
    assert_eq!(
        (calls.len(), &calls[0]["state"], &calls[0]["write_ahead"]),
        (1, &json!("open"), &json!(true))
    );
    // The agent dies before its stream says a word about the call.
    signal(u32::try_from(lab.running()["pid"].as_u64().unwrap()).unwrap(), Signal::KILL);
    assert_eq!(live.finish().result()["outcome"], "interrupted");
    assert_eq!(lab.tools()[0]["state"], "in_doubt");
}
