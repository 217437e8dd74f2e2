//! What an agent prints is kept, whatever it does with its output and whatever happens to the disk.

use std::path::PathBuf;

use crate::driver::begun;
use crate::driver::let_go;
use crate::driver::patient;
use crate::driver::said;
use crate::lab::Lab;
use crate::lab::SmallDisk;
use crate::lab::program;
use crate::lab::skip;
use crate::lab::until;

fn captured(lab: &Lab, name: &str) -> Option<PathBuf> {
    let runs = std::fs::read_dir(lab.home.path().join(".local/state/segno/runs")).ok()?;
    runs.flatten().map(|entry| entry.path().join(name)).find(|path| path.exists())
}

/// Puts what segno keeps beside the store on a disk that is soon full; with the name of a file that fills it. None where
/// nothing can be mounted.
pub(crate) fn state_on_small_disk(lab: &mut Lab) -> Option<(SmallDisk, String)> {
    let Some(disk) = SmallDisk::mount(lab, "small", "1m") else {
        skip("nothing can be mounted here");
        return None;
    };
    let small = lab.path("small");
    lab.env.insert("XDG_STATE_HOME".to_owned(), small.clone());
    Some((disk, format!("{small}/hog")))
}

promise!(
    /// A command that opens its own output anew takes nothing back of what was printed.
    fn opening_the_own_output_anew_loses_nothing() {
        let lab = Lab::new();
        for (script, expected) in [
            ("echo 1; echo 2 > /dev/stdout; echo 3", vec!["1", "2", "3"]),
            ("echo 1; echo 2 | tee /dev/stdout; echo 3", vec!["1", "2", "2", "3"]),
            ("echo 1; echo 2 > /proc/self/fd/1; echo 3", vec!["1", "2", "3"]),
            ("echo 1; truncate -s 0 /dev/stdout 2>/dev/null; echo 3", vec!["1", "3"]),
        ] {
            let run = lab.run(&["run", "--json", "--", "sh", "-c", script]);
            assert_eq!(run.code, Some(0), "{script}: {}", run.stderr);
            assert_eq!(said(&lab), expected, "{script}");
        }
        lab.assert_nothing_left();
    }
);

promise!(
    /// What is printed after the driver died is kept too, and nothing of it is taken back.
    fn opening_the_own_output_anew_loses_nothing_without_a_driver() {
        let lab = Lab::new();
        let script = format!("{}; echo more > /dev/stdout; echo last", patient(&lab));
        let live = lab.start(&["run", "--json", "--", "sh", "-c", &script], None);
        begun(&lab);
        live.signal(rustix::process::Signal::KILL);
        live.finish();
        let_go(&lab);
        lab.assert_no_process_left();
        let _ = lab.run(&["attach", "last"]);
        assert_eq!(said(&lab), ["before", "after", "more", "last"]);
    }
);

promise!(
    /// A full disk under what is printed makes the agent wait, not die; with room again all of it is recorded.
    fn a_full_disk_makes_the_agent_wait() {
        let mut lab = Lab::new();
        let Some((_disk, hog)) = state_on_small_disk(&mut lab) else { return };
        let script = format!(
            "{}; i=0; while [ $i -lt 3000 ]; do echo \"$i of them, one after the other, to fill what there is\"; \
             i=$((i+1)); done && touch {}",
            patient(&lab),
            lab.path("printed"),
        );
        let mut live = lab.start(&["run", "--json", "--", "sh", "-c", &script], None);
        begun(&lab);
        // All the room but a little.
        let _ = program("dd").args(["if=/dev/zero", "bs=4k", &format!("of={hog}")]).output();
        let_go(&lab);
        std::thread::sleep(std::time::Duration::from_secs(3));
        assert!(live.is_running(), "it ended: {}", live.stderr());
        let warnings = live.stderr().lines().filter(|line| line.starts_with("warning")).count();
        assert!(warnings <= 3, "{warnings} warnings: {}", live.stderr());
        std::fs::remove_file(&hog).unwrap();
        let run = live.finish();
        assert_eq!(run.result()["outcome"], "completed", "{}", run.stderr);
        assert!(std::fs::exists(lab.path("printed")).unwrap(), "the command died");
        assert_eq!(said(&lab).len(), 3_002);
        assert_eq!(lab.state()["status"], "completed");
    }
);

