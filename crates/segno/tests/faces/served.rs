//! What the page shows and does, below the browser.

use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use crate::common::TestEnv;
use crate::server::Browser;
use crate::server::Server;

fn state(env: &TestEnv, id: &str) -> Value {
    env.json(&["show", id])["session"].clone()
}

/// Server-sent events, read one by one.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(browser: &Browser<'_>, path: &str, last: Option<u64>) -> Self {
        let mut stream = browser.server.connect();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let last = last.map_or(String::new(), |last| format!("Last-Event-ID: {last}\r\n"));
        let (host, cookie) = (&browser.server.host, &browser.cookie);
        let text = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n{last}\r\n");
        stream.write_all(text.as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    /// The next event: its name, its id, its data.
    fn next(&mut self) -> (String, Option<u64>, Value) {
        let (mut name, mut id, mut data) = (String::new(), None, String::new());
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            let line = line.trim_end();
            match line.split_once(": ").or_else(|| line.split_once(':')) {
                Some(("event", word)) => word.clone_into(&mut name),
                Some(("id", number)) => id = number.parse().ok(),
                Some(("data", text)) => data.push_str(text),
                // An empty line ends it; sizes of pieces, heads and comments are none of it.
                _ if line.is_empty() && name == "alive" => name.clear(),
                _ if line.is_empty() && !name.is_empty() => {
                    return (name, id, serde_json::from_str(&data).unwrap_or(Value::Null));
                }
                _ => {}
            }
        }
    }

    fn news(&mut self) -> (u64, String) {
        loop {
            let (name, id, data) = self.next();
            if name == "news" {
                return (id.unwrap(), data["html"].as_str().unwrap().to_owned());
            }
        }
    }
}

/// The documents name every address, and none that is not there.
#[test]
#[expect(clippy::disallowed_methods, reason = "whether to write it anew is told by the environment")]
fn the_interface_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let mut document = serde_json::to_string_pretty(&segno::interface()).unwrap();
    document.push('\n');
    if std::env::var_os("SEGNO_BLESS").is_some() {
        std::fs::write(path, &document).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), document, "SEGNO_BLESS=1 writes it anew");
}

/// Whether a value has this type, or one of these.
fn is(value: &Value, kind: &Value) -> bool {
    if let Some(kinds) = kind.as_array() {
        return kinds.iter().any(|kind| is(value, kind));
    }
    match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "integer" => value.is_u64(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other}"),
    }
}

#[test]
fn every_address_answers() {
    let env = TestEnv::new();
    let id = env.start(&["boats"]);
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    let document = segno::interface();
    let mut names = std::collections::BTreeSet::new();
    for (path, it) in document["paths"].as_object().unwrap() {
        let it = it.as_object().unwrap().values().next().unwrap();
        assert!(names.insert(it["operationId"].as_str().unwrap().to_owned()), "{path}");
        let content = it["responses"]["200"]["content"].as_object().unwrap();
        let kind = if path.ends_with("events") { "text/event-stream" } else { "application/json" };
        assert_eq!(content.keys().collect::<Vec<_>>(), [kind], "{path}");
    }
    for (path, it) in document["paths"].as_object().unwrap() {
        if it.get("get").is_some() && !path.ends_with("events") && !path.ends_with("/diff") {
            let ask = if path.ends_with("/search") { "?q=boats" } else { "" };
            let answer = browser.get(&format!("{}{ask}", path.replace("{session}", &id)));
            assert_eq!(answer.status, 200, "{path} {answer:?}");
            let answer = answer.json();
            let schema = &it["get"]["responses"]["200"]["content"]["application/json"]["schema"];
            if let Some(members) = schema["properties"].as_object() {
                let told: Vec<&String> = answer.as_object().unwrap().keys().collect();
                assert_eq!(told, members.keys().collect::<Vec<_>>(), "{path} gives what is documented");
                for (name, schema) in members {
                    assert!(is(&answer[name], &schema["type"]), "{path} {name} {}", answer[name]);
                }
            }
            assert!(answer.is_object(), "{path}");
        }
    }
    for part in ["", "/moments", "/e/1", "/calls", "/phases", "/checkpoints", "/decisions", "/cost", "/brief"]
    {
        let answer = browser.get(&format!("/s/{id}{part}"));
        assert_eq!(answer.status, 200, "{part} {answer:?}");
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    }
    let page = browser.get("/").body;
    for start in ["href=\"/a/", "src=\"/a/"] {
        let (_, rest) = page.split_once(start).unwrap();
        let asset = server.ask(
            "GET",
            &format!("/a/{}", rest.split('"').next().unwrap()),
            &[("Host", &server.host)],
            "",
        );
        assert_eq!(asset.header("cache-control"), Some("public, max-age=31536000, immutable"));
    }
    let missing = browser.get("/nothing");
    assert!(missing.status == 404 && missing.body.contains("<h1>Not found</h1>"), "{missing:?}");
}

