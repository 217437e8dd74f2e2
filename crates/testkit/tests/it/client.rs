//! A small HTTP client that sees exactly what the server sends.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use segno_testkit::model::Model;
use serde_json::Value;
use serde_json::json;

/// A response; `cut` when the connection ended before it did.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
    pub(crate) cut: bool,
}

pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) fn new(model: &Model) -> Self {
        let stream = TcpStream::connect(model.url().trim_start_matches("http://")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(BufReader::new(stream))
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, body: &str) {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        self.0.get_mut().write_all((head + body).as_bytes()).unwrap();
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Response {
        self.send("POST", path, &body.to_string());
        self.receive()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(length) if length > 0 => Some(line.trim_end().to_owned()),
            _ => None,
        }
    }

    pub(crate) fn receive(&mut self) -> Response {
        let mut response = Response { status: 0, headers: Vec::new(), body: String::new(), cut: true };
        let Some(first) = self.line() else { return response };
        response.status = first.split(' ').nth(1).unwrap().parse().unwrap();
        while let Some(line) = self.line().filter(|line| !line.is_empty()) {
            response.headers.push(line.to_ascii_lowercase());
        }
        let length = response.headers.iter().find_map(|header| header.strip_prefix("content-length: "));
        let mut body = Vec::new();
        if let Some(length) = length {
            body = vec![0; length.parse().unwrap()];
            response.cut = self.0.read_exact(&mut body).is_err();
        } else {
            while let Some(size) = self.line() {
                let size = usize::from_str_radix(&size, 16).unwrap();
                let mut chunk = vec![0; size + 2];
                if self.0.read_exact(&mut chunk).is_err() {
                    break;
                }
                body.extend_from_slice(&chunk[..size]);
                if size == 0 {
                    response.cut = false;
                    break;
                }
            }
        }
        response.body = String::from_utf8(body).unwrap();
        response
    }
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The data of the events of a stream.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let data = data.filter(|data| *data != "[DONE]");
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    /// The types of the events of a stream.
    pub(crate) fn types(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }
}

/// A request as Claude Code makes them.
pub(crate) fn messages(prompt: &str, tools: &[&str], stream: bool) -> Value {
    let tools: Vec<Value> = tools.iter().map(|name| json!({ "name": name, "input_schema": {} })).collect();
    json!({
        "model": "m", "stream": stream, "tools": tools, "max_tokens": 10, "system": "be good",
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": prompt }] }],
    })
}

/// A request as Codex makes them.
pub(crate) fn responses(prompt: &str, tools: &[&str], stream: bool) -> Value {
    let kind = |name: &str| if name == "apply_patch" { "custom" } else { "function" };
    let tools: Vec<Value> = tools.iter().map(|name| json!({ "type": kind(name), "name": name })).collect();
    let message = |text: &str| json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] });
    json!({
        "model": "m", "stream": stream, "tools": tools, "instructions": "be good",
        "input": [message("<environment_context>…</environment_context>"), message(prompt)],
    })
}

/// A request as opencode makes them.
pub(crate) fn chat(prompt: &str, tools: &[&str], stream: bool) -> Value {
    let tools: Vec<Value> =
        tools.iter().map(|name| json!({ "type": "function", "function": { "name": name } })).collect();
    json!({
        "model": "m", "stream": stream, "tools": tools,
        "messages": [{ "role": "system", "content": "be good" }, { "role": "user", "content": prompt }],
    })
}

/// A request as Gemini CLI makes them. The path says which model is asked, and whether for a stream.
pub(crate) fn contents(prompt: &str, tools: &[&str]) -> Value {
    let tools: Vec<Value> = tools.iter().map(|name| json!({ "name": name })).collect();
    let user = |text: &str| json!({ "role": "user", "parts": [{ "text": text }] });
    json!({
        "contents": [user("<session_context>\u{2026}</session_context>"), user(prompt)],
        "systemInstruction": { "role": "user", "parts": [{ "text": "be good" }] },
        "tools": if tools.is_empty() { json!([]) } else { json!([{ "functionDeclarations": tools }]) },
    })
}
