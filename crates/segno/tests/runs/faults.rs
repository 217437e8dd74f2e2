//! Agents that misbehave, and a machine that does.

use std::time::Duration;

use rstest::rstest;
use rustix::process::Signal;
use segno_testkit::lines::claude;
use segno_testkit::scripted::How;
use segno_testkit::scripted::Shape;
use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::Live;
use crate::lab::Said;
use crate::lab::SmallDisk;
use crate::lab::signal;
use crate::lab::skip;
use crate::lab::until;
use crate::lab::variable;

/// What segno may take at most, whatever an agent prints.
const MEMORY: u64 = 64 * 1024 * 1024;

/// Runs a scripted agent as a plain command.
fn plain(lab: &Lab, more: &[&str], steps: &[Step]) -> Live {
    let agent = lab.scripted("agent", steps);
    let mut args = vec!["run", "--json"];
    args.extend(more);
    args.push("--");
    args.extend(agent.iter().map(String::as_str));
    lab.start(&args, None)
}

/// Runs a scripted agent that speaks like Claude Code.
fn as_claude(lab: &mut Lab, steps: &[Step]) -> Said {
    lab.stand_in("claude", steps);
    lab.run(&["run", "--json", "--no-hooks", "--prompt", "x"])
}

/// Follows a process to its end and says how much memory it had at most. The pages of the program itself do not count:
/// they are the system's to drop, and an unoptimised program has many.
fn peak(live: &mut Live) -> u64 {
    let mut peak = 0;
    while live.is_running() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", live.pid())).unwrap_or_default();
        let kib = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
            line.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0)
        };
        peak = peak.max(kib("VmHWM:").saturating_sub(kib("RssFile:")) * 1024);
        std::thread::sleep(Duration::from_millis(10));
    }
    peak
}

/// An agent prints so much; nothing is lost, and segno stays small.
fn flood(bytes: u64, line: usize) {
    let lab = Lab::new();
    let mut live = plain(&lab, &[], &[Step::Flood { bytes, line }]);
    let memory = peak(&mut live);
    let said = live.finish_within(Duration::from_secs(3_600));
    let result = said.result();
    let expected = bytes.div_ceil(line as u64);
    println!(
        "{} MB in lines of {line}: {:?}, {} lines, peak {:.1} MiB",
        bytes >> 20,
        said.took,
        result["lines"],
        memory as f64 / 1_048_576.0
    );
    assert_eq!((&result["outcome"], &result["lines"]), (&json!("completed"), &json!(expected)));
    let mut number = 0;
    for event in said.each().filter(|event| event["kind"] == "said") {
        let text = event["body"]["text"].as_str().unwrap();
        for line in text.lines() {
            // The last line is cut short from the front.
            if number + 1 < expected {
                assert_eq!(line[..12].parse::<u64>().unwrap(), number, "no gap, nothing twice");
            }
            number += 1;
        }
    }
    assert_eq!(number, expected);
    assert!(memory <= MEMORY, "segno had {} MiB", memory >> 20);
}

#[test]
fn a_hundred_megabytes_at_once() {
    flood(100 << 20, 4_000);
}

#[rstest]
#[case::short_lines(100 << 20, 120)]
#[case::a_gigabyte(1 << 30, 8_000)]
fn more_than_that(#[case] bytes: u64, #[case] line: usize) {
    if variable("SEGNO_FULL").is_none() {
        return skip("that takes minutes; SEGNO_FULL=1 asks for it");
    }
    flood(bytes, line);
}

#[test]
fn lines_nobody_knows() {
    let mut lab = Lab::new();
    let crlf = claude::init("${session}").to_string() + "\r\n";
    let steps = [
        Step::Stdin(0),
        Step::Raw(crlf),
        Step::Json(json!({ "type": "brand_new", "session_id": "${session}", "payload": { "deep": [1, 2] } })),
        Step::Json(
            json!({ "type": "system", "subtype": "never_heard_of", "session_id": "${session}", "n": 7 }),
        ),
        Step::Hex("fffe41 0a".to_owned()),
        Step::Print("a warning of the runtime".to_owned()),
        Step::Raw("\r\n\n".to_owned()),
        Step::Json(claude::text("${session}", "made it \u{1b}[31m")),
        Step::Json(claude::result("${session}", "made it")),
    ];
    let said = as_claude(&mut lab, &steps);
    let result = said.result();
    assert_eq!((&result["outcome"], &result["text"]), (&json!("completed"), &json!("made it")));
    assert_eq!(result["unparsed"], 4, "two of an unknown kind, two that are no JSON: {result}");
    let journal = lab.run(&["log", "last", "--json"]).text();
    for kept in ["brand_new", "never_heard_of", "a warning of the runtime", "deep"] {
        assert!(journal.contains(kept), "{kept} is kept: {journal}");
    }
    assert!(!lab.run(&["log", "last"]).text().contains('\u{1b}'), "escapes are made visible");
}

