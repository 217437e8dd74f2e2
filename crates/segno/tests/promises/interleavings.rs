//! What people, agents, drivers, copies and the machine do, in random order; after each step the promises are checked.
//!
//! `SEGNO_INTERLEAVINGS` says how many worlds there are, `SEGNO_SEED` what happens in the first; what fails prints the
//! seed of its world and the steps that led there.
//!
//! Checked after every step:
//! - what was acknowledged is in the journal, once, in the order of its acknowledgements;
//! - what a person wrote is in the tree, or in a snapshot that something still refers to;
//! - an agent that lives has a driver that lives, or segno says that it has none;
//! - a call is never allowed under a used-up hard cap.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::lab::{Lab, Live, program, signal, until, variable};

/// How many steps a world has.
const STEPS: u64 = 25;

/// splitmix64: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    variable(name).and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn promises_hold_whatever_happens_in_whatever_order() {
    let (worlds, first) = (number("SEGNO_INTERLEAVINGS", 4), number("SEGNO_SEED", 20_261_116));
    let mut done = BTreeMap::new();
    for seed in first..first + worlds {
        let mut world = World::new(seed);
        let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.live()));
        for (step, count) in &world.done {
            *done.entry(*step).or_insert(0_u64) += count;
        }
        if let Err(panic) = held {
            println!("SEGNO_SEED={seed} SEGNO_INTERLEAVINGS=1 after these steps:\n{}", world.told);
            std::panic::resume_unwind(panic);
        }
    }
    println!("{worlds} worlds of {STEPS} steps: {done:?}");
}

/// One thing that happens.
type Step = fn(&mut World);

/// A note that a command acknowledged.
struct Acknowledged {
    session: String,
    text: String,
}

