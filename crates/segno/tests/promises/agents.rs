//! What an agent did is read from its own words in one way.

use segno_testkit::lines::claude;
use segno_testkit::scripted::Shape;
use segno_testkit::scripted::SignalName;
use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::Said;
use crate::setup::MINE;

/// The stream that an early description of Claude Code's output has as its example.
const EARLY_STREAM: &str = r#"{"type":"system","subtype":"init","model":"opus","tools":["Bash","Read"]}
{"type":"assistant","message":{"content":[{"type":"text","text":"Checking status..."}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"git status"}}]}}
{"type":"result","session_id":"abc","num_turns":2,"duration_ms":5000,"total_cost_usd":0.05}
"#;

/// A result as early versions wrote it.
fn early_result() -> Value {
    json!({
        "type": "result", "result": "I've completed the task...", "session_id": "${session}", "num_turns": 8,
        "duration_ms": 45000, "total_cost_usd": 0.42,
    })
}

/// Runs something in the place of Claude Code.
fn as_claude(steps: Vec<Step>, more: &[&str]) -> (Lab, Said) {
    let mut lab = Lab::new();
    let begin = [Step::Stdin(0), Step::Json(claude::init("${session}"))];
    lab.stand_in("claude", &begin.into_iter().chain(steps).collect::<Vec<_>>());
    let args = ["run", "--agent", "claude", "--no-hooks", "--prompt", "go", "--json"];
    let said = lab.run(&args.iter().chain(more).copied().collect::<Vec<_>>());
    (lab, said)
}

/// An agent that is described in the configuration, in a home of its own.
fn described(steps: &[Step]) -> Lab {
    let lab = Lab::new();
    let command = lab.scripted("mine", steps);
    lab.config(&MINE.replace("prompt = ", &format!("command = {command:?}\nprompt = ")));
    lab
}

fn run_mine(steps: &[Step]) -> (Lab, Said) {
    let lab = described(steps);
    let said = lab.run(&["run", "--agent", "mine", "--json"]);
    (lab, said)
}

/// One member of each row of a list.
fn column(list: &Value, name: &str) -> Vec<String> {
    let rows = list["items"].as_array().unwrap();
    rows.iter().map(|row| row[name].as_str().unwrap_or("null").to_owned()).collect()
}

promise!(
    /// What a caller needs is in the result: session and conversation, turns, times, money, how the agent ended and what
    /// it said.
    fn the_result_says_what_a_run_was() {
        let result = |subtype: &str, is_error: bool| {
            let mut result = claude::result("${session}", "said at the end");
            result["num_turns"] = json!(8);
            result["duration_ms"] = json!(45_000);
            (result["subtype"], result["is_error"]) = (json!(subtype), json!(is_error));
            result
        };
        let (lab, said) = as_claude(vec![Step::Json(result("success", false))], &[]);
        let told = said.lines().pop().unwrap();
        assert_eq!(told["session_id"], lab.state()["session_id"]);
        assert_eq!(told["native_id"], lab.journal(Some("run_named"))[0]["body"]["native_id"]);
        assert_eq!((&told["turns"], &told["agent_duration_ms"]), (&json!(8), &json!(45_000)));
        assert_eq!((&told["cost_usd"], &told["text"]), (&json!(0.01), &json!("said at the end")));
        assert_eq!(
            (&told["agent_exit_code"], &told["exit_code"], &told["error"]),
            (&json!(0), &json!(0), &Value::Null)
        );
        let fails = vec![
            Step::Stderr("no more disk".to_owned()),
            Step::Json(result("error_during_execution", true)),
            Step::Exit(3),
        ];
        let (_, said) = as_claude(fails, &[]);
        let told = said.lines().pop().unwrap();
        assert_eq!((&told["outcome"], &told["agent_exit_code"]), (&json!("failed"), &json!(3)), "{told}");
        assert!(told["stderr"].as_str().unwrap().contains("no more disk"), "{told}");
        assert!(told["error"].is_string() || told["error"].is_object(), "{told}");
    }
);

