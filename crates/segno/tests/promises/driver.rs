//! One driver, every voice heard: who may act, and what a driver does when it meets trouble.

use std::fs::File;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::Value;

use crate::lab::Lab;
use crate::lab::Live;
use crate::lab::program;
use crate::lab::skip;
use crate::lab::until;

/// Where the store of a lab is.
pub(crate) fn data(lab: &Lab) -> PathBuf {
    lab.home.path().join(".local/share/segno")
}

/// A plain command that says `before`, waits until it is let go, and says `after`.
pub(crate) fn patient(lab: &Lab) -> String {
    let (ready, go) = (lab.path("ready"), lab.path("go"));
    format!("echo before; touch {ready}; while [ ! -e {go} ]; do sleep 0.02; done; echo after")
}

/// Waits until the command of [`patient`] has begun and its run is recorded.
pub(crate) fn begun(lab: &Lab) -> Value {
    until("the command has begun", || std::fs::exists(lab.path("ready")).unwrap().then_some(()));
    lab.running()
}

/// Lets the command of [`patient`] go on.
pub(crate) fn let_go(lab: &Lab) {
    std::fs::write(lab.path("go"), "").unwrap();
}

/// The lines that were said in the newest session, in order.
pub(crate) fn said(lab: &Lab) -> Vec<String> {
    let events = lab.journal(Some("said"));
    events.iter().filter_map(|event| Some(event["body"]["text"].as_str()?.trim().to_owned())).collect()
}

/// Whether this machine lets a test run a command in namespaces of its own.
fn can(line: &[&str]) -> bool {
    let works = program(line[0]).args(&line[1..]).arg("true").output();
    works.is_ok_and(|output| output.status.success())
}