/// What forms send is understood, and what is not is said in words, as every other error.
#[test]
fn odd_questions_get_plain_answers() {
    let env = TestEnv::new();
    let id = env.start(&["boats"]);
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    for path in
        ["/?archived=on", "/cost?days=", "/api/v1/sessions?limit=&skip=", "/api/v1/costs?by=day&days="]
    {
        assert_eq!(browser.get(path).status, 200, "{path}");
    }
    for path in ["/?limit=abc", "/?nonsense=1", "/cost?days=-1", "/?archived=maybe"] {
        let page = browser.get(path);
        assert_eq!(page.status, 400, "{path}");
        assert!(page.body.contains("<h1>This cannot be shown</h1>"), "{path} {}", page.body);
        assert!(!page.body.contains("deserialize"), "{path} {}", page.body);
    }
    let said = browser.get("/api/v1/sessions?limit=abc");
    assert_eq!((said.status, said.code().as_str()), (400, "bad_request"));
    let message = said.json()["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "this address is not understood: limit: \"abc\" is not such a number");
    let missing = browser.get(&format!("/s/{id}/e/-1"));
    assert!(missing.status == 404 && missing.body.contains("<h1>Not found</h1>"), "{missing:?}");
}

/// Decisions are a tree: what follows one of several stands below that one, and says so where it is not just above.
#[test]
fn decisions_stand_below_what_they_follow() {
    let env = TestEnv::new();
    let id = env.start(&["boats"]);
    let decide = |question: &str, more: &[&str]| {
        env.ok(&[&["decide", question, "--choice", "so"], more].concat());
    };
    decide("first?", &[]);
    decide("second?", &["--parent", "1"]);
    decide("third?", &["--parent", "2"]);
    decide("fourth?", &["--parent", "1"]);
    let server = Server::start(&env, &[]);
    let page = server.browser().get(&format!("/s/{id}/decisions")).body;
    let depth = |number: u32| {
        let (before, _) = page.split_once(&format!("\" id=\"d{number}\"")).unwrap();
        before.rsplit_once("deep-").unwrap().1.parse::<u32>().unwrap()
    };
    assert_eq!([1, 2, 3, 4].map(depth), [0, 1, 2, 1]);
    assert_eq!(page.matches("follows <a href=\"#d1\">1</a>").count(), 1, "{page}");
}

#[test]
fn before_there_is_a_store_the_page_says_so() {
    let env = TestEnv::new();
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    assert!(browser.get("/").body.contains("No sessions yet."));
    assert_eq!(browser.get("/api/v1/sessions").json()["total"], 0);
    env.start(&["first"]);
    assert!(browser.get("/").body.contains("first"));
}