#[test]
fn an_agent_that_is_newer_than_tested() {
    let mut lab = Lab::new();
    let mut init = claude::init("${session}");
    init["claude_code_version"] = "99.0.1".into();
    let news = || Step::Json(json!({ "type": "brand_new", "session_id": "${session}" }));
    let end = Step::Json(claude::result("${session}", "made it"));
    let first = as_claude(&mut lab, &[Step::Stdin(0), Step::Json(init), news(), news(), end]);
    // Its first run tells which version it is.
    assert!(!first.stderr.contains("newer than tested"), "{}", first.stderr);
    let second = lab.run(&["run", "--json", "--no-hooks", "--prompt", "again"]);
    let tested = segno_engine::agents::drift::tested("claude").unwrap();
    let said = format!("claude 99.0.1 is newer than tested ({tested})");
    assert!(second.stderr.contains(&said), "{}", second.stderr);
    let found = lab.json(&["doctor"])["diagnosis"]["agents"].take();
    let wanted = json!([{
        "agent": "claude", "version": "99.0.1", "tested": tested, "newer": true,
        "unknown_kinds": { "brand_new": 4 }, "unknown_hooks": {},
    }]);
    assert_eq!(found, wanted);
    let words = lab.run(&["doctor"]).text();
    let line = format!("claude: 99.0.1 is newer than tested ({tested}); 1 unknown kind: brand_new ×4");
    assert!(words.contains(&line), "{words}");
}

#[test]
fn a_line_of_twenty_megabytes() {
    for shape in [Shape::Plain, Shape::Claude] {
        let mut lab = Lab::new();
        lab.stand_in(
            "claude",
            &[
                Step::Stdin(0),
                Step::Json(claude::init("${session}")),
                Step::LongLine { bytes: 20 << 20, shape },
                Step::Json(claude::text("${session}", "after it")),
                Step::Json(claude::result("${session}", "fine")),
            ],
        );
        let mut live = lab.start(&["run", "--json", "--no-hooks", "--prompt", "x"], None);
        let memory = peak(&mut live);
        let said = live.finish();
        let result = said.result();
        println!("{shape:?}: peak {:.1} MiB, {result}", memory as f64 / 1_048_576.0);
        assert_eq!((&result["outcome"], &result["text"]), (&json!("completed"), &json!("fine")));
        assert!(said.text().contains("after it"));
        assert!(memory <= MEMORY, "{} MiB", memory >> 20);
    }
}

#[test]
fn an_agent_that_ends_without_a_word() {
    let mut lab = Lab::new();
    let said = as_claude(&mut lab, &[Step::Stdin(0), Step::Json(claude::init("${session}")), Step::Exit(0)]);
    assert_eq!((said.code, &said.result()["outcome"]), (Some(21), &json!("interrupted")));
    assert_eq!(lab.state()["status"], "interrupted");
}

#[test]
fn stdout_is_closed_and_the_work_goes_on() {
    let lab = Lab::new();
    let (done, go) = (lab.path("done"), lab.path("go"));
    let live = plain(
        &lab,
        &[],
        &[
            Step::Print("before".to_owned()),
            Step::CloseStdout,
            Step::Print("never seen".to_owned()),
            Step::WaitFor { path: go.clone(), seconds: 60 },
            Step::Write { path: done.clone(), content: String::new() },
        ],
    );
    lab.running();
    std::fs::write(go, "").unwrap();
    let said = live.finish();
    assert_eq!((&said.result()["outcome"], &said.result()["lines"]), (&json!("completed"), &json!(1)));
    assert!(std::fs::exists(done).unwrap(), "its end was waited for");
}

#[test]
fn a_prompt_that_is_never_read() {
    let lab = Lab::new();
    lab.write("prompt.txt", &"do this and that\n".repeat(300_000));
    let prompt = lab.path("prompt.txt");
    let live = plain(&lab, &["--file", &prompt], &[Step::Print("I do not listen".to_owned())]);
    let result = live.finish().result();
    assert_eq!((&result["outcome"], &result["text"]), (&json!("completed"), &json!("I do not listen")));
}

