//! `segno top` in a real terminal.

use std::fs;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use crate::common::SEGNO;
use crate::common::TestEnv;

/// A terminal inside of tmux, with a shell in it. Without tmux there is none, and that is said.
struct Screen<'a> {
    env: &'a TestEnv,
    socket: String,
}

impl<'a> Screen<'a> {
    fn open(env: &'a TestEnv, (width, height): (u16, u16)) -> Option<Self> {
        let there =
            env.command("tmux").arg("-V").env("PATH", path()).output().is_ok_and(|it| it.status.success());
        if !there {
            segno_testkit::agents::skip("tmux is not installed");
            return None;
        }
        let screen = Self { env, socket: env.path("tmux.socket").display().to_string() };
        let shell = "exec env PS1='shell> ' bash --norc --noprofile -i";
        let (x, y) = (width.to_string(), height.to_string());
        screen.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &x, "-y", &y, shell]);
        screen.tmux(&["set-option", "-g", "status", "off"]);
        screen.wait_for("shell>");
        Some(screen)
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command: Command = self.env.command("tmux");
        // What is in the environment of the first command is in that of the shell.
        command.env("PATH", path()).env("TERM", "xterm-256color").env("SEGNO", SEGNO);
        let output = command.args(["-S", &self.socket, "-u"]).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        for key in keys {
            self.tmux(&["send-keys", key]);
        }
    }

    fn line(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.keys(&["Enter"]);
    }

    fn shown(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen shows something.
    fn wait_for(&self, what: &str) -> String {
        self.wait_until(what, |shown| shown.contains(what))
    }

    fn wait_until(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let begin = Instant::now();
        loop {
            let shown = self.shown();
            if fits(&shown) {
                return shown;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "no {what:?} in\n{shown}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        let _ =
            self.env.command("tmux").env("PATH", path()).args(["-S", &self.socket, "kill-server"]).output();
    }
}

fn path() -> std::ffi::OsString {
    #[expect(clippy::disallowed_methods, reason = "tools of this machine are used")]
    std::env::var_os("PATH").unwrap_or_default()
}

fn three_sessions(env: &TestEnv) -> Vec<String> {
    let topics = ["login form", "payment gateway", "flaky e2e"];
    let made: Vec<String> = topics
        .iter()
        .map(|topic| {
            let made = env.json(&["new", topic, "--parallel", "--budget", "50k"]);
            made["session"]["session_id"].as_str().or(made["session_id"].as_str()).unwrap().to_owned()
        })
        .collect();
    env.ok(&[
        "--session",
        &made[1],
        "decide",
        "which provider?",
        "--choice",
        "the old one",
        "--because",
        "known",
    ]);
    env.ok(&["pause", &made[2], "--reason", "lunch"]);
    made
}

#[test]
fn sessions_are_watched_and_acted_on() {
    let env = TestEnv::new();
    let made = three_sessions(&env);
    let Some(screen) = Screen::open(&env, (80, 24)) else { return };
    screen.line("$SEGNO top");
    screen.wait_until("three sessions", |shown| {
        ["login form", "payment gateway", "flaky e2e", "lunch"].iter().all(|it| shown.contains(it))
    });

    // Found by a word of its topic, opened, and one of its parts is seen.
    screen.keys(&["/"]);
    screen.tmux(&["send-keys", "-l", "payment"]);
    screen.keys(&["Enter", "Enter", "8"]);
    // The part before it names the choice too, but neither question nor reason.
    screen.wait_until("the decision", |shown| {
        ["which provider?", "the old one", "because known"].iter().all(|it| shown.contains(it))
    });

    // What is done here is recorded, and what is recorded elsewhere is seen.
    screen.keys(&["n"]);
    screen.wait_for("for the history of the session");
    screen.line("look here first");
    screen.wait_for("the note is in the history");
    let history = env.json(&["show", &made[1], "--history"]);
    assert!(history.to_string().contains("look here first"));
    screen.keys(&["e"]);
    screen.wait_for("tokens such as 50k");
    screen.line("25k");
    screen.wait_for("25.0k tok more may be used");
    let state = env.json(&["show", &made[1]]);
    assert_eq!(state["session"]["token_budget"], 75_000);
    screen.keys(&["p"]);
    screen.wait_for("paused");
    assert_eq!(env.json(&["show", &made[1]])["session"]["status"], "paused");
    env.ok(&["--session", &made[1], "abort", "--reason", "not needed"]);
    screen.wait_for("not needed");

    // Another size, and back to the list.
    screen.tmux(&["resize-window", "-x", "120", "-y", "40"]);
    screen.keys(&["Escape"]);
    screen.wait_until("a list beside the session", |shown| {
        shown.lines().any(|line| line.contains("payment") && line.contains('│'))
    });
    screen.keys(&["q"]);
    let last = screen.wait_for("shell>");
    assert!(!last.contains("payment"), "{last}");
}

#[test]
fn a_breakpoint_is_answered_for_the_session_that_waits() {
    let env = TestEnv::new();
    let made = three_sessions(&env);
    let Some(screen) = Screen::open(&env, (100, 30)) else { return };
    screen.line("$SEGNO top");
    screen.wait_for("flaky e2e");
    env.ok(&["--session", &made[0], "breakpoint", "wait", "review"]);
    let asks = screen.wait_for("? asks: go on from");
    let place = |text: &str| asks.lines().position(|line| line.contains(text)).unwrap();
    assert!(place("needs you (1)") < place("login form") && place("login form") < place("payment gateway"));
    screen.keys(&["g", "a"]);
    screen.wait_for("y yes   t yes, with a note");
    screen.keys(&["y"]);
    screen.wait_for("answered: yes");
    screen.wait_until("no question", |shown| !shown.contains("needs you"));
    assert!(env.json(&["answer"])["questions"].as_array().unwrap().is_empty());
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    let env = TestEnv::new();
    three_sessions(&env);
    let Some(screen) = Screen::open(&env, (80, 24)) else { return };
    let is_as_before = |how: &str| {
        screen.line("clear; stty -a | tr ';' '\\n' | grep -cwE 'icanon|echo|isig'; echo over");
        let shown = screen.wait_until("over", |shown| shown.lines().any(|line| line.trim() == "over"));
        assert!(
            !shown.contains("-icanon") && shown.lines().any(|line| line.trim() == "1" || line.trim() == "3"),
            "{how}: {shown}"
        );
    };
    for signal in ["TERM", "HUP"] {
        screen.line("clear; $SEGNO top; echo left $?");
        screen.wait_for("flaky e2e");
        let pid = screen.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let children = env.command("pgrep").args(["-P", pid.trim()]).env("PATH", path()).output().unwrap();
        let top = String::from_utf8_lossy(&children.stdout).trim().to_owned();
        let killed =
            env.command("kill").args([&format!("-{signal}"), &top]).env("PATH", path()).status().unwrap();
        assert!(killed.success());
        let code = if signal == "TERM" { "left 143" } else { "left 129" };
        screen.wait_for(code);
        is_as_before(signal);
    }
    // Put aside, and taken up again.
    screen.line("clear; $SEGNO top");
    screen.wait_for("flaky e2e");
    screen.keys(&["C-z"]);
    screen.wait_for("Stopped");
    is_as_before("Ctrl-Z");
    screen.line("fg");
    screen.wait_for("flaky e2e");
    screen.keys(&["q"]);
    screen.wait_until("the shell", |shown| !shown.contains("flaky e2e"));
    is_as_before("q");
}

#[test]
fn a_terminal_that_is_gone_ends_it() {
    let env = TestEnv::new();
    three_sessions(&env);
    let Some(screen) = Screen::open(&env, (80, 24)) else { return };
    screen.line("$SEGNO top");
    screen.wait_for("flaky e2e");
    let pid = screen.tmux(&["display-message", "-p", "#{pane_pid}"]);
    let children = env.command("pgrep").args(["-P", pid.trim()]).env("PATH", path()).output().unwrap();
    let top = String::from_utf8_lossy(&children.stdout).trim().to_owned();
    assert!(fs::exists(format!("/proc/{top}")).unwrap());
    drop(screen);
    let begin = Instant::now();
    // A process that nobody waits for is gone when it has ended.
    while fs::read_to_string(format!("/proc/{top}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(begin.elapsed() < Duration::from_secs(30), "it goes on without a terminal");
        std::thread::sleep(Duration::from_millis(30));
    }
}

#[test]
fn resuming_takes_over_the_terminal() {
    let env = TestEnv::new();
    three_sessions(&env);
    let Some(screen) = Screen::open(&env, (80, 24)) else { return };
    screen.line("$SEGNO top");
    screen.wait_for("flaky e2e");
    screen.keys(&["/"]);
    screen.tmux(&["send-keys", "-l", "flaky"]);
    screen.keys(&["Enter", "r"]);
    screen.wait_for("leave and resume?");
    screen.keys(&["y"]);
    // It asks on the terminal that is given back, before it starts anything.
    screen.wait_for("[1] live state");
    screen.line("q");
    screen.wait_until("the shell", |shown| shown.lines().rev().any(|line| line.starts_with("shell>")));
}

#[test]
fn without_a_terminal_it_says_what_reads_instead() {
    let env = TestEnv::new();
    let said = env.run(&["top"]);
    assert_eq!(said.code, 2);
    assert!(
        said.stderr.contains("needs a terminal") && said.stderr.contains("segno ls --json"),
        "{}",
        said.stderr
    );
    let json = env.run(&["top", "--json"]);
    assert_eq!(json.code, 2);
    assert!(json.stderr.contains("\"no_terminal\""), "{}", json.stderr);
    assert!(!fs::exists(env.path("data/segno/segno.db")).unwrap());
}
