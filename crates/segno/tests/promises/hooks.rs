//! What a hook answers when the store is busy, and when nobody drives any more.

use rusqlite::Connection;
use rusqlite::Transaction;
use rusqlite::TransactionBehavior;
use rustix::process::Signal;
use serde_json::Value;
use serde_json::json;

use crate::driver::begun;
use crate::driver::data;
use crate::driver::let_go;
use crate::driver::patient;
use crate::lab::Lab;
use crate::lab::Said;
use crate::lab::until;

fn before(call: &str) -> Vec<u8> {
    let input = json!({ "command": "echo hi" });
    json!({
        "hook_event_name": "PreToolUse", "session_id": "a", "cwd": "/", "tool_name": "Bash",
        "tool_use_id": call, "tool_input": input,
    })
    .to_string()
    .into_bytes()
}

fn hook(lab: &Lab, env: &[(&str, &str)], payload: &[u8]) -> Said {
    let mut command = lab.segno(&["hook", "claude"]);
    command.envs(env.iter().copied());
    lab.start_command(&mut command, Some(payload)).finish()
}

fn is_denied(said: &Said) -> bool {
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let answer: Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
    answer["hookSpecificOutput"]["permissionDecision"] == "deny"
}

fn store(lab: &Lab) -> Connection {
    Connection::open(data(lab).join("segno.db")).unwrap()
}

fn hold(connection: &mut Connection) -> Transaction<'_> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap()
}

promise!(
    /// A hard budget that is used up denies a call, though somebody else writes to the store just then.
    fn a_used_up_budget_denies_though_the_store_is_busy() {
        let lab = Lab::new();
        let id = lab.run(&["new", "x", "--budget", "100"]).text().trim().to_owned();
        assert_eq!(lab.run(&["tokens", "101"]).code, Some(0));
        let mut connection = store(&lab);
        let held = hold(&mut connection);
        let said = hook(&lab, &[("SEGNO_SESSION", &id)], &before("t1"));
        drop(held);
        assert!(is_denied(&said), "{}{}", said.text(), said.stderr);
    }
);

promise!(
    /// A driver that was replaced starts no call, though somebody else writes to the store just then.
    fn a_replaced_driver_starts_no_call_though_the_store_is_busy() {
        let lab = Lab::new();
        let id = lab.run(&["new", "x"]).text().trim().to_owned();
        let first = lab.run(&["run", "--session", &id, "--", "true"]);
        assert_eq!(first.code, Some(0), "{}", first.stderr);
        let earlier = lab.state()["run"]["id"].as_str().unwrap().to_owned();
        let script = patient(&lab);
        let live = lab.start(&["run", "--session", &id, "--json", "--", "sh", "-c", &script], None);
        let run = begun(&lab);
        let mut connection = store(&lab);
        let held = hold(&mut connection);
        let ask = |run: &str, epoch: &str, call: &str| {
            let env = [("SEGNO_SESSION", id.as_str()), ("SEGNO_RUN", run), ("SEGNO_EPOCH", epoch)];
            hook(&lab, &env, &before(call))
        };
        let said = ask(&earlier, "1", "t1");
        let driven = ask(run["id"].as_str().unwrap(), "2", "t2");
        drop(held);
        assert!(is_denied(&said), "{}{}", said.text(), said.stderr);
        assert!(!is_denied(&driven), "whoever took its place goes on: {}", driven.text());
        let_go(&lab);
        live.finish();
    }
);

promise!(
    /// Of a session with a driver, what cannot be read denies; of any other it does not.
    fn what_cannot_be_read_denies_where_a_driver_is_known() {
        let lab = Lab::new();
        let id = lab.run(&["new", "x"]).text().trim().to_owned();
        let (place, aside) = (data(&lab), lab.home.beside("aside"));
        std::fs::rename(&place, &aside).unwrap();
        let free = hook(&lab, &[("SEGNO_SESSION", &id)], &before("t1"));
        let run = "0192f0c4a1b27c3d8e4f5a6b7c8d9e0f";
        let env = [("SEGNO_SESSION", id.as_str()), ("SEGNO_RUN", run), ("SEGNO_EPOCH", "1")];
        let driven = hook(&lab, &env, &before("t2"));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::rename(&aside, &place).unwrap();
        assert!(!is_denied(&free), "{}", free.text());
        assert!(is_denied(&driven), "{}{}", driven.text(), driven.stderr);
        assert_eq!(lab.tools()[0]["call"], "t1", "what was not recorded then is in the spool");
    }
);

