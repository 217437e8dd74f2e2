//! Hooks in an agent's own settings, told by a stand-in that nobody here started: `segno hook --watch`.

use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Write as _;
use std::process::Child;
use std::process::ChildStdin;
use std::process::ChildStdout;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::program;
use crate::lab::until;

/// Reads payloads, hands each to the hook and prints what that answers.
const STAND_IN: &str = "while IFS= read -r line; do\n\
                        printf '%s' \"$line\" | \"$SEGNO_PROGRAM\" hook --watch claude > \"$ANSWER\"; echo \"ended $?\"\n\
                        done\n";

/// An agent that a person started: a shell that calls the hook as Claude Code does.
pub(crate) struct Agent {
    pub(crate) child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    answer: String,
    native: String,
    work: String,
}

impl Agent {
    pub(crate) fn start(lab: &Lab, native: &str) -> Self {
        Self::start_with(lab, native, &[])
    }

    /// The same, started with these words.
    fn start_with(lab: &Lab, native: &str, words: &[&str]) -> Self {
        let script = lab.path("agent.sh");
        std::fs::write(&script, STAND_IN).unwrap();
        let answer = lab.path(&format!("answer-{native}-{}", std::process::id()));
        let mut command = program("sh");
        command.arg(&script).args(words).env_clear().envs(&lab.env).current_dir(lab.home.work());
        command.env("SEGNO_PROGRAM", &lab.segno).env("ANSWER", &answer);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let work = lab.home.work().to_str().unwrap().to_owned();
        Self { child, to, from, answer, native: native.to_owned(), work }
    }

    /// Calls the hook; answers with what it printed. It always ends with 0.
    pub(crate) fn hook(&mut self, event: &str, more: Value) -> Value {
        let mut payload = json!({ "hook_event_name": event, "session_id": self.native, "cwd": self.work });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        writeln!(self.to, "{payload}").unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        assert_eq!(line, "ended 0\n");
        let text = std::fs::read_to_string(&self.answer).unwrap();
        if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
        }
    }

    pub(crate) fn begins(&mut self, call: &str, command: &str) -> Value {
        let more = json!({ "tool_name": "Bash", "tool_use_id": call, "tool_input": { "command": command } });
        self.hook("PreToolUse", more)
    }

    pub(crate) fn ends(&mut self, call: &str) {
        let more =
            json!({ "tool_name": "Bash", "tool_use_id": call, "tool_input": {}, "tool_response": "ok" });
        assert_eq!(self.hook("PostToolUse", more), Value::Null);
    }

    /// As with `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn denied(answer: &Value) -> &str {
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap()
}

