//! `segno statusline` says what it can in one line, and never fails.

use std::fs;

use serde_json::Value;

use crate::common::TestEnv;

const TOLD: &str = r#"{"session_id":"nobody-told-of-it","model":{"display_name":"Opus"},"context_window":{"used_percentage":8},
    "rate_limits":{"five_hour":{"used_percentage":29,"resets_at":4102444800},"seven_day":{"used_percentage":100,"resets_at":4102444800}}}"#;

fn line(env: &TestEnv, args: &[&str], input: &str) -> String {
    let words: Vec<&str> = std::iter::once("statusline").chain(args.iter().copied()).collect();
    let said = env.feed(&words, input.as_bytes());
    assert_eq!((said.status.code(), String::from_utf8_lossy(&said.stderr).as_ref()), (Some(0), ""));
    String::from_utf8(said.stdout).unwrap()
}

#[test]
fn how_the_session_of_the_project_stands() {
    let env = TestEnv::new();
    assert_eq!(line(&env, &[], ""), "", "nothing is there yet, and nothing is made");
    assert!(!env.path("data/segno/segno.db").exists());
    let id = env.start(&["login form", "--budget", "100k"]);
    let short = format!("…{}", &id[id.len() - 6..]);
    env.ok(&["phase", "GREEN", "--step", "2", "--of", "4"]);
    env.ok(&["tokens", "84200", "--cost", "0.71"]);
    env.ok(&["checkpoint", "create", "before lunch"]);
    let whole = line(&env, &[], "");
    let checkpoint = env.json(&["show"])["state"]["checkpoint"]["id"].as_str().unwrap().to_owned();
    let begins = format!("{short} GREEN 2/4 · 84.2k/100.0k tok · $0.71 · {checkpoint} ");
    assert!(whole.starts_with(&begins) && whole.ends_with('\n'), "{whole}");
    assert_eq!(
        line(&env, &["--format", "{topic}[ ({phase})][ {doubt}][ {breaker}] {status}"], "not read"),
        "login form (GREEN 2/4) active\n"
    );
    let colours = line(&env, &["--format", "{budget}", "--color", "always"], "");
    assert_eq!(colours, "\u{1b}[33m84.2k/100.0k tok\u{1b}[0m\n", "a budget that runs low is seen");
    let json: Value = serde_json::from_str(&line(&env, &["--json"], TOLD)).unwrap();
    assert_eq!((&json["session_id"], &json["model"]), (&Value::Null, &"Opus".into()), "{json}");
    assert_eq!(json["windows"][1]["percent"], 100);
    let json: Value = serde_json::from_str(&line(&env, &["--json"], "")).unwrap();
    assert_eq!((&json["session_id"], &json["tokens_used"]), (&id.as_str().into(), &84_200.into()), "{json}");
    // Whoever is told of another session by name draws that one, whatever the conversation.
    assert!(line(&env, &["--session", "last"], TOLD).starts_with(&format!("{short} GREEN 2/4 · ")));
}

#[test]
fn a_conversation_that_nobody_records_shows_what_its_agent_tells() {
    let env = TestEnv::new();
    env.start(&["login form"]);
    assert_eq!(line(&env, &[], TOLD), "5h 29% 7d 100%\n");
    assert_eq!(line(&env, &["--input", "--format", "[{session} ]{model} {context}"], TOLD), "Opus ctx 8%\n");
    assert_eq!(line(&env, &[], "{ broken"), line(&env, &[], ""), "what no agent tells is as good as nothing");
    let past = TOLD.replace("4102444800", "1000000000");
    assert_eq!(line(&env, &[], &past), "", "windows that have opened again since");
}

#[test]
fn a_store_or_settings_that_cannot_be_read_make_it_shorter() {
    let env = TestEnv::new();
    env.start(&["login form"]);
    let limits = "5h 29% 7d 100%\n";
    env.write("config/segno/config.toml", "this is = no [ toml");
    assert_eq!((line(&env, &[], TOLD), line(&env, &[], "")), (limits.to_owned(), String::new()));
    fs::remove_file(env.path("config/segno/config.toml")).unwrap();
    assert_ne!(line(&env, &[], ""), "");
    for file in ["segno.db", "segno.db-wal", "segno.db-shm"] {
        fs::write(env.path("data/segno").join(file), "no database".repeat(1_000)).unwrap();
    }
    assert_eq!((line(&env, &[], TOLD), line(&env, &[], "")), (limits.to_owned(), String::new()));
    let wrong = env.run(&["statusline", "--format", "{sesion}"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("{sesion} is none of session"), "{}", wrong.stderr);
}