promise!(
    /// Money counts whichever form the agent's result has, and a cap on it stops the agent.
    fn a_cost_counts_in_any_form_of_result() {
        let hold = Step::WaitFor { path: "/nonexistent/never".to_owned(), seconds: 40 };
        let (lab, said) = as_claude(vec![Step::Json(early_result()), hold], &["--cost", "0.10"]);
        let result = said.result();
        assert_eq!((&result["outcome"], &result["cost_usd"]), (&json!("budget"), &json!(0.42)), "{said:?}");
        let state = lab.state();
        assert_eq!(state["cost"]["used_micros"], 420_000, "{}", state["cost"]);
        let parsed = {
            lab.write("early.jsonl", EARLY_STREAM);
            lab.run(&["parse", "--agent", "claude", &lab.path("early.jsonl"), "--json"])
        };
        let outcome = parsed.lines().pop().unwrap();
        assert_eq!((&outcome["cost_usd"], &outcome["turns"]), (&json!(0.05), &json!(2)), "{outcome}");
    }
);

promise!(
    /// Of a result with a member of the wrong type, the rest counts.
    fn a_mistyped_member_keeps_the_rest() {
        let mut result = claude::result("${session}", "all done");
        result["num_turns"] = json!("eight");
        result["usage"]["input_tokens"] = json!({});
        let (lab, said) = as_claude(vec![Step::Json(result)], &[]);
        let ended = said.result();
        assert_eq!(
            (&ended["outcome"], &ended["text"]),
            (&json!("completed"), &json!("all done")),
            "{said:?}"
        );
        assert_eq!(ended["cost_usd"], 0.01);
        let notes = serde_json::to_string(&lab.journal(Some("reported"))).unwrap();
        assert!(notes.contains("num_turns") && notes.contains("usage.input_tokens"), "it is said: {notes}");
    }
);

promise!(
    /// A long line is kept whole; how long is a setting, and what is longer is said.
    fn long_lines_are_kept_whole_as_far_as_the_setting_goes() {
        let long = Step::LongLine { bytes: 9 << 20, shape: Shape::default() };
        let (lab, said) = as_claude(vec![long.clone(), Step::Json(claude::result("${session}", "ok"))], &[]);
        assert_eq!(said.result()["outcome"], "completed");
        let all = serde_json::to_string(&lab.journal(Some("reported"))).unwrap();
        assert!(!all.contains("oversized"), "9 MB are no reason to cut");
        let mut lab = Lab::new();
        lab.stand_in("claude", &[Step::Stdin(0), Step::Json(claude::init("${session}")), long]);
        lab.config("[run]\nmax_line_mb = 2");
        let said = lab.run(&["run", "--agent", "claude", "--no-hooks", "--prompt", "go"]);
        assert!(said.stderr.contains("longer than 2 MB") && said.stderr.contains("max_line_mb"), "{said:?}");
    }
);

promise!(
    /// What an agent has to work with is in the journal.
    fn the_tools_of_an_agent_are_recorded() {
        let (lab, _) = as_claude(vec![Step::Json(claude::result("${session}", "ok"))], &[]);
        let reports = lab.journal(Some("reported"));
        let tools: Vec<&Value> = reports.iter().filter(|event| event["body"]["what"] == "tools").collect();
        assert_eq!(tools.len(), 1, "{reports:?}");
        assert_eq!(tools[0]["body"]["body"]["tools"], json!(["Bash", "Write"]));
    }
);