promise!(
    /// However much goes to standard error, what is kept of it is bounded.
    fn standard_error_is_kept_within_bounds() {
        let lab = Lab::new();
        let script =
            format!("head -c 100000000 /dev/zero | tr '\\0' x >&2; echo the end >&2; {}", patient(&lab));
        let live = lab.start(&["run", "--json", "--", "sh", "-c", &script], None);
        begun(&lab);
        let kept = captured(&lab, "stderr").unwrap();
        until("what is too much is given back", || {
            use std::os::unix::fs::MetadataExt as _;
            (std::fs::metadata(&kept).unwrap().blocks() * 512 < 20_000_000).then_some(())
        });
        let bytes = std::fs::read(&kept).unwrap();
        assert!(bytes.ends_with(b"the end\n"), "the last of it is kept");
        let_go(&lab);
        let run = live.finish();
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
);

promise!(
    /// Room is given back behind what is journaled only after it is on the disk how far that is.
    fn room_is_given_back_only_behind_what_is_known_to_be_journaled() {
        if program("strace").arg("--version").output().is_err() {
            return skip("there is no strace");
        }
        let mut lab = Lab::new();
        let trace = lab.path("trace");
        let calls = "--trace=fsync,fdatasync,fallocate,rename,renameat,renameat2";
        lab.before = ["strace", "-f", "-y", "-o", &trace, calls].map(str::to_owned).into();
        // It stays until its driver has caught up: what is read after the end needs no room any more.
        let lines =
            "i=0; while [ $i -lt 30 ]; do head -c 1000000 /dev/zero | tr '\\0' x; echo; i=$((i+1)); done";
        let script = format!("{lines}; {}", patient(&lab));
        let live = lab.start(&["run", "--json", "--", "sh", "-c", &script], None);
        until("room is given back", || {
            let traced = std::fs::read_to_string(&trace).unwrap_or_default();
            traced.contains("FALLOC_FL_PUNCH_HOLE").then_some(())
        });
        let_go(&lab);
        let run = live.finish();
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let trace = std::fs::read_to_string(&trace).unwrap();
        let lines: Vec<&str> = trace.lines().collect();
        let hole = lines.iter().position(|line| line.contains("FALLOC_FL_PUNCH_HOLE"));
        let hole = hole.expect("no room was given back: the test is too small");
        let named =
            lines[..hole].iter().rposition(|line| line.contains("rename") && line.contains("\"journaled\""));
        let named = named.expect("where to go on was not written down");
        assert!(
            lines[..named].iter().any(|line| line.contains("sync(") && line.contains("journaled")),
            "the file"
        );
        let runs = "/runs/";
        let synced =
            |line: &&str| line.contains("sync(") && line.contains(runs) && !line.contains("journaled");
        assert!(lines[named..hole].iter().any(synced), "and its directory");
    }
);

promise!(
    /// A run ended when its agent was last heard, not when somebody looked at last.
    fn a_run_that_outlived_its_driver_ended_when_it_was_last_heard() {
        let lab = Lab::new();
        let (spoke, gone) = (lab.path("spoke"), lab.path("gone"));
        let script = format!("{}; touch {spoke}; while [ ! -e {gone} ]; do sleep 0.02; done", patient(&lab));
        let live = lab.start(&["run", "--json", "--", "sh", "-c", &script], None);
        let run = begun(&lab);
        live.signal(rustix::process::Signal::KILL);
        live.finish();
        let now = || jiff::Timestamp::now();
        // A clock that files are stamped with may be a tick behind.
        let tick = jiff::SignedDuration::from_millis(20);
        let died = now();
        until("its driver has been dead for more than a tick", || (now() > died + tick * 5).then_some(()));
        let before = now();
        let_go(&lab);
        until("its last word is kept", || {
            let kept = std::fs::read_to_string(captured(&lab, "stdout")?).ok()?;
            kept.contains("after").then_some(())
        });
        let after = now();
        until("it is past that by more than a tick", || (now() > after + tick * 2).then_some(()));
        std::fs::write(&gone, "").unwrap();
        lab.assert_no_process_left();
        assert_eq!(lab.run(&["ls"]).code, Some(0));
        let ended = &lab.journal(Some("run_ended"))[0]["body"];
        let at: jiff::Timestamp = ended["at"].as_str().unwrap().parse().unwrap();
        assert!(before - tick <= at && at <= after, "{before} {at} {after}");
        let started: jiff::Timestamp = run["started_at"].as_str().unwrap().parse().unwrap();
        let took = at.duration_since(started).as_millis();
        assert_eq!(i128::from(ended["duration_ms"].as_u64().unwrap()), took, "{ended}");
    }
);
