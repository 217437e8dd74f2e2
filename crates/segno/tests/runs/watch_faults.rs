//! What goes wrong with the store while somebody works with an agent that nobody here started: the agent never notices, and
//! what was acknowledged is there afterwards.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::SmallDisk;
use crate::lab::program;
use crate::lab::skip;
use crate::lab::until;
use crate::watch::Agent;

fn database(lab: &Lab) -> PathBuf {
    lab.home.path().join(".local/share/segno/segno.db")
}

fn spooled(lab: &Lab) -> usize {
    let files = std::fs::read_dir(lab.home.path().join(".local/state/segno/spool"));
    files.map_or(0, |files| {
        files.flatten().filter(|file| file.path().extension().is_some_and(|end| end == "json")).count()
    })
}

fn calls(lab: &Lab) -> Vec<(String, String)> {
    let word = |call: &Value, name: &str| call[name].as_str().unwrap().to_owned();
    lab.tools().iter().map(|call| (word(call, "call"), word(call, "state"))).collect()
}

fn completed(names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| ((*name).to_owned(), "completed".to_owned())).collect()
}

/// An agent that has begun, with one call behind it.
fn at_work(lab: &Lab) -> Agent {
    let mut agent = Agent::start(lab, "c-1");
    agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" }));
    assert_eq!(agent.begins("t1", "echo one"), Value::Null);
    agent.ends("t1");
    agent
}

/// There is a store, with a session whose agent is known to be dead.
fn began_before(lab: &Lab) {
    drop(at_work(lab));
    assert_eq!(lab.state()["status"], "interrupted");
}

/// One call that is told while something is wrong. Nothing is denied, and every hook ends with 0.
fn works_on(agent: &mut Agent, call: &str) {
    assert_eq!(agent.begins(call, "echo on"), Value::Null);
    agent.ends(call);
}

