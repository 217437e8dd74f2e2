//! Many hooks at once, of the same and of different conversations, while somebody else has the store now and then: each
//! conversation has one session, and each thing that was told is in it once.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::program;

const CONVERSATIONS: usize = 8;
const ROUNDS: usize = 3;
const AT_ONCE: usize = 4;

/// An agent whose hooks come several at a time, as for calls that it makes side by side.
const STAND_IN: &str = "for round in $ROUNDS; do\n\
                        for one in $ONES; do \"$SEGNO_PROGRAM\" hook --watch claude < \"$TOLD-$round-$one\" & done\n\
                        wait\n\
                        done\n";

fn native(conversation: usize) -> String {
    format!("talk-{conversation}")
}

fn call(conversation: usize, round: usize, one: usize) -> String {
    format!("c{conversation}-{round}-{one}")
}

/// One that asks for something, then begins calls, all of a round at once.
fn start(lab: &Lab, conversation: usize) -> Child {
    let told = lab.path(&format!("told-{conversation}"));
    for round in 0..ROUNDS {
        for one in 0..AT_ONCE {
            let payload = json!({
                "hook_event_name": "PreToolUse", "session_id": native(conversation), "cwd": lab.home.work(),
                "tool_name": "Read", "tool_use_id": call(conversation, round, one),
                "tool_input": { "file_path": format!("file-{one}") },
            });
            std::fs::write(format!("{told}-{round}-{one}"), payload.to_string()).unwrap();
        }
    }
    let numbers = |most: usize| (0..most).map(|one| one.to_string()).collect::<Vec<_>>().join(" ");
    let mut command = program("sh");
    command.arg(lab.path("agent.sh")).env_clear().envs(&lab.env).current_dir(lab.home.work());
    command.env("SEGNO_PROGRAM", &lab.segno).env("TOLD", told);
    command.env("ROUNDS", numbers(ROUNDS)).env("ONES", numbers(AT_ONCE));
    command.spawn().unwrap()
}

/// Somebody who has the store for longer than a hook waits, again and again.
fn hold_now_and_then(lab: &Lab, done: &Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let database = lab.home.path().join(".local/share/segno/segno.db");
    let done = Arc::clone(done);
    std::thread::spawn(move || {
        let other = rusqlite::Connection::open(database).unwrap();
        other.busy_timeout(Duration::from_secs(20)).unwrap();
        while !done.load(Ordering::Relaxed) {
            other.execute_batch("BEGIN IMMEDIATE").unwrap();
            std::thread::sleep(Duration::from_millis(130));
            other.execute_batch("ROLLBACK").unwrap();
            std::thread::sleep(Duration::from_millis(40));
        }
    })
}

/// The calls of each conversation, by the session that they are in.
fn recorded(lab: &Lab) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let mut found = BTreeMap::new();
    let sessions = lab.json(&["ls", "--all", "--limit", "100"]);
    let sessions = sessions["sessions"].as_array().unwrap().clone();
    for session in sessions {
        let id = session["session_id"].as_str().unwrap().to_owned();
        let shown = lab.json(&["show", &id]);
        let native = shown["state"]["run"]["native_id"].as_str().unwrap_or("none").to_owned();
        let tools = lab.json(&["show", &id, "--tools", "--limit", "100"]);
        let calls = tools["items"].as_array().unwrap().iter();
        let calls = calls.map(|call: &Value| call["call"].as_str().unwrap().to_owned()).collect();
        found.insert(id, (native, calls));
    }
    found
}

#[test]
fn each_conversation_has_one_session_whoever_comes_first() {
    let lab = Lab::new();
    lab.write("agent.sh", STAND_IN);
    // There is a store.
    assert_eq!(lab.run(&["new", "something else"]).code, Some(0));
    let before = recorded(&lab);
    let done = Arc::new(AtomicBool::new(false));
    let holder = hold_now_and_then(&lab, &done);
    let agents: Vec<Child> = (0..CONVERSATIONS).map(|conversation| start(&lab, conversation)).collect();
    for mut agent in agents {
        assert!(agent.wait().unwrap().success());
    }
    done.store(true, Ordering::Relaxed);
    holder.join().unwrap();

    let mut sessions = recorded(&lab);
    sessions.retain(|id, _| !before.contains_key(id));
    let found: Vec<(String, BTreeSet<String>)> = sessions.into_values().collect();
    let mut wanted: Vec<(String, BTreeSet<String>)> = (0..CONVERSATIONS)
        .map(|conversation| {
            let calls = (0..ROUNDS)
                .flat_map(|round| (0..AT_ONCE).map(move |one| call(conversation, round, one)))
                .collect();
            (native(conversation), calls)
        })
        .collect();
    let mut found = found;
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
    let apart = lab.home.path().join(".local/state/segno/spool/set-apart");
    assert!(!apart.exists(), "nothing was set apart");
}
