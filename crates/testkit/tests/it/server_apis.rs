//! The scripted model server: chat completions and Gemini, which have rules of their own.

use std::time::Duration;

use segno_testkit::model::Api;
use segno_testkit::model::End;
use segno_testkit::model::Fault;
use segno_testkit::model::Gate;
use segno_testkit::model::Model;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Turn;
use segno_testkit::model::Usage;
use segno_testkit::model::When;
use serde_json::Value;
use serde_json::json;

use crate::client::Client;
use crate::client::chat;
use crate::client::contents;

const CHAT: &str = "/v1/chat/completions";
const WHOLE: &str = "/v1beta/models/gem:generateContent";
const STREAM: &str = "/v1beta/models/gem:streamGenerateContent?alt=sse";
const SOON: Duration = Duration::from_secs(10);

fn start(script: Script) -> (Model, Client) {
    let model = Model::start(script).unwrap();
    let client = Client::new(&model);
    (model, client)
}

fn turn() -> Turn {
    let usage = Usage { input: 100, output: 20, cache_read: 30, cache_write: 0 };
    Turn {
        thinking: Some("hm".to_owned()),
        text: Some("hello".to_owned()),
        ops: vec![Op::sh("ls"), Op::write("a", "b\n")],
        chunk: 3,
        usage,
        ..Turn::default()
    }
}

#[test]
fn chat_completions() {
    let (model, mut client) = start(Script::new([turn().times(2)]));
    let whole = client.post(CHAT, &chat("hi", &["bash", "write"], false)).json();
    let message = &whole["choices"][0]["message"];
    assert_eq!((&message["content"], &message["reasoning_content"]), (&json!("hello"), &json!("hm")));
    let call = &message["tool_calls"][0];
    assert_eq!(call["function"]["name"], "bash");
    let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments["command"], "ls");
    assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(
        (&whole["usage"]["prompt_tokens"], &whole["usage"]["total_tokens"]),
        (&json!(130), &json!(150))
    );

    let stream = client.post(CHAT, &chat("hi", &["bash", "write"], true));
    assert!(stream.body.ends_with("data: [DONE]\n\n") && !stream.body.contains("event:"));
    let events = stream.events();
    let joined = |field: &str| -> String {
        events.iter().filter_map(|event| event["choices"][0]["delta"][field].as_str()).collect()
    };
    assert_eq!((joined("content"), joined("reasoning_content")), ("hello".to_owned(), "hm".to_owned()));
    let calls: Vec<&Value> = events
        .iter()
        .map(|event| &event["choices"][0]["delta"]["tool_calls"][0])
        .filter(|call| !call.is_null())
        .collect();
    let arguments = |index: usize| -> String {
        let own = calls.iter().filter(|call| call["index"] == index);
        own.filter_map(|call| call["function"]["arguments"].as_str()).collect()
    };
    assert_eq!(
        serde_json::from_str::<Value>(&arguments(1)).unwrap(),
        json!({ "filePath": "a", "content": "b\n" })
    );
    let last = events.last().unwrap();
    assert_eq!(
        (&last["choices"][0]["finish_reason"], &last["usage"]["total_tokens"]),
        (&json!("tool_calls"), &json!(150))
    );
    let request = &model.requests()[0];
    assert_eq!((request.last_user.as_str(), request.tools), ("hi", 2));
    assert!(!request.conversation.contains("be good"));
}

#[test]
fn gemini() {
    let (model, mut client) = start(Script::new([turn().times(2)]));
    let tools = ["run_shell_command", "write_file"];
    let whole = client.post(WHOLE, &contents("hi", &tools)).json();
    let parts = &whole["candidates"][0]["content"]["parts"];
    assert_eq!((&parts[0]["thought"], &parts[1]["text"]), (&json!(true), &json!("hello")));
    assert_eq!(parts[2]["functionCall"]["args"]["command"], "ls");
    assert_eq!(whole["candidates"][0]["finishReason"], "STOP");
    assert_eq!(
        (&whole["usageMetadata"]["promptTokenCount"], &whole["modelVersion"]),
        (&json!(130), &json!("gem"))
    );

    let stream = client.post(STREAM, &contents("hi", &tools));
    assert!(!stream.body.contains("event:"));
    let events = stream.events();
    let text: String = events
        .iter()
        .map(|event| &event["candidates"][0]["content"]["parts"][0])
        .filter(|part| part["thought"].is_null())
        .filter_map(|part| part["text"].as_str())
        .collect();
    assert_eq!(text, "hello");
    let done: Vec<bool> =
        events.iter().map(|event| event["candidates"][0]["finishReason"] == "STOP").collect();
    assert!(done.last() == Some(&true) && done.iter().filter(|done| **done).count() == 1);
    let requests = model.requests();
    assert_eq!((requests[0].stream, requests[1].stream, requests[1].model.as_str()), (false, true, "gem"));
    assert_eq!(requests[0].last_user, "hi", "the agent's own words are not the user's");
    let count = client.post("/v1beta/models/gem:countTokens", &contents("hi", &[]));
    assert!(count.json()["totalTokens"].as_u64() > Some(0));
}