#[test]
fn whoever_needs_somebody_comes_first() {
    let env = TestEnv::new();
    let plain = env.start(&["plain work", "--parallel"]);
    let asks = env.start(&["a place to look", "--parallel"]);
    env.ok(&["--session", &asks, "breakpoint", "wait", "review"]);
    env.start(&["newest", "--parallel"]);
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    let page = browser.get("/api/v1/sessions?limit=1").json();
    assert_eq!(
        (page["total"].as_u64(), page["sessions"][0]["session_id"].as_str()),
        (Some(3), Some(asks.as_str()))
    );
    assert_eq!(page["groups"], json!({ "over": 0, "waits": 2, "works": 0, "you": 1 }));
    let html = browser.get("/").body;
    assert!(html.contains("go on from breakpoint review?"), "{html}");
    let found = browser.get("/api/v1/sessions?text=PLAIN&order=topic").json();
    assert_eq!(found["sessions"][0]["session_id"], json!(plain));
    let question = browser.get("/api/v1/questions").json()["questions"][0].clone();
    let answer = json!({ "question": question["id"], "answer": "yes" });
    let wrong = browser.act(&plain, "answer", &answer);
    assert_eq!((wrong.status, wrong.code().as_str()), (409, "unknown_question"));
    let given = browser.act(&asks, "answer", &answer);
    assert_eq!(given.status, 200, "{given:?}");
    assert_eq!(browser.get("/api/v1/questions").json()["questions"], json!([]));
    let again = browser.act(&asks, "answer", &answer);
    assert_eq!(again.code(), "unknown_question");
}

/// What is done on the page is in the journal, with where it came from; and the rules of the commands hold.
#[test]
fn actions_are_commands_and_the_journal_says_who() {
    let env = TestEnv::new();
    let id = env.start(&["boats", "--budget", "1000"]);
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    let done = |act: &str, body: Value| {
        let answer = browser.act(&id, act, &body);
        assert_eq!(answer.status, 200, "{act} {answer:?}");
    };
    done("note", json!({ "text": "look at <b>this</b>" }));
    done("extend", json!({ "tokens": "50k" }));
    done("checkpoint", json!({ "name": "here" }));
    done("pause", json!({ "reason": "lunch" }));
    let refused = browser.act(&id, "checkpoint", &json!({ "name": "late" }));
    assert!(matches!(refused.status, 200 | 409), "{refused:?}");
    done("resume", json!({}));
    let state = state(&env, &id);
    assert_eq!((state["status"].as_str(), state["token_budget"].as_u64()), (Some("active"), Some(51_000)));
    let history = env.ok(&["history", &id]).stdout;
    for words in
        ["asked to allow 50000 more tokens", "asked for a checkpoint", "asked for a pause", "asked to go on"]
    {
        assert!(history.contains(words), "{words}\n{history}");
    }
    assert!(history.contains("note (segno serve)") && history.contains("look at <b>this</b>"), "{history}");
    let log = env.ok(&["log", &id, "--json"]).stdout;
    let keyed = log.lines().filter(|line| line.contains("\"user:page-")).count();
    assert!(keyed >= 7, "{keyed}\n{log}");
    for (act, body) in [
        ("extend", json!({})),
        ("extend", json!({ "tokens": "many" })),
        ("extend", json!({ "tokens": "1", "dollars": "1" })),
        ("note", json!({ "text": " " })),
        ("resume", json!({ "from": "nowhere" })),
    ] {
        assert_eq!(browser.act(&id, act, &body).status, 400, "{act}");
    }
    // What was refused before anything was tried is not in the journal as if it had been done.
    for words in ["allowed 50000", "made a checkpoint"] {
        assert!(!history.contains(words), "{words}\n{history}");
    }
    let nothing = browser.act(&id, "stop", &json!({}));
    assert_eq!((nothing.status, nothing.code().as_str()), (409, "no_run"));
}

