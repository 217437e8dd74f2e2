//! `segno run` as a command: prompts, output, settings.

use rstest::rstest;
use segno_testkit::lines::claude;
use segno_testkit::scripted::How;
use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::Said;
use crate::terminal::ENTER;
use crate::terminal::Terminal;

/// A lab in which `claude` writes down what it is asked.
fn listener() -> Lab {
    let mut lab = Lab::new();
    let records = lab.path("records");
    lab.stand_in(
        "claude",
        &[
            Step::Stdin(0),
            Step::Record(records),
            Step::Json(claude::init("${session}")),
            Step::Json(claude::result("${session}", "heard")),
        ],
    );
    lab
}

/// What the agent was asked, in the last run.
fn heard(lab: &Lab) -> String {
    let mut files: Vec<_> =
        std::fs::read_dir(lab.path("records")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let record: Value = serde_json::from_slice(&std::fs::read(files.pop().unwrap()).unwrap()).unwrap();
    record["stdin"].as_str().unwrap().to_owned()
}

fn ask(lab: &Lab, args: &[&str], input: Option<&str>) -> Said {
    let args: Vec<&str> = ["run", "--json"].iter().chain(args).copied().collect();
    let said = lab.start(&args, input.map(str::as_bytes)).finish();
    assert_eq!(said.code, Some(0), "{args:?}: {} {}", said.text(), said.stderr);
    said
}

const ITEM: &str = r#"[{"id": "seg-7", "title": "Fix {{.BeadID}}", "description": "It breaks.\n{{.Label}}",
    "labels": ["bug", "cli"], "parent": "seg-1"}]"#;

#[test]
fn prompts() {
    let lab = listener();
    lab.write("task.md", "from a file, with {{.BeadID}} as it is");
    let task = lab.path("task.md");
    ask(&lab, &["--prompt", "from the command line"], None);
    assert_eq!(heard(&lab), "from the command line");
    ask(&lab, &["--file", &task], None);
    assert_eq!(heard(&lab), "from a file, with {{.BeadID}} as it is");
    ask(&lab, &[], Some("from standard input\n"));
    assert_eq!(heard(&lab).trim_end(), "from standard input");
    ask(&lab, &["--file", "-"], Some("from a dash"));
    assert_eq!(heard(&lab), "from a dash");
    ask(&lab, &[], None);
    assert!(heard(&lab).starts_with("Go on with the work in this project"), "{}", heard(&lab));
    let both = lab.run(&["run", "--prompt", "x", "--file", &task]);
    assert_eq!(both.code, Some(2));
    let empty = lab.run(&["run", "--prompt", "  "]);
    assert_eq!(empty.code, Some(2), "{}", empty.stderr);
}

#[test]
fn work_items() {
    let lab = listener();
    lab.write("item.json", ITEM);
    let item = lab.path("item.json");
    // What a variable brings is not expanded again.
    ask(&lab, &["--work-item", &item], None);
    let default = heard(&lab);
    assert!(
        default.contains("Fix {{.BeadID}} (seg-7)") && default.contains("It breaks.\n{{.Label}}"),
        "{default}"
    );
    assert_eq!(lab.state()["topic"], "Fix {{.BeadID}}");
    ask(&lab, &["--work-item", "-"], Some(ITEM));
    assert_eq!(heard(&lab), default);
    let template = "{{.BeadID}}/{{.ItemID}} {{.Label}} {{.BeadParent}} {{.Nobody}}";
    let said = ask(&lab, &["--work-item", &item, "--prompt", template], None);
    assert_eq!(heard(&lab), "seg-7/seg-7 bug,cli seg-1 {{.Nobody}}");
    assert!(said.stderr.contains("Nobody"), "{}", said.stderr);
    // The template: inline, and a file before that.
    lab.config("[run]\nprompt = \"inline {{.BeadID}}\"");
    ask(&lab, &["--work-item", &item], None);
    assert_eq!(heard(&lab), "inline seg-7");
    lab.write("work/template.md", "a file {{.BeadID}}");
    lab.config("prompt_file = \"template.md\"");
    ask(&lab, &["--work-item", &item], None);
    assert_eq!(heard(&lab), "a file seg-7");
    let wrong = lab.start(&["run", "--work-item", "-"], Some(b"{}")).finish();
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
}