/// Runs `segno ls` as somebody who sees the machine through these, and checks that a run that goes on is left alone.
fn seen_through(before: &[&str]) {
    if !can(before) {
        return skip("namespaces cannot be made here");
    }
    let mut lab = Lab::new();
    let script = patient(&lab);
    let live = lab.start(&["run", "--json", "--", "sh", "-c", &script], None);
    let run = begun(&lab);
    lab.before = before.iter().map(|&word| word.to_owned()).collect();
    let listed = lab.run(&["ls"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    assert!(!listed.stderr.contains("interrupted"), "{}", listed.stderr);
    lab.before.clear();
    let pid = run["pid"].as_u64().unwrap();
    assert!(std::fs::exists(format!("/proc/{pid}")).unwrap(), "the agent was ended");
    let_go(&lab);
    let said_of_run = live.finish();
    assert_eq!(said_of_run.code, Some(0), "{}", said_of_run.stderr);
    assert_eq!(said(&lab), ["before", "after"]);
    assert_eq!(lab.state()["status"], "completed");
    assert!(lab.journal(Some("session_interrupted")).is_empty());
}

promise!(
    /// Whoever sees only processes in `/proc`, and no boot id, does not take a living driver for one of another boot.
    fn a_driver_lives_for_who_sees_only_processes() {
        seen_through(&[
            "unshare",
            "-m",
            "sh",
            "-c",
            "mount -t proc -o subset=pid proc /proc && exec \"$@\"",
            "sh",
        ]);
    }
);

promise!(
    /// Whoever has no `/proc` cannot tell who lives, and so ends nobody.
    fn a_driver_lives_for_who_has_no_proc() {
        seen_through(&["unshare", "-m", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"]);
    }
);

promise!(
    /// Another reckoning of time since boot makes nobody another process.
    fn a_driver_lives_for_who_counts_time_differently() {
        seen_through(&["unshare", "--time", "--boottime", "100000", "--fork"]);
    }
);

/// The silence of the driver of the newest session, made longer than anybody waits.
/// False if the store was locked just then.
fn make_silent(lab: &Lab) -> bool {
    let store = rusqlite::Connection::open(data(lab).join("segno.db")).unwrap();
    store.busy_timeout(std::time::Duration::from_secs(1)).unwrap();
    let sql = "UPDATE leases SET heartbeat_us = heartbeat_us - 70000000,
               holder = json_set(holder, '$.steady_us', max(0, json_extract(holder, '$.steady_us') - 70000000))";
    store.execute(sql, []).is_ok_and(|changed| changed > 0)
}

/// What gives a command a pid namespace of its own.
const CONTAINED: [&str; 5] = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];

/// A driver with its agent in a pid namespace of its own, frozen, and silent for more than a minute.
struct Contained {
    lab: Lab,
    live: Live,
    driver: u32,
}

impl Contained {
    fn new() -> Option<Self> {
        if !can(&CONTAINED) {
            skip("namespaces cannot be made here");
            return None;
        }
        let mut lab = Lab::new();
        let script = patient(&lab);
        lab.before = CONTAINED.map(str::to_owned).into();
        let live = lab.start(&["run", "--json", "--", "sh", "-c", &script], None);
        lab.before.clear();
        begun(&lab);
        let children = format!("/proc/{0}/task/{0}/children", live.pid());
        let driver: u32 = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
        // It may have been stopped while it wrote; then it goes on a little.
        until("it is silent", || {
            crate::lab::signal(driver, Signal::STOP);
            let silent = make_silent(&lab);
            if !silent {
                crate::lab::signal(driver, Signal::CONT);
            }
            silent.then_some(())
        });
        Some(Self { lab, live, driver })
    }

    fn wakes(&self) {
        crate::lab::signal(self.driver, Signal::CONT);
    }
}

promise!(
    /// A holder that cannot be seen and is silent may live: looking says how long it is silent and changes nothing.
    fn a_silent_driver_elsewhere_is_only_called_silent() {
        let Some(contained) = Contained::new() else { return };
        let lab = &contained.lab;
        let listed = lab.run(&["ls"]);
        assert!(listed.text().contains("silent"), "{}{}", listed.text(), listed.stderr);
        let shown = lab.run(&["show", "last"]);
        assert!(shown.text().contains("silent"), "{}{}", shown.text(), shown.stderr);
        contained.wakes();
        let_go(lab);
        let said_of_run = contained.live.finish();
        assert_eq!(said_of_run.code, Some(0), "{}", said_of_run.stderr);
        assert_eq!(said(&contained.lab), ["before", "after"]);
        assert!(contained.lab.journal(Some("session_interrupted")).is_empty());
    }
);

promise!(
    /// A driver that wakes up and reads that it was replaced stops its own agent, and what that printed is kept.
    fn a_replaced_driver_stops_its_own_agent() {
        let Some(mut contained) = Contained::new() else { return };
        let id = contained.lab.state()["session_id"].as_str().unwrap().to_owned();
        // Somebody who cannot see the first.
        contained.lab.before = CONTAINED.map(str::to_owned).into();
        let lab = &contained.lab;
        let second = lab.run(&["run", "--session", &id, "--json", "--", "echo", "second"]);
        assert_eq!(second.code, Some(0), "{}", second.stderr);
        // Whose place that was is said, and for how long it was not heard of.
        let said_of = format!(
            "segno run plain (pid {} on",
            lab.journal(Some("driver_attached"))[0]["body"]["holder"]["pid"]
        );
        assert!(second.stderr.contains(&said_of), "{}", second.stderr);
        let silent = second.stderr.split("was silent for ").nth(1).and_then(|rest| rest.split(' ').next());
        assert!(silent.is_some_and(|seconds| seconds.parse::<u64>().unwrap() >= 70), "{}", second.stderr);
        contained.lab.before.clear();
        contained.wakes();
        let replaced = contained.live.finish();
        assert_ne!(replaced.code, Some(0), "{}", replaced.stderr);
        assert!(
            replaced.stderr.contains("another driver") || replaced.stderr.contains("replaced"),
            "{}",
            replaced.stderr
        );
        contained.lab.assert_no_process_left();
        let said = said(&contained.lab);
        assert!(said.contains(&"before".to_owned()) && said.contains(&"second".to_owned()), "{said:?}");
    }
);

promise!(
    /// A store that is gone for a moment ends no driver: the run goes on, and nothing it prints is lost.
    fn a_store_that_is_gone_for_a_moment_ends_nobody() {
        let lab = Lab::new();
        let script = patient(&lab);
        let mut live = lab.start(&["run", "--json", "--", "sh", "-c", &script], None);
        begun(&lab);
        let (place, aside) = (data(&lab), lab.home.beside("aside"));
        std::fs::rename(&place, &aside).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        assert!(live.is_running(), "it left its agent: {}", live.stderr());
        std::fs::rename(&aside, &place).unwrap();
        let_go(&lab);
        let said_of_run = live.finish();
        assert_eq!(said_of_run.code, Some(0), "{}", said_of_run.stderr);
        assert_eq!(said(&lab), ["before", "after"]);
        assert_eq!(lab.state()["status"], "completed");
        lab.assert_nothing_left();
    }
);

promise!(
    /// A store that somebody else writes to is waited for when a run starts, with a word, however long it takes.
    fn a_busy_store_is_waited_for_at_a_start() {
        let lab = Lab::new();
        lab.config("[store]\nbusy_timeout_ms = 300");
        assert_eq!(lab.run(&["new", "x"]).code, Some(0));
        let mut store = rusqlite::Connection::open(data(&lab).join("segno.db")).unwrap();
        assert_eq!(lab.run(&["pause", "last"]).code, Some(0));
        for args in [&["resume", "last"][..], &["new", "--parallel", "y"], &["run", "--", "echo", "hi"]] {
            let held = store.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
            let mut live = lab.start(args, None);
            until("it says that it waits", || {
                assert!(live.is_running(), "{args:?} gave up: {}", live.stderr());
                live.stderr().contains("the store is busy, waiting").then_some(())
            });
            drop(held);
            let said = live.finish();
            assert_eq!(said.code, Some(0), "{args:?}: {}", said.stderr);
            assert_eq!(said.stderr.matches("the store is busy").count(), 1, "{args:?}: {}", said.stderr);
        }
    }
);

promise!(
    /// Whoever waits for a store can be told not to.
    fn a_start_that_waits_for_the_store_ends_at_a_signal() {
        let lab = Lab::new();
        assert_eq!(lab.run(&["new", "x"]).code, Some(0));
        let mut store = rusqlite::Connection::open(data(&lab).join("segno.db")).unwrap();
        let held = store.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
        let mut live = lab.start(&["run", "--session", "last", "--", "touch", "started"], None);
        until("it says that it waits", || live.stderr().contains("the store is busy").then_some(()));
        assert!(live.is_running(), "it gave up: {}", live.stderr());
        live.signal(Signal::INT);
        let said = live.finish();
        assert_ne!(said.code, Some(0), "{}", said.stderr);
        drop(held);
        assert!(!std::fs::exists(lab.path("started")).unwrap(), "its agent was started");
    }
);

/// Runs something under a shell that has done this first.
fn under(lab: &Lab, first: &str, args: &[&str]) -> Live {
    let mut command = program("sh");
    command.args(["-c", &format!("{first}; exec \"$@\""), "sh"]).arg(&lab.segno).args(args);
    command.env_clear().envs(&lab.env).current_dir(lab.home.work());
    lab.start_command(&mut command, None)
}

promise!(
    /// A parent that ignores the end of its children does not keep a run from ending.
    fn a_run_ends_though_its_parent_ignores_ended_children() {
        // A shell cannot be made to ignore it, so it is asked of env, if that can.
        if !can(&["env", "--ignore-signal=CHLD"]) {
            return skip("env cannot ignore signals here");
        }
        let mut lab = Lab::new();
        lab.before = ["env", "--ignore-signal=CHLD"].map(str::to_owned).into();
        let said = lab.run(&["run", "--json", "--", "echo", "hi"]);
        assert_eq!((said.code, &said.result()["outcome"]), (Some(0), &"completed".into()), "{}", said.stderr);
    }
);

promise!(
    /// What was started with hang-ups ignored is not ended by one.
    fn a_hang_up_that_was_ignored_before_stays_ignored() {
        let lab = Lab::new();
        let script = patient(&lab);
        let live = under(&lab, "trap '' HUP", &["run", "--json", "--", "sh", "-c", &script]);
        begun(&lab);
        live.signal(Signal::HUP);
        std::thread::sleep(std::time::Duration::from_millis(500));
        let_go(&lab);
        let said_of_run = live.finish();
        assert_eq!(said_of_run.result()["outcome"], "completed", "{}", said_of_run.stderr);
    }
);

/// A run whose first checkpoint waits for somebody who holds the lock of the project's snapshots.
fn held_up(lab: &Lab) -> (File, Live) {
    lab.write("home/work/a.txt", "a");
    std::fs::write(lab.home.work().join("a.txt"), "a").unwrap();
    let first = lab.run(&["run", "--json", "--", "true"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let shadow = std::fs::read_dir(data(lab).join("snapshots")).unwrap().flatten().next().unwrap().path();
    let lock = File::options().read(true).write(true).create(true).truncate(false).open(shadow.join("lock"));
    let lock = lock.unwrap();
    lock.lock().unwrap();
    let script = patient(lab);
    let live = lab.start(&["run", "--json", "--", "sh", "-c", &script], None);
    until("its driver is there", || {
        let said = lab.run(&["log", "last", "--json", "--kind", "driver_attached"]);
        let shown = lab.run(&["show", "last", "--json"]);
        let shown: Value = serde_json::from_slice(&shown.stdout).ok()?;
        (said.code == Some(0) && shown["state"]["driver"].is_object()).then_some(())
    });
    (lock, live)
}

promise!(
    /// Ctrl-C during the first checkpoint ends the command, and no agent is started.
    fn an_interrupt_during_the_first_checkpoint_is_obeyed() {
        let lab = Lab::new();
        let (lock, live) = held_up(&lab);
        live.signal(Signal::INT);
        let said = live.finish();
        assert_ne!(said.code, Some(0), "{}", said.stderr);
        assert_eq!(said.signal, None, "it ended by itself");
        drop(lock);
        assert!(!std::fs::exists(lab.path("ready")).unwrap(), "the agent was started");
        assert_eq!(lab.state()["status"], "paused");
        lab.assert_nothing_left();
    }
);

promise!(
    /// A driver whose first checkpoint takes long still says that it lives and hears requests.
    fn a_request_during_the_first_checkpoint_is_obeyed() {
        let lab = Lab::new();
        let (lock, live) = held_up(&lab);
        let asked = lab.run(&["stop", "last"]);
        assert_eq!(asked.code, Some(0), "{}", asked.stderr);
        let said = live.finish();
        drop(lock);
        assert_ne!(said.code, Some(0), "{}", said.stderr);
        assert!(!std::fs::exists(lab.path("ready")).unwrap(), "the agent was started");
        assert_eq!(lab.state()["status"], "paused");
    }
);

promise!(
    /// A request that came after the end of a run stops no later run.
    fn a_request_after_the_end_of_a_run_stops_no_later_one() {
        let lab = Lab::new();
        let id = lab.run(&["new", "x"]).text().trim().to_owned();
        // More than a pipe holds, and nobody reads it yet.
        let mut command =
            lab.segno(&["run", "--session", &id, "--raw", "--", "head", "-c", "300000", "/dev/zero"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        let mut child = command.stdin(std::process::Stdio::null()).spawn().unwrap();
        until("the run has ended", || {
            let said = lab.run(&["show", "last", "--json"]);
            let shown: Value = serde_json::from_slice(&said.stdout).ok()?;
            shown["state"]["run"]["outcome"].is_string().then_some(())
        });
        let paused = lab.run(&["pause", &id]);
        assert_eq!(paused.code, Some(0), "{}", paused.stderr);
        std::io::copy(&mut child.stdout.take().unwrap(), &mut std::io::sink()).unwrap();
        child.wait().unwrap();
        assert_eq!(lab.state()["status"], "paused", "it was asked for, and nothing stood in the way");
        let next = lab.run(&["run", "--session", &id, "--json", "--", "echo", "hi"]);
        assert_eq!(next.result()["outcome"], "completed", "{}", next.stderr);
    }
);

promise!(
    /// What a person gives as the reason for a pause is its reason, though a driver does the pausing.
    fn the_reason_for_a_pause_of_a_driven_session_is_kept() {
        let lab = Lab::new();
        let script = patient(&lab);
        let live = lab.start(&["run", "--json", "--grace", "200", "--", "sh", "-c", &script], None);
        begun(&lab);
        let paused = lab.run(&["pause", "last", "--reason", "waiting for review"]);
        assert_eq!(paused.code, Some(0), "{}", paused.stderr);
        live.finish();
        let state = lab.state();
        assert_eq!(state["status"], "paused");
        assert!(state["reason"].to_string().contains("waiting for review"), "{}", state["reason"]);
    }
);

promise!(
    /// A terminal that went away is not called a user's interrupt.
    fn a_hang_up_is_called_what_it_is() {
        let lab = Lab::new();
        let script = patient(&lab);
        let live = lab.start(&["run", "--json", "--grace", "200", "--", "sh", "-c", &script], None);
        begun(&lab);
        live.signal(Signal::HUP);
        live.finish();
        let state = lab.state();
        assert_eq!(state["status"], "paused");
        assert!(!state["reason"].to_string().contains("user interrupt"), "{}", state["reason"]);
        assert!(state["reason"].to_string().contains("terminal"), "{}", state["reason"]);
    }
);

promise!(
    /// After a run that was stopped, what to type next is `segno resume`.
    fn after_a_stopped_run_resume_is_offered() {
        let lab = Lab::new();
        let script = patient(&lab);
        let live = lab.start(&["run", "--json", "--grace", "200", "--", "sh", "-c", &script], None);
        begun(&lab);
        live.signal(Signal::INT);
        let said = live.finish();
        let error: Value = serde_json::from_str(said.stderr.lines().last().unwrap()).unwrap();
        let hint = error["error"]["hint"].as_str().unwrap();
        assert!(hint.starts_with("segno resume "), "{hint}");
    }
);

promise!(
    /// The first look after a crash is as quick as any other, whichever command looks: it says who died, gives its answer,
    /// and only then takes in what is left.
    fn a_first_look_answers_before_it_settles() {
        for args in [
            &["ls"][..],
            &["show", "last"],
            &["log", "last"],
            &["history", "last"],
            &["budget", "--session", "last"],
            &["detect"],
            &["output", "list", "--session", "last"],
        ] {
            let lab = Lab::new();
            std::fs::write(lab.home.work().join("a.txt"), "a").unwrap();
            let script = patient(&lab);
            let live = lab.start(&["run", "--", "sh", "-c", &script], None);
            let run = begun(&lab);
            live.signal(Signal::KILL);
            crate::lab::signal(u32::try_from(run["pid"].as_u64().unwrap()).unwrap(), Signal::KILL);
            live.finish();
            // What is left cannot be settled as long as somebody else makes a snapshot.
            let shadow = std::fs::read_dir(data(&lab).join("snapshots")).unwrap().next().unwrap().unwrap();
            let lock = std::fs::File::options().append(true).open(shadow.path().join("lock")).unwrap();
            lock.lock().unwrap();
            let mut look = lab.start(args, None);
            until("it says who died", || look.stderr().contains("was interrupted").then_some(()));
            until("it answers", || {
                (look.stderr().lines().count() > 2 || !look.stdout().is_empty()).then_some(())
            });
            assert!(look.is_running(), "{args:?}: the rest follows");
            lock.unlock().unwrap();
            let said = look.finish();
            assert_eq!(said.code, Some(0), "{args:?}: {}", said.stderr);
            assert!(lab.state()["run"]["outcome"].is_string(), "{args:?}: it took in the rest");
        }
    }
);

promise!(
    /// Started in the background of a script, where Ctrl-C is ignored, an agent can be asked to stop all the same; what
    /// `nohup` ignores stays ignored.
    fn an_agent_hears_what_its_driver_ignores() {
        let mut lab = Lab::new();
        lab.before = ["sh", "-c", "trap '' INT HUP; exec \"$@\"", "sh"].map(str::to_owned).into();
        let run = lab.run(&["run", "--json", "--", "grep", "SigIgn", "/proc/self/status"]);
        lab.before.clear();
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let said = said(&lab);
        let ignored = u64::from_str_radix(said[0].split_whitespace().last().unwrap(), 16).unwrap();
        assert_eq!(ignored & 0b11, 0b01, "SIGHUP only: {said:?}");
    }
);

promise!(
    /// A driver does one thing: who asks it for another end than it was asked for before is told so.
    fn a_driver_is_asked_for_one_end() {
        for (first, second, status) in [
            ("complete", "abort", "completed"),
            ("abort", "complete", "aborted"),
            ("pause", "abort", "paused"),
        ] {
            let lab = Lab::new();
            // It takes its time to end.
            let (ready, go) = (lab.path("ready"), lab.path("go"));
            let script = format!("trap '' INT TERM; touch {ready}; while [ ! -e {go} ]; do sleep 0.02; done");
            let live = lab.start(&["run", "--json", "--grace", "60000", "--", "sh", "-c", &script], None);
            begun(&lab);
            let asked = lab.run(&[first, "last"]);
            assert_eq!(asked.code, Some(0), "{first}: {}", asked.stderr);
            let again = lab.run(&[first, "last"]);
            assert_eq!(again.code, Some(0), "{first} again: {}", again.stderr);
            let refused = lab.run(&[second, "last"]);
            assert_eq!(refused.code, Some(5), "{first} {second}: {}{}", refused.text(), refused.stderr);
            assert!(refused.stderr.contains(&format!("asked to {first}")), "{}", refused.stderr);
            let_go(&lab);
            live.finish();
            assert_eq!(lab.state()["status"], status, "{first} {second}");
        }
    }
);