promise!(
    /// Of a session with a hard cap, what cannot be read denies too, though nobody drives it.
    fn what_cannot_be_read_denies_where_a_hard_cap_is_known() {
        let lab = Lab::new();
        let id = lab.run(&["new", "x", "--budget", "100"]).text().trim().to_owned();
        let free = lab.run(&["new", "y", "--parallel"]).text().trim().to_owned();
        let lifted = lab.run(&["new", "z", "--parallel", "--budget", "100"]).text().trim().to_owned();
        assert_eq!(lab.run(&["complete", &lifted]).code, Some(0));
        let (place, aside) = (data(&lab), lab.home.beside("aside"));
        std::fs::rename(&place, &aside).unwrap();
        let said = [&id, &free, &lifted].map(|id| hook(&lab, &[("SEGNO_SESSION", id)], &before("t1")));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::rename(&aside, &place).unwrap();
        assert_eq!(said.each_ref().map(is_denied), [true, false, false], "{}", said[0].stderr);
    }
);

promise!(
    /// The name of the conversation is not lost because the store was busy when the agent told it.
    fn the_conversation_is_not_lost_because_the_store_was_busy() {
        let lab = Lab::new();
        let script = patient(&lab);
        let live = lab.start(&["run", "--json", "--", "sh", "-c", &script], None);
        let run = begun(&lab);
        let id = lab.state()["session_id"].as_str().unwrap().to_owned();
        let mut connection = store(&lab);
        let held = hold(&mut connection);
        let env = [
            ("SEGNO_SESSION", id.as_str()),
            ("SEGNO_RUN", run["id"].as_str().unwrap()),
            ("SEGNO_EPOCH", "1"),
        ];
        let payload = json!({
            "hook_event_name": "SessionStart", "session_id": "0199aaaa-0000-7000-8000-000000000001",
            "cwd": "/", "source": "startup", "transcript_path": "/nowhere",
        });
        hook(&lab, &env, payload.to_string().as_bytes());
        drop(held);
        // The next command takes it in.
        let named = lab.state()["run"]["native_id"].clone();
        let_go(&lab);
        live.finish();
        assert_eq!(named, "0199aaaa-0000-7000-8000-000000000001");
    }
);

promise!(
    /// Looking marks a session whose driver died, and leaves its agent alone: its calls go on.
    fn looking_does_not_stop_an_agent_whose_driver_died() {
        let lab = Lab::new();
        let script = patient(&lab);
        let live = lab.start(&["run", "--json", "--", "sh", "-c", &script], None);
        let run = begun(&lab);
        live.signal(Signal::KILL);
        live.finish();
        let listed = lab.run(&["ls", "--all"]);
        assert_eq!(listed.code, Some(0), "{}", listed.stderr);
        let state = lab.state();
        assert_eq!(state["status"], "interrupted", "the look has marked it");
        let id = state["session_id"].as_str().unwrap().to_owned();
        let env = [
            ("SEGNO_SESSION", id.as_str()),
            ("SEGNO_RUN", run["id"].as_str().unwrap()),
            ("SEGNO_EPOCH", "1"),
        ];
        let said = hook(&lab, &env, &before("t1"));
        assert!(!is_denied(&said), "{}", said.text());
        assert!(lab.tools().iter().any(|call| call["call"] == "t1"), "its call is in the ledger");
        // Whoever takes over goes on with it.
        let follow = lab.start(&["attach", &id, "--json"], None);
        until("it is adopted", || (!lab.journal(Some("run_adopted")).is_empty()).then_some(()));
        let_go(&lab);
        let followed = follow.finish();
        // Nobody can wait for another's child, so how it ended is not known; what it said is.
        assert_eq!(followed.result()["kind"], "result", "{}", followed.stderr);
        assert_eq!(crate::driver::said(&lab), ["before", "after"]);
    }
);

