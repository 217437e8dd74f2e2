//! The scripted model server, seen from a client.

use std::time::Duration;
use std::time::Instant;

use segno_testkit::model::End;
use segno_testkit::model::Fault;
use segno_testkit::model::Gate;
use segno_testkit::model::Index;
use segno_testkit::model::Limits;
use segno_testkit::model::Model;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Then;
use segno_testkit::model::Turn;
use segno_testkit::model::When;
use serde_json::Value;
use serde_json::json;

use crate::client::Client;
use crate::client::messages;
use crate::client::responses;

const MESSAGES: &str = "/v1/messages?beta=true";
const RESPONSES: &str = "/v1/responses";
const SOON: Duration = Duration::from_secs(10);

fn start(script: Script) -> (Model, Client) {
    let model = Model::start(script).unwrap();
    let client = Client::new(&model);
    (model, client)
}

fn ends(model: &Model) -> Vec<End> {
    model.requests().into_iter().map(|request| request.end).collect()
}

#[test]
fn streams_and_whole_answers_say_the_same() {
    let turn = Turn { thinking: Some("hm".to_owned()), ..Turn::text("hello").times(4) };
    let (_model, mut client) = start(Script::new([turn]));
    let whole = client.post(MESSAGES, &messages("hi", &["Bash"], false)).json();
    assert_eq!(whole["content"][0]["thinking"], "hm");
    assert_eq!(whole["content"][1]["text"], "hello");
    assert_eq!((&whole["stop_reason"], &whole["usage"]["output_tokens"]), (&json!("end_turn"), &json!(20)));
    let stream = client.post(MESSAGES, &messages("hi", &["Bash"], true));
    let types = stream.types();
    assert_eq!(
        (types.first().unwrap().as_str(), types.last().unwrap().as_str()),
        ("message_start", "message_stop")
    );
    let text: String = stream.events().iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert_eq!(text, "hello");
    let whole = client.post(RESPONSES, &responses("hi", &["exec_command"], false)).json();
    assert_eq!(whole["output"][1]["content"][0]["text"], "hello");
    let stream = client.post(RESPONSES, &responses("hi", &["exec_command"], true)).events();
    assert_eq!(stream.last().unwrap()["type"], "response.completed");
    assert_eq!(stream.last().unwrap()["response"]["usage"]["total_tokens"], 120);
}

