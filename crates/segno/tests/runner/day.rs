//! A whole working day: everything that can be recorded, and every way to look at it.

use std::io::BufRead as _;
use std::io::BufReader;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use crate::common::SEGNO;
use crate::common::TestEnv;

/// A session with something of everything in it.
pub(crate) fn work(env: &TestEnv) -> String {
    env.write("project/Cargo.toml", "");
    env.write("project/plan.md", "# The plan\n\n1. tests\n2. code\n");
    [
        env.show_all(&[
            &["new", "login form", "--phases", "red,green,refactor", "--budget", "20k", "--cost", "5"],
            &["phase"],
            &["intent", "users can log in with a passkey"],
            &["phase", "--verify", "pass", "--check", "tests", "--details", "10 tests fail as they should"],
            &["phase", "green"],
            &["attempt"],
            &["iteration"],
            &["progress", "40"],
            &["tokens", "--input", "12k", "--output", "800", "--cache-read", "3k", "--cost", "0.05"],
            &["tokens", "500"],
            &["tokens", "--estimate", "a text of some words"],
            &["tokens"],
            &["budget"],
            &["budget", "extend", "10k"],
            &["task", "add", "handle expired tokens"],
            &["task", "add", "write the manual"],
            &["task", "add", "paint it blue"],
            &["task", "done", "1"],
            &["task", "drop", "3"],
            &["task"],
            &[
                "decide",
                "which database?",
                "--choice",
                "sqlite",
                "--because",
                "no server",
                "--alternative",
                "postgres",
            ],
            &["decide", "which crate?", "--choice", "rusqlite", "--branch", "storage"],
            &["decide", "which pool?", "--choice", "none", "--parent", "2", "--branch", "storage"],
            &["artifact", "add", "docs/design.md", "created"],
            &["artifact", "add", "docs/old.md", "modified", "--phase", "red"],
            &["artifact"],
            &["file", "add", "src/auth.rs", "modified"],
            &["file", "add", "src/new.rs", "created"],
            &["file"],
            &["output", "set", "answer", "forty-two", "--kind", "code"],
            &["output", "set", "plan", "@plan.md"],
        ]),
        env.show_shell("printf 'from a pipe\\n' | segno output set piped - --kind partial"),
        env.show_all(&[
            &["output"],
            &["output", "get", "plan"],
            &["output", "get", "answer", "--json"],
            &["metric", "set", "coverage", "87.5"],
            &["metric", "set", "tests_pass", "true"],
            &["metric"],
            &["agent", "switch", "reviewer"],
            &["agent", "state", "reviewer", r#"{"round": 2}"#],
            &["agent"],
            &["at", "src/auth.rs:42"],
            &["milestone", "all tests pass", "--details", "on the third try"],
            &["breakpoint", "wait", "review the plan"],
            &["breakpoint"],
            &["breakpoint", "continue", "--details", "looks fine"],
            &["breakpoint"],
            &["error", "connection refused", "--kind", "network"],
            &["error", "connection refused", "--kind", "network"],
            &[
                "memory",
                "query",
                "how did we do this before?",
                "--result",
                "with a cookie",
                "--source",
                "wiki",
            ],
            &["memory", "lookup", "session cookies"],
            &["memory", "cache", "set", "api_version", r#""v2""#],
            &["memory", "cache", "set", "ports", "[80, 443]"],
            &["memory", "cache", "get", "ports"],
            &["memory", "cache", "rm", "ports"],
            &["memory"],
            &["workflow-state", "set", r#"{"round": 2}"#],
            &["workflow-state"],
            &["note", "the flaky test is not ours"],
            &["checkpoint", "create", "before", "--reason", "risky"],
            &["checkpoint", "create"],
            &["checkpoint"],
            &["checkpoint", "show", "before"],
        ]),
    ]
    .join("\n")
}

#[test]
fn a_day() {
    let env = TestEnv::new();
    insta::assert_snapshot!("day_work", work(&env));

    let lists =
        ["tools", "history", "decisions", "files", "errors", "memory", "artifacts", "outputs", "tasks"];
    let lists = lists.iter().chain(&["checkpoints", "milestones", "verifications"]);
    let shown = lists.map(|list| env.show(&["show", &format!("--{list}")])).collect::<Vec<_>>().join("\n");
    let looks = env.show_all(&[
        &["show"],
        &["history", "--limit", "3"],
        &["history", "--after", "30"],
        &["log", "--after", "1", "--limit", "12"],
        &["log", "--kind", "milestone_reached", "--kind", "task_added"],
        &["ls"],
        &["show", "--tasks", "--json"],
        &["show", "--decisions", "--limit", "1", "--json"],
    ]);
    insta::assert_snapshot!("day_look", [looks, shown].join("\n"));
    insta::assert_snapshot!(
        "day_documents",
        env.show_all(&[
            &["state"],
            &["state", "--json"],
            &["state", "--live"],
            &["state", "--live", "--json"],
            &["show", "--json"],
            &["ls", "--json"],
            &["budget", "--json"]
        ])
    );

    insta::assert_snapshot!(
        "day_end",
        env.show_all(&[
            &["pause", "--reason", "lunch"],
            &["ls"],
            &["note", "even a paused session takes notes"],
            &["resume"],
            &["phase", "refactor", "--verify", "pass"],
            &["complete", "--summary", "users can log in", "--json"],
            &["ls"],
            &["ls", "--all"],
            &["show", "last"],
        ])
    );
}

/// Every event is a line, every line an event, and the numbers have no gap.
#[test]
fn the_journal_for_programs() {
    let env = TestEnv::new();
    work(&env);
    let lines = String::from_utf8(env.raw(&["log", "--json"]).stdout).unwrap();
    let events: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.len() > 40);
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], index as u64 + 1);
        assert!(event["kind"].is_string() && event["at"].is_string() && event["body"].is_object(), "{event}");
    }
    let last = String::from_utf8(env.raw(&["log", "--json", "--limit", "2"]).stdout).unwrap();
    assert_eq!(last.lines().collect::<Vec<_>>(), lines.lines().skip(events.len() - 2).collect::<Vec<_>>());
}