promise!(
    /// What an agent of the user's own printed can be looked at like any other's, and its keys are documented.
    fn a_described_agent_can_be_parsed() {
        let lab = described(&[]);
        lab.write("mine.jsonl", "{\"type\":\"call\",\"id\":\"7\",\"tool\":\"shell\"}\n{\"type\":\"bye\"}\n");
        let said = lab.run(&["parse", "--agent", "mine", &lab.path("mine.jsonl"), "--json"]);
        let kinds: Vec<Value> = said.lines().iter().map(|line| line["kind"].clone()).collect();
        assert_eq!(kinds, ["tool_started", "result", "outcome"], "{}", said.stderr);
        let unknown = lab.run(&["parse", "--agent", "nobody", &lab.path("mine.jsonl")]);
        assert_eq!(unknown.code, Some(2));
        assert!(unknown.stderr.contains("mine"), "those that are described are named: {}", unknown.stderr);
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md");
        let page = std::fs::read_to_string(page).unwrap();
        for word in [
            "file_changed",
            "`moved_to`",
            "`cumulative`",
            "`each`",
            "`also`",
            "`verdicts`",
            "`cache_write`",
            "`native_id`",
            "`version_args`",
            "`install_hint`",
            "`max_turns`",
            "{options}",
        ] {
            assert!(page.contains(word), "docs/agents.md says nothing of {word}");
        }
    }
);

promise!(
    /// `begin` gives a described agent the id of its conversation, so that it is known whenever the agent dies.
    fn a_described_agent_begins_under_an_id_of_ours() {
        let lab = Lab::new();
        let agent = lab.path("mine.sh");
        let script = "echo \"$@\" >> args.txt; case \"$1\" in --begin) kill -9 $$;; esac; echo done";
        std::fs::write(&agent, script).unwrap();
        lab.config(&format!(
            "[agents.mine]\ncommand = [\"sh\", {agent:?}]\nprompt = \"none\"\n\
             begin = [\"--begin\", \"{{id}}\"]\nresume = [\"--resume={{id}}\"]\nfork = [\"--copy\", \"{{id}}\"]"
        ));
        let args = || std::fs::read_to_string(lab.home.work().join("args.txt")).unwrap();
        lab.run(&["run", "--agent", "mine", "--prompt", "go", "--json"]);
        let state = lab.state();
        let id = state["run"]["native_id"]
            .as_str()
            .unwrap_or_else(|| panic!("no conversation: {state:#}"))
            .to_owned();
        assert_eq!((state["status"].as_str(), args()), (Some("interrupted"), format!("--begin {id}\n")));
        let said = lab.run(&["resume", "last", "--json"]);
        assert_eq!(said.result()["outcome"], "completed", "{said:?}");
        assert_eq!(args(), format!("--begin {id}\n--resume={id}\n"));
        assert_eq!(lab.state()["run"]["native_id"], id.as_str());
        let said = lab.run(&["run", "--agent", "mine", "--continue-from", "last", "--fork", "--json"]);
        assert_eq!(said.result()["outcome"], "completed", "{said:?}");
        assert_eq!(args(), format!("--begin {id}\n--resume={id}\n--copy {id}\n"));
    }
);

promise!(
    /// What happened to a file is recorded as the agent tells it.
    fn a_described_agent_says_what_happened_to_a_file() {
        let file =
            |path: &str, change: &str| json!({ "type": "file", "path": path, "change": change, "id": "1" });
        let mut moved = file("old.txt", "moved");
        moved["to"] = json!("new.txt");
        let steps = [
            Step::Json(json!({ "type": "call", "id": "1", "tool": "write", "input": {} })),
            Step::Json(file("a.txt", "created")),
            Step::Json(file("b.txt", "modified")),
            Step::Json(file("c.txt", "deleted")),
            Step::Json(moved),
            Step::Json(json!({ "type": "bye" })),
        ];
        let (lab, _) = run_mine(&steps);
        let files = lab.journal(Some("file_changed"));
        let told: Vec<(&str, &str)> = files
            .iter()
            .filter(|event| event["body"]["call"] == "1")
            .map(|event| (event["body"]["path"].as_str().unwrap(), event["body"]["change"].as_str().unwrap()))
            .collect();
        assert_eq!(
            told,
            [
                ("a.txt", "created"),
                ("b.txt", "modified"),
                ("c.txt", "deleted"),
                ("old.txt", "deleted"),
                ("new.txt", "created")
            ]
        );
    }
);