#[rstest]
#[case("claude", "claude.ai/install")]
#[case("codex", "npm install -g @openai/codex")]
fn an_agent_that_is_not_there(#[case] agent: &str, #[case] _hint: &str) {
    let mut lab = Lab::new();
    lab.env.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    let said = lab.run(&["run", "--agent", agent, "--prompt", "x"]);
    assert_eq!(said.code, Some(27), "{}", said.stderr);
    assert!(said.stderr.contains(&format!("{agent} is not installed")), "{}", said.stderr);
    assert!(said.stderr.contains("hint: ") && said.stderr.contains("install"), "{}", said.stderr);
    let said = lab.run(&["run", "--agent", agent, "--prompt", "x", "--json"]);
    let error: Value = serde_json::from_str(said.stderr.lines().last().unwrap()).unwrap();
    assert_eq!((&error["error"]["code"], &error["error"]["exit"]), (&json!("agent_missing"), &json!(27)));
    assert_ne!(lab.run(&["show", "last"]).code, Some(0), "no session was made for it");
    let said = lab.run(&["run", "--", "/nowhere/at/all"]);
    assert_eq!(said.code, Some(27), "{}", said.stderr);
    let said = lab.run(&["run", "--agent", "nobody", "--prompt", "x"]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
}

#[test]
fn raw_output_is_passed_on_as_it_is() {
    let lab = Lab::new();
    let agent = lab.scripted(
        "agent",
        &[
            Step::Hex("ff00fe 0d0a 1b5b33316d".to_owned()),
            Step::Flood { bytes: 300_000, line: 100 },
            Step::Stderr("aside".to_owned()),
            Step::Raw("no end of line".to_owned()),
            Step::Exit(4),
        ],
    );
    let mut args = vec!["run", "--raw", "--"];
    args.extend(agent.iter().map(String::as_str));
    let said = lab.run(&args);
    assert_eq!(said.code, Some(20), "{}", said.stderr);
    let (head, tail) = (b"\xff\x00\xfe\r\n\x1b[31m", b"no end of line");
    assert!(said.stdout.starts_with(head) && said.stdout.ends_with(tail));
    assert_eq!(said.stdout.len(), head.len() + 300_000 + tail.len());
    assert_eq!(lab.state()["run"]["outcome"], "failed", "and recorded all the same");
}

#[test]
fn lines_of_json() {
    let lab = Lab::new();
    let said = lab.run(&["run", "--json", "--", "sh", "-c", "echo one; echo two"]);
    let lines = said.lines();
    let (result, events) = lines.split_last().unwrap();
    assert_eq!(result["kind"], "result");
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    assert_eq!(
        lab.journal(None).last().unwrap(),
        events.last().unwrap(),
        "the same lines as `segno log` has"
    );
    assert_eq!(result["session_id"], lab.state()["session_id"]);
}

#[test]
fn for_people() {
    let lab = Lab::new();
    let said = lab.run(&["run", "--", "sh", "-c", "echo the answer; exit 3"]);
    assert_eq!((said.code, said.text().as_str()), (Some(20), "the answer\n"), "stdout is data");
    assert!(said.stderr.contains("exited with code 3"), "{}", said.stderr);
    // It is announced: which session, what it is about, and how it is taken up.
    let id = lab.state()["session_id"].as_str().unwrap().to_owned();
    let tail = &id[id.len() - 6..];
    let first: Vec<&str> = said.stderr.lines().take(2).collect();
    assert!(first[0].contains(tail) && first[0].contains("echo the answer"), "{}", said.stderr);
    assert!(first[1].contains(&format!("segno resume {tail}")), "{}", said.stderr);
    let shown = lab.run(&["show", "last"]).text();
    assert!(shown.contains("failed: exited with code 3") && shown.contains("exit 3"), "{shown}");
    lab.run(&["run", "--", "true"]);
    let shown = lab.run(&["show", "last"]).text();
    assert!(shown.contains("run ended") && shown.contains("completed"), "{shown}");
}

const MINE: &str = r#"
[agents.mine]
prompt = "argument"
format = "json"
[[agents.mine.rules]]
kind = "session_started"
when = { "$.type" = "hello" }
fields = { native_id = "$.id" }
[[agents.mine.rules]]
kind = "text"
when = { "$.type" = "message" }
fields = { text = "$.body.text" }
[[agents.mine.rules]]
kind = "tool_started"
when = { "$.type" = "call" }
fields = { call_id = "$.id", tool = "$.tool", input = "$.input" }
[[agents.mine.rules]]
kind = "tool_failed"
when = { "$.type" = "done", "$.ok" = false }
fields = { call_id = "$.id", error = "$.why" }
[[agents.mine.rules]]
kind = "tool_finished"
when = { "$.type" = "done" }
fields = { call_id = "$.id", output = "$.out" }
[[agents.mine.rules]]
kind = "tokens"
when = { "$.type" = "usage" }
fields = { input = "$.in", output = "$.out" }
[[agents.mine.rules]]
kind = "result"
when = { "$.type" = "bye" }
fields = { text = "$.text" }
"#;

/// An agent that is described in the user's own configuration.
fn mine(last: Option<Value>) -> (Lab, Said) {
    let lab = Lab::new();
    let mut steps = vec![
        Step::Json(json!({ "type": "hello", "id": "conversation-1" })),
        Step::Json(json!({ "type": "message", "body": { "text": "I begin" } })),
        Step::Json(json!({ "type": "call", "id": "1", "tool": "shell", "input": { "command": "ls" } })),
        Step::Json(json!({ "type": "done", "id": "1", "ok": true, "out": "a b" })),
        Step::Json(json!({ "type": "call", "id": "2", "tool": "shell", "input": {} })),
        Step::Json(json!({ "type": "done", "id": "2", "ok": false, "why": "no such file" })),
        Step::Json(json!({ "type": "usage", "in": 70, "out": 7 })),
        Step::Json(json!({ "type": "something else" })),
        Step::Print("no JSON".to_owned()),
    ];
    steps.extend(last.map(Step::Json));
    let command = lab.scripted("mine", &steps);
    lab.config(&MINE.replace("prompt = ", &format!("command = {command:?}\nprompt = ")));
    let said = lab.run(&["run", "--json", "--agent", "mine", "--prompt", "x"]);
    (lab, said)
}

#[test]
fn an_agent_of_the_users_own() {
    let (lab, said) = mine(Some(json!({ "type": "bye", "text": "I end" })));
    let result = said.result();
    assert_eq!(
        (&result["outcome"], &result["text"]),
        (&json!("completed"), &json!("I end")),
        "{}",
        said.stderr
    );
    assert_eq!((&result["native_id"], &result["tokens"]["input"]), (&json!("conversation-1"), &json!(70)));
    let states: Vec<Value> = lab.tools().iter().map(|call| call["state"].clone()).collect();
    assert_eq!(states, ["completed", "failed"]);
    assert_eq!(lab.state()["budget"]["tokens_used"], 77);
    assert!(lab.run(&["log", "last", "--json"]).text().contains("something else"), "kept as it came");
    let (_, cut) = mine(None);
    assert_eq!(cut.result()["outcome"], "interrupted", "without its last event it was cut off");
}

#[test]
fn a_project_that_is_not_trusted_decides_nothing() {
    let lab = listener();
    let touched = lab.path("touched");
    lab.write("evil.sh", &format!("#!/bin/sh\ntouch {touched}\n"));
    std::fs::set_permissions(lab.path("evil.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let evil = lab.path("evil.sh");
    lab.write(
        "work/.segno/config.toml",
        &format!(
            "[run]\nprompt = \"from the project\"\nhooks = false\n[agents.claude]\nprogram = {evil:?}\n\
             extra_args = [\"--dangerously-skip-permissions\"]\n"
        ),
    );
    let said = ask(&lab, &[], None);
    assert!(heard(&lab).starts_with("Go on with"), "{}", heard(&lab));
    assert!(!std::fs::exists(&touched).unwrap(), "its program was not run");
    assert!(said.stderr.contains("trust"), "and that is said: {}", said.stderr);
    let started = lab.journal(Some("run_started")).pop().unwrap();
    assert!(!started["body"]["command"].to_string().contains("skip-permissions"), "{started}");
    let terminal = Terminal::open(&lab);
    terminal.type_keys(&format!("\"$SEGNO\" trust{ENTER}"));
    assert_eq!(terminal.exit_code(), 0);
    lab.run(&["run", "--json"]);
    assert!(std::fs::exists(&touched).unwrap(), "now it is");
}

#[test]
fn too_many_processes() {
    let lab = Lab::new();
    lab.config("[run]\nprocesses = 3\ngrace_ms = 300");
    let child = |n: usize| Step::Spawn {
        how: How::Setsid,
        steps: vec![Step::SleepMs(60_000)],
        pid_file: Some(lab.path(&format!("child-{n}"))),
        keep_output: false,
        bare: true,
    };
    let mut steps: Vec<Step> = (0..6).map(child).collect();
    steps.push(Step::SleepMs(60_000));
    over_the_limit(&lab, &steps, "processes");
}

#[test]
fn too_much_memory() {
    let lab = Lab::new();
    lab.config("[run]\nmemory_mb = 100\ngrace_ms = 300");
    let hungry =
        "BEGIN { s = \"x\"; for (i = 0; i < 28; i++) s = s s; print length(s); system(\"sleep 60\") }";
    let said = lab.run(&["run", "--json", "--", "awk", hungry]);
    stopped_for(&lab, &said, "memory");
}

#[test]
fn too_much_to_record() {
    let lab = Lab::new();
    lab.config("[run]\nrecord_mb = 1\ngrace_ms = 300");
    let said = lab.run(&["run", "--json", "--", "sh", "-c", "yes | head -c 20000; sleep 60"]);
    stopped_for(&lab, &said, "run.record_mb");
    assert_eq!(lab.journal(Some("said")).len(), 10_000, "what was printed is on record all the same");
}

fn over_the_limit(lab: &Lab, steps: &[Step], what: &str) {
    let agent = lab.scripted("agent", steps);
    let mut args = vec!["run", "--json", "--"];
    args.extend(agent.iter().map(String::as_str));
    let said = lab.run(&args);
    stopped_for(lab, &said, what);
}

fn stopped_for(lab: &Lab, said: &Said, what: &str) {
    let result = said.result();
    assert_eq!((&result["outcome"], said.code), (&json!("stopped"), Some(23)), "{result}");
    assert!(result["reason"].as_str().unwrap().contains(what), "{result}");
    assert_eq!(lab.state()["status"], "paused");
    lab.assert_nothing_left();
}
