//! A hermetic world for the built program: its own home, its own directories, a clean environment, and output in which
//! whatever differs from run to run has a fixed name.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

/// A home and a project in a temporary directory.
pub(crate) struct TestEnv {
    _temp: tempfile::TempDir,
    root: PathBuf,
    variables: Vec<(String, String)>,
    /// Sessions in the order in which they were first seen; their place is their name in snapshots.
    sessions: RefCell<Vec<String>>,
}

/// The program under test.
pub(crate) const SEGNO: &str = env!("CARGO_BIN_EXE_segno");

/// What the program said.
pub(crate) struct Said {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl TestEnv {
    /// A world in memory if there is such a place: the program syncs whatever it writes, and hundreds of runs would
    /// wait for the disk most of the time.
    pub(crate) fn new() -> Self {
        Self::at(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    /// A world where files usually are.
    pub(crate) fn on_disk() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    fn at(temp: tempfile::TempDir) -> Self {
        let root = fs::canonicalize(temp.path()).unwrap();
        for directory in ["home", "project/.segno"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        Self { _temp: temp, root, variables: Vec::new(), sessions: RefCell::new(Vec::new()) }
    }

    /// Sets a variable for every following run.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// A path in this world.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file, with its directories.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The program, in the project, with nothing in its environment but ours.
    pub(crate) fn command(&self, program: &str) -> Command {
        #[expect(clippy::disallowed_methods, reason = "the program under test is a program")]
        let mut command = Command::new(program);
        command
            .current_dir(self.path("project"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_DATA_HOME", self.path("data"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("LANG", "C.UTF-8")
            // Ages change while one looks; absolute times can be given a fixed name.
            .env("SEGNO_UI_TIME", "iso")
            // Files are captured where a test is about that.
            .env("SEGNO_CHECKPOINT_FILES", "false")
            .stdin(Stdio::null());
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        command
    }

    /// Runs the program.
    pub(crate) fn run(&self, args: &[&str]) -> Said {
        self.finish(self.command(SEGNO).args(args))
    }

    /// Runs the program in a directory of this world, which is made first.
    pub(crate) fn run_in(&self, directory: &str, args: &[&str]) -> Said {
        fs::create_dir_all(self.path(directory)).unwrap();
        self.finish(self.command(SEGNO).current_dir(self.path(directory)).args(args))
    }

    /// Runs the program and gives what it wrote, byte for byte.
    pub(crate) fn raw(&self, args: &[&str]) -> Output {
        self.command(SEGNO).args(args).output().unwrap()
    }

    /// Runs the program with something on its standard input.
    pub(crate) fn feed(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(SEGNO);
        let mut child = command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Runs the program, which must succeed, and gives the document it prints.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        let mut all = args.to_vec();
        all.push("--json");
        let output = self.raw(&all);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs the program, which must succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> Said {
        let said = self.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        said
    }

    /// Starts a session and gives its id.
    pub(crate) fn start(&self, args: &[&str]) -> String {
        let mut all = vec!["new"];
        all.extend(args);
        let output = self.raw(&all);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        let id = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        self.normalise(&id);
        id
    }

    /// Every file of this world and its content.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        gather(&self.root, &mut found);
        found
    }

    /// Runs the program on a terminal, if there is a way to have one. What it wrote comes back with the line endings
    /// of a terminal.
    pub(crate) fn on_terminal(&self, command: &str, typed: &str) -> Option<Output> {
        let script = ["/usr/bin/script", "/bin/script"].into_iter().find(|path| Path::new(path).exists())?;
        let mut child = self
            .command(script)
            .env("SEGNO", SEGNO)
            .env("TERM", "xterm-256color")
            .args(["-qec", command, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        Some(child.wait_with_output().unwrap())
    }

    /// Trusts the project as a person does, at a terminal.
    pub(crate) fn trust(&self) {
        let output = self.on_terminal("$SEGNO trust", "").unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }

    /// Runs a shell script in which `$SEGNO` is the program.
    pub(crate) fn shell(&self, script: &str) -> Said {
        self.finish(self.command("/bin/sh").env("SEGNO", SEGNO).args(["-c", script]))
    }

    /// Runs the program and shows everything it said, with the command line above and the exit code below.
    pub(crate) fn show(&self, args: &[&str]) -> String {
        let said = self.run(args);
        let mut text = format!("$ segno {}\n{}", self.normalise(&args.join(" ")), said.stdout);
        if !said.stderr.is_empty() {
            let _ = write!(text, "--- stderr\n{}", said.stderr);
        }
        if said.code != 0 {
            let _ = writeln!(text, "--- exit code {}", said.code);
        }
        text
    }

    /// The same for what a shell is told, where `segno` is the program.
    pub(crate) fn show_shell(&self, script: &str) -> String {
        let said = self.shell(&format!("segno() {{ \"$SEGNO\" \"$@\"; }}; {script}"));
        let mut text = format!("$ {}\n{}", self.normalise(script), said.stdout);
        if !said.stderr.is_empty() {
            let _ = write!(text, "--- stderr\n{}", said.stderr);
        }
        if said.code != 0 {
            let _ = writeln!(text, "--- exit code {}", said.code);
        }
        text
    }

    /// Runs several commands and shows all of it.
    pub(crate) fn show_all(&self, commands: &[&[&str]]) -> String {
        commands.iter().map(|args| self.show(args)).collect::<Vec<_>>().join("\n")
    }

    fn finish(&self, command: &mut Command) -> Said {
        let output = command.output().unwrap();
        Said {
            stdout: self.normalise(&String::from_utf8(output.stdout).unwrap()),
            stderr: self.normalise(&String::from_utf8(output.stderr).unwrap()),
            code: output.status.code().unwrap_or(-1),
        }
    }

    /// Gives a fixed name to whatever differs from run to run.
    pub(crate) fn normalise(&self, text: &str) -> String {
        let text = without_quarters(&text.replace(path_text(&self.root), "$TEST"));
        let text = replace_runs(&text, "[hash]", |run| is_hex(run, 64));
        let text = replace_runs(&text, "[digest]", |run| is_hex(run, 32));
        let text = replace_runs(&text, "[time]", is_time);
        let text = replace_runs(&text, "[uid]", is_uid);
        let text = self.name_sessions(text);
        replace_runs(&text, "[unix]", |run| run.len() == 10 && run.chars().all(|c| c.is_ascii_digit()))
    }

    /// Sessions are numbered as they appear. The name of an id's end has the same width as the end itself, so that
    /// tables stay aligned.
    fn name_sessions(&self, mut text: String) -> String {
        const LENGTH: usize = "session_20260131_143512_804211".len();
        let mut sessions = self.sessions.borrow_mut();
        let mut from = 0;
        while let Some(at) = text[from..].find("session_").map(|at| at + from) {
            from = at + 1;
            let Some(id) = text.get(at..at + LENGTH) else { break };
            let digits = id.bytes().skip(8).filter(u8::is_ascii_digit).count();
            if digits == 20 && !sessions.iter().any(|known| known == id) {
                sessions.push(id.to_owned());
            }
        }
        for (index, id) in sessions.iter().enumerate() {
            text = text.replace(id.as_str(), &format!("session_{}", index + 1));
            let tail = &id[LENGTH - 6..];
            text = replace_runs(&text, &format!("tail_{}", index + 1), |run| run == tail);
        }
        text
    }
}

/// Takes out what a session used by the quarter of an hour: a test that runs across the end of one has two of them.
fn without_quarters(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut left: Vec<&str> = Vec::new();
    let mut inside = None;
    for line in text.split('\n') {
        match inside {
            Some(at) if indent(line) > at || line.trim_start().starts_with(']') => {
                inside = Some(at).filter(|_| indent(line) > at);
                continue;
            }
            _ => inside = None,
        }
        if matches!(line.trim_start(), "\"lately\": [" | "lately:") {
            inside = Some(indent(line));
            continue;
        }
        left.push(line);
    }
    let mut text = left.join("\n");
    // The same in a document on one line.
    while let Some(from) = text.find("\"lately\":[[") {
        let Some(to) = text[from..].find("]],") else { break };
        text.replace_range(from..from + to + 3, "");
    }
    text
}

fn is_hex(run: &str, length: usize) -> bool {
    run.len() == length && run.chars().all(|c| c.is_ascii_hexdigit())
}

/// `01a1e0f5-1fbc-7120-9c00-29d94e1c0da3`.
fn is_uid(run: &str) -> bool {
    run.len() == 36
        && run.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        })
}

/// A uid that differs from this one, and from those at other steps.
pub(crate) fn another_uid(uid: &str, step: u32) -> String {
    let (rest, last) = uid.split_at(uid.len() - 1);
    let digit = (u32::from_str_radix(last, 16).unwrap() + step) % 16;
    format!("{rest}{digit:x}")
}

fn gather(directory: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            gather(&path, found);
        } else if meta.is_file() {
            let content = fs::read(&path).unwrap_or_default();
            found.insert(path, content);
        }
    }
}

fn path_text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// `2026-01-31T12:00:00Z`, with or without a fraction.
fn is_time(run: &str) -> bool {
    run.len() >= 20
        && run.ends_with('Z')
        && run.char_indices().all(|(at, c)| match at {
            4 | 7 => c == '-',
            10 => c == 'T',
            13 | 16 => c == ':',
            _ => c.is_ascii_digit() || c == '.' || c == 'Z',
        })
}

/// Replaces whole words, taken as runs of characters that ids and times are made of.
fn replace_runs(text: &str, name: &str, matches: impl Fn(&str) -> bool) -> String {
    let part_of_run = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '.');
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !part_of_run(c) && c != '-').unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        // A time has dashes inside; other names may be joined to their neighbours by one.
        if matches(run) {
            out.push_str(name);
        } else {
            let parts: Vec<&str> =
                run.split('-').map(|part| if matches(part) { name } else { part }).collect();
            out.push_str(&parts.join("-"));
        }
        let next = after.find(part_of_run).unwrap_or(after.len());
        out.push_str(&after[..next]);
        rest = &after[next..];
    }
    out
}
