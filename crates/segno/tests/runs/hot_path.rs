//! What a hook costs, counted in instructions: a number that a busy machine does not change. Whatever is added to segno, its
//! hooks must not pay for it.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::lab::Lab;
use crate::lab::program;
use crate::lab::skip;
use crate::watch::Agent;

/// The most that a hook before a call may take, of a program that is not optimised. It takes nine tenths of that, most of it
/// for what the dynamic loader does with such a program, SQLite's schema and the settings.
const MOST: u64 = 47_000_000;

/// The log is cut when it has more than 256 KiB; a commit adds a few pages to that.
const LONGEST_LOG: u64 = 400 * 1024;

/// Stands for segno, and counts when it is asked to.
const COUNTING: &str = "#!/bin/sh\n\
    if [ -e \"$COUNT.on\" ]; then\n\
    exec valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file=\"$COUNT\" \"$COUNTED\" \"$@\"\n\
    fi\nexec \"$COUNTED\" \"$@\"\n";

/// How many instructions the hook before a call takes.
fn counted(lab: &Lab, agent: &mut Agent, call: &str) -> u64 {
    let log = lab.path("count");
    std::fs::write(format!("{log}.on"), "").unwrap();
    let content = "let total = items.iter().map(|item| item.price).sum();\n".repeat(36);
    let input = json!({ "file_path": "a.rs", "content": content });
    let answer =
        agent.hook("PreToolUse", json!({ "tool_name": "Write", "tool_use_id": call, "tool_input": input }));
    assert!(answer.is_null(), "{answer}");
    std::fs::remove_file(format!("{log}.on")).unwrap();
    let text = std::fs::read_to_string(log).unwrap();
    let count = text.lines().find_map(|line| line.split_once("refs:")).map(|(_, count)| count.trim());
    count.and_then(|count| count.replace(',', "").parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn a_hook_stays_cheap() {
    if program("valgrind").arg("--version").output().is_err() {
        return skip("valgrind is not installed");
    }
    let mut lab = Lab::new();
    let stand_in = lab.path("segno");
    lab.write("segno", COUNTING);
    std::fs::set_permissions(&stand_in, std::fs::Permissions::from_mode(0o755)).unwrap();
    lab.env.insert("COUNTED".to_owned(), lab.segno.display().to_string());
    lab.env.insert("COUNT".to_owned(), lab.path("count"));
    lab.segno = stand_in.into();
    let mut agent = Agent::start(&lab, "c-1");
    agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" }));
    let work = |agent: &mut Agent, calls: std::ops::Range<u32>| {
        for call in calls {
            agent.begins(&format!("t{call}"), "echo hi");
            agent.ends(&format!("t{call}"));
        }
    };
    work(&mut agent, 0..20);
    let first = counted(&lab, &mut agent, "counted-1");
    println!("a hook with 2 KB: {first} instructions");
    assert!(first <= MOST, "a hook takes {first} instructions; {MOST} is the most it may take");
    // What it costs does not grow with what was recorded before: the log is cut again and again.
    work(&mut agent, 20..60);
    let log = lab.home.path().join(".local/share/segno/segno.db-wal");
    let length = std::fs::metadata(log).unwrap().len();
    assert!(length < LONGEST_LOG, "the log has {length} bytes");
    let later = counted(&lab, &mut agent, "counted-2");
    println!("40 calls later: {later} instructions");
    assert!(later <= MOST, "{first} before, {later} now; {MOST} is the most it may take");
}
