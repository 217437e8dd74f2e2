//! The programs, and the skipping of tests.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::process::Command;
use std::process::Stdio;

use segno_testkit::agents::find;
use segno_testkit::home::Home;
use segno_testkit::programs::scripted_model;

#[test]
fn the_model_as_a_program() {
    let home = Home::new().unwrap();
    let (script, log) = (home.beside("script.json"), home.beside("log.jsonl"));
    std::fs::write(&script, r#"{"turns": ["hello from a file"]}"#).unwrap();
    let mut server = Command::new(scripted_model().unwrap())
        .arg(&script)
        .arg("--log")
        .arg(&log)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let mut client = TcpStream::connect(url.trim().trim_start_matches("http://")).unwrap();
    let body = r#"{"model":"m","tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"hi"}]}"#;
    let head = "POST /v1/messages HTTP/1.1\r\nconnection: close\r\ncontent-length: ";
    client.write_all(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("hello from a file"), "{answer}");
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success(), "it ends with its stdin");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains(r#""track":"main""#) && log.contains(r#""end":"done""#), "{log}");
}

#[test]
fn a_bad_script_is_named() {
    let home = Home::new().unwrap();
    let script = home.beside("script.json");
    std::fs::write(&script, r#"{"turns": [{"txt": "x"}]}"#).unwrap();
    let done = Command::new(scripted_model().unwrap()).arg(&script).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(!done.status.success() && said.contains("script.json") && said.contains("txt"), "{said}");
}

#[test]
fn the_real_agents() {
    // Not a failure here: the tests that need one say so themselves.
    for pin in segno_testkit::agents::pins() {
        match find(pin.name, |name| std::env::var_os(name)) {
            Ok(program) => println!("{} {}: {}", pin.name, pin.version, program.display()),
            Err(missing) => println!("{missing}"),
        }
    }
}