#[test]
fn a_large_text_comes_back_as_it_went_in() {
    let env = TestEnv::new();
    env.start(&["large"]);
    let mut text = String::new();
    while text.len() < 1 << 20 {
        text += &format!("byte {}: \u{e4}\t\u{4e2d}, and so on\r\n", text.len());
    }
    let stored = env.feed(&["output", "set", "large", "-"], text.as_bytes());
    assert!(stored.status.success(), "{}", String::from_utf8_lossy(&stored.stderr));
    assert!(env.raw(&["output", "get", "large"]).stdout == text.as_bytes(), "the text is another one");
    env.write("project/large.txt", &text);
    env.ok(&["output", "set", "file", "@large.txt"]);
    assert!(env.raw(&["output", "get", "file"]).stdout == text.as_bytes(), "the text is another one");
    assert_eq!(env.json(&["output", "get", "large"])["content"], text);
    let missing = env.show_all(&[
        &["output", "get", "none"],
        &["output", "set", "x", "@none.txt"],
        &["output", "set", "x", "@."],
    ]);
    insta::assert_snapshot!("day_no_output", missing);
    assert_eq!(env.feed(&["output", "set", "x", "-"], b"\xff\xfe").status.code(), Some(1));
}

#[test]
fn following_sees_what_others_do() {
    let env = TestEnv::new();
    env.start(&["followed"]);
    let mut child =
        env.command(SEGNO).args(["log", "--follow", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let (sender, lines) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let next = || lines.recv_timeout(Duration::from_secs(30)).expect("an event in time");
    assert!(next().contains("session_created"));
    env.ok(&["note", "seen from afar"]);
    assert!(next().contains("seen from afar"));
    env.ok(&["tokens", "7"]);
    assert!(next().contains("tokens_recorded"));
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
}

#[test]
fn lists_of_sessions() {
    let env = TestEnv::new();
    for topic in ["first", "second", "third"] {
        env.start(&[topic, "--parallel"]);
    }
    env.run_in("other/.segno", &["new", "elsewhere"]);
    let ids = env.json(&["ls", "--everywhere"]);
    let id = |topic: &str| {
        let found = ids["sessions"].as_array().unwrap().iter().find(|session| session["topic"] == topic);
        found.unwrap()["session_id"].as_str().unwrap().to_owned()
    };
    env.ok(&["complete", &id("first")]);
    env.ok(&["pause", &id("second"), "--reason", "lunch"]);
    insta::assert_snapshot!(
        "day_lists",
        env.show_all(&[
            &["ls"],
            &["ls", "--all"],
            &["ls", "--status", "paused"],
            &["ls", "--status", "completed", "--status", "active"],
            &["ls", "--status", "failed"],
            &["ls", "--since", "1h"],
            &["ls", "--since", "0s"],
            &["ls", "--everywhere"],
            &["ls", "--everywhere", "--all"],
            &["ls", "--project-filter", "/other"],
            &["ls", "--project-filter", "nowhere"],
            &["ls", "--limit", "1"],
            &["ls", "--all", "--limit", "2", "--json"],
            &["ls", "--project-filter", "/other", "--json"],
        ])
    );
}

#[test]
fn budgets_warn_and_never_refuse() {
    let env = TestEnv::new();
    env.start(&["small", "--budget", "1000"]);
    insta::assert_snapshot!(
        "day_budget",
        env.show_all(&[
            &["tokens", "790"],
            &["tokens", "20"],
            &["tokens", "300"],
            &["tokens", "1", "--json"],
            &["show"],
            &["budget", "extend", "1k"],
            &["budget", "cost", "0.10"],
            &["tokens", "--cost", "0.09"],
            &["tokens", "--cost", "0.02"],
            &["budget", "cost", "1", "--extend"],
            &["budget", "set", "5k", "--advisory", "--warn", "50"],
            &["budget"],
        ])
    );
}
