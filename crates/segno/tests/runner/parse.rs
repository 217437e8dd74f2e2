//! Recorded streams of agents, understood.

use crate::common::TestEnv;

const CLAUDE: &str = r#"{"type":"system","subtype":"init","session_id":"11111111-2222-4333-8444-555555555555","model":"m","cwd":"/p","tools":["Bash"]}
{"type":"assistant","session_id":"11111111-2222-4333-8444-555555555555","message":{"id":"msg_1","role":"assistant","content":[{"type":"text","text":"I look.\u001b[31m"}]}}
{"type":"assistant","session_id":"11111111-2222-4333-8444-555555555555","message":{"id":"msg_1","role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","session_id":"11111111-2222-4333-8444-555555555555","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"a.rs"}]}}
this is no event
{"type":"something_new","session_id":"11111111-2222-4333-8444-555555555555","n":1}
{"type":"result","subtype":"success","is_error":false,"session_id":"11111111-2222-4333-8444-555555555555","num_turns":2,"result":"done","duration_ms":5,"total_cost_usd":0.01,"usage":{"input_tokens":10,"output_tokens":5}}
"#;

#[test]
fn a_stream_becomes_events_and_an_outcome() {
    let env = TestEnv::new();
    env.write("project/stream.jsonl", CLAUDE);
    let said = env.show_all(&[
        &["parse", "--agent", "claude", "stream.jsonl"],
        &["parse", "--agent", "claude", "stream.jsonl", "--json"],
        &["parse", "--agent", "claude", "missing.jsonl"],
        &["parse", "--agent", "nobody", "stream.jsonl"],
    ]);
    insta::assert_snapshot!("parse", said);
}

#[test]
fn a_stream_without_its_end_was_interrupted_whatever_the_exit_code() {
    let env = TestEnv::new();
    let cut = CLAUDE.rfind("{\"type\":\"result\"").unwrap();
    env.write("project/cut.jsonl", &CLAUDE[..cut]);
    for exit in ["0", "1", "-9"] {
        let said = env.run(&["parse", "--agent", "claude", "cut.jsonl", "--exit", exit, "--json"]);
        let last: serde_json::Value = serde_json::from_str(said.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(last["kind"], "outcome");
        assert_eq!(last["outcome"], "interrupted", "{exit}");
        assert!(last["native_id"].is_string(), "known from the first line on");
        assert_eq!(last["lines"], 6);
        assert_eq!(last["unparsed"], 2);
    }
}

#[test]
fn every_agent_has_a_reader() {
    let env = TestEnv::new();
    for (agent, stream) in [
        (
            "gemini",
            "{\"type\":\"init\",\"session_id\":\"g\",\"model\":\"m\"}\n{\"type\":\"result\",\"status\":\"success\"}\n",
        ),
        (
            "opencode",
            "{\"type\":\"step_finish\",\"sessionID\":\"o\",\"part\":{\"type\":\"step-finish\",\"reason\":\"stop\"}}\n",
        ),
        ("plain", "hello\n"),
    ] {
        env.write("project/stream.jsonl", stream);
        let said = env.run(&["parse", "--agent", agent, "stream.jsonl", "--json"]);
        let last: serde_json::Value = serde_json::from_str(said.stdout.lines().last().unwrap()).unwrap();
        assert_eq!((&last["kind"], &last["outcome"]), (&"outcome".into(), &"completed".into()), "{agent}");
    }
}
