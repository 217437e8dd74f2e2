//! What may happen.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::Running;
use super::World;
use crate::lab::Said;
use crate::lab::program;
use crate::lab::signal;
use crate::lab::until;

impl World {
    pub(super) fn git(&self, args: &[&str]) -> String {
        let output = program("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(args)
            .env_clear()
            .envs(&self.lab.env)
            .current_dir(self.lab.home.work())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.lab.home.work().join(name)
    }

    pub(super) fn data(&self) -> PathBuf {
        self.lab.home.path().join(".local/share/segno")
    }

    pub(super) fn note(&mut self) {
        let text = format!("note {}.{}", self.count, self.acknowledged.len());
        let said = self.lab.run(&["note", &text, "--session", &self.session, "-q"]);
        self.tell(&format!("{text}: {:?} {}", said.code, said.stderr.trim()));
        if said.code == Some(0) {
            self.acknowledged.push(text);
        }
    }

    /// Files of their own, and those that commands write too.
    pub(super) fn person_writes(&mut self) {
        let name =
            self.dice.one_of(&["own-0.txt", "own-1.txt", "own-2.txt", "made-0.txt", "made-1.txt"]).to_owned();
        let content = format!("by a person, step {} {}\n", self.count, self.dice.below(1_000_000));
        std::fs::write(self.file(&name), &content).unwrap();
        self.tell(&format!("{name}: {}", content.trim()));
        self.own.insert(name, content);
    }

    pub(super) fn person_removes(&mut self) {
        if let Some((name, _)) = self.own.pop_first() {
            let _ = std::fs::remove_file(self.file(&name));
        }
    }

    pub(super) fn person_commits(&mut self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "work"]);
    }

    pub(super) fn command_runs(&mut self) {
        let script = format!("echo agent {} >made-{}.txt; echo said", self.count, self.dice.below(3));
        let session = self.new_session("short");
        let said = self.lab.run(&["run", "--session", &session, "--", "sh", "-c", &script]);
        self.worked.push(session);
        self.tell(&format!("{script}: {:?} {}", said.code, said.stderr.trim()));
    }

    /// A command that goes on for ever and counts its lines.
    pub(super) fn command_starts(&mut self) {
        if self.running.len() >= 2 {
            return;
        }
        let name = format!("begun-{}-{}", self.count, self.running.len());
        let session = self.new_session(&name);
        let counter = self.lab.home.beside(&name);
        let counts = "n=$((n+1)); echo line $n; echo $n >\"$0.new\"; mv \"$0.new\" \"$0\"";
        let script = format!("n=0; echo agent >{name}.txt; while :; do {counts}; sleep 0.2; done");
        let args = ["run", "--session", &session, "--", "sh", "-c", &script, counter.to_str().unwrap()];
        let mut live = self.lab.start(&args, None);
        let begun = until("the command has begun", || {
            counter.exists().then_some(true).or_else(|| (!live.is_running()).then_some(false))
        });
        assert!(begun, "it did not begin: {}", live.stderr());
        // It may have begun a moment before its driver says so.
        until("the run is recorded", || {
            let said = self.lab.run(&["show", &session, "--json"]);
            let shown: Value = serde_json::from_slice(&said.stdout).ok()?;
            shown["state"]["run"]["pid"].is_u64().then_some(())
        });
        self.counted.push((session.clone(), counter));
        self.worked.push(session.clone());
        self.running.push(Running { live, session, is_suspended: false });
    }

    fn one_that_runs(&mut self) -> Option<usize> {
        let count = self.running.len() as u64;
        (count > 0).then(|| usize::try_from(self.dice.below(count)).unwrap())
    }

    pub(super) fn driver_is_killed(&mut self) {
        if let Some(at) = self.one_that_runs() {
            let run = self.running.remove(at);
            run.live.signal(Signal::KILL);
            run.live.finish();
            self.orphans.push(run.session);
        }
    }

    pub(super) fn agent_is_followed(&mut self) {
        let Some(session) = self.orphans.pop() else { return };
        let mut live = self.lab.start(&["attach", &session, "--json"], None);
        let driven = until("it is driven again", || {
            let said = self.lab.run(&["show", &session, "--json"]);
            let shown: Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
            let driven = shown["state"]["driver"].is_object();
            driven.then_some(true).or_else(|| (!live.is_running()).then_some(false))
        });
        assert!(driven, "{session}: {}", live.stderr());
        self.running.push(Running { live, session, is_suspended: false });
    }

    /// It sleeps until it is woken some steps later, as on a machine that was suspended.
    pub(super) fn driver_is_suspended(&mut self) {
        if let Some(at) = self.one_that_runs() {
            signal(self.running[at].live.pid(), Signal::STOP);
            self.running[at].is_suspended = true;
            self.look();
        }
    }

    pub(super) fn driver_wakes(&mut self) {
        for run in self.running.iter_mut().filter(|run| run.is_suspended) {
            run.live.signal(Signal::CONT);
            run.is_suspended = false;
            assert!(run.live.is_running(), "a driver that was only suspended is alive");
        }
        self.check_drivers();
    }

    pub(super) fn run_is_asked_to_stop(&mut self) {
        if let Some(at) = self.one_that_runs() {
            let run = self.running.remove(at);
            run.live.signal(Signal::CONT);
            run.live.signal(Signal::TERM);
            run.live.finish();
        }
    }

    pub(super) fn look(&mut self) {
        let said = self.lab.run(&["ls"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        self.check_drivers();
    }

    /// By somebody who sees processes and cannot tell on which machine they are.
    pub(super) fn look_from_elsewhere(&mut self) {
        let line =
            ["unshare", "-m", "sh", "-c", "mount -t proc -o subset=pid proc /proc && exec \"$@\"", "sh"];
        let works = program(line[0]).args(&line[1..]).arg("true").output();
        if works.is_ok_and(|output| output.status.success()) {
            self.lab.before = line.map(ToOwned::to_owned).into();
            let said = self.lab.run(&["ls"]);
            self.lab.before.clear();
            assert_eq!(said.code, Some(0), "{}", said.stderr);
            self.check_drivers();
        }
    }

    /// An hour forward or back, also for those that run.
    pub(super) fn clock_jumps(&mut self) {
        let shift = self.dice.one_of(&[-3600, 0, 3600]);
        std::fs::write(self.lab.home.beside("clock"), format!("{shift}\n")).unwrap();
        self.look();
    }

    /// Goes back, which nobody may while an agent works in the tree.
    pub(super) fn go_back(&mut self, args: &[&str]) -> Said {
        let (agents, before) = (self.agents().len(), self.tree());
        let said = self.lab.run(args);
        self.tell(&format!("{args:?}: {:?} {}", said.code, said.stderr.trim()));
        if agents > 0 {
            let hands = "an agent works in the tree";
            assert!(said.code != Some(0) || said.text().contains("othing"), "{hands}: {}", said.text());
            assert_eq!(self.tree(), before, "{hands}: {}", said.text());
        }
        said
    }

    /// One of the last sessions that did something.
    pub(super) fn one_that_worked(&mut self) -> String {
        let last = &self.worked[self.worked.len().saturating_sub(3)..];
        if last.is_empty() {
            "last".to_owned()
        } else {
            self.dice.one_of(&last.iter().collect::<Vec<_>>()).clone()
        }
    }

    pub(super) fn undo(&mut self) {
        let session = self.one_that_worked();
        self.go_back(&["undo", "--session", &session, "--yes"]);
    }

    pub(super) fn redo(&mut self) {
        let session = self.one_that_worked();
        self.go_back(&["redo", "--session", &session, "--yes"]);
    }

    pub(super) fn checkpoint(&mut self) {
        let session = self.session.clone();
        let said = self.lab.run(&["checkpoint", "create", "--session", &session]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }

    pub(super) fn restore(&mut self) {
        let session = self.session.clone();
        let said = self.lab.run(&["checkpoint", "list", "--session", &session, "--json"]);
        let Ok(listed) = serde_json::from_slice::<Value>(&said.stdout) else { return };
        let Some(items) = listed["items"].as_array().filter(|items| !items.is_empty()) else { return };
        let at = usize::try_from(self.dice.below(items.len() as u64)).unwrap();
        let ordinal = items[at]["ordinal"].to_string();
        self.go_back(&["checkpoint", "restore", &ordinal, "--session", &session, "--yes"]);
    }

    pub(super) fn collect(&mut self) {
        let session = self.session.clone();
        let said = self.lab.run(&["checkpoint", "gc", "--session", &session]);
        self.tell(&format!("collected: {:?} {}", said.code, said.stderr.trim()));
    }

    pub(super) fn collect_beside_undo(&mut self) {
        let session = self.one_that_worked();
        let undo = self.lab.start(&["undo", "--session", &session, "--yes"], None);
        self.collect();
        undo.finish();
    }

    pub(super) fn backup(&mut self) {
        let path = self.lab.path(&format!("backup-{}.db", self.count));
        let said = self.lab.run(&["backup", &path]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }

    /// A backup, or the files as they are; somebody looks into it, collects and notes something there.
    pub(super) fn copy_is_opened(&mut self) {
        let folder = self.lab.path(&format!("copy-{}-{}", self.count, self.dice.below(1_000_000)));
        std::fs::create_dir(&folder).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&folder, private).unwrap();
        let copy = format!("{folder}/segno.db");
        if self.dice.below(2) == 0 {
            let said = self.lab.run(&["backup", &copy]);
            assert_eq!(said.code, Some(0), "{}", said.stderr);
        } else {
            for suffix in ["", "-wal"] {
                let from = self.data().join(format!("segno.db{suffix}"));
                // There may be no log.
                let _ = std::fs::copy(from, format!("{copy}{suffix}"));
            }
        }
        let (url, session) = (format!("sqlite:{copy}"), self.session.clone());
        for args in
            [&["ls"][..], &["checkpoint", "gc", "--session", &session], &["note", "x", "--session", &session]]
        {
            let args: Vec<&str> = ["--store", &url].into_iter().chain(args.iter().copied()).collect();
            let said = self.lab.run(&args);
            self.tell(&format!("{args:?}: {:?} {}", said.code, said.stderr.trim()));
        }
        self.check_drivers();
    }

    pub(super) fn another_store(&mut self) {
        let url = format!("sqlite:{}", self.lab.path("other/segno.db"));
        self.lab.run(&["--store", &url, "run", "--", "sh", "-c", "echo other >other.txt"]);
        self.lab.run(&["--store", &url, "checkpoint", "gc", "--session", "last"]);
        self.check_drivers();
    }

    /// Somebody writes to it for a while; what is noted meanwhile waits in the spool, and others may come by.
    pub(super) fn store_is_busy(&mut self) {
        let store = rusqlite::Connection::open(self.data().join("segno.db")).unwrap();
        store.busy_timeout(Duration::from_secs(20)).unwrap();
        store.execute_batch("BEGIN IMMEDIATE").unwrap();
        self.lab.env.insert("SEGNO_STORE_BUSY_TIMEOUT_MS".to_owned(), "200".to_owned());
        self.note();
        self.note();
        if self.dice.below(2) == 0 {
            self.another_store();
        }
        self.lab.env.remove("SEGNO_STORE_BUSY_TIMEOUT_MS");
        store.execute_batch("ROLLBACK").unwrap();
        if self.dice.below(2) == 0 {
            self.copy_is_opened();
        }
    }

    pub(super) fn store_is_gone(&mut self) {
        let away = self.data().with_extension("away");
        std::fs::rename(self.data(), &away).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let noted = self.dice.below(2) == 0;
        if noted {
            self.note();
        }
        if self.data().exists() {
            // Somebody made a store of their own there.
            let new = self.lab.home.beside(&format!("made-meanwhile-{}", self.count));
            std::fs::rename(self.data(), new).unwrap();
        }
        std::fs::rename(&away, self.data()).unwrap();
        for run in &mut self.running {
            assert!(run.live.is_running(), "a driver left because the store was gone for a moment");
        }
    }

    pub(super) fn used_up_cap(&mut self) {
        let Some(id) = self.used_up() else { return };
        let name = format!("capped-{}.txt", self.count);
        self.lab.run(&["run", "--session", &id, "--", "sh", "-c", &format!("echo x >{name}")]);
        assert!(!self.file(&name).exists(), "an agent was started under a used-up cap");
        self.lab.run(&["abort", &id]);
    }

    /// A session whose hard cap is used up.
    pub(super) fn used_up(&mut self) -> Option<String> {
        let made = self.lab.run(&["new", "capped", "--parallel", "--budget", "10", "-q"]);
        let id = made.text().trim().to_owned();
        (self.lab.run(&["tokens", "11", "--session", &id, "-q"]).code == Some(0)).then_some(id)
    }
}
