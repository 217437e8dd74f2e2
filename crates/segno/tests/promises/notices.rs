//! Who is told when a loop stands still.

use std::io::Read as _;
use std::net::TcpListener;
use std::time::Duration;

use crate::lab::Lab;
use crate::lab::program;
use crate::looping::agent;

/// One file and the signal.
const WORK: &str = "echo x > made; signal=true";
const LOOP: &[&str] = &["loop", "--no-hooks", "--prompt", "make it", "--until", "test -e made"];

/// Runs the loop at a terminal and answers with all that the terminal got.
fn at_a_terminal(lab: &Lab, more: &str) -> String {
    let segno = lab.segno.display();
    let command = format!("{segno} loop --no-hooks --prompt 'make it' --until 'test -e made' {more}");
    let mut script = program("script");
    script.args(["-qec", &command, "/dev/null"]);
    script.env_clear().envs(&lab.env).env("TERM", "xterm-256color").current_dir(lab.home.work());
    let said = lab.start_command(&mut script, Some(b"")).finish();
    assert_eq!(said.code, Some(0), "{}", said.text());
    said.text()
}

#[test]
fn a_terminal_is_called_when_a_loop_is_done() {
    let lab = agent(WORK);
    let text = at_a_terminal(&lab, "");
    assert_eq!(
        text.matches('\x07').count(),
        1,
        "a bell, and nothing that this terminal may not know: {text:?}"
    );
    assert!(!text.contains("\x1b]"), "{text:?}");
}

#[test]
fn a_terminal_that_shows_messages_gets_one_without_secrets() {
    let mut lab = agent(WORK);
    let secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    lab.env.insert("SEGNO_NOTIFY_TERMINAL".to_owned(), "osc777".to_owned());
    let text = at_a_terminal(&lab, &format!("--topic 'use {secret}'"));
    let calls: Vec<&str> = text.split("\x1b]777;notify;").skip(1).collect();
    assert_eq!(calls.len(), 1, "{text:?}");
    let message = calls[0].split("\x1b\\").next().unwrap();
    assert!(message.starts_with("segno: use ") && message.contains(" done;"), "{message:?}");
    assert!(!text.contains(secret), "{text:?}");
}

#[test]
fn a_pipe_and_a_program_hear_no_bell() {
    for more in [&[][..], &["--json"][..]] {
        let lab = agent(WORK);
        let args: Vec<&str> = LOOP.iter().chain(more).copied().collect();
        let said = lab.run(&args);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(!said.text().contains('\x07') && !said.stderr.contains('\x07'));
    }
}

/// A receiver that accepts and says nothing is given up; the loop is done all the same.
#[test]
fn a_receiver_that_does_not_answer_is_given_up() {
    let mut lab = agent(WORK);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    lab.env.insert("SEGNO_NOTIFY_WEBHOOK".to_owned(), url);
    let waits = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // It is read to the end that whoever sends it makes, and never answered.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let said = lab.run(LOOP);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let request = waits.join().unwrap();
    assert!(request.contains(r#""what":"done""#), "{request}");
    assert!(said.stderr.contains("warning: the webhook: "), "{}", said.stderr);
}