/// The live page hears of what is recorded, goes on where it was, and does so with another server too.
#[test]
fn news_come_once_and_in_order_whatever_happens_in_between() {
    let env = TestEnv::new();
    let id = env.start(&["boats"]);
    let path = format!("/api/v1/sessions/{id}/events?after=0");
    let mut server = Server::start(&env, &[]);
    let port = server.port();
    let cookie;
    let seen = {
        let browser = server.browser();
        cookie = browser.cookie.clone();
        let mut stream = Stream::open(&browser, &path, None);
        let (first, html) = stream.news();
        assert!(html.contains("boats"), "{html}");
        let (mut all, _) = (Stream::open(&browser, "/api/v1/events", None), ());
        assert_eq!(all.next().0, "sessions");
        env.ok(&["note", "one"]);
        let (second, html) = stream.news();
        assert!(second > first && html.contains("one") && !html.contains("boats"), "{html}");
        assert_eq!(all.next().0, "sessions");
        second
    };
    // The connection is lost, and meanwhile something happens; then the server is another one.
    env.ok(&["note", "two"]);
    drop(server);
    env.ok(&["note", "three"]);
    server = Server::on(&env, &port, &[]);
    let browser = Browser { server: &server, cookie, csrf: String::new() };
    let mut stream = Stream::open(&browser, &path, Some(seen));
    let (_, html) = stream.news();
    assert!(html.contains("two") && html.contains("three") && !html.contains(">one<"), "{html}");
    let mut other = Stream::open(&browser, &path, Some(999_999));
    assert_eq!(other.next().0, "reload");
}

/// Files go back only as somebody saw it.
#[test]
fn files_go_back_as_they_were_shown_or_not_at_all() {
    let mut env = TestEnv::on_disk();
    env.set("SEGNO_CHECKPOINT_FILES", "true");
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    env.write("project/a.txt", "one\n");
    let id = env.start(&["files"]);
    env.ok(&["checkpoint", "create", "first"]);
    env.write("project/a.txt", "two\n");
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    let checkpoint =
        browser.get(&format!("/api/v1/sessions/{id}/checkpoints")).json()["checkpoints"][0]["id"].clone();
    let page = browser.get(&format!("/s/{id}/checkpoints/{}?to=now", checkpoint.as_str().unwrap()));
    assert!(page.body.contains("a.txt") && page.body.contains("two"), "{}", page.body);
    let shown = browser.act(&id, "restore", &json!({ "checkpoint": checkpoint })).json();
    assert_eq!((&shown["plan"]["writes"], env.read("project/a.txt").as_str()), (&json!(["a.txt"]), "two\n"));
    env.write("project/a.txt", "three\n");
    let mark = &shown["mark"];
    let stale = browser.act(&id, "restore", &json!({ "checkpoint": checkpoint, "mark": mark }));
    assert_eq!(
        (stale.status, stale.code().as_str(), env.read("project/a.txt").as_str()),
        (409, "changed", "three\n")
    );
    let made_up = browser.act(&id, "restore", &json!({ "checkpoint": checkpoint, "mark": "0".repeat(64) }));
    assert_eq!(made_up.code(), "changed");
    let shown = browser.act(&id, "restore", &json!({ "checkpoint": checkpoint })).json();
    let done = browser.act(&id, "restore", &json!({ "checkpoint": checkpoint, "mark": shown["mark"] }));
    assert_eq!((done.status, env.read("project/a.txt").as_str()), (200, "one\n"), "{done:?}");
    assert!(env.ok(&["history", &id]).stdout.contains("asked to put files back to"));
}

#[test]
fn a_private_socket_serves_a_tunnel() {
    use std::io::Read as _;
    use std::os::unix::fs::PermissionsExt as _;
    let env = TestEnv::new();
    env.start(&["boats"]);
    let path = env.path("run/segno.sock");
    let mut child = env
        .command(crate::common::SEGNO)
        .args(["--json", "serve", "--unix"])
        .arg(&path)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let meta = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(meta, 0o600);
    let token = crate::server::printed(&env, &["serve", "--token"]);
    let ask = |host: &str| {
        let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
        let text = format!(
            "GET /api/v1/sessions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        crate::server::Answer::read(&bytes).status
    };
    assert_eq!((ask("localhost:9000"), ask("evil.example:9000")), (200, 421));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!path.exists());
}