#[test]
fn the_agent_holds_its_session_and_one_that_is_killed_at_work_is_found() {
    let lab = Lab::new();
    let mut agent = Agent::start(&lab, "c-1");
    assert_eq!(agent.hook("SessionStart", json!({ "source": "startup" })), Value::Null);
    assert_eq!(agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door\nplease" })), Value::Null);
    assert_eq!(agent.begins("t1", "echo hi"), Value::Null);
    agent.ends("t1");
    assert_eq!(agent.begins("t2", "make all"), Value::Null);
    let state = lab.state();
    assert_eq!((&state["status"], &state["topic"]), (&"active".into(), &"mend the door".into()), "{state:#}");
    assert_eq!(state["driver"]["holder"]["pid"], agent.child.id(), "the agent, not its hook: {state:#}");
    assert_eq!(state["run"]["pid"], agent.child.id());
    agent.kill();
    let state = lab.state();
    assert_eq!(
        (&state["status"], &state["recovery"]["interrupt_reason"]),
        (&"interrupted".into(), &"crash".into()),
        "{state:#}"
    );
    let calls: Vec<Value> = lab.tools().iter().map(|call| call["state"].clone()).collect();
    assert_eq!(calls, ["completed", "in_doubt"]);
    // The next one is told in a line, and its model nothing.
    let mut agent = Agent::start(&lab, "c-2");
    let answer = agent.hook("SessionStart", json!({ "source": "startup" }));
    let text = answer["systemMessage"].as_str().unwrap();
    assert!(text.contains("(mend the door) was interrupted: segno show"), "{text}");
    assert!(answer["hookSpecificOutput"].is_null(), "{answer}");
    assert_eq!(agent.hook("UserPromptSubmit", json!({ "prompt": "something else" })), Value::Null);
}

#[test]
fn one_that_is_killed_while_it_waits_for_a_person_was_not_interrupted() {
    let lab = Lab::new();
    let mut agent = Agent::start(&lab, "c-1");
    agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" }));
    agent.begins("t1", "echo hi");
    agent.ends("t1");
    agent.hook("Stop", json!({}));
    assert_eq!(lab.state()["status"], "active", "it waits, and may be asked for more");
    agent.hook("UserPromptSubmit", json!({ "prompt": "and the window" }));
    agent.hook("Stop", json!({}));
    agent.kill();
    // Somebody who only looks is told as much.
    let listed = lab.run(&["ls"]).text();
    assert!(listed.contains("paused: run ended"), "{listed}");
    let state = lab.state();
    assert_eq!(
        (&state["status"], &state["recovery"]["interrupt_reason"]),
        (&"paused".into(), &"run ended".into()),
        "{state:#}"
    );
    assert_eq!(state["run"]["outcome"], "completed", "{state:#}");
    assert!(state["driver"].is_null());
}

#[test]
fn a_conversation_that_is_taken_up_again_goes_on_in_its_session() {
    let lab = Lab::new();
    lab.config("[watch]\nbrief = \"auto\"");
    let mut agent = Agent::start(&lab, "c-1");
    agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" }));
    agent.begins("t1", "rm -rf hinges");
    let id = lab.state()["session_id"].clone();
    agent.kill();
    let mut agent = Agent::start(&lab, "c-1");
    let answer = agent.hook("SessionStart", json!({ "source": "resume" }));
    let brief = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(brief.contains("IN DOUBT") && brief.contains("rm -rf hinges"), "{brief}");
    let answer = agent.hook("UserPromptSubmit", json!({ "prompt": "go on" }));
    assert_eq!(answer, Value::Null, "once is enough");
    let state = lab.state();
    assert_eq!((&state["session_id"], &state["counts"]["runs"]), (&id, &2.into()), "{state:#}");
    assert_eq!(state["status"], "active");
    // Another process in the same conversation is recorded too, and holds nothing.
    let mut other = Agent::start(&lab, "c-1");
    other.begins("t9", "echo from elsewhere");
    let state = lab.state();
    assert_eq!((&state["run"]["pid"], &state["session_id"]), (&agent.child.id().into(), &id), "{state:#}");
    assert!(lab.tools().iter().any(|call| call["call"] == "t9"));
    drop(other);
    // What somebody has ended stays ended, and the conversation goes on beside it.
    agent.hook("SessionEnd", json!({ "reason": "other" }));
    drop(agent);
    assert_eq!(lab.state()["status"], "paused");
    assert_eq!(lab.run(&["abort", id.as_str().unwrap()]).code, Some(0));
    let mut agent = Agent::start(&lab, "c-1");
    agent.hook("SessionStart", json!({ "source": "resume" }));
    let state = lab.state();
    assert_eq!((&state["continues"], &state["status"]), (&id, &"active".into()), "{state:#}");
}

#[test]
fn what_a_shell_did_to_files_is_known_when_the_turn_ends() {
    let lab = Lab::new();
    lab.write(lab.home.work().join("old.txt"), "old\n");
    lab.write(lab.home.work().join("kept.txt"), "kept\n");
    let mut agent = Agent::start(&lab, "c-1");
    agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" }));
    assert_eq!(agent.begins("t1", "./build"), Value::Null);
    lab.write(lab.home.work().join("made.txt"), "made\n");
    std::fs::remove_file(lab.home.work().join("old.txt")).unwrap();
    agent.ends("t1");
    agent.hook("Stop", json!({}));
    let files = lab.json(&["show", "last", "--files"]);
    let mut files: Vec<(&str, &str)> = files["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (file["path"].as_str().unwrap(), file["change"].as_str().unwrap()))
        .collect();
    files.sort_unstable();
    assert_eq!(files, [("made.txt", "created"), ("old.txt", "deleted")]);
    // A turn without a call changed nothing, whatever a person does meanwhile.
    agent.hook("UserPromptSubmit", json!({ "prompt": "thanks" }));
    lab.write(lab.home.work().join("mine.txt"), "mine\n");
    agent.hook("Stop", json!({}));
    assert_eq!(lab.json(&["show", "last", "--files"])["items"].as_array().unwrap().len(), 2);
}

/// The state of the one session that has a conversation.
fn of_conversation(lab: &Lab, native: &str) -> Value {
    let listed = lab.json(&["ls", "--all"]);
    let ids = listed["sessions"].as_array().unwrap().iter().map(|one| one["session_id"].as_str().unwrap());
    let mut states = ids.map(|id| lab.json(&["show", id])["state"].take());
    states.find(|state| state["run"]["native_id"] == native).unwrap_or_else(|| panic!("{native}: {listed:#}"))
}

#[test]
fn a_copy_of_a_conversation_knows_where_it_comes_from() {
    let lab = Lab::new();
    let begin = |native: &str, words: &[&str], source: &str| {
        let mut agent = Agent::start_with(&lab, native, words);
        agent.hook("SessionStart", json!({ "source": source }));
        agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" }));
        (agent, of_conversation(&lab, native))
    };
    let (mut agent, first) = begin("c-1", &[], "startup");
    assert_eq!(first["continues"], Value::Null);
    // Made by the same process.
    agent.native = "c-2".to_owned();
    agent.hook("SessionStart", json!({ "source": "fork" }));
    assert_eq!(of_conversation(&lab, "c-2")["continues"], first["session_id"]);
    drop(agent);
    // Asked for on the command line.
    for (native, words) in [("c-3", &["--resume", "c-1", "--fork-session"][..]), ("c-4", &["--resume=c-1"])] {
        let (agent, copy) = begin(native, words, "startup");
        assert_eq!(copy["continues"], first["session_id"]);
        drop(agent);
    }
    // Another one only speaks of it.
    let (_agent, other) = begin("c-5", &["what was c-1 about?"], "startup");
    assert_eq!(other["continues"], Value::Null);
}

#[test]
fn each_prompt_begins_a_turn_that_can_be_taken_back() {
    let lab = Lab::new();
    let file = |name: &str| lab.home.work().join(name);
    let mut agent = Agent::start(&lab, "c-1");
    for name in ["one", "two"] {
        agent.hook("UserPromptSubmit", json!({ "prompt": format!("make {name}") }));
        let input = json!({ "file_path": file(name), "content": name });
        let call = format!("call-{name}");
        let more = json!({ "tool_name": "Write", "tool_use_id": call, "tool_input": input });
        agent.hook("PreToolUse", more.clone());
        std::fs::write(file(name), name).unwrap();
        let mut after = more;
        after["tool_response"] = json!({ "type": "create", "filePath": file(name) });
        agent.hook("PostToolUse", after);
        agent.hook("Stop", json!({}));
    }
    agent.hook("SessionEnd", json!({ "reason": "other" }));
    agent.kill();
    let undone = lab.json(&["undo", "--session", "last", "--yes"]);
    assert!(file("one").exists() && !file("two").exists(), "{undone:#}");
    let undone = lab.json(&["undo", "--session", "last", "--yes"]);
    assert!(!file("one").exists(), "{undone:#}");
}

#[test]
fn a_cap_and_a_wish_to_stop_deny_the_next_call() {
    let lab = Lab::new();
    let mut agent = Agent::start(&lab, "c-1");
    agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" }));
    assert_eq!(agent.begins("t1", "echo hi"), Value::Null);
    agent.ends("t1");
    let id = lab.state()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(lab.run(&["budget", "set", "10", "--session", &id]).code, Some(0));
    assert_eq!(lab.run(&["tokens", "20", "--session", &id]).code, Some(0));
    let answer = agent.begins("t2", "echo hi");
    assert!(denied(&answer).contains("the token budget is used up"), "{answer}");
    assert_eq!(lab.tools()[1]["state"], "denied");
    assert_eq!(lab.run(&["budget", "extend", "1000", "--session", &id]).code, Some(0));
    assert_eq!(agent.begins("t3", "echo hi"), Value::Null);
    agent.ends("t3");
    // Somebody else wants it to end. Nobody is waited for.
    let said = lab.run(&["stop", &id]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let words = format!("{}{}", String::from_utf8_lossy(&said.stdout), said.stderr);
    assert!(words.contains("until its turn ends"), "{words}");
    let answer = agent.begins("t4", "echo hi");
    assert!(denied(&answer).contains("a person asked for this session to stop"), "{answer}");
    // It has stopped; what it is asked next is another matter.
    agent.hook("Stop", json!({}));
    let said = lab.run(&["stop", &id]);
    assert!(said.code != Some(0) && said.stderr.contains("and waits there"), "{}", said.stderr);
    agent.hook("UserPromptSubmit", json!({ "prompt": "and now the roof" }));
    assert_eq!(agent.begins("t5", "echo hi"), Value::Null);
    // It is somebody else's to end.
    let said = lab.run(&["kill", &id]);
    assert!(said.code != Some(0) && said.stderr.contains("segno did not start claude"), "{}", said.stderr);
    assert_eq!(agent.begins("t6", "echo hi"), Value::Null, "nothing was asked of it");
}

/// What is asked of a watched session while its agent works is done when that ends, however it does.
#[test]
fn a_wish_takes_effect_when_the_agent_ends() {
    for (wish, status) in [("pause", "paused"), ("complete", "completed"), ("abort", "aborted")] {
        for leaves in [true, false] {
            let lab = Lab::new();
            let mut agent = Agent::start(&lab, "c-1");
            agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" }));
            assert_eq!(agent.begins("t1", "echo hi"), Value::Null);
            agent.ends("t1");
            let id = lab.state()["session_id"].as_str().unwrap().to_owned();
            assert_eq!(lab.run(&[wish, &id]).code, Some(0));
            denied(&agent.begins("t2", "echo hi"));
            assert_eq!(lab.state()["status"], "active", "{wish}");
            if leaves {
                agent.hook("Stop", json!({}));
                agent.hook("SessionEnd", json!({ "reason": "other" }));
            }
            agent.kill();
            let state = lab.state();
            assert_eq!(state["status"], status, "{wish}, leaves: {leaves}: {state:#}");
            let answers = lab.journal(Some("request_answered"));
            assert_eq!(answers[0]["body"]["obeyed"], true, "{answers:#?}");
        }
    }
    // Not when nobody knows how far a call came.
    let lab = Lab::new();
    let mut agent = Agent::start(&lab, "c-1");
    agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" }));
    assert_eq!(agent.begins("t1", "make all"), Value::Null);
    let id = lab.state()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(lab.run(&["complete", &id]).code, Some(0));
    agent.kill();
    assert_eq!(lab.state()["status"], "interrupted");
}

#[test]
fn after_a_compaction_the_model_is_told_in_short() {
    let lab = Lab::new();
    let mut agent = Agent::start(&lab, "c-1");
    agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" }));
    assert_eq!(agent.begins("t1", "echo hi"), Value::Null);
    agent.ends("t1");
    assert_eq!(agent.hook("PreCompact", json!({ "trigger": "auto" })), Value::Null);
    let checkpoints = lab.journal(Some("checkpoint_created"));
    let names: Vec<&str> = checkpoints.iter().filter_map(|event| event["body"]["name"].as_str()).collect();
    assert!(names.contains(&"before compaction"), "{checkpoints:#?}");
    let answer = agent.hook("SessionStart", json!({ "source": "compact" }));
    let brief = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(brief.contains("mend the door") && brief.len() <= 2_400, "{brief}");
    // Once, and only after a compaction.
    assert_eq!(agent.hook("UserPromptSubmit", json!({ "prompt": "go on" })), Value::Null);
}

#[test]
fn the_status_line_shows_the_session_of_its_conversation_and_keeps_what_it_is_told_of_windows() {
    let lab = Lab::new();
    let mut agent = Agent::start(&lab, "c-1");
    assert_eq!(agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" })), Value::Null);
    let draw = |percent: f64| {
        let told = json!({ "session_id": "c-1", "rate_limits": {
            "five_hour": { "used_percentage": percent, "resets_at": 4_102_444_800_u64 },
        } });
        let said = lab.start(&["statusline"], Some(told.to_string().as_bytes())).finish();
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
        said.text()
    };
    let id = lab.state()["session_id"].as_str().unwrap().to_owned();
    let shown = draw(23.0);
    assert!(shown.starts_with(&format!("…{}", &id[id.len() - 6..])) && shown.contains("5h 23%"), "{shown}");
    let windows =
        || lab.journal(Some("reported")).into_iter().filter(|e| e["body"]["what"] == "limit").count();
    assert_eq!(windows(), 1);
    assert_eq!((draw(23.0), windows()), (shown, 1), "what is known is not recorded again");
    draw(24.0);
    assert_eq!(windows(), 2);
    let window = &lab.state()["limits"]["claude:five_hour"];
    assert_eq!((&window["utilization"], &window["agent"]), (&0.24.into(), &"claude".into()), "{window}");
    // While somebody else writes, the line is drawn without waiting for them.
    let busy = rusqlite::Connection::open(lab.home.path().join(".local/share/segno/segno.db")).unwrap();
    busy.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(draw(30.0).contains("5h 30%"));
    busy.execute_batch("ROLLBACK").unwrap();
    assert_eq!(windows(), 2);
    draw(30.0);
    assert_eq!(windows(), 3, "the next line tells it again");
}

#[test]
fn what_a_memory_said_is_found_again() {
    let lab = Lab::new();
    let mut agent = Agent::start(&lab, "c-1");
    agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" }));
    let tool = json!({
        "tool_name": "mcp__hindsight__recall", "tool_use_id": "t1",
        "tool_input": { "query": "how do we deploy?" },
    });
    assert_eq!(agent.hook("PreToolUse", tool.clone()), Value::Null);
    let mut ended = tool;
    ended["tool_response"] = "with make".into();
    assert_eq!(agent.hook("PostToolUse", ended), Value::Null);
    // Nobody listed anything before, and the agent is still at work.
    let found = lab.json(&["memory", "find", "Deploy"]);
    let found: Vec<(&str, &str)> = found["found"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["source"].as_str().unwrap(), one["result"].as_str().unwrap()))
        .collect();
    assert_eq!(found, [("hindsight", "with make")]);
}

#[test]
fn where_a_driver_records_it_says_nothing() {
    let mut lab = Lab::new();
    lab.env.insert("SEGNO_RUN".to_owned(), "0192f0c4a1b27c3d8e4f5a6b7c8d9e0f".to_owned());
    let mut agent = Agent::start(&lab, "c-1");
    assert_eq!(agent.begins("t1", "echo hi"), Value::Null);
    assert!(!lab.home.path().join(".local/share/segno").exists(), "nothing was made");
}

#[test]
fn a_broken_store_neither_delays_the_agent_nor_loses_what_it_told() {
    let lab = Lab::new();
    let place = lab.home.path().join(".local/share/segno");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("segno.db"), "this is no database".repeat(1_000)).unwrap();
    let mut agent = Agent::start(&lab, "c-1");
    let begin = Instant::now();
    assert_eq!(agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" })), Value::Null);
    assert_eq!(agent.begins("t1", "echo hi"), Value::Null);
    agent.ends("t1");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    std::fs::remove_file(place.join("segno.db")).unwrap();
    // The next hook finds a store, makes the session, and what waited is taken in.
    assert_eq!(agent.begins("t2", "echo again"), Value::Null);
    let calls = until("all is taken in", || {
        let calls = lab.tools();
        (calls.len() == 2).then_some(calls)
    });
    assert!(calls.iter().any(|call| call["call"] == "t1" && call["state"] == "completed"), "{calls:#?}");
}

#[test]
fn a_payload_that_no_agent_sends_is_passed_over() {
    let lab = Lab::new();
    let mut command = lab.segno(&["hook", "--watch", "claude"]);
    let said = lab.start_command(&mut command, Some(b"{ nothing")).finish();
    assert_eq!((said.code, said.text().as_str()), (Some(0), ""), "{}", said.stderr);
    let mut command = lab.segno(&["hook", "--watch", "nobody"]);
    let said = lab.start_command(&mut command, Some(b"{}")).finish();
    assert_eq!((said.code, said.text().as_str()), (Some(0), ""), "{}", said.stderr);
}