promise!(
    /// Under a hard cap no call starts while nobody counts what is used, and the agent is told what helps.
    fn a_hard_cap_lets_nothing_start_while_nobody_counts() {
        for (cap, day, denied) in [
            (&["--budget", "100k"][..], "", true),
            (&["--cost", "5"], "", true),
            (&[], "[budget]\nday_tokens = 100000", true),
            (&[], "", false),
        ] {
            let lab = Lab::new();
            lab.config(day);
            let script = patient(&lab);
            let args = [&["run", "--json"][..], cap, &["--", "sh", "-c", &script]].concat();
            let live = lab.start(&args, None);
            let run = begun(&lab);
            let epoch = lab.journal(Some("run_started"))[0]["epoch"].to_string();
            let id = lab.state()["session_id"].as_str().unwrap().to_owned();
            let env = [
                ("SEGNO_SESSION", id.as_str()),
                ("SEGNO_RUN", run["id"].as_str().unwrap()),
                ("SEGNO_EPOCH", &epoch),
            ];
            assert!(!is_denied(&hook(&lab, &env, &before("t1"))), "{cap:?} {day}: somebody counts");
            live.signal(Signal::KILL);
            live.finish();
            let said = hook(&lab, &env, &before("t2"));
            assert_eq!(is_denied(&said), denied, "{cap:?} {day}: {}{}", said.text(), said.stderr);
            assert_eq!(said.text().contains("segno attach"), denied, "{cap:?} {day}: {}", said.text());
            // The same when somebody has looked meanwhile.
            lab.run(&["ls"]);
            let said = hook(&lab, &env, &before("t3"));
            assert_eq!(is_denied(&said), denied, "{cap:?} {day}: {}{}", said.text(), said.stderr);
            let_go(&lab);
            lab.assert_no_process_left();
        }
    }
);

promise!(
    /// A call that was denied did not run: however its agent ends, nobody wonders about it.
    fn a_denied_call_is_never_in_doubt() {
        let lab = Lab::new();
        let script = patient(&lab);
        let live = lab.start(&["run", "--json", "--budget", "100", "--", "sh", "-c", &script], None);
        let run = begun(&lab);
        let id = lab.state()["session_id"].as_str().unwrap().to_owned();
        let driver = live.pid();
        let env = [
            ("SEGNO_SESSION", id.as_str()),
            ("SEGNO_RUN", run["id"].as_str().unwrap()),
            ("SEGNO_EPOCH", "1"),
        ];
        assert!(!is_denied(&hook(&lab, &env, &before("t1"))));
        // It dies while it stops its agent, and so does that.
        crate::lab::signal(driver, Signal::STOP);
        assert_eq!(lab.run(&["--session", &id, "tokens", "101"]).code, Some(0));
        assert!(is_denied(&hook(&lab, &env, &before("t2"))));
        let mut connection = store(&lab);
        let held = hold(&mut connection);
        assert!(is_denied(&hook(&lab, &env, &before("t3"))));
        drop(held);
        crate::lab::signal(u32::try_from(run["pid"].as_u64().unwrap()).unwrap(), Signal::KILL);
        crate::lab::signal(driver, Signal::KILL);
        live.finish();
        assert_eq!(lab.run(&["ls"]).code, Some(0));
        let tools = lab.tools();
        let ends: Vec<_> = tools.iter().map(|tool| (&tool["call"], &tool["state"])).collect();
        let expected = [("t1", "in_doubt"), ("t2", "denied"), ("t3", "denied")];
        assert_eq!(json!(ends), json!(expected), "{tools:?}");
        assert!(tools[1]["output"].to_string().contains("used up"), "why is said: {tools:?}");
    }
);