struct World {
    lab: Lab,
    dice: Dice,
    /// The session that notes go to.
    session: String,
    acknowledged: Vec<Acknowledged>,
    /// What a person wrote and has not overwritten or removed: name → content.
    own: BTreeMap<String, String>,
    /// Runs that go on.
    running: Vec<Live>,
    count: u64,
    told: String,
    done: BTreeMap<&'static str, u64>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut lab = Lab::new();
        lab.env.insert("SEGNO_CHECKPOINT_MAX".to_owned(), "1000".to_owned());
        let world = Self {
            lab,
            dice: Dice(seed),
            session: String::new(),
            acknowledged: Vec::new(),
            own: BTreeMap::new(),
            running: Vec::new(),
            count: 0,
            told: String::new(),
            done: BTreeMap::new(),
        };
        world.git(&["init", "-q"]);
        world.git(&["commit", "-q", "--allow-empty", "-m", "start"]);
        world
    }

    fn live(&mut self) {
        let made = self.lab.run(&["new", "work", "--parallel", "-q"]);
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        self.session = made.text().trim().to_owned();
        for step in 0..STEPS {
            self.count = step;
            self.step();
            self.check();
        }
        for mut run in std::mem::take(&mut self.running) {
            if run.is_running() {
                run.signal(Signal::CONT);
                run.signal(Signal::KILL);
            }
            drop(run);
        }
        // Whoever looks now finds and ends what was left behind.
        self.lab.run(&["ls"]);
        self.check();
    }

    fn step(&mut self) {
        let choices: &[(&'static str, Step)] = &[
            ("note", Self::note),
            ("note", Self::note),
            ("person writes", Self::person_writes),
            ("person writes", Self::person_writes),
            ("person commits", Self::person_commits),
            ("command runs", Self::command_runs),
            ("command starts", Self::command_starts),
            ("command starts", Self::command_starts),
            ("command starts", Self::command_starts),
            ("driver is killed", Self::driver_is_killed),
            ("driver is stopped for a while", Self::driver_is_stopped),
            ("run is asked to stop", Self::run_is_asked_to_stop),
            ("look", Self::look),
            ("undo", Self::undo),
            ("redo", Self::redo),
            ("checkpoint", Self::checkpoint),
            ("restore", Self::restore),
            ("collect", Self::collect),
            ("collect beside an undo", Self::collect_beside_undo),
            ("backup", Self::backup),
            ("copy is opened", Self::copy_is_opened),
            ("another store in the tree", Self::another_store),
            ("store is busy", Self::store_is_busy),
            ("store is gone for a moment", Self::store_is_gone),
            ("used-up cap", Self::used_up_cap),
        ];
        let at = usize::try_from(self.dice.below(choices.len() as u64)).unwrap();
        let (name, step) = choices[at];
        let _ = writeln!(self.told, "{:>3} {name}", self.count);
        *self.done.entry(name).or_default() += 1;
        step(self);
    }

    fn git(&self, args: &[&str]) -> String {
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

    fn file(&self, name: &str) -> PathBuf {
        self.lab.home.work().join(name)
    }

    fn data(&self) -> PathBuf {
        self.lab.home.path().join(".local/share/segno")
    }

    fn note(&mut self) {
        let (text, session) = (format!("note {}", self.count), self.session.clone());
        let said = self.lab.run(&["note", &text, "--session", &session, "-q"]);
        if said.code == Some(0) {
            self.acknowledged.push(Acknowledged { session, text });
        }
    }

    fn person_writes(&mut self) {
        let name = format!("own-{}.txt", self.dice.below(4));
        let content = format!("by a person, step {}\n", self.count);
        std::fs::write(self.file(&name), &content).unwrap();
        self.own.insert(name, content);
    }

    fn person_commits(&mut self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "work"]);
    }

    fn command_runs(&mut self) {
        let script = format!("echo agent {} >made-{}.txt; echo said", self.count, self.dice.below(3));
        self.lab.run(&["run", "--", "sh", "-c", &script]);
    }

    fn command_starts(&mut self) {
        if self.running.len() >= 2 {
            return;
        }
        let name = format!("begun-{}", self.count);
        let script = format!("echo agent >{name}.txt; while :; do sleep 0.2; done");
        let run = self.lab.start(&["run", "--", "sh", "-c", &script], None);
        let path = self.file(&format!("{name}.txt"));
        until("the command has begun", || path.exists().then_some(()));
        self.running.push(run);
    }

    fn one_that_runs(&mut self) -> Option<usize> {
        let count = self.running.len() as u64;
        (count > 0).then(|| usize::try_from(self.dice.below(count)).unwrap())
    }

    fn driver_is_killed(&mut self) {
        if let Some(at) = self.one_that_runs() {
            let run = self.running.remove(at);
            run.signal(Signal::KILL);
            drop(run);
        }
    }

    fn driver_is_stopped(&mut self) {
        if let Some(at) = self.one_that_runs() {
            let pid = self.running[at].pid();
            signal(pid, Signal::STOP);
            self.lab.run(&["ls"]);
            signal(pid, Signal::CONT);
            assert!(self.running[at].is_running(), "a driver that was only stopped is alive");
        }
    }

    fn run_is_asked_to_stop(&mut self) {
        if let Some(at) = self.one_that_runs() {
            let run = self.running.remove(at);
            run.signal(Signal::TERM);
            run.finish();
        }
    }

    fn look(&mut self) {
        let said = self.lab.run(&["ls"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }

    fn undo(&mut self) {
        self.lab.run(&["undo", "--session", "last", "--yes"]);
    }

    fn redo(&mut self) {
        self.lab.run(&["redo", "--session", "last", "--yes"]);
    }

    fn checkpoint(&mut self) {
        let session = self.session.clone();
        self.lab.run(&["checkpoint", "create", "--session", &session]);
    }

    fn restore(&mut self) {
        let session = self.session.clone();
        let said = self.lab.run(&["checkpoint", "list", "--session", &session, "--json"]);
        let Ok(listed) = serde_json::from_slice::<Value>(&said.stdout) else { return };
        let Some(items) = listed["items"].as_array().filter(|items| !items.is_empty()) else { return };
        let at = usize::try_from(self.dice.below(items.len() as u64)).unwrap();
        let ordinal = items[at]["ordinal"].to_string();
        let said = self.lab.run(&["checkpoint", "restore", &ordinal, "--session", &session, "--yes"]);
        let _ = writeln!(self.told, "      {ordinal}: {:?} {}", said.code, said.stderr.trim());
    }

    fn collect(&mut self) {
        let session = self.session.clone();
        self.lab.run(&["checkpoint", "gc", "--session", &session]);
    }

    fn collect_beside_undo(&mut self) {
        let undo = self.lab.start(&["undo", "--session", "last", "--yes"], None);
        self.collect();
        undo.finish();
    }

    fn backup(&mut self) {
        let path = self.lab.path(&format!("backup-{}.db", self.count));
        let said = self.lab.run(&["backup", &path]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }

    fn copy_is_opened(&mut self) {
        let folder = self.lab.path(&format!("copy-{}", self.count));
        std::fs::create_dir(&folder).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&folder, private).unwrap();
        let copy = format!("{folder}/segno.db");
        if self.lab.run(&["backup", &copy]).code == Some(0) {
            let url = format!("sqlite:{copy}");
            self.lab.run(&["--store", &url, "ls"]);
            self.lab.run(&["--store", &url, "checkpoint", "gc", "--session", "last"]);
        }
    }

    fn another_store(&mut self) {
        let url = format!("sqlite:{}", self.lab.path("other/segno.db"));
        self.lab.run(&["--store", &url, "run", "--", "sh", "-c", "echo other >other.txt"]);
        self.lab.run(&["--store", &url, "checkpoint", "gc", "--session", "last"]);
    }

    fn store_is_busy(&mut self) {
        let store = rusqlite::Connection::open(self.data().join("segno.db")).unwrap();
        store.busy_timeout(Duration::from_secs(20)).unwrap();
        store.execute_batch("BEGIN IMMEDIATE").unwrap();
        self.lab.env.insert("SEGNO_STORE_BUSY_TIMEOUT_MS".to_owned(), "200".to_owned());
        self.note();
        self.lab.env.remove("SEGNO_STORE_BUSY_TIMEOUT_MS");
        store.execute_batch("ROLLBACK").unwrap();
    }

    fn store_is_gone(&mut self) {
        let away = self.data().with_extension("away");
        std::fs::rename(self.data(), &away).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        std::fs::rename(&away, self.data()).unwrap();
        for run in &mut self.running {
            assert!(run.is_running(), "a driver left because the store was gone for a moment");
        }
    }

    fn used_up_cap(&mut self) {
        let made = self.lab.run(&["new", "capped", "--parallel", "--budget", "10", "-q"]);
        let id = made.text().trim().to_owned();
        if self.lab.run(&["tokens", "11", "--session", &id, "-q"]).code != Some(0) {
            return;
        }
        let name = format!("capped-{}.txt", self.count);
        self.lab.run(&["run", "--session", &id, "--", "sh", "-c", &format!("echo x >{name}")]);
        assert!(!self.file(&name).exists(), "an agent was started under a used-up cap");
        self.lab.run(&["abort", &id]);
    }

    fn check(&mut self) {
        self.check_journal();
        self.check_files();
        self.check_agents();
    }

    /// What was acknowledged is there, once and in order.
    fn check_journal(&self) {
        let args = ["log", &self.session, "--json", "--kind", "history_noted"];
        let said = self.lab.run(&args);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let noted: Vec<String> = said
            .lines()
            .iter()
            .filter_map(|event| event["body"]["details"].as_str().map(ToOwned::to_owned))
            .filter(|text| text.starts_with("note "))
            .collect();
        let expected: Vec<&str> = self
            .acknowledged
            .iter()
            .filter(|known| known.session == self.session)
            .map(|known| known.text.as_str())
            .collect();
        assert_eq!(noted, expected, "acknowledged, and in the journal");
    }

    /// What a person wrote is in the tree or in a snapshot that is still referred to.
    fn check_files(&mut self) {
        let missing: Vec<(String, String)> = self
            .own
            .iter()
            .filter(|(name, content)| std::fs::read_to_string(self.file(name)).ok().as_ref() != Some(content))
            .map(|(name, content)| (name.clone(), content.clone()))
            .collect();
        if missing.is_empty() {
            return;
        }
        let kept = self.kept();
        for (name, content) in missing {
            assert!(
                kept.contains(&blob(&content)),
                "{name} with {content:?} is in neither tree nor snapshots"
            );
            // It went because somebody asked to go back; from now on what is there counts.
            self.own.remove(&name);
        }
    }

    /// Every object that a snapshot of any project refers to.
    fn kept(&self) -> BTreeSet<String> {
        let mut kept = BTreeSet::new();
        for entry in std::fs::read_dir(self.data().join("snapshots")).into_iter().flatten().flatten() {
            let output = program("git")
                .arg("--git-dir")
                .arg(entry.path().join("git"))
                .args(["rev-list", "--objects", "--all"])
                .output()
                .unwrap();
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "snapshots can no longer be read: {why}");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            kept.extend(text.lines().filter_map(|line| line.split(' ').next().map(ToOwned::to_owned)));
        }
        kept
    }

    /// An agent that lives has a driver that lives, or the list says that it has none.
    fn check_agents(&mut self) {
        let agents: Vec<String> =
            self.lab.processes().into_iter().filter(|line| line.contains("while :; do sleep")).collect();
        let agents = agents.iter().filter(|line| !line.contains("segno")).count();
        let driven = self.running.iter_mut().filter_map(|run| run.is_running().then_some(())).count();
        if agents <= driven {
            return;
        }
        let listed = self.lab.run(&["ls", "--all", "--json"]);
        let text = listed.text();
        let known = text.matches("\"interrupted\"").count() + text.matches("\"active\"").count();
        assert!(known >= agents - driven, "{agents} agents, {driven} drivers, and {text}");
    }
}

/// The name that the snapshots, which are SHA-256 repositories, give a file's content.
fn blob(content: &str) -> String {
    let mut child = program("sha256sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let object = format!("blob {}\0{content}", content.len());
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), object.as_bytes()).unwrap();
    let sum = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    sum.split(' ').next().unwrap().to_owned()
}
