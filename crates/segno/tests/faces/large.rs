//! Stores that are larger than anybody's, made below the command line, and what the page makes of them.

use std::io::Write as _;
use std::sync::Arc;

use segno::config::env::Environment;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::NewSession;
use segno_engine::core::SessionId;
use segno_engine::core::Timestamp;
use segno_engine::core::event::HistoryNoted;
use segno_engine::core::event::Project;
use segno_engine::fresh_key;
use segno_engine::redact::Redactor;
use segno_engine::view;
use segno_store::Append;
use segno_store::OpenOptions;
use segno_store::Purpose;
use segno_store::Store;
use segno_store::What;
use segno_store::sqlite::SqliteStore;
use serde_json::Value;
use serde_json::json;

use crate::browser::FEW;
use crate::browser::LIVE;
use crate::browser::LOST;
use crate::browser::to_the_beginning;
use crate::chrome::in_browser;
use crate::common::TestEnv;
use crate::server::Server;

/// The moment from which made-up sessions are.
const BEGIN: i64 = 1_760_000_000_000_000;

/// Whether tests may take long.
fn full() -> bool {
    let full = Environment::capture().get("SEGNO_FULL") == Some("1");
    if !full {
        say("skipped: it takes minutes; SEGNO_FULL=1 asks for it");
    }
    full
}

fn say(words: &str) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

fn store(env: &TestEnv) -> Box<dyn Store> {
    let options = OpenOptions { purpose: Purpose::LongLived, ..OpenOptions::default() };
    Box::new(SqliteStore::open(&env.path("data/segno/segno.db"), options).unwrap())
}

/// Brings a session to so many more events: notes with their numbers.
pub(crate) fn notes(env: &TestEnv, id: &str, count: usize) {
    let (store, session) = (store(env), id.parse::<SessionId>().unwrap());
    let redactor = Redactor::new(Default::default());
    let made = (0..count).map(|number| {
        let details = Some(format!("note number {number}").into());
        let noted = HistoryNoted { action: "note".to_owned(), phase: None, details };
        let at = Timestamp::from_micros(BEGIN + i64::try_from(number).unwrap());
        let key = fresh_key();
        Append::new(session, key, at, What::Facts(vec![redactor.record(noted.into()).unwrap()]))
    });
    let mut made = made.peekable();
    while made.peek().is_some() {
        let batch: Vec<Append> = made.by_ref().take(4_000).collect();
        assert!(store.append(batch).iter().all(Result::is_ok));
    }
    store.maintain().unwrap();
}

/// Makes so many sessions in twenty projects.
pub(crate) fn sessions(env: &TestEnv, count: usize) {
    let view = view::Options { enabled: false, ..view::Options::default() };
    let options = EngineOptions { view, ..EngineOptions::new(Arc::new(Redactor::new(Default::default()))) };
    let engine = Engine::new(store(env), options);
    for number in 0..count {
        let name = format!("project-{}", number % 20);
        let project = Project { path: format!("/srv/{name}"), name, kind: None };
        let at = Timestamp::from_micros(BEGIN + i64::try_from(number).unwrap() * 1_000_003);
        let (topic, id) = (Some(format!("work number {number}")), Some(SessionId::at(at)));
        engine.create(NewSession { topic, project, id, ..NewSession::default() }).unwrap();
    }
}

/// Megabytes of a process that are in memory.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn ten_thousand_sessions_are_listed_and_found() {
    if !full() {
        return;
    }
    in_browser(async |chrome| {
        let env = TestEnv::new();
        env.start(&["the first of many"]);
        sessions(&env, 9_999);
        let server = Server::start(&env, &[]);
        chrome.sign_in(&server).await;
        chrome.until_text("of 10000").await;
        assert_eq!(chrome.serious().await, Vec::<String>::new());
        chrome.picture("ten-thousand-wide").await;
        chrome.open(&server, "/?text=number+7777").await;
        chrome.until_text("work number 7777").await;
        chrome.open(&server, "/?project=%2Fwork%2Fproject-3&order=created").await;
        chrome.until_text("of 500").await;
        chrome.open(&server, "/?skip=9900").await;
        chrome.until_text("of 10000").await;
        // Somebody makes one more, and it is there.
        chrome.open(&server, "/").await;
        env.start(&["one more", "--parallel"]);
        chrome.until_text("of 10001").await;
        let paint =
            chrome.run("return performance.getEntriesByName('first-contentful-paint')[0].startTime").await;
        say(&format!("first paint after {paint} ms, the server has {} MB", resident(server.pid())));
        assert_eq!(chrome.complaints(), Vec::<String>::new());
    });
}

/// A server that is there and says nothing, as behind a network that is gone: the page notices.
#[test]
fn silence_is_a_lost_connection() {
    if !full() {
        return;
    }
    in_browser(async |chrome| {
        let env = TestEnv::new();
        let id = env.start(&["work"]);
        let server = Server::start(&env, &[]);
        chrome.sign_in(&server).await;
        chrome.open(&server, &format!("/s/{id}")).await;
        chrome.until(LIVE).await;
        let pid = rustix::process::Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        chrome.until(LOST).await;
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
        chrome.until(LIVE).await;
        env.ok(&["--session", &id, "note", "told afterwards"]);
        chrome.until_told("told afterwards").await;
    });
}

#[test]
fn a_session_of_a_hundred_thousand_events_is_scrolled_in_little_memory() {
    if !full() {
        return;
    }
    in_browser(async |chrome| {
        let env = TestEnv::new();
        let id = env.start(&["long"]);
        notes(&env, &id, 100_000);
        let server = Server::start(&env, &[]);
        chrome.sign_in(&server).await;
        let heap = || {
            chrome.chromium("HeapProfiler.collectGarbage", &json!({}));
            let usage: Value = chrome.chromium("Runtime.getHeapUsage", &json!({}));
            usage["usedSize"].as_f64().unwrap() / 1e6
        };
        chrome.open(&server, &format!("/s/{id}")).await;
        chrome.until_told("note number 99999").await;
        let (before, served) = (heap(), resident(server.pid()));
        to_the_beginning(&chrome).await;
        chrome.until(FEW).await;
        let (after, serves) = (heap(), resident(server.pid()));
        say(&format!("the page: {before} MB, then {after} MB; the server: {served} MB, then {serves} MB"));
        assert!(after < before + 20.0, "the page grew from {before} to {after} MB");
        assert!(serves < served + 100, "the server grew from {served} to {serves} MB");
        chrome.open(&server, &format!("/s/{id}?after=50000")).await;
        chrome.until_told("note number 50000").await;
        assert_eq!(chrome.complaints(), Vec::<String>::new());
    });
}