#[test]
fn a_child_keeps_the_output_open() {
    let lab = Lab::new();
    let child = Step::Spawn {
        how: How::Setsid,
        steps: vec![Step::Print("from the child".to_owned()), Step::SleepMs(60_000)],
        pid_file: Some(lab.path("child")),
        keep_output: true,
        bare: true,
    };
    let result = plain(&lab, &[], &[child, Step::Print("the end".to_owned())]).finish().result();
    assert_eq!((&result["outcome"], &result["swept"]), (&json!("completed"), &json!(1)), "{result}");
    lab.assert_nothing_left();
}

fn printing(lab: &Lab) -> [Step; 5] {
    let wait = |name: &str| Step::WaitFor { path: lab.path(name), seconds: 60 };
    [
        Step::Print("before".to_owned()),
        wait("full"),
        Step::Flood { bytes: 400_000, line: 1_000 },
        wait("free"),
        Step::Print("after".to_owned()),
    ]
}

/// An agent that has begun, and a store on a disk that is full since; none where nothing can be mounted.
fn on_a_full_disk(lab: &Lab) -> Option<(SmallDisk, Live, String)> {
    let Some(small) = SmallDisk::mount(lab, "home/.local/share/segno", "24m") else {
        skip("no small file system can be mounted here (that needs root)");
        return None;
    };
    let live = plain(lab, &[], &printing(lab));
    until("it has begun", || String::from_utf8_lossy(&live.stdout()).contains("before").then_some(()));
    let filler = small.fill();
    std::fs::write(lab.path("full"), "").unwrap();
    Some((small, live, filler))
}

#[test]
fn the_disk_is_full_for_a_while() {
    let lab = Lab::new();
    let Some((_disk, live, filler)) = on_a_full_disk(&lab) else { return };
    until("segno says so", || live.stderr().contains("kept until the store can take it").then_some(()));
    std::fs::remove_file(filler).unwrap();
    std::fs::write(lab.path("free"), "").unwrap();
    let said = live.finish();
    assert_eq!((&said.result()["outcome"], &said.result()["lines"]), (&json!("completed"), &json!(402)));
    assert!(said.stderr.contains("nothing is lost"), "{}", said.stderr);
    let texts = lab.journal(Some("said"));
    let lines: usize =
        texts.iter().map(|event| event["body"]["text"].as_str().unwrap().lines().count()).sum();
    assert_eq!(lines, 402);
}

#[test]
fn the_disk_stays_full() {
    if variable("SEGNO_FULL").is_none() {
        return skip("segno tries for a while before it gives up; SEGNO_FULL=1 asks for it");
    }
    let lab = Lab::new();
    let Some((_disk, live, filler)) = on_a_full_disk(&lab) else { return };
    std::fs::write(lab.path("free"), "").unwrap();
    let said = live.finish_within(Duration::from_secs(180));
    println!("{} {}", said.text(), said.stderr);
    assert!(said.stderr.contains("is kept in"), "{}", said.stderr);
    std::fs::remove_file(filler).unwrap();
    // The next one to look takes it in.
    lab.run(&["attach", "last"]);
    let texts = lab.journal(Some("said"));
    let lines: usize =
        texts.iter().map(|event| event["body"]["text"].as_str().unwrap().lines().count()).sum();
    assert_eq!(lines, 402);
}

fn nested(lab: &Lab, inner: &[Step]) -> Live {
    let agent = lab.scripted("inner", inner);
    let line =
        format!("{} run --json -- {} > {}", lab.segno.display(), agent.join(" "), lab.path("inner.out"));
    lab.start(&["run", "--json", "--grace", "1000", "--", "sh", "-c", &line], None)
}

#[test]
fn segno_in_an_agent_in_segno() {
    let lab = Lab::new();
    let child = |name: &str| Step::Spawn {
        how: How::DoubleFork,
        steps: vec![Step::SleepMs(60_000)],
        pid_file: Some(lab.path(name)),
        keep_output: false,
        bare: false,
    };
    let result = nested(&lab, &[child("a"), child("b"), Step::Print("inside".to_owned())]).finish().result();
    assert_eq!(result["outcome"], "completed", "{result}");
    let inner = std::fs::read_to_string(lab.path("inner.out")).unwrap();
    let inner: Value = serde_json::from_str(inner.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&inner["outcome"], &inner["text"], &inner["swept"]),
        (&json!("completed"), &json!("inside"), &json!(2))
    );
    assert_ne!(inner["session_id"], result["session_id"], "each has a session of its own");
    assert_eq!(result["swept"], 0, "the inner one has cleaned up already");
    lab.assert_nothing_left();
}