#[test]
fn portable_ops_become_the_tools_that_are_there() {
    let ops = [Op::sh("ls"), Op::write("a", "b\n"), Op::Read("a".to_owned()), Op::task("help")];
    let (model, mut client) = start(Script::new([Turn::ops(ops).times(2), Turn::sh("ls")]));
    let whole = client.post(MESSAGES, &messages("hi", &["Bash", "Write", "Read", "Agent"], false)).json();
    let names: Vec<&Value> =
        whole["content"].as_array().unwrap().iter().map(|block| &block["name"]).collect();
    assert_eq!(names, ["Bash", "Write", "Read", "Agent"]);
    assert_eq!(whole["content"][0]["input"]["command"], "ls");
    assert_eq!(whole["stop_reason"], "tool_use");
    let tools = ["exec_command", "apply_patch", "tool_search"];
    let whole = client.post(RESPONSES, &responses("hi", &tools, false)).json();
    let items = whole["output"].as_array().unwrap();
    assert_eq!(items[0]["arguments"], r#"{"cmd":"ls"}"#);
    assert_eq!(items[1]["type"], "custom_tool_call");
    assert_eq!(items[1]["input"], "*** Begin Patch\n*** Add File: a\n+b\n*** End Patch\n");
    assert_eq!(items[2]["arguments"], r#"{"cmd":"cat 'a'"}"#, "no tool to read: the shell reads");
    assert_eq!(
        (&items[3]["name"], &items[3]["namespace"]),
        (&json!("spawn_agent"), &json!("multi_agent_v1"))
    );
    let refused = client.post(MESSAGES, &messages("hi", &["Write"], false));
    assert_eq!(refused.status, 400);
    assert!(matches!(&ends(&model)[2], End::BadScript(why) if why.contains("run a command")));
}

#[test]
fn tracks_do_not_use_up_each_others_turns() {
    let script = Script::new(["one".into(), "two".into()])
        .track("helper", When::first_user("^count"), ["counted".into()])
        .track("compaction", When::compaction(), ["short".into()]);
    let (model, mut client) = start(script);
    let mut ask = |prompt: &str, tools: &[&str]| {
        client.post(MESSAGES, &messages(prompt, tools, false)).json()["content"][0]["text"].clone()
    };
    assert_eq!(ask("work", &["Bash"]), "one");
    assert_eq!(ask("a title please", &[]), "ok");
    assert_eq!(ask("count it", &["Bash"]), "counted");
    assert_eq!(ask("write a <summary> block", &["Bash"]), "short");
    assert_eq!(ask("work", &["Bash"]), "two");
    assert_eq!(ask("work", &["Bash"]), "done.", "past the end");
    let tracks: Vec<String> = model.requests().into_iter().map(|request| request.track).collect();
    assert_eq!(tracks, ["main", "side", "helper", "compaction", "main", "main"]);
}

#[test]
fn what_comes_after_the_last_turn() {
    for (then, expected) in [(Then::Repeat, "b"), (Then::Loop, "a"), (Then::End, "done.")] {
        let (_model, mut client) = start(Script::new(["a".into(), "b".into()]).then(then));
        let mut last = Value::Null;
        for _ in 0..3 {
            last =
                client.post(MESSAGES, &messages("hi", &["Bash"], false)).json()["content"][0]["text"].clone();
        }
        assert_eq!(last, expected);
    }
    let (_model, mut client) = start(Script::default().then(Then::Error));
    assert_eq!(client.post(MESSAGES, &messages("hi", &["Bash"], false)).status, 500);
    let history = Script { index: Index::History, ..Script::new(["a".into(), "b".into()]) };
    let (_model, mut client) = start(history);
    for _ in 0..2 {
        let answer = client.post(MESSAGES, &messages("hi", &["Bash"], false)).json();
        assert_eq!(answer["content"][0]["text"], "a", "the same request gets the same turn");
    }
}

#[test]
fn references_to_the_conversation() {
    let (model, mut client) =
        start(Script::new([Turn::sh("kill ${last:pid=(\\d+)}"), Turn::sh("${last:nowhere}")]));
    let answer = client.post(MESSAGES, &messages("pid=1 pid=22", &["Bash"], false)).json();
    assert_eq!(answer["content"][0]["input"]["command"], "kill 22");
    assert_eq!(client.post(MESSAGES, &messages("hi", &["Bash"], false)).status, 400);
    assert!(matches!(&ends(&model)[1], End::BadScript(_)));
}

#[test]
fn errors() {
    let stream_error =
        |after| Fault::StreamError { kind: "overloaded_error".to_owned(), message: None, after };
    let raw = Fault::Raw { body: "no events".to_owned(), content_type: "text/html".to_owned() };
    let turns = [
        Turn::error(429).header("retry-after", "7"),
        Turn { text: Some("abc".to_owned()), ..stream_error(Some(2)).into() },
        Turn { text: Some("abc".to_owned()), ..stream_error(None).into() },
        Turn::from(raw),
        Turn::error(503),
    ];
    let (model, mut client) = start(Script::new(turns));
    let limited = client.post(MESSAGES, &messages("hi", &["Bash"], true));
    assert_eq!((limited.status, &limited.json()["error"]["type"]), (429, &json!("rate_limit_error")));
    assert!(limited.headers.contains(&"retry-after: 7".to_owned()));
    let early = client.post(MESSAGES, &messages("hi", &["Bash"], true));
    assert_eq!(early.types(), ["message_start", "ping", "error"]);
    let late = client.post(MESSAGES, &messages("hi", &["Bash"], true)).types();
    assert_eq!(late.last().unwrap(), "error");
    assert!(!late.contains(&"message_stop".to_owned()) && late.contains(&"message_delta".to_owned()));
    assert_eq!(client.post(MESSAGES, &messages("hi", &["Bash"], true)).body, "no events");
    let codex = client.post(RESPONSES, &responses("hi", &["exec_command"], true));
    assert_eq!((codex.status, &codex.json()["error"]["code"]), (503, &json!("server_error")));
    let expected = [End::Error(429), End::StreamError, End::StreamError, End::Raw, End::Error(503)];
    assert_eq!(ends(&model), expected);
}

#[test]
fn stalls_drops_and_gates() {
    let held = Gate { name: "late".to_owned(), after: Some(1) };
    let turns = [
        Turn::stall(2),
        Turn::from(Fault::Drop { after: Some(3) }),
        Turn::from(Fault::Drop { after: None }),
        Turn { text: Some("x".to_owned()), ..Fault::Stall { after: Some(1), ms: Some(150) }.into() },
        Turn::text("y").gate("early"),
        Turn { gate: Some(held), ..Turn::text("z") },
    ];
    let (model, mut client) = start(Script::new(turns));
    let body = messages("hi", &["Bash"], true);
    client.send("POST", MESSAGES, &body.to_string());
    assert!(model.wait(SOON, |requests| requests.len() == 1));
    drop(client);
    assert!(model.wait(SOON, |requests| requests[0].end == End::ClientGone), "it sees that nobody listens");

    let cut = Client::new(&model).post(MESSAGES, &body);
    assert!(cut.cut && cut.status == 200);
    assert_eq!(cut.types().len(), 3);
    let cut = Client::new(&model).post(MESSAGES, &body);
    assert!(cut.cut && cut.status == 0);

    let begin = Instant::now();
    let slow = Client::new(&model).post(MESSAGES, &body);
    assert!(!slow.cut && begin.elapsed() >= Duration::from_millis(150));

    for gate in ["early", "late"] {
        let mut client = Client::new(&model);
        client.send("POST", MESSAGES, &body.to_string());
        assert!(model.wait_held(gate, SOON));
        model.open_gate(gate);
        assert!(!client.receive().cut);
    }
    let done = [End::ClientGone, End::Dropped, End::Dropped, End::Done, End::Done, End::Done];
    assert_eq!(ends(&model), done);
}

#[test]
fn small_requests() {
    let (model, mut client) = start(Script::default());
    client.send("HEAD", "/", "");
    assert_eq!(client.receive().status, 200);
    client.send("GET", "/v1/models?limit=1", "");
    assert!(client.receive().json()["data"].is_array());
    assert_eq!(client.post("/v1/messages/count_tokens", &messages("hi", &[], false)).status, 200);
    client.send("GET", "/favicon.ico", "");
    assert_eq!(client.receive().status, 404);
    client.send("POST", MESSAGES, "not json");
    assert_eq!(client.receive().status, 400);
    assert!(model.requests().is_empty());
    assert_eq!(model.small_requests().len(), 4);
}

#[test]
fn it_ends_whatever_happens() {
    let limits =
        Limits { lifetime: Duration::from_millis(300), requests: 1, connections: 2, ..Limits::default() };
    let model = Model::start_with(Script::new([Turn::text("x").gate("never")]), limits).unwrap();
    let mut client = Client::new(&model);
    client.send("POST", MESSAGES, &messages("hi", &["Bash"], true).to_string());
    assert!(model.wait_held("never", SOON));
    let refused = Client::new(&model).post(MESSAGES, &messages("hi", &["Bash"], true));
    assert_eq!(refused.status, 503, "one request is enough");
    assert!(model.wait_stopped(SOON), "its time is over");
    assert!(client.receive().cut);
    let begin = Instant::now();
    drop(model);
    assert!(begin.elapsed() < Duration::from_secs(2));
}

#[test]
fn bad_scripts_are_refused() {
    let read = |text: &str| serde_json::from_str::<Script>(text);
    let error = read(r#"{"turns": [{"ops": [{"sh": {"command": "ls", "tiemout_ms": 1}}]}]}"#).unwrap_err();
    assert!(error.to_string().contains("tiemout_ms"), "{error}");
    assert!(read(r#"{"turns": [7]}"#).is_err());
    assert!(read(r#"{"turn": []}"#).is_err());
    assert!(Model::start(Script::default().track("x", When::first_user("("), [])).is_err());
}
