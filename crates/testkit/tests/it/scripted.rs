//! The scripted agent.

use std::io::Read;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use segno_agents::Decision;
use segno_agents::ExitInfo;
use segno_agents::LaunchRequest;
use segno_agents::OutcomeKind;
use segno_agents::ReaderOptions;
use segno_agents::by_name;
use segno_testkit::home::Home;
use segno_testkit::lines::claude;
use segno_testkit::lines::codex;
use segno_testkit::programs::scripted_agent;
use segno_testkit::run::Finished;
use segno_testkit::run::run;
use segno_testkit::scripted::How;
use segno_testkit::scripted::Shape;
use segno_testkit::scripted::SignalName;
use segno_testkit::scripted::Step;
use serde_json::json;

fn command(home: &Home, steps: &[Step]) -> Command {
    let mut command = Command::new(scripted_agent().unwrap());
    command.env_clear().envs(home.env()).current_dir(home.work());
    command.args(["--steps", &serde_json::to_string(steps).unwrap()]);
    command
}

fn play(home: &Home, steps: &[Step]) -> Finished {
    run(&mut command(home, steps), b"line one\nline two\n", Duration::from_secs(20)).unwrap()
}

fn path(home: &Home, name: &str) -> String {
    home.beside(name).to_str().unwrap().to_owned()
}