promise!(
    /// The files of the project that an agent writes are artifacts of the session, by their path in the project.
    fn files_of_an_agent_become_artifacts() {
        let lab = described(&[]);
        let work = lab.home.work().to_str().unwrap().to_owned();
        let file =
            |path: &str, change: &str| Step::Json(json!({ "type": "file", "path": path, "change": change }));
        let steps = [
            file(&format!("{work}/src/a.rs"), "created"),
            file(&format!("{work}/src/a.rs"), "modified"),
            file("b.rs", "modified"),
            file("/etc/hostname", "modified"),
            file("c.rs", "deleted"),
            Step::Json(json!({ "type": "bye" })),
        ];
        lab.scripted("mine", &steps);
        assert_eq!(lab.run(&["new", "topic", "--phase", "build"]).code, Some(0));
        let said = lab.run(&["run", "--session", "last", "--agent", "mine", "--json"]);
        assert_eq!(said.result()["outcome"], "completed", "{said:?}");
        let list = lab.json(&["artifact", "list"]);
        assert_eq!(column(&list, "path"), ["src/a.rs", "b.rs"]);
        assert_eq!(column(&list, "artifact_type"), ["created", "modified"]);
        assert_eq!(column(&list, "phase"), ["build", "build"]);
    }
);

promise!(
    /// An artifact is a file of the project, named from its root on wherever one stands.
    fn artifacts_are_named_from_the_root_on() {
        let lab = Lab::new();
        assert_eq!(lab.run(&["new", "topic", "--phase", "one"]).code, Some(0));
        let below = lab.home.work().join("src/deep");
        std::fs::create_dir_all(&below).unwrap();
        let add = |path: &str| {
            let mut command = lab.segno(&["artifact", "add", path, "created"]);
            lab.start_command(command.current_dir(&below), None).finish()
        };
        assert_eq!(add("a.rs").code, Some(0));
        assert_eq!(add("../b.rs").code, Some(0));
        assert_eq!(add(lab.home.work().join("c.rs").to_str().unwrap()).code, Some(0));
        for outside in ["/etc/passwd", "../../../x"] {
            let said = add(outside);
            assert_eq!(said.code, Some(2), "{outside}: {said:?}");
            assert!(said.stderr.contains("outside of the project"), "{}", said.stderr);
        }
        assert_eq!(column(&lab.json(&["artifact", "list"]), "path"), ["src/deep/a.rs", "src/b.rs", "c.rs"]);
    }
);

promise!(
    /// The artifacts of one phase can be listed.
    fn artifacts_of_a_phase() {
        let lab = Lab::new();
        assert_eq!(lab.run(&["new", "topic", "--phase", "one"]).code, Some(0));
        for (path, phase) in [("a", "one"), ("b", "two"), ("c", "one")] {
            let said = lab.run(&["artifact", "add", path, "created", "--phase", phase]);
            assert_eq!(said.code, Some(0), "{said:?}");
        }
        let list = lab.json(&["artifact", "list", "--phase", "one"]);
        assert_eq!(
            (column(&list, "path"), &list["total"]),
            (vec!["a".to_owned(), "c".to_owned()], &json!(2))
        );
        let list = lab.json(&["artifact", "list", "--phase", "one", "--limit", "1"]);
        assert_eq!(column(&list, "path"), ["c"]);
    }
);

promise!(
    /// What a shell removed, made or changed is in the list of files too.
    fn what_a_shell_did_to_files_is_in_the_list() {
        let lab = Lab::new();
        for name in ["gone.txt", "changed.txt", "same.txt"] {
            std::fs::write(lab.home.work().join(name), "before").unwrap();
        }
        let script = "rm gone.txt; echo more >> changed.txt; echo x > made.txt; echo y > short; rm short";
        assert_eq!(lab.run(&["run", "--", "sh", "-c", script]).code, Some(0));
        let list = lab.json(&["show", "last", "--files"]);
        let mut told: Vec<(String, String)> =
            column(&list, "path").into_iter().zip(column(&list, "change")).collect();
        told.sort();
        let wanted = [("changed.txt", "modified"), ("gone.txt", "deleted"), ("made.txt", "created")];
        assert_eq!(told, wanted.map(|(path, change)| (path.to_owned(), change.to_owned())));
    }
);

