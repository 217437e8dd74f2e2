//! A hermetic place to run the built program in, and what came of a run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Pid;
use rustix::process::Signal;
use segno::config::env::Environment;
use segno_testkit::home::Home;
use segno_testkit::programs::scripted_agent;
use segno_testkit::scripted::Step;
use serde_json::Value;

/// The program under test.
pub(crate) const SEGNO: &str = env!("CARGO_BIN_EXE_segno");
/// Nothing here takes that long; a test that waits so long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How long processes may take to be gone after segno is.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// A variable of the test's own environment.
pub(crate) fn variable(name: &str) -> Option<String> {
    Environment::capture().get(name).filter(|value| !value.is_empty()).map(ToOwned::to_owned)
}

/// Tells whoever reads the log that a test could not be run here.
pub(crate) fn skip(why: &str) {
    // With stderr gone there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// How long something may take. Time in which somebody on this machine had to wait for a processor does not count: a
/// machine that is busy with something else is no hang. What takes [`LONGEST`] times as long has failed in any case.
pub(crate) struct Patience {
    begin: Instant,
    waited_before: Duration,
    most: Duration,
}

/// How many times its patience something may take on a machine that is never idle.
const LONGEST: u32 = 9;

impl Patience {
    pub(crate) fn new(most: Duration) -> Self {
        Self { begin: Instant::now(), waited_before: waited_for_processors(), most }
    }

    pub(crate) fn is_over(&self) -> bool {
        let passed = self.begin.elapsed();
        if passed < self.most {
            return false;
        }
        let waited = waited_for_processors().saturating_sub(self.waited_before);
        passed.saturating_sub(waited) >= self.most || passed >= self.most * LONGEST
    }
}

/// For how long processes have waited for a processor since this machine began; nothing where the kernel does not count it.
fn waited_for_processors() -> Duration {
    let counted = std::fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    let some = counted.lines().find(|line| line.starts_with("some "));
    let total = some.and_then(|line| line.split("total=").nth(1)?.trim().parse().ok());
    Duration::from_micros(total.unwrap_or(0))
}

/// Waits until something is there.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let patience = Patience::new(PATIENCE);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(!patience.is_over(), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A program that is not segno.
#[expect(clippy::disallowed_methods, reason = "tests start programs")]
pub(crate) fn program(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// A home with segno in it.
pub(crate) struct Lab {
    pub(crate) home: Home,
    /// The environment of every command.
    pub(crate) env: BTreeMap<String, String>,
    /// What stands before segno on the command line, to run it as somebody else.
    pub(crate) before: Vec<String>,
    /// The program.
    pub(crate) segno: PathBuf,
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) took: Duration,
}

/// A command that still runs.
pub(crate) struct Live {
    child: Child,
    stdout: File,
    stderr: File,
    begin: Instant,
    ended: bool,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::at(Home::new().unwrap())
    }

    /// In a home of somebody's choice.
    pub(crate) fn at(home: Home) -> Self {
        let env = home.env();
        Self { home, env, before: Vec::new(), segno: SEGNO.into() }
    }

    /// A path beside the home.
    pub(crate) fn path(&self, name: &str) -> String {
        self.home.beside(name).to_str().unwrap().to_owned()
    }

    /// Everything in the home lies below this; its name is in the command line of every helper.
    fn root(&self) -> PathBuf {
        self.home.path().parent().unwrap().to_owned()
    }

    /// Writes a file, with its directories.
    pub(crate) fn write(&self, path: impl AsRef<Path>, content: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Adds to the user's own configuration.
    pub(crate) fn config(&self, text: &str) {
        let path = self.home.path().join(".config/segno/config.toml");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        self.write(path, &format!("{before}\n{text}\n"));
    }

    /// Segno with these arguments.
    pub(crate) fn segno(&self, args: &[&str]) -> Command {
        let own = self.segno.to_str().unwrap().to_owned();
        let line: Vec<String> = self.before.iter().cloned().chain([own]).collect();
        let mut command = program(&line[0]);
        command.args(&line[1..]).args(args).env_clear().envs(&self.env).current_dir(self.home.work());
        command
    }

    /// Starts a command. With `input`, that is its standard input.
    pub(crate) fn start(&self, args: &[&str], input: Option<&[u8]>) -> Live {
        self.start_command(&mut self.segno(args), input)
    }

    pub(crate) fn start_command(&self, command: &mut Command, input: Option<&[u8]>) -> Live {
        let (stdout, stderr) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        command.stdout(stdout.try_clone().unwrap()).stderr(stderr.try_clone().unwrap());
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        let begin = Instant::now();
        let mut child = command.spawn().unwrap();
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
            let input = input.to_vec();
            // A program need not read what it is given.
            std::thread::spawn(move || drop(pipe.write_all(&input)));
        }
        Live { child, stdout, stderr, begin, ended: false }
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Said {
        self.start(args, None).finish()
    }

    /// Runs a command that must succeed and print one document.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let said = self.run(&args);
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.stderr);
        serde_json::from_slice(&said.stdout).unwrap()
    }

    /// The newest session: its whole state.
    pub(crate) fn state(&self) -> Value {
        self.json(&["show", "last"])["state"].take()
    }

    /// The run that is going on, once it is recorded.
    pub(crate) fn running(&self) -> Value {
        until("a run begins", || {
            let said = self.run(&["show", "last", "--json"]);
            let shown: Value = serde_json::from_slice(&said.stdout).ok()?;
            let run = shown["state"]["run"].clone();
            (run["id"].is_string() && run["outcome"].is_null()).then_some(run)
        })
    }

    /// The tool calls of the newest session.
    pub(crate) fn tools(&self) -> Vec<Value> {
        let mut shown = self.json(&["show", "last", "--tools", "--limit", "10000"]);
        match shown["items"].take() {
            Value::Array(items) => items,
            other => panic!("{other}"),
        }
    }

    /// The journal of the newest session, or those events of it that are of this kind.
    pub(crate) fn journal(&self, kind: Option<&str>) -> Vec<Value> {
        let mut args = vec!["log", "last", "--json"];
        args.extend(kind.into_iter().flat_map(|kind| ["--kind", kind]));
        let said = self.run(&args);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        said.lines()
    }

    /// A scripted agent that plays these, as a command line.
    pub(crate) fn scripted(&self, name: &str, steps: &[Step]) -> Vec<String> {
        let script = self.path(&format!("{name}.json"));
        std::fs::write(&script, serde_json::to_string(steps).unwrap()).unwrap();
        let agent = scripted_agent().unwrap();
        [agent.to_str().unwrap(), "--script", &script].map(str::to_owned).into()
    }

    /// Puts a scripted agent in the place of a real one.
    pub(crate) fn stand_in(&mut self, agent: &str, steps: &[Step]) {
        let line = self.scripted(agent, steps);
        let script = format!("#!/bin/sh\nexec {} \"$@\"\n", line.join(" "));
        let path = self.root().join("bin").join(agent);
        self.write(&path, &script);
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self.put_on_path(path.parent().unwrap());
    }

    /// Programs here are found first.
    pub(crate) fn put_on_path(&mut self, directory: &Path) {
        let path = format!("{}:{}", directory.display(), self.env["PATH"]);
        self.env.insert("PATH".to_owned(), path);
    }

    /// Processes that belong to this home: by their environment, or by their command line for those that have none.
    pub(crate) fn processes(&self) -> Vec<String> {
        let root = self.root().to_str().unwrap().to_owned();
        let marked = self.home.processes();
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let mut found = Vec::new();
        for pid in pids.filter(|pid| *pid != std::process::id()) {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let ours = marked.contains(&i32::try_from(pid).unwrap()) || line.contains(&root);
            // Zombies have no command line.
            if ours && !line.is_empty() {
                found.push(format!("{pid} {line}"));
            }
        }
        found
    }

    /// Nothing is left of what ran here: no process, and none of the files that a run has while it goes on.
    pub(crate) fn assert_nothing_left(&self) {
        self.assert_no_process_left();
        let state = self.home.path().join(".local/state/segno");
        let places = [state.join("runs"), state.join("detached"), self.root().join("run")];
        for entry in places.iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten().flatten() {
            // Claude Code has a directory for sockets of its own beside ours.
            assert!(entry.file_name() == "cc-socks", "still there: {}", entry.path().display());
        }
    }

    /// The same beside a shell that is still open.
    pub(crate) fn assert_no_agent_left(&self) {
        until("the agent's processes are gone", || {
            let left = self.processes();
            left.iter().all(|line| line.contains("bash --norc")).then_some(())
        });
    }

    pub(crate) fn assert_no_process_left(&self) {
        let begin = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(begin.elapsed() < AFTERWARDS, "still there: {left:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // The home ends what carries its mark; those without an environment are known by their command line.
        for line in self.processes() {
            let pid = line.split(' ').next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
            if let Some(pid) = pid {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }
}

impl Live {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub(crate) fn stdout(&self) -> Vec<u8> {
        content(&self.stdout)
    }

    /// What it has complained about so far.
    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&content(&self.stderr)).into_owned()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, what: Signal) {
        signal(self.pid(), what);
    }

    /// Waits for its end.
    pub(crate) fn finish(self) -> Said {
        self.finish_within(PATIENCE)
    }

    pub(crate) fn finish_within(mut self, most: Duration) -> Said {
        // It may have worked for hours before somebody waits for its end.
        let patience = Patience::new(most);
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if patience.is_over() {
                let (out, err) = (content(&self.stdout), content(&self.stderr));
                let text =
                    |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(20_000)]).into_owned();
                panic!("it does not end\nstdout: {}\nstderr: {}", text(&out), text(&err));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        self.ended = true;
        Said {
            stdout: content(&self.stdout),
            stderr: String::from_utf8_lossy(&content(&self.stderr)).into_owned(),
            code: status.code(),
            signal: status.signal(),
            took: self.begin.elapsed(),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whoever writes to the file shares our place in it, so that must not move.
fn content(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

impl Said {
    /// Every line as a document, one after the other.
    pub(crate) fn each(&self) -> impl DoubleEndedIterator<Item = Value> {
        let lines = self.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| {
            serde_json::from_slice(line)
                .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(line)))
        })
    }

    /// Every line as a document.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.each().collect()
    }

    /// The last line, which is the result of a run.
    pub(crate) fn result(&self) -> Value {
        let last = self.each().next_back().unwrap_or_else(|| panic!("no line at all; {}", self.stderr));
        assert_eq!(last["kind"], "result", "{last}; {}", self.stderr);
        last
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// A small file system of its own, gone in the end.
pub(crate) struct SmallDisk(String);

impl SmallDisk {
    /// None where nothing can be mounted; that needs root.
    pub(crate) fn mount(lab: &Lab, at: &str, size: &str) -> Option<Self> {
        let path = lab.path(at);
        std::fs::create_dir_all(&path).unwrap();
        let size = format!("size={size},mode=700");
        let done = program("mount").args(["-t", "tmpfs", "-o", &size, "segno-test", &path]).output();
        done.is_ok_and(|done| done.status.success()).then_some(Self(path))
    }

    /// Takes all that is left.
    pub(crate) fn fill(&self) -> String {
        let file = format!("{}/filler", self.0);
        let zeros = vec![0; 64 * 1024];
        let mut filler = std::fs::File::create(&file).unwrap();
        while std::io::Write::write_all(&mut filler, &zeros).is_ok() {}
        file
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = program("umount").args(["-l", &self.0]).status();
    }
}