#[test]
fn the_outer_segno_ends_the_inner_one_too() {
    let lab = Lab::new();
    let ready = lab.path("ready");
    let steps = [Step::Write { path: ready.clone(), content: String::new() }, Step::SleepMs(60_000)];
    let live = nested(&lab, &steps);
    until("the inner agent runs", || std::fs::exists(&ready).unwrap().then_some(()));
    live.signal(Signal::TERM);
    let result = live.finish().result();
    assert_eq!(result["outcome"], "stopped", "{result}");
    lab.assert_no_process_left();
    // Neither session is left as if somebody drove it, and whoever looks tidies up.
    let listed = lab.json(&["ls", "--all"]);
    assert!(!listed.to_string().contains("\"active\""), "{listed}");
    lab.assert_nothing_left();
}

#[test]
fn two_runs_at_once_in_one_session() {
    let lab = Lab::new();
    let id = lab.run(&["new"]).text().trim().to_owned();
    let go = lab.path("go");
    let live = plain(&lab, &["--session", &id], &[Step::WaitFor { path: go.clone(), seconds: 60 }]);
    lab.running();
    let second = lab.run(&["run", "--session", &id, "--", "true"]);
    assert_eq!(second.code, Some(7), "{}", second.stderr);
    assert!(second.stderr.contains(&live.pid().to_string()), "it says who: {}", second.stderr);
    std::fs::write(go, "").unwrap();
    assert_eq!(live.finish().code, Some(0));
    let third = lab.run(&["run", "--session", &id, "--", "true"]);
    assert_eq!(third.code, Some(0), "{}", third.stderr);
    assert_eq!(lab.journal(Some("run_started")).len(), 2);
}

/// An agent whose driver died can be ended by anybody.
#[rstest]
#[case("stop")]
#[case("kill")]
fn an_agent_that_nobody_drives(#[case] command: &str) {
    let lab = Lab::new();
    let ready = lab.path("ready");
    let child = Step::Spawn {
        how: How::Setsid,
        steps: vec![Step::SleepMs(60_000)],
        pid_file: Some(lab.path("child")),
        keep_output: false,
        bare: false,
    };
    let last = Step::Print("said before the end".to_owned());
    let steps =
        [child, last, Step::Write { path: ready.clone(), content: String::new() }, Step::SleepMs(60_000)];
    let live = plain(&lab, &[], &steps);
    until("it runs", || std::fs::exists(&ready).unwrap().then_some(()));
    lab.running();
    live.signal(Signal::KILL);
    live.finish();
    let shown = lab.run(&["show", "last"]);
    assert!(shown.stderr.contains("is still running, and nobody drives it"), "{}", shown.stderr);
    let ended = lab.run(&[command, "last"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    lab.assert_nothing_left();
    let state = lab.state();
    assert_eq!((&state["status"], &state["run"]["outcome"]), (&json!("interrupted"), &json!("interrupted")));
    let texts = lab.journal(Some("said"));
    assert_eq!(texts.len(), 1, "its last words are taken in, once: {texts:#?}");
}

#[test]
fn the_terminal_goes_away() {
    let lab = Lab::new();
    let ready = lab.path("ready");
    let steps = [Step::Write { path: ready.clone(), content: String::new() }, Step::SleepMs(60_000)];
    let live = plain(&lab, &["--grace", "300"], &steps);
    until("it runs", || std::fs::exists(&ready).unwrap().then_some(()));
    live.signal(Signal::HUP);
    let result = live.finish().result();
    assert_eq!((&result["outcome"], &result["session_status"]), (&json!("stopped"), &json!("paused")));
    lab.assert_nothing_left();
}

/// An agent that stops itself, such as one that reads from a terminal, is not waited for.
#[test]
fn an_agent_that_is_stopped_by_a_signal_is_ended() {
    let lab = Lab::new();
    let ready = lab.path("ready");
    let steps = [Step::Write { path: ready.clone(), content: String::new() }, Step::SleepMs(60_000)];
    let live = plain(&lab, &["--grace", "200"], &steps);
    until("it runs", || std::fs::exists(&ready).unwrap().then_some(()));
    signal(u32::try_from(lab.running()["pid"].as_u64().unwrap()).unwrap(), Signal::STOP);
    live.signal(Signal::INT);
    assert_eq!(live.finish().result()["outcome"], "stopped");
    lab.assert_nothing_left();
}