promise!(
    /// Ids of calls may come again: each call is one of its own, and one that was cut off is in doubt.
    fn calls_with_the_same_id_are_calls_of_their_own() {
        let call = |command: &str| {
            Step::Json(claude::tool_use("${session}", "toolu_same", "Bash", json!({ "command": command })))
        };
        let done = |text: &str| Step::Json(claude::tool_result("${session}", "toolu_same", text, false));
        let steps = vec![
            call("make one"),
            done("one is made"),
            call("make two"),
            done("two is made"),
            call("make three"),
            Step::Kill(SignalName::Kill),
        ];
        let (lab, said) = as_claude(steps, &[]);
        assert_eq!(said.result()["outcome"], "interrupted");
        let rows: Vec<(String, String)> = lab
            .tools()
            .iter()
            .map(|row| {
                (
                    row["input"]["command"].as_str().unwrap().to_owned(),
                    row["state"].as_str().unwrap().to_owned(),
                )
            })
            .collect();
        let wanted = [("make one", "completed"), ("make two", "completed"), ("make three", "in_doubt")];
        assert_eq!(rows, wanted.map(|(command, state)| (command.to_owned(), state.to_owned())));
        let calls = lab.state()["calls"].clone();
        assert_eq!((&calls["total"], &calls["completed"]), (&json!(3), &json!(2)), "{calls}");
        let brief = lab.run(&["resume", "--show-brief"]).text();
        assert!(brief.contains("make three") && brief.contains("IN DOUBT"), "{brief}");
    }
);