#[test]
fn history_tracks_and_references() {
    let script = Script::new([Turn::sh("echo ${last:pid=(\\d+)}")])
        .track("helper", When::first_user("^count"), ["counted".into()])
        .track("gemini", When { api: Some(Api::Gemini), ..When::default() }, ["by interface".into()]);
    let (model, mut client) = start(script);
    let helper = client.post(CHAT, &chat("count it", &["bash"], false)).json();
    assert_eq!(helper["choices"][0]["message"]["content"], "counted");
    // A result of a tool is part of what is said, and no message of the user.
    let mut body = chat("hi", &["bash"], false);
    let call = json!({ "id": "c", "type": "function", "function": { "name": "bash", "arguments": "{}" } });
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [call] }));
    messages.push(json!({ "role": "tool", "tool_call_id": "c", "content": "pid=42" }));
    let answer = client.post(CHAT, &body).json().to_string();
    assert!(answer.contains("echo 42"), "{answer}");
    let gemini = client.post(WHOLE, &contents("hi", &["glob"])).json();
    assert_eq!(gemini["candidates"][0]["content"]["parts"][0]["text"], "by interface");
    let side = client.post(CHAT, &chat("a title", &[], false)).json();
    assert_eq!(side["choices"][0]["message"]["content"], "ok");
    let tracks: Vec<String> = model.requests().into_iter().map(|request| request.track).collect();
    assert_eq!(tracks, ["helper", "main", "gemini", "side"]);
}

#[test]
fn faults() {
    let failing = || Fault::StreamError { kind: "overloaded".to_owned(), message: None, after: None };
    let held = Gate { name: "late".to_owned(), after: Some(1) };
    let turns = [
        Turn::error(429).header("retry-after", "7").times(2),
        Turn { text: Some("abc".to_owned()), ..failing().into() }.times(2),
        Turn { text: Some("abc".to_owned()), ..Fault::Drop { after: Some(1) }.into() }.times(2),
        Turn { gate: Some(held), ..Turn::text("z") },
        Turn::stall(1),
    ];
    let (model, mut client) = start(Script::new(turns));
    let limited = client.post(CHAT, &chat("hi", &["bash"], true));
    assert_eq!((limited.status, &limited.json()["error"]["code"]), (429, &json!("rate_limit_exceeded")));
    assert!(limited.headers.contains(&"retry-after: 7".to_owned()));
    let limited = client.post(STREAM, &contents("hi", &["glob"])).json();
    assert_eq!(
        (&limited["error"]["code"], &limited["error"]["status"]),
        (&json!(429), &json!("RESOURCE_EXHAUSTED"))
    );
    // The error stands in the place of what would complete the answer.
    let failed = client.post(CHAT, &chat("hi", &["bash"], true));
    assert_eq!(failed.events().last().unwrap()["error"]["type"], "overloaded");
    assert!(!failed.body.contains("[DONE]") && !failed.body.contains("\"stop\""));
    let failed = client.post(STREAM, &contents("hi", &["glob"]));
    assert_eq!(failed.events().last().unwrap()["error"]["status"], "overloaded");
    assert!(!failed.body.contains("STOP"));
    for body in [chat("hi", &["bash"], true), contents("hi", &["glob"])] {
        let path = if body["contents"].is_null() { CHAT } else { STREAM };
        let cut = Client::new(&model).post(path, &body);
        assert!(cut.cut && cut.events().len() == 1, "{}", cut.body);
    }
    let mut client = Client::new(&model);
    client.send("POST", STREAM, &contents("hi", &["glob"]).to_string());
    assert!(model.wait_held("late", SOON));
    model.open_gate("late");
    assert!(!client.receive().cut);
    let mut client = Client::new(&model);
    client.send("POST", CHAT, &chat("hi", &["bash"], true).to_string());
    assert!(model.wait(SOON, |requests| requests.len() == 8));
    drop(client);
    assert!(model.wait(SOON, |requests| requests[7].end == End::ClientGone));
}
