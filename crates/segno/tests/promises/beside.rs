//! Files go back beside an agent that waits: its next call is held, and it is told what was taken back.

use std::fs::File;
use std::path::Path;
use std::path::PathBuf;

use segno_testkit::lines::claude;
use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::driver::data;
use crate::lab::Lab;
use crate::lab::Live;
use crate::lab::Said;
use crate::lab::until;

fn payload(call: &str) -> Value {
    json!({ "tool_name": "Bash", "tool_use_id": call, "tool_input": { "command": format!("sh {call}.sh") } })
}

fn hook(event: &str, call: &str, allowed: Vec<Step>, denied: Vec<Step>) -> Step {
    let payload = payload(call).as_object().unwrap().clone();
    Step::Hook { event: event.to_owned(), payload, command: None, allowed, denied }
}

fn put(path: &str, content: &str) -> Step {
    Step::Write { path: path.to_owned(), content: content.to_owned() }
}

fn held(lab: &Lab, step: &str) -> Step {
    Step::WaitFor { path: lab.path(step), seconds: 60 }
}

fn result(call: &str) -> Step {
    Step::Json(claude::tool_result("${session}", call, "fine", false))
}

fn shown(call: &str) -> Step {
    let input = json!({ "command": format!("sh {call}.sh") });
    Step::Json(claude::tool_use("${session}", call, "Bash", input))
}

fn there(path: &str) -> bool {
    Path::new(path).exists()
}

fn go(lab: &Lab, step: &str) {
    std::fs::write(lab.path(step), "").unwrap();
}

fn read(lab: &Lab, name: &str) -> Option<String> {
    std::fs::read_to_string(lab.home.work().join(name)).ok()
}

/// An agent with hooks that changed a file by one call and made another, and makes two more when it is let go.
fn between_calls() -> (Lab, Live) {
    let mut lab = Lab::new();
    std::fs::write(lab.home.work().join("a.txt"), "old\n").unwrap();
    let work = vec![shown("t1"), put("a.txt", "agent\n"), put("made.txt", "agent\n"), result("t1")];
    lab.stand_in(
        "claude",
        &[
            Step::Stdin(0),
            Step::Json(claude::init("${session}")),
            hook("PreToolUse", "t1", work, Vec::new()),
            hook("PostToolUse", "t1", Vec::new(), Vec::new()),
            held(&lab, "two"),
            hook(
                "PreToolUse",
                "t2",
                vec![put(&lab.path("ran-2"), ""), held(&lab, "end-2")],
                vec![put(&lab.path("refused-2"), "")],
            ),
            hook("PostToolUse", "t2", Vec::new(), Vec::new()),
            held(&lab, "three"),
            hook(
                "PreToolUse",
                "t3",
                vec![put(&lab.path("ran-3"), "")],
                vec![put(&lab.path("refused-3"), "")],
            ),
            hook("PostToolUse", "t3", Vec::new(), Vec::new()),
            Step::Json(claude::result("${session}", "done")),
        ],
    );
    let live = lab.start(&["run", "--agent", "claude", "--prompt", "go"], None);
    lab.running();
    until("its first call has ended", || {
        lab.tools().iter().any(|call| call["call"] == "t1" && call["state"] == "completed").then_some(())
    });
    (lab, live)
}

fn ok(said: Said) -> Said {
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    said
}

fn shadow(lab: &Lab) -> PathBuf {
    let mut all = std::fs::read_dir(data(lab).join("snapshots")).unwrap().flatten();
    let found = all.next().unwrap().path();
    assert!(all.next().is_none(), "one project");
    found
}

promise!(
    /// Between two calls of an agent with hooks its work can be taken back. Its next call is not run, and it hears why;
    /// the one after that is.
    fn files_go_back_while_an_agent_with_hooks_is_between_calls() {
        let (lab, live) = between_calls();
        ok(lab.run(&["undo", "--session", "last", "--yes"]));
        assert_eq!((read(&lab, "a.txt").as_deref(), read(&lab, "made.txt")), (Some("old\n"), None));
        go(&lab, "two");
        until("its next call was asked about", || {
            (there(&lab.path("refused-2")) || there(&lab.path("ran-2"))).then_some(())
        });
        assert!(there(&lab.path("refused-2")));
        go(&lab, "three");
        let said = live.finish();
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(there(&lab.path("ran-3")), "it is told once");
    }
);

promise!(
    /// The agent is told what was taken back, file by file.
    fn an_agent_is_told_what_was_taken_back() {
        let (lab, live) = between_calls();
        let run = lab.running();
        ok(lab.run(&["undo", "--session", "last", "--yes"]));
        let to = lab.json(&["checkpoint", "list", "--session", "last"])["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["reason"] == "run_start")
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .unwrap();
        let mut asked = payload("t9");
        asked["hook_event_name"] = json!("PreToolUse");
        asked["session_id"] = json!("a");
        asked["cwd"] = json!("/");
        let session = lab.state()["session_id"].as_str().unwrap().to_owned();
        let mut command = lab.segno(&["hook", "claude"]);
        command
            .env("SEGNO_SESSION", session)
            .env("SEGNO_RUN", run["id"].as_str().unwrap())
            .env("SEGNO_EPOCH", "1");
        let said = lab.start_command(&mut command, Some(asked.to_string().as_bytes())).finish();
        let answer: Value =
            serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("{}", said.text()));
        let output = &answer["hookSpecificOutput"];
        assert_eq!(output["permissionDecision"], "deny", "{answer}");
        assert_eq!(
            output["permissionDecisionReason"].as_str().unwrap(),
            format!(
                "segno: somebody took files of this project back, to checkpoint {to}: put back a.txt; removed \
                 made.txt. This call was not run. Look at these files again before you go on, and do not bring back \
                 what was taken back unless you are asked to."
            )
        );
        for step in ["two", "end-2", "three"] {
            go(&lab, step);
        }
        live.finish();
    }
);

promise!(
    /// A call that begins while files go back waits until they are there.
    fn a_call_waits_while_files_go_back() {
        let (lab, live) = between_calls();
        // As whoever takes files back does.
        let place = shadow(&lab).join("going");
        let going = File::options().append(true).create(true).open(place).unwrap();
        going.lock().unwrap();
        go(&lab, "two");
        until("the call is recorded", || lab.tools().iter().any(|call| call["call"] == "t2").then_some(()));
        assert!(!there(&lab.path("ran-2")));
        going.unlock().unwrap();
        until("the call runs", || there(&lab.path("ran-2")).then_some(()));
        for step in ["end-2", "three"] {
            go(&lab, step);
        }
        ok(live.finish());
        assert!(!there(&lab.path("refused-2")));
    }
);

promise!(
    /// While a call is open nothing goes back.
    fn nothing_goes_back_while_a_call_is_open() {
        let (lab, live) = between_calls();
        go(&lab, "two");
        until("the call runs", || there(&lab.path("ran-2")).then_some(()));
        let said = lab.run(&["undo", "--session", "last", "--yes"]);
        assert_eq!(
            (said.code, read(&lab, "a.txt").as_deref()),
            (Some(7), Some("agent\n")),
            "{}",
            said.stderr
        );
        for step in ["end-2", "three"] {
            go(&lab, step);
        }
        ok(live.finish());
        ok(lab.run(&["undo", "--session", "last", "--yes"]));
        assert_eq!(read(&lab, "a.txt").as_deref(), Some("old\n"));
    }
);
