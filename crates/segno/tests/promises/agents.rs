//! What an agent did is read from its own words in one way.

use segno_testkit::lines::claude;
use segno_testkit::scripted::{Shape, Step};
use serde_json::{Value, json};

use crate::lab::{Lab, Said};

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

const MINE: &str = r#"
[agents.mine]
prompt = "none"
format = "json"
[[agents.mine.rules]]
kind = "tool_started"
when = { "$.type" = "call" }
fields = { call_id = "$.id", tool = "$.tool", input = "$.input" }
[[agents.mine.rules]]
kind = "tool_finished"
when = { "$.type" = "done" }
fields = { call_id = "$.id", output = "$.out" }
[[agents.mine.rules]]
kind = "file_changed"
when = { "$.type" = "file" }
fields = { path = "$.path", change = "$.change", moved_to = "$.to", call_id = "$.id" }
[[agents.mine.rules]]
kind = "result"
when = { "$.type" = "bye" }
"#;

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
        assert_eq!(parsed.lines().last().unwrap()["cost_usd"], 0.05, "{}", parsed.text());
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
