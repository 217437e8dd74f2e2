//! What the shortest processes cost, counted in instructions: a number that a busy machine does not change. Whatever is added to
//! segno, its hooks and one-shot commands must not pay for it.

use std::os::unix::fs::PermissionsExt as _;

use segno_testkit::agents::skip;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::program;
use crate::watch::Agent;

// The most instructions that each of them may take, of a program that is not optimised, from its first line on: what the dynamic
// loader does before that grows with the program, and the one that is shipped has no loader. The same work gives the same number
// but for a part in a thousand, so each of these is 15 % above what was counted when it was last set. Whoever has a reason to
// spend more raises it here, and says so; whoever saves something lowers it.
/// `segno --version`.
const VERSION: u64 = 370_000;
/// `segno tokens 1`: settings, project, store, one event.
const TOKENS: u64 = 9_400_000;
/// The hook before a call of 2 KB that finds its driver: no store, no settings.
const DRIVEN: u64 = 2_200_000;
/// The same without a driver, straight to the store.
const ALONE: u64 = 29_800_000;
/// The same of an agent that somebody started by hand.
const WATCHED: u64 = 19_200_000;

/// The log is cut when it has more than 256 KiB; a commit adds a few pages to that.
const LONGEST_LOG: u64 = 400 * 1024;

/// Stands for segno, and counts when it is asked to. The mark of the home it is in looks like a slip of the finger, which takes long
/// to find out, and is left out.
const COUNTING: &str = "#!/bin/sh\n\
    if [ -e \"$COUNT.on\" ]; then\n\
    unset SEGNO_TESTKIT_HOME\n\
    exec valgrind --tool=callgrind --toggle-collect=main --callgrind-out-file=/dev/null --log-file=\"$COUNT\" \"$COUNTED\" \"$@\"\n\
    fi\nexec \"$COUNTED\" \"$@\"\n";

/// An agent that calls its hook once before a call, which is counted.
const CALLS_HOOK: &str = "touch \"$COUNT.on\"; \"$STAND_IN\" hook claude < \"$PAYLOAD\"; rm \"$COUNT.on\"";

/// A lab in which instructions can be counted; none without the tool for it.
fn counting_lab() -> Option<Lab> {
    if program("valgrind").arg("--version").output().is_err() {
        skip("valgrind is not installed");
        return None;
    }
    let mut lab = Lab::new();
    let stand_in = lab.path("segno");
    lab.write("segno", COUNTING);
    std::fs::set_permissions(&stand_in, std::fs::Permissions::from_mode(0o755)).unwrap();
    lab.env.insert("COUNTED".to_owned(), lab.segno.display().to_string());
    lab.env.insert("COUNT".to_owned(), lab.path("count"));
    lab.env.insert("PAYLOAD".to_owned(), lab.path("payload"));
    lab.env.insert("STAND_IN".to_owned(), stand_in.clone());
    lab.segno = stand_in.into();
    Some(lab)
}

/// What the call that is counted brings.
fn input() -> serde_json::Value {
    let content = "let total = items.iter().map(|item| item.price).sum();\n".repeat(36);
    json!({ "file_path": "a.rs", "content": content })
}

/// What Claude Code sends before that call.
fn write_payload(lab: &Lab, call: &str) {
    let payload = json!({
        "hook_event_name": "PreToolUse", "session_id": "a", "cwd": "/", "tool_name": "Write",
        "tool_use_id": call, "tool_input": input(),
    });
    lab.write("payload", &payload.to_string());
}

/// How many instructions the process took that was counted last; no more than it may.
fn counted(lab: &Lab, what: &str, most: u64) -> u64 {
    let text = std::fs::read_to_string(lab.path("count")).unwrap();
    let count = text.lines().find_map(|line| line.split_once("refs:")).map(|(_, count)| count.trim());
    let count =
        count.and_then(|count| count.replace(',', "").parse().ok()).unwrap_or_else(|| panic!("{text}"));
    println!("{what}: {count} instructions");
    assert_ne!(count, 0, "the program has no symbols: nobody can tell where it begins");
    assert!(count <= most, "{what} takes {count} instructions; {most} is the most it may take");
    std::fs::remove_file(lab.path("count")).unwrap();
    count
}

/// Counts a command, which must succeed.
fn count_command(lab: &Lab, args: &[&str], most: u64) {
    lab.write("count.on", "");
    let said = lab.run(args);
    std::fs::remove_file(lab.path("count.on")).unwrap();
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    counted(lab, &args.join(" "), most);
}

/// Counts the hook before a call.
fn count_hook(lab: &Lab, agent: &mut Agent, call: &str) {
    lab.write("count.on", "");
    let more = json!({ "tool_name": "Write", "tool_use_id": call, "tool_input": input() });
    let answer = agent.hook("PreToolUse", more);
    std::fs::remove_file(lab.path("count.on")).unwrap();
    assert!(answer.is_null(), "{answer}");
    counted(lab, "hook --watch", WATCHED);
}

#[test]
fn short_commands_stay_cheap() {
    let Some(lab) = counting_lab() else { return };
    count_command(&lab, &["--version"], VERSION);
    assert_eq!(lab.run(&["new"]).code, Some(0));
    for _ in 0..20 {
        assert_eq!(lab.run(&["--quiet", "tokens", "1"]).code, Some(0));
    }
    count_command(&lab, &["--quiet", "tokens", "1"], TOKENS);
}

#[test]
fn the_hook_of_a_run_stays_cheap() {
    let Some(mut lab) = counting_lab() else { return };
    write_payload(&lab, "t1");
    let said = lab.run(&["run", "--", "sh", "-c", CALLS_HOOK]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let calls = |lab: &Lab| -> Vec<String> {
        lab.tools().iter().map(|tool| tool["call"].as_str().unwrap().to_owned()).collect()
    };
    let driven = counted(&lab, "hook, with a driver", DRIVEN);
    assert_eq!(calls(&lab), ["t1"]);
    // A session that nobody drives.
    let id = lab.run(&["new"]).text().trim().to_owned();
    lab.env.insert("SEGNO_SESSION".to_owned(), id);
    write_payload(&lab, "t2");
    // Whatever else is in the environment of the tests would be looked at, and counted.
    let mut shell = program("sh");
    let said = lab.start_command(shell.args(["-c", CALLS_HOOK]).env_clear().envs(&lab.env), None).finish();
    assert_eq!((said.code, said.text().as_str()), (Some(0), ""), "{}", said.stderr);
    let alone = counted(&lab, "hook, without a driver", ALONE);
    assert_eq!(calls(&lab), ["t2"]);
    assert!(driven * 2 < alone, "{driven}: the driver was not asked, or did not answer");
}

#[test]
fn the_hook_of_a_watched_agent_stays_cheap() {
    let Some(lab) = counting_lab() else { return };
    let mut agent = Agent::start(&lab, "c-1");
    agent.hook("UserPromptSubmit", json!({ "prompt": "mend the door" }));
    let work = |agent: &mut Agent, calls: std::ops::Range<u32>| {
        for call in calls {
            agent.begins(&format!("t{call}"), "echo hi");
            agent.ends(&format!("t{call}"));
        }
    };
    work(&mut agent, 0..20);
    count_hook(&lab, &mut agent, "counted-1");
    // What it costs does not grow with what was recorded before: the log is cut again and again.
    work(&mut agent, 20..60);
    let log = lab.home.path().join(".local/share/segno/segno.db-wal");
    let length = std::fs::metadata(log).unwrap().len();
    assert!(length < LONGEST_LOG, "the log has {length} bytes");
    count_hook(&lab, &mut agent, "counted-2");
}