promise!(
    /// With hooks each call is told twice, and is still one call, whether its id came before or not.
    fn a_call_told_by_hook_and_output_is_one_call() {
        let call = |command: &str, result: &str| {
            let input = json!({ "command": command });
            let payload = json!({ "tool_name": "Bash", "tool_use_id": "toolu_same", "tool_input": input });
            let mut over = payload.clone();
            over["tool_response"] = json!({ "stdout": result });
            let hook = |event: &str, payload: Value, allowed: Vec<Step>| Step::Hook {
                event: event.to_owned(),
                payload: payload.as_object().unwrap().clone(),
                command: None,
                allowed,
                denied: Vec::new(),
            };
            vec![
                Step::Json(claude::tool_use("${session}", "toolu_same", "Bash", input)),
                hook("PreToolUse", payload, Vec::new()),
                hook("PostToolUse", over, Vec::new()),
                Step::Json(claude::tool_result("${session}", "toolu_same", result, false)),
            ]
        };
        let mut lab = Lab::new();
        let begin = vec![Step::Stdin(0), Step::Json(claude::init("${session}"))];
        let steps: Vec<Step> = [
            begin,
            call("make one", "first"),
            call("make two", "second"),
            // The same once more, with the same result.
            call("make two", "second"),
            vec![Step::Json(claude::result("${session}", "done"))],
        ]
        .concat();
        lab.stand_in("claude", &steps);
        let said = lab.run(&["run", "--agent", "claude", "--prompt", "go", "--json"]);
        assert_eq!(said.result()["outcome"], "completed", "{said:?}");
        let tools = lab.tools();
        let states: Vec<&str> = tools.iter().map(|row| row["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["completed"; 3], "{tools:#?}");
        assert_eq!((&tools[0]["write_ahead"], &tools[1]["write_ahead"]), (&json!(true), &json!(true)));
    }
);

promise!(
    /// What goes on after its call was answered is not done: it is open until its end is told, and in doubt without.
    fn what_was_only_launched_is_not_completed() {
        let launch = |id: &str, task: &str, asynchronous: bool| {
            let mut result = claude::tool_result("${session}", id, "started", false);
            result["tool_use_result"] = match asynchronous {
                true => json!({ "isAsync": true, "status": "async_launched", "agentId": task }),
                false => json!({ "stdout": "", "stderr": "", "backgroundTaskId": task }),
            };
            let tool = if asynchronous { "Agent" } else { "Bash" };
            let input = json!({ "command": format!("work for {task}"), "run_in_background": true });
            [Step::Json(claude::tool_use("${session}", id, tool, input)), Step::Json(result)]
        };
        let ended = |id: &str, task: &str, status: &str| {
            Step::Json(json!({ "type": "system", "subtype": "task_notification", "task_id": task,
                "tool_use_id": id, "status": status, "summary": format!("{task} {status}"), "session_id": "${session}" }))
        };
        let mut steps: Vec<Step> = [
            launch("t1", "shell-1", false),
            launch("t2", "agent-1", true),
            launch("t3", "shell-2", false),
            launch("t4", "agent-2", true),
        ]
        .concat();
        steps.extend([ended("t1", "shell-1", "completed"), ended("t2", "agent-1", "failed")]);
        steps.push(Step::Kill(SignalName::Kill));
        let (lab, _) = as_claude(steps, &[]);
        let tools = lab.tools();
        let states: Vec<&str> = tools.iter().map(|row| row["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["completed", "failed", "in_doubt", "in_doubt"], "{tools:#?}");
        let brief = lab.run(&["resume", "--show-brief"]).text();
        assert!(brief.contains("work for shell-2") && brief.contains("work for agent-2"), "{brief}");
    }
);

promise!(
    /// A run that was killed counts what its agent's own log says it used, and says that the figure is no exact one.
    fn tokens_of_a_killed_run_are_settled_by_the_log() {
        let mut lab = Lab::new();
        let log = lab.home.path().join(".claude/projects/-work");
        std::fs::create_dir_all(&log).unwrap();
        let line = json!({ "type": "assistant", "sessionId": "${session}", "uuid": "u1", "isSidechain": false,
            "timestamp": "2999-01-01T00:00:00.000Z",
            "message": { "id": "msg_1", "model": "m", "content": [{ "type": "text", "text": "hello" }],
                "usage": { "input_tokens": 100, "output_tokens": 777 } } });
        let mut text = claude::text("${session}", "hello");
        text["message"]["id"] = json!("msg_1");
        lab.stand_in(
            "claude",
            &[
                Step::Stdin(0),
                Step::Json(claude::init("${session}")),
                Step::Json(text),
                Step::Append {
                    path: log.join("${session}.jsonl").to_str().unwrap().to_owned(),
                    content: format!("{line}\n"),
                },
                Step::Kill(SignalName::Kill),
            ],
        );
        let said = lab.run(&["run", "--agent", "claude", "--no-hooks", "--prompt", "go", "--json"]);
        assert_eq!(said.result()["outcome"], "interrupted", "{said:?}");
        let runs = lab.json(&["show", "last", "--runs"]);
        let run = &runs["items"][0];
        assert_eq!((&run["tokens"]["output"], &run["estimated"]), (&json!(777), &json!(true)), "{run:#}");
        assert_eq!(lab.state()["budget"]["tokens_used"], 877);
        let shown = lab.run(&["show", "last"]).text();
        assert!(shown.contains("~877"), "it is said that this is an estimate: {shown}");
    }
);

promise!(
    /// What Gemini CLI says of a command in words for people is read: refused, failed with its code, in the background.
    fn gemini_tells_how_a_command_ended() {
        let lab = Lab::new();
        let call = |id: &str, output: &str| {
            let begin = json!({ "type": "tool_use", "tool_name": "run_shell_command", "tool_id": id,
                "parameters": { "command": "x" } });
            let end = json!({ "type": "tool_result", "tool_id": id, "status": "success", "output": output });
            format!("{begin}\n{end}\n")
        };
        let stream = [
            call("a", "Blocked: command substitution detected in shell command."),
            call("b", "Command exited with code: 3"),
            call("c", "Command moved to background (PID: 4711). Output hidden. Press Ctrl+B to view."),
            call("d", "Command exited with code: 3, says my program"),
            call("e", "Blocked: 3 requests"),
        ]
        .concat();
        lab.write("gemini.jsonl", &stream);
        let said = lab.run(&["parse", "--agent", "gemini", &lab.path("gemini.jsonl"), "--json"]);
        let ends: Vec<(String, Value)> = said
            .lines()
            .iter()
            .filter(|line| line["call_id"].is_string() && line["kind"] != "tool_started")
            .map(|line| (line["kind"].as_str().unwrap().to_owned(), line.clone()))
            .collect();
        let kinds: Vec<&str> = ends.iter().map(|(kind, _)| kind.as_str()).collect();
        let wanted = ["tool_denied", "tool_failed", "tool_finished", "tool_finished", "tool_finished"];
        assert_eq!(kinds, wanted, "{}", said.text());
        assert_eq!((&ends[1].1["exit_code"], &ends[2].1["background"]), (&json!(3), &json!("4711")));
    }
);

promise!(
    /// A file that was not there before is new, also when the agent does not say so.
    fn a_new_file_is_created_whoever_says_that_it_was_modified() {
        let write = |path: &str| {
            [
                Step::Json(json!({ "type": "call", "id": path, "tool": "write", "input": {} })),
                Step::Append { path: path.to_owned(), content: "x".to_owned() },
                Step::Json(json!({ "type": "file", "path": path, "change": "modified", "id": path })),
                Step::Json(json!({ "type": "done", "id": path })),
            ]
        };
        let lab = described(&[]);
        std::fs::write(lab.home.work().join("old.txt"), "before").unwrap();
        let steps: Vec<Step> = [
            write("old.txt").to_vec(),
            write("new.txt").to_vec(),
            vec![Step::Json(json!({ "type": "bye" }))],
        ]
        .concat();
        lab.scripted("mine", &steps);
        assert_eq!(lab.run(&["run", "--agent", "mine", "--json"]).result()["outcome"], "completed");
        let list = lab.json(&["show", "last", "--files"]);
        let mut told: Vec<(String, String)> =
            column(&list, "path").into_iter().zip(column(&list, "change")).collect();
        told.sort();
        let wanted = [("new.txt", "created"), ("old.txt", "modified")];
        assert_eq!(told, wanted.map(|(path, change)| (path.to_owned(), change.to_owned())));
        assert_eq!(column(&list, "call").len(), 2);
        let artifacts = lab.json(&["artifact", "list"]);
        assert_eq!(column(&artifacts, "path"), ["old.txt", "new.txt"]);
        assert_eq!(column(&artifacts, "artifact_type"), ["modified", "created"], "{artifacts:#}");
        assert!(
            column(&list, "call").iter().all(|call| call != "null"),
            "whose call it was is kept: {list:#}"
        );
    }
);

promise!(
    /// What an agent that was killed had used is an estimate, and every figure of it says so.
    fn what_a_killed_agent_used_is_called_an_estimate() {
        let said = || Step::Json(claude::text("${session}", "working"));
        let ended = || Step::Json(claude::result("${session}", "done"));
        for (steps, exact) in
            [(vec![said(), Step::Kill(SignalName::Kill)], false), (vec![said(), ended()], true)]
        {
            let (lab, _) = as_claude(steps, &[]);
            assert_eq!(lab.state()["tokens_estimated"].as_bool().unwrap_or(false), !exact);
            let listed = lab.json(&["ls", "--all"])["sessions"][0].take();
            assert_eq!(listed["tokens_estimated"].as_bool().unwrap_or(false), !exact, "{listed:#}");
            assert!(listed["tokens_used"].as_u64().is_some_and(|used| used > 0), "{listed:#}");
            assert_eq!(lab.json(&["budget"])["tokens"]["estimated"], !exact);
            let (list, shown) = (lab.run(&["ls", "--all"]).text(), lab.run(&["show", "last"]).text());
            assert_eq!((list.contains('~'), shown.contains("~")), (!exact, !exact), "{list}\n{shown}");
            let tokens = shown.lines().find(|line| line.trim_start().starts_with("tokens")).unwrap();
            assert_eq!(tokens.contains('~'), !exact, "{shown}");
        }
    }
);