#[test]
fn a_store_that_somebody_else_locks() {
    let lab = Lab::new();
    let mut agent = at_work(&lab);
    let other = rusqlite::Connection::open(database(&lab)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    works_on(&mut agent, "t2");
    assert_eq!(spooled(&lab), 2);
    other.execute_batch("ROLLBACK").unwrap();
    // Whoever comes next takes in what waited, before its own word.
    assert_eq!(agent.begins("t3", "echo three"), Value::Null);
    assert_eq!(spooled(&lab), 0);
    agent.ends("t3");
    assert_eq!(calls(&lab), completed(&["t1", "t2", "t3"]));
    let told = lab.journal(None);
    let order: Vec<&str> = told
        .iter()
        .filter(|event| matches!(event["kind"].as_str(), Some("tool_started" | "tool_ended")))
        .map(|event| event["body"]["call"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["t1", "t1", "t2", "t2", "t3", "t3"], "in the order in which they happened");
}

#[test]
fn a_conversation_that_begins_and_dies_while_the_store_is_locked() {
    let lab = Lab::new();
    began_before(&lab);
    let other = rusqlite::Connection::open(database(&lab)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut agent = Agent::start(&lab, "c-2");
    let pid = agent.child.id();
    assert_eq!(agent.hook("SessionStart", json!({ "source": "startup" })), Value::Null);
    assert_eq!(agent.hook("UserPromptSubmit", json!({ "prompt": "mend the roof" })), Value::Null);
    works_on(&mut agent, "r1");
    assert_eq!(agent.begins("r2", "make all"), Value::Null);
    agent.kill();
    other.execute_batch("ROLLBACK").unwrap();
    // The next command makes its session, and finds its agent dead.
    let state = lab.state();
    assert_eq!(
        (&state["status"], &state["run"]["native_id"], &state["run"]["pid"]),
        (&"interrupted".into(), &"c-2".into(), &pid.into()),
        "{state:#}"
    );
    assert_eq!(state["topic"], "mend the roof", "what it was asked first is not lost");
    assert_eq!(
        calls(&lab),
        [("r1".to_owned(), "completed".to_owned()), ("r2".to_owned(), "in_doubt".to_owned())]
    );
    assert_eq!(spooled(&lab), 0);
    // Taken up again, it goes on there.
    let mut agent = Agent::start(&lab, "c-2");
    agent.hook("UserPromptSubmit", json!({ "prompt": "go on" }));
    let again = lab.state();
    assert_eq!((&again["session_id"], &again["counts"]["runs"]), (&state["session_id"], &2.into()));
}

#[test]
fn a_conversation_that_waited_for_its_person_was_not_interrupted() {
    let lab = Lab::new();
    began_before(&lab);
    let other = rusqlite::Connection::open(database(&lab)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut agent = Agent::start(&lab, "c-2");
    agent.hook("UserPromptSubmit", json!({ "prompt": "mend the roof" }));
    works_on(&mut agent, "r1");
    agent.hook("Stop", json!({}));
    other.execute_batch("ROLLBACK").unwrap();
    // Somebody looks while it lives: it holds its session.
    let state = lab.state();
    assert_eq!(
        (&state["status"], &state["driver"]["holder"]["pid"]),
        (&"active".into(), &agent.child.id().into()),
        "{state:#}"
    );
    agent.kill();
    let state = lab.state();
    assert_eq!(
        (&state["status"], &state["run"]["native_id"]),
        (&"paused".into(), &"c-2".into()),
        "{state:#}"
    );
    assert_eq!(calls(&lab), completed(&["r1"]));
}

#[test]
fn a_disk_that_is_full() {
    let lab = Lab::new();
    let Some(small) = SmallDisk::mount(&lab, "home/.local/share/segno", "24m") else {
        return skip("no small file system can be mounted here (that needs root)");
    };
    let mut agent = at_work(&lab);
    let filler = small.fill();
    works_on(&mut agent, "t2");
    std::fs::remove_file(filler).unwrap();
    works_on(&mut agent, "t3");
    assert_eq!(calls(&lab), completed(&["t1", "t2", "t3"]));
}

#[test]
fn a_store_of_a_newer_segno() {
    let lab = Lab::new();
    let mut agent = at_work(&lab);
    let other = rusqlite::Connection::open(database(&lab)).unwrap();
    let version: u32 = other.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    other.pragma_update(None, "user_version", 99).unwrap();
    works_on(&mut agent, "t2");
    assert_eq!(spooled(&lab), 2);
    other.pragma_update(None, "user_version", version).unwrap();
    works_on(&mut agent, "t3");
    assert_eq!(calls(&lab), completed(&["t1", "t2", "t3"]));
}

#[test]
fn a_store_that_is_gone() {
    let lab = Lab::new();
    let mut agent = at_work(&lab);
    std::fs::remove_dir_all(lab.home.path().join(".local/share/segno")).unwrap();
    works_on(&mut agent, "t2");
    works_on(&mut agent, "t3");
    // There is a new one, and what is told since is in it.
    assert_eq!(calls(&lab), completed(&["t2", "t3"]));
}

#[test]
fn a_hook_that_is_killed_half_way() {
    let lab = Lab::new();
    let mut agent = at_work(&lab);
    for round in 0..12_u64 {
        // Before it has heard everything, and while it works.
        let mut command = lab.segno(&["hook", "--watch", "claude"]);
        let mut hook = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "c-1", "cwd": lab.home.work(), "tool_name": "Bash",
            "tool_use_id": format!("k{round}"), "tool_input": { "command": "echo killed" },
        });
        let text = payload.to_string();
        let heard = if round % 3 == 0 { text.len() / 2 } else { text.len() };
        let mut to = hook.stdin.take().unwrap();
        std::io::Write::write_all(&mut to, &text.as_bytes()[..heard]).unwrap();
        if round % 3 > 0 {
            drop(to);
            std::thread::sleep(std::time::Duration::from_millis(round));
        }
        hook.kill().unwrap();
        hook.wait().unwrap();
        works_on(&mut agent, &format!("t-{round}"));
    }
    let known = calls(&lab);
    for round in 0..12 {
        let ended = (format!("t-{round}"), "completed".to_owned());
        assert!(known.contains(&ended), "what was acknowledged is there: {known:#?}");
    }
    let checked = lab.run(&["doctor", "--json"]);
    let report: Value = serde_json::from_str(&checked.text()).unwrap();
    assert!(!report.to_string().contains("\"damaged\""), "{report:#}");
}

#[test]
fn a_program_that_is_gone() {
    let lab = Lab::new();
    std::fs::create_dir_all(lab.home.path().join(".claude")).unwrap();
    assert_eq!(lab.run(&["init", "--yes", "claude"]).code, Some(0));
    let text = std::fs::read_to_string(lab.home.path().join(".claude/settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    let line = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    // Under this name there is nothing any more, wherever it was.
    let gone = line.replace(lab.segno.to_str().unwrap(), "/nowhere/segno");
    let mut command = program("sh");
    command.args(["-c", &gone]).env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    let ended = command.output().unwrap();
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(0), &b""[..]), "{gone}");
}

#[test]
fn somebody_follows_before_the_next_hook() {
    let lab = Lab::new();
    let log = lab.home.path().join(".claude/projects/-work/c-1.jsonl");
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    let mut agent = Agent::start(&lab, "c-1");
    agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" }));
    assert_eq!(agent.begins("t1", "echo one"), Value::Null);
    let live = lab.start(&["watch"], None);
    let say = |text: &str, number: u32| {
        let line = json!({
            "type": "assistant", "sessionId": "c-1", "uuid": format!("u-{number}"), "timestamp": now(),
            "message": {
                "id": format!("m-{number}"), "model": "claude-opus-5-5", "role": "assistant",
                "content": [{ "type": "text", "text": text }],
                "usage": { "input_tokens": 10, "output_tokens": 5 },
            },
        });
        let mut file = std::fs::File::options().create(true).append(true).open(&log).unwrap();
        std::io::Write::write_all(&mut file, format!("{line}\n").as_bytes()).unwrap();
    };
    let texts = || -> Vec<String> {
        let said = lab.journal(Some("said"));
        let own = said.iter().filter(|event| event["body"]["channel"] == "text");
        own.map(|event| event["body"]["text"].as_str().unwrap().to_owned()).collect()
    };
    say("first I look at the hinges", 1);
    say("then at the lock", 2);
    until("it was read", || texts().contains(&"first I look at the hinges".to_owned()).then_some(()));
    // An agent that dies is found without anybody asking.
    agent.kill();
    until("it is known", || {
        let rows = rusqlite::Connection::open(database(&lab)).unwrap();
        let status: String = rows.query_row("SELECT status FROM sessions", [], |row| row.get(0)).unwrap();
        (status == "interrupted").then_some(())
    });
    crate::lab::signal(live.pid(), rustix::process::Signal::INT);
    assert_eq!(live.finish().code, Some(0));
    assert_eq!(texts(), ["first I look at the hinges", "then at the lock"], "each once");
    let state = lab.state();
    assert_eq!(state["budget"]["tokens_used"], 30, "{state:#}");
}

fn now() -> String {
    let now = segno_engine::Clock::now(&segno_engine::SystemClock);
    now.to_string()
}

/// Adds to the time of day what a file says.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(clock, time);
    const char *path = getenv("CLOCK_JUMP");
    FILE *file = clock == CLOCK_REALTIME && path ? fopen(path, "r") : NULL;
    if (file) {
        long seconds = 0;
        if (fscanf(file, "%ld", &seconds) == 1) time->tv_sec += seconds;
        fclose(file);
    }
    return done;
}
"#;

#[test]
fn a_clock_that_jumps() {
    let mut lab = Lab::new();
    lab.write("clock.c", CLOCK);
    let (source, library, jump) = (lab.path("clock.c"), lab.path("clock.so"), lab.path("jump"));
    let made = program("cc").args(["-shared", "-fPIC", "-o", &library, &source, "-ldl"]).output();
    if !made.is_ok_and(|made| made.status.success()) {
        return skip("there is no C compiler for a clock that jumps");
    }
    lab.env.insert("LD_PRELOAD".to_owned(), library);
    lab.env.insert("CLOCK_JUMP".to_owned(), jump.clone());
    let mut agent = at_work(&lab);
    let times = |lab: &Lab| -> Vec<String> {
        let started = lab.journal(Some("tool_started"));
        started.iter().map(|event| event["at"].as_str().unwrap()[..10].to_owned()).collect()
    };
    // Two days back, as when a battery was empty; then ten days on.
    for (call, seconds) in [("t2", -2 * 86_400_i64), ("t3", 8 * 86_400), ("t4", 0)] {
        std::fs::write(&jump, seconds.to_string()).unwrap();
        works_on(&mut agent, call);
        assert_eq!(lab.state()["status"], "active", "its agent lives, whatever the clock says");
    }
    assert_eq!(calls(&lab), completed(&["t1", "t2", "t3", "t4"]), "in the order in which they happened");
    let days = times(&lab);
    assert!(days[1] < days[0] && days[2] > days[0], "the clock did jump: {days:?}");
    assert_eq!(spooled(&lab), 0);
}
