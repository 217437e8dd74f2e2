//! Runs that go their way: text, tools, helpers.

use rstest::rstest;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Sh;
use segno_testkit::model::Turn;
use segno_testkit::model::Usage;
use segno_testkit::model::When;
use segno_testkit::recipe::Patience;

use super::Real;
use crate::lab::until;

#[rstest]
fn plain_text(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    // Only Claude Code's model says what it wrote to the cache.
    let cache_write = if agent == "claude" { 200 } else { 0 };
    let usage = Usage { input: 1000, output: 50, cache_read: 300, cache_write };
    let answer = Turn { thinking: Some("hm".to_owned()), chunk: 4, ..Turn::text("hello there").usage(usage) };
    let Some(real) = Real::with(agent, [answer]) else { return };
    // opencode shows what it thinks only when it is told to.
    if agent == "opencode" {
        real.lab.config("[agents.opencode]\nextra_args = [\"--thinking\"]");
    }
    let said = real.run(&[]);
    let result = real.ended("plain text", &said, "completed", "completed");
    assert_eq!(result["text"], "hello there", "the pieces make one message");
    let tokens = ["input", "output", "cache_read", "cache_write"].map(|kind| result["tokens"][kind].clone());
    assert_eq!(tokens, [1000, 50, 300, cache_write], "{result}");
    assert_eq!((&result["tokens_exact"], &result["unparsed"]), (&true.into(), &0.into()), "{result}");
    assert!(result["native_id"].is_string());
    match agent {
        "claude" => assert!(result["cost_usd"].as_f64().unwrap() > 0.0, "{result}"),
        "opencode" => assert!((result["cost_usd"].as_f64().unwrap() - 0.001_13).abs() < 1e-9, "{result}"),
        _ => assert!(result["cost_usd"].is_null(), "it reckons no money: {result}"),
    }
    let said = real.lab.journal(Some("said"));
    let texts = |channel: &str| -> Vec<String> {
        let of_channel = said.iter().filter(|event| event["body"]["channel"] == channel);
        of_channel.map(|event| event["body"]["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts("text"), ["hello there"], "{said:#?}");
    // Gemini CLI keeps its thoughts to itself.
    assert_eq!(texts("thinking"), if agent == "gemini" { vec![] } else { vec!["hm"] }, "{said:#?}");
    real.ledger(&[]);
    let budget = real.lab.state()["budget"]["tokens_used"].clone();
    assert_eq!(budget, 1050 + cache_write, "counted once, from one source, without what came from the cache");
}

#[rstest]
fn several_tools(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let turns = [
        Turn::ops([Op::sh("echo from-the-shell"), Op::write("a.txt", "written\n")]),
        Turn::ops([
            Op::Read("a.txt".to_owned()),
            Op::Edit { path: "a.txt".to_owned(), old: "written".to_owned(), new: "edited".to_owned() },
        ]),
        Turn::sh("echo once >> count.txt; echo heard ${last:from-the-(\\w+)}"),
        Turn::text("all done"),
    ];
    let Some(real) = Real::with(agent, turns) else { return };
    let said = real.run(&[]);
    let result = real.ended("several tools", &said, "completed", "completed");
    assert_eq!(result["tool_calls"], 5);
    real.ledger(&["completed"; 5]);
    assert_eq!(std::fs::read_to_string(real.file("a.txt")).unwrap(), "edited\n");
    assert_eq!(std::fs::read_to_string(real.file("count.txt")).unwrap(), "once\n");
    let last = real.asked().pop().unwrap();
    assert!(last.conversation.contains("heard shell"), "results of tools reach the model");
    // Not every agent says that the file is new.
    let artifacts = real.lab.json(&["artifact", "list"])["items"].take();
    assert_eq!((&artifacts[0]["path"], &artifacts[0]["artifact_type"]), (&"a.txt".into(), &"created".into()));
    assert_eq!(artifacts.as_array().map(Vec::len), Some(1), "{artifacts:#}");
    let started = real.lab.journal(Some("run_started")).pop().unwrap();
    let expected = if super::tells_before(agent) { "write_ahead" } else { "observed" };
    assert_eq!(started["body"]["ledger"], expected, "{started}");
}

#[rstest]
fn a_failing_tool(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let Some(real) = Real::with(agent, [Turn::sh("echo broken >&2; exit 3"), "I see".into()]) else { return };
    let said = real.run(&[]);
    real.ended("failing tool", &said, "completed", "completed");
    // The output of Gemini CLI calls it a success.
    real.ledger(&[if agent == "gemini" { "completed" } else { "failed" }]);
    assert!(real.lab.tools()[0]["output"].to_string().contains("broken"));
}

/// A call that the agent itself turns down, here because there is no such tool.
#[rstest]
fn a_tool_that_does_not_exist(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let call = Op::Tool {
        name: "no_such_tool".to_owned(),
        input: serde_json::json!({ "x": 1 }),
        namespace: None,
        id: None,
    };
    let Some(real) = Real::with(agent, [Turn::ops([call]), "I see".into()]) else { return };
    let said = real.run(&[]);
    real.ended("tool that does not exist", &said, "completed", "completed");
    // No hook is called for it by Claude Code and Codex; the output of the one has it, and the record of the other.
    let calls = real.lab.tools();
    assert_eq!((calls.len(), &calls[0]["state"]), (1, &"failed".into()), "{calls:#?}");
    let (tool, input) = (&calls[0]["tool"], &calls[0]["input"]);
    if agent == "opencode" {
        // It has a tool for such calls.
        assert_eq!((tool, &input["tool"]), (&"invalid".into(), &"no_such_tool".into()), "{calls:#?}");
    } else {
        assert_eq!((tool, &input["x"]), (&"no_such_tool".into(), &1.into()), "{calls:#?}");
    }
}

/// Nobody can be asked: what would need an answer is refused.
#[rstest]
fn a_denied_permission(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let call = match agent {
        "codex" => Op::write("forbidden.txt", "x\n"),
        _ => Op::sh("touch forbidden.txt"),
    };
    let Some(real) = Real::with(agent, [Turn::ops([call]), "I may not".into()]) else { return };
    match agent {
        "codex" => real.reconfigure(".codex/config.toml", "danger-full-access", "read-only"),
        "gemini" => real.lab.write(
            "home/.gemini/policies/ask.toml",
            "[[rule]]\ntoolName = \"run_shell_command\"\ndecision = \"ask_user\"\npriority = 200\n",
        ),
        "opencode" => real.reconfigure(
            ".config/opencode/opencode.json",
            r#""autoupdate":false"#,
            r#""autoupdate":false,"permission":{"bash":"ask"}"#,
        ),
        _ => real.lab.write("home/.claude/settings.json", r#"{"permissions":{"allow":["Read"]}}"#),
    }
    let said = real.run(&[]);
    let result = real.ended("denied permission", &said, "denied", "paused");
    assert_eq!(result["denials"].as_array().unwrap().len(), 1);
    real.ledger(&["denied"]);
    assert!(!real.file("forbidden.txt").exists());
}

#[rstest]
fn a_line_of_2_mb(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let content = "0123456789abcdef\n".repeat(125_000);
    // opencode looks at all of a call again with each piece that comes.
    let write = Turn { chunk: 500_000, ..Turn::ops([Op::write("big.txt", &content)]) };
    let Some(real) = Real::with(agent, [write, "big".into()]) else { return };
    let said = real.lab.run(&real.args(&[]));
    let result = real.ended("2 MB line", &said, "completed", "completed");
    assert_eq!(result["unparsed"], 0);
    real.ledger(&["completed"]);
    assert_eq!(std::fs::metadata(real.file("big.txt")).unwrap().len(), content.len() as u64);
}

#[rstest]
fn a_sub_agent(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let wait = Op::Tool {
        name: "wait_agent".to_owned(),
        input: serde_json::json!({ "targets": ["${last:agent_id[^0-9a-f]*([0-9a-f-]{36})}"] }),
        namespace: Some("multi_agent_v1".to_owned()),
        id: None,
    };
    let mut turns = vec![Turn::ops([Op::task("count the files please")])];
    if agent == "codex" {
        turns.push(Turn::ops([wait]));
    }
    turns.push("told you".into());
    let complete = Op::Tool {
        name: "complete_task".to_owned(),
        input: serde_json::json!({ "result": { "response": "none" } }),
        namespace: None,
        id: None,
    };
    let last = if agent == "gemini" { Turn::ops([complete]) } else { "none".into() };
    let helper = [Turn::sh("ls | wc -l"), last];
    let script = Script::new(turns).track("helper", When::first_user("count the files"), helper);
    let Some(real) = Real::new(agent, script, Patience::default()) else { return };
    let said = real.run(&[]);
    real.ended("sub-agent", &said, "completed", "completed");
    let of_helper = real.model.requests().into_iter().filter(|request| request.track == "helper");
    assert_eq!(of_helper.count(), 2, "its call, and its answer");
    let asked = real.model.requests().iter().filter(|request| request.track != "side").count() as u64;
    let state = real.lab.state();
    assert_eq!(state["budget"]["tokens_used"], 120 * asked, "what the helper used counts too");
    // What helpers of opencode use is told to its plug-in only: the figure says that its output is not all there is.
    assert_eq!(state["tokens_estimated"].as_bool().unwrap_or(false), agent == "opencode");
    let reports = real.lab.journal(Some("reported"));
    // The hook of Claude Code says it a second time, and says that it is the hook.
    let said = |event: &&serde_json::Value| {
        event["body"]["what"] == "sub_agent_started" && event["body"]["body"]["hook"].is_null()
    };
    assert_eq!(reports.iter().filter(said).count(), 1, "{reports:#?}");
    // The task and the helper's own call. Codex: starting and waiting; it does not show what helpers do, nor does Gemini
    // CLI.
    real.ledger(if agent == "gemini" { &["completed"] } else { &["completed"; 2] });
}

#[rstest]
fn a_background_shell(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    // Claude Code waits for what it put in the background; Codex goes on after a while and ends it at the end; Gemini CLI
    // leaves it running, and opencode leaves it to the shell.
    let command = match agent {
        "claude" => "sleep 1; echo late > late.txt",
        "opencode" => "sleep 55 > /dev/null 2>&1 &",
        _ => "echo begun; sleep 55",
    };
    let sh =
        Sh { command: command.to_owned(), timeout_ms: (agent == "codex").then_some(500), background: true };
    let turns = [Turn::ops([Op::Sh(sh)]), "started it".into(), "it has ended".into()];
    let Some(real) = Real::with(agent, turns) else { return };
    let said = real.run(&[]);
    real.ended("background shell", &said, "completed", "completed");
    // Codex cuts it off in the end, and Gemini CLI never says how it ended: launched is not completed.
    real.ledger(&[match agent {
        "codex" | "gemini" => "in_doubt",
        _ => "completed",
    }]);
    if agent == "claude" {
        assert_eq!(std::fs::read_to_string(real.file("late.txt")).unwrap(), "late\n");
    }
}

/// What a person wrote between two calls, and what another session made, is left when the agent's work is taken back.
#[rstest]
fn taken_back_without_what_others_wrote(
    #[values("claude", "codex", "gemini", "opencode")] agent: &'static str,
) {
    let turns = [
        Turn::ops([Op::write("named.txt", "agent\n")]),
        Turn::sh("echo agent > shell.txt").gate("between"),
        "the end".into(),
    ];
    let Some(real) = Real::with(agent, turns) else { return };
    std::fs::write(real.file("notes.md"), "old\n").unwrap();
    let live = real.start(&[]);
    real.wait_file("named.txt");
    assert!(real.model.wait_held("between", crate::lab::PATIENCE), "the second call is held");
    until("the first call has ended", || (real.lab.tools().first()?["state"] == "completed").then_some(()));
    std::fs::write(real.file("notes.md"), "a person's\n").unwrap();
    std::fs::write(real.file("idea.md"), "a person's\n").unwrap();
    real.model.open_gate("between");
    let said = live.finish();
    assert_eq!(said.result()["outcome"], "completed", "{}", said.stderr);
    let id = real.lab.state()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(real.lab.run(&["run", "--", "sh", "-c", "echo theirs > other.txt"]).code, Some(0));
    let undone = real.lab.json(&["undo", "--session", &id, "--yes"]);
    assert!(!real.file("named.txt").exists() && !real.file("shell.txt").exists(), "{undone}");
    for (name, content) in
        [("notes.md", "a person's\n"), ("idea.md", "a person's\n"), ("other.txt", "theirs\n")]
    {
        assert_eq!(std::fs::read_to_string(real.file(name)).unwrap(), content, "{name}: {undone}");
    }
}