fn until(what: &str, ready: impl Fn() -> bool) {
    let begin = Instant::now();
    while !ready() {
        assert!(begin.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn prints_what_it_is_told() {
    let home = Home::new().unwrap();
    let done = play(
        &home,
        &[
            Step::Print("plain ${env:TERM}".to_owned()),
            Step::Raw("crlf\r\nnul\0".to_owned()),
            Step::Hex("ff fe 0a".to_owned()),
            Step::Stderr("aside".to_owned()),
            Step::Stdin(1),
            Step::Print("heard ${stdin}".to_owned()),
            Step::Raw("{\"type\":\"half".to_owned()),
            Step::Exit(7),
            Step::Print("never".to_owned()),
        ],
    );
    let expected = b"plain dumb\ncrlf\r\nnul\0\xff\xfe\nheard line one\n\n{\"type\":\"half";
    assert_eq!(done.stdout, expected);
    assert_eq!((done.stderr.as_str(), done.code), ("aside\n", Some(7)));
}

#[test]
fn prints_much() {
    let home = Home::new().unwrap();
    let done = play(&home, &[Step::Flood { bytes: 50_000_000, line: 120 }]);
    assert_eq!(done.stdout.len(), 50_000_000);
    println!("50 MB in {:?}", done.took);
    for (shape, least) in [(Shape::Plain, 5_000_001), (Shape::Claude, 5_000_100), (Shape::Codex, 5_000_050)] {
        let done = play(&home, &[Step::LongLine { bytes: 5_000_000, shape }]);
        assert!(done.stdout.len() >= least);
        assert_eq!(done.stdout.iter().filter(|byte| **byte == b'\n').count(), 1);
    }
}

#[test]
fn ends_as_it_is_told() {
    let home = Home::new().unwrap();
    assert_eq!(play(&home, &[Step::Kill(SignalName::Kill)]).signal, Some(9));
    assert_eq!(play(&home, &[Step::Kill(SignalName::Segv)]).signal, Some(11));
    let ignored = [Step::Ignore(vec![SignalName::Int, SignalName::Term]), Step::Kill(SignalName::Term)];
    assert_eq!(play(&home, &[&ignored[..], &[Step::Exit(5)]].concat()).code, Some(5));
    let caught =
        Step::OnSignal { signal: SignalName::Int, steps: vec![Step::Print("bye".to_owned()), Step::Exit(0)] };
    let done = play(&home, &[caught, Step::Kill(SignalName::Int), Step::SleepMs(20_000)]);
    assert_eq!((done.stdout.as_slice(), done.code), (&b"bye\n"[..], Some(0)));
    let late = play(&home, &[Step::WaitFor { path: path(&home, "never"), seconds: 0 }]);
    assert_eq!(late.code, Some(97));
    let mut short = command(&home, &[Step::SleepMs(60_000)]);
    short.env("SCRIPTED_AGENT_SECONDS", "0");
    assert_eq!(run(&mut short, b"", Duration::from_secs(20)).unwrap().code, Some(98));
    let mut bad = Command::new(scripted_agent().unwrap());
    assert_eq!(
        run(bad.args(["--steps", "[{\"prnt\":1}]"]), b"", Duration::from_secs(20)).unwrap().code,
        Some(99)
    );
}

#[test]
fn waits_for_the_test() {
    let home = Home::new().unwrap();
    let steps = [
        Step::Write { path: path(&home, "ready/${pid}"), content: "x".to_owned() },
        Step::WaitFor { path: path(&home, "go"), seconds: 20 },
        Step::Append { path: path(&home, "log"), content: "went\n".to_owned() },
    ];
    let mut child = command(&home, &steps).stdin(Stdio::null()).spawn().unwrap();
    until("it is ready", || home.beside(&format!("ready/{}", child.id())).exists());
    assert!(child.try_wait().unwrap().is_none());
    std::fs::write(home.beside("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(std::fs::read_to_string(home.beside("log")).unwrap(), "went\n");
}

fn read_pid(path: &Path) -> i32 {
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn children_get_away() {
    let home = Home::new().unwrap();
    let ways = [How::Plain, How::Nohup, How::Setsid, How::DoubleFork];
    let spawn = |how: How| Step::Spawn {
        how,
        steps: vec![Step::SleepMs(60_000)],
        pid_file: Some(path(&home, &format!("{how:?}"))),
        keep_output: false,
        bare: false,
    };
    let done = play(&home, &ways.map(spawn));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let pids = ways.map(|how| read_pid(&home.beside(&format!("{how:?}"))));
    let mut alive = home.processes();
    alive.sort_unstable();
    let mut expected = pids.to_vec();
    expected.sort_unstable();
    assert_eq!(alive, expected, "all live on");
    let session = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap().parse::<i32>().unwrap()
    };
    assert_ne!(session(pids[0]), pids[0]);
    assert_eq!((session(pids[2]), session(pids[3])), (pids[2], pids[3]), "leaders of their own sessions");
    home.kill_processes();
    until("they are gone", || home.processes().is_empty());
}

#[test]
fn a_child_can_keep_the_output_open() {
    let home = Home::new().unwrap();
    let steps = [Step::Spawn {
        how: How::Setsid,
        steps: vec![Step::WaitFor { path: path(&home, "go"), seconds: 20 }, Step::Print("late".to_owned())],
        pid_file: Some(path(&home, "pid")),
        keep_output: true,
        bare: false,
    }];
    let mut parent: Child =
        command(&home, &steps).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    assert!(parent.wait().unwrap().success());
    std::fs::write(home.beside("go"), "").unwrap();
    let mut output = String::new();
    parent.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert_eq!(output, "late\n", "written after the agent itself was gone");
}

#[test]
fn its_lines_are_understood() {
    let home = Home::new().unwrap();
    let session = "11111111-2222-4333-8444-555555555555";
    let shapes = [
        ("claude", vec![claude::init(session), claude::text(session, "hi"), claude::result(session, "done")]),
        ("codex", vec![codex::thread_started(session), codex::message("i", "done"), codex::turn_completed()]),
    ];
    for (agent, lines) in shapes {
        let steps: Vec<Step> = lines.into_iter().map(Step::Json).collect();
        let done = play(&home, &steps);
        let mut reader = by_name(agent).unwrap().reader(&ReaderOptions::default());
        reader.feed(&done.stdout, &mut |_| {});
        let outcome = reader.finish(&ExitInfo::code(0), &mut |_| {});
        assert_eq!((outcome.outcome, outcome.unparsed), (OutcomeKind::Completed, 0), "{agent}");
        assert_eq!(outcome.text.as_deref(), Some("done"));
        assert_eq!(outcome.native_id.as_deref(), Some(session));
    }
}

#[test]
fn it_stands_in_for_claude() {
    let home = Home::new().unwrap();
    let records = path(&home, "records");
    let agent = by_name("claude").unwrap();
    let report = agent.hook(br#"{"hook_event_name":"PreToolUse","tool_name":"Bash"}"#).unwrap();
    let deny = report.respond(&Decision::Deny("no".to_owned())).unwrap();
    let hook = [
        Step::Stdin(0),
        Step::Record(records.clone()),
        Step::IfStdin { matches: "forbidden".to_owned(), steps: vec![Step::Print(deny)] },
    ];
    std::fs::write(home.beside("hook.json"), serde_json::to_string(&hook).unwrap()).unwrap();
    let call = |input: &str| Step::Hook {
        event: "PreToolUse".to_owned(),
        payload: json!({ "tool_name": "Bash", "tool_input": input }).as_object().unwrap().clone(),
        command: None,
        allowed: vec![Step::Print(format!("ran {input}"))],
        denied: vec![Step::Print(format!("denied {input}"))],
    };
    let script =
        [Step::Stdin(0), Step::Print("${session} ${stdin}".to_owned()), call("fine"), call("forbidden")];
    std::fs::write(home.beside("agent.json"), serde_json::to_string(&script).unwrap()).unwrap();
    let program = scripted_agent().unwrap();
    let words = [program.to_str().unwrap(), "--script", &path(&home, "hook.json")].map(str::to_owned);
    let id = "11111111-2222-4333-8444-555555555555";
    let request = LaunchRequest {
        prompt: "do it".to_owned(),
        conversation: segno_agents::Conversation::NewWithId(id.to_owned()),
        hook_command: Some(words.into()),
        ..LaunchRequest::default()
    };
    let spec = agent.launch(&request).unwrap();
    let mut command = Command::new(&program);
    command.args(&spec.args).env_clear().envs(home.env()).env("SCRIPTED_AGENT", home.beside("agent.json"));
    let done = run(&mut command, &spec.stdin, Duration::from_secs(20)).unwrap();
    let expected = format!("{id} do it\nran fine\ndenied forbidden\n");
    assert_eq!(String::from_utf8(done.stdout).unwrap(), expected, "{}", done.stderr);
    assert_eq!(std::fs::read_dir(records).unwrap().count(), 2);
}
