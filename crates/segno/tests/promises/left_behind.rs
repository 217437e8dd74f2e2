//! An agent that outlived its driver, or its driver's patience: whoever looks takes in what it left, and nobody forgets
//! it.

use rustix::process::Signal;
use serde_json::json;

use crate::driver::begun;
use crate::driver::let_go;
use crate::driver::patient;
use crate::driver::said;
use crate::lab::Lab;
use crate::lab::program;
use crate::lab::until;

/// A run of [`patient`] whose driver was killed and whose session was looked at once; with its agent's pid.
fn left_alone() -> (Lab, u32) {
    let lab = Lab::new();
    let script = patient(&lab);
    let live = lab.start(&["run", "--json", "--", "sh", "-c", &script], None);
    let run = begun(&lab);
    live.signal(Signal::KILL);
    live.finish();
    let looked = lab.run(&["ls"]);
    assert!(looked.stderr.contains("interrupted"), "{}", looked.stderr);
    (lab, u32::try_from(run["pid"].as_u64().unwrap()).unwrap())
}

fn captures(lab: &Lab) -> usize {
    std::fs::read_dir(lab.home.path().join(".local/state/segno/runs")).map_or(0, Iterator::count)
}

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

promise!(
    /// An agent that lived on and has ended meanwhile is taken in by whoever looks, however often one looked before.
    fn whoever_looks_takes_in_an_agent_that_ended_meanwhile() {
        for look in [&["ls"][..], &["show", "last"], &["doctor"], &["export", "last"]] {
            let (lab, agent) = left_alone();
            assert!(lives(agent));
            let_go(&lab);
            until("the agent has ended", || (!lives(agent)).then_some(()));
            let looked = lab.run(look);
            assert_eq!(looked.code, Some(0), "{look:?}: {}", looked.stderr);
            let state = lab.state();
            assert!(state["run"]["outcome"].is_string(), "{look:?}: {state}");
            assert_eq!(said(&lab), ["before", "after"], "{look:?}");
            assert_eq!(captures(&lab), 0, "{look:?}");
        }
    }
);

promise!(
    /// What ends a session ends its agent first, and takes in what that said.
    fn ending_a_session_ends_an_agent_that_lives_on() {
        for (end, status) in
            [("abort", "aborted"), ("fail", "failed"), ("abandon", "aborted"), ("complete", "")]
        {
            let (lab, agent) = left_alone();
            let ended = lab.run(&[end, "last"]);
            if status.is_empty() {
                // What is interrupted cannot be completed, and then nothing happens to its agent either.
                assert_ne!(ended.code, Some(0));
                assert!(lives(agent));
                assert_eq!(lab.run(&["abort", "last"]).code, Some(0));
                continue;
            }
            assert_eq!(ended.code, Some(0), "{end}: {}", ended.stderr);
            assert!(!lives(agent), "{end}");
            let state = lab.state();
            assert_eq!(state["status"], status, "{end}");
            assert!(state["run"]["outcome"].is_string(), "{end}: {state}");
            assert_eq!(said(&lab), ["before"], "{end}");
            assert_eq!(captures(&lab), 0, "{end}");
            lab.assert_no_process_left();
        }
    }
);

promise!(
    /// Removing a session ends its agent first, and takes what it printed along.
    fn removing_a_session_ends_an_agent_that_lives_on() {
        let (lab, agent) = left_alone();
        let removed = lab.run(&["rm", "last", "--yes"]);
        assert_eq!(removed.code, Some(0), "{}", removed.stderr);
        assert!(!lives(agent));
        assert_eq!(captures(&lab), 0);
        assert_eq!(lab.json(&["ls", "--all"])["sessions"], json!([]));
        lab.assert_no_process_left();
    }
);

promise!(
    /// `segno stop` ends an agent that lives on after its session has ended, and says so.
    fn stop_ends_an_agent_that_lives_on() {
        let (lab, agent) = left_alone();
        let stopped = lab.run(&["stop", "last"]);
        assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
        assert!(!lives(agent));
        assert!(lab.state()["run"]["outcome"].is_string());
        assert_eq!(captures(&lab), 0);
    }
);

promise!(
    /// A capture that nothing needs any more is named by the doctor, and cleared when it repairs.
    fn the_doctor_clears_captures_that_nothing_needs() {
        let (lab, agent) = left_alone();
        let runs = lab.home.path().join(".local/state/segno/runs");
        let aside = lab.home.beside("runs-aside");
        // As an earlier program left it: the run is ended, and its capture is still there.
        assert!(program("cp").arg("-a").arg(&runs).arg(&aside).status().unwrap().success());
        assert_eq!(lab.run(&["abort", "last"]).code, Some(0));
        until("the agent has ended", || (!lives(agent)).then_some(()));
        std::fs::remove_dir_all(&runs).unwrap();
        std::fs::rename(&aside, &runs).unwrap();
        assert_eq!(captures(&lab), 1);
        let found = lab.json(&["doctor"]);
        assert_eq!(found["diagnosis"]["stale_captures"].as_array().map(Vec::len), Some(1), "{found}");
        assert!(lab.run(&["doctor"]).text().contains("doctor --repair"));
        assert_eq!(captures(&lab), 1);
        assert_eq!(lab.run(&["doctor", "--repair"]).code, Some(0));
        assert_eq!(captures(&lab), 0);
        assert_eq!(said(&lab), ["before"]);
    }
);

promise!(
    /// A run is not ended before all that it printed is taken in: one that ends while the disk is full is left open, and
    /// whoever looks when there is room again records its true end.
    fn a_run_that_ends_on_a_full_disk_is_ended_when_all_of_it_is_kept() {
        let mut lab = Lab::new();
        let Some((_disk, hog)) = crate::captures::state_on_small_disk(&mut lab) else { return };
        let script =
            format!("{}; head -c 20000 /dev/zero | tr '\\0' x; echo; echo last; exit 3", patient(&lab));
        let live = lab.start(&["run", "--json", "--", "sh", "-c", &script], None);
        begun(&lab);
        let _ = program("dd").args(["if=/dev/zero", "bs=4k", &format!("of={hog}")]).output();
        let_go(&lab);
        let run = live.finish();
        assert!(run.stderr.contains("not recorded yet"), "{}", run.stderr);
        assert!(!run.stderr.contains("segno attach"), "{}", run.stderr);
        assert_eq!(lab.journal(Some("run_ended")).len(), 0, "{}", run.stderr);
        assert_eq!(lab.journal(Some("session_interrupted")).len(), 0, "{}", run.stderr);
        std::fs::remove_file(&hog).unwrap();
        until("all of it is recorded", || {
            let looked = lab.run(&["ls"]);
            assert_eq!(looked.code, Some(0), "{}", looked.stderr);
            lab.state()["run"]["outcome"].is_string().then_some(())
        });
        // The long line is kept aside, so it is counted only.
        assert_eq!(
            (lab.journal(Some("said")).len(), said(&lab)),
            (4, ["before", "after", "last"].map(str::to_owned).into())
        );
        let ended = &lab.journal(Some("run_ended"))[0]["body"];
        assert_eq!((&ended["outcome"], &ended["exit_code"]), (&json!("failed"), &json!(3)), "{ended}");
        assert_eq!(lab.state()["status"], "paused");
        assert!(!std::fs::read_dir(lab.path("small/segno/runs")).unwrap().any(|_| true));
    }
);
