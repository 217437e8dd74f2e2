//! Whose a change was: what a session did while it had a call open, what others did, and what may be either.
//!
//! A call that names a file did what happened to it. What else changed while a shell call was open was the shell's; a
//! plain command is one such call. When a file changed is told by its own marks and by the checkpoints around it. See
//! `docs/design/012-going-back-with-a-right.md`.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;

use segno_core::Event;
use segno_core::SessionId;
use segno_core::State;
use segno_core::event::CallEnd;
use segno_core::event::CheckpointReason;
use segno_store::EventRow;
use segno_store::Filter;
use segno_workspace::Change;
use segno_workspace::ChangeKind;
use segno_workspace::Side;
use segno_workspace::Workspace;
use serde_json::Value;

use super::busy::overlap;
use super::busy::real;
use super::checkpoint::Checkpoint;
use crate::Engine;
use crate::Error;

/// Whose a change was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The session's.
    Session,
    /// Somebody else's: a person's, or another session's.
    Others,
    /// One of both.
    Unsure,
}

impl Whose {
    fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Unsure }
    }
}

/// Microseconds since 1970.
type Moment = i64;

/// A stretch of time in which a call was open.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// From when on the call may have been open already.
    perhaps_from: Moment,
    from: Moment,
    to: Moment,
    /// Until when the call may have been open still.
    perhaps_to: Moment,
}

impl Window {
    fn sure(from: Moment, to: Moment) -> Self {
        Self { perhaps_from: from, from, to, perhaps_to: to }
    }

    fn has(&self, at: Moment) -> bool {
        self.from <= at && at <= self.to
    }

    /// The same for a call that names the file. It is often told of after it has written; what changed after it was told
    /// to have ended is somebody else's, or that of something it left behind.
    fn wrote(&self, at: Moment) -> bool {
        earlier(self.perhaps_from, NEAR) <= at && at <= self.to
    }

    fn may_have(&self, at: Moment) -> bool {
        earlier(self.perhaps_from, NEAR) <= at && at <= later(self.perhaps_to, NEAR)
    }

    fn meets(&self, (from, to): (Moment, Moment)) -> bool {
        self.perhaps_from <= to && from <= self.perhaps_to
    }

    fn covers(&self, (from, to): (Moment, Moment)) -> bool {
        self.from <= from && to <= self.to
    }
}

/// What the calls of a session did, as far as its journal tells.
#[derive(Debug, Default)]
struct Work {
    /// When a shell, or anything else that may write where it likes, was at work, and with what.
    shell: Vec<(Window, String)>,
    /// Files that calls name.
    named: Vec<(PathBuf, Window)>,
    /// When files were brought somewhere by going back or forward.
    restored: Vec<Window>,
}

/// What a call does is told with this delay at most before it is called uncertain.
const NEAR: i64 = 2_000_000;
/// The system's marks of files lag by one tick of its clock.
const TICK: i64 = 20_000;
/// A stream tells of a call that began up to this much earlier: what changed then may be the call's or anybody's.
const READ_LATE: i64 = 300_000;
/// The checkpoint at the end of a run follows within this time.
const AT_ONCE: i64 = 10_000_000;

fn earlier(at: Moment, by: i64) -> Moment {
    at.saturating_sub(by)
}

fn later(at: Moment, by: i64) -> Moment {
    at.saturating_add(by)
}

impl Engine {
    /// For everything that changed from one checkpoint to a later one: whose it was.
    pub(super) fn whose(
        &self,
        state: &State,
        workspace: &Workspace,
        target: &Checkpoint,
        from: &Checkpoint,
    ) -> Result<BTreeMap<PathBuf, Whose>, Error> {
        let root = workspace.root();
        let ours = self.work(state.session_id, target.seq.saturating_sub(1), Reader::new(root))?;
        let mut theirs = Work::default();
        // Also of projects inside this one, and of one around it.
        let filter = Filter { since: Some(target.created_at), ..Filter::default() };
        for other in self.list(&filter)? {
            let Some(project) = Some(&other.project).filter(|path| overlap(path, &state.project.path)) else {
                continue;
            };
            if other.session_id != state.session_id && other.created_at <= from.created_at {
                let reader = Reader { project: real(project), ..Reader::new(root) };
                // One that cannot be read might have done anything, but nothing tells so.
                let work = self.work(other.session_id, 0, reader).unwrap_or_default();
                theirs.shell.extend(work.shell);
                theirs.named.extend(work.named);
            }
        }
        let judge = Judge { root, ours: &ours, theirs: &theirs };
        let mut found: BTreeMap<PathBuf, Whose> = BTreeMap::new();
        let chain = self.chain(state.session_id, target, from)?;
        for pair in chain.windows(2) {
            let [first, second] = pair else { continue };
            let between = (first.created_at.as_micros(), second.created_at.as_micros());
            let (before, after) = (self.snapshot_of(workspace, first)?, self.snapshot_of(workspace, second)?);
            for change in workspace.diff(&before, Side::Snapshot(&after), false)? {
                let whose = judge.whose(&change, between);
                found.entry(change.path).and_modify(|before| *before = before.and(whose)).or_insert(whose);
            }
        }
        Ok(found)
    }

    /// The checkpoints with files from one to a later one, both included.
    fn chain(
        &self,
        session: SessionId,
        target: &Checkpoint,
        from: &Checkpoint,
    ) -> Result<Vec<Checkpoint>, Error> {
        let all = self.checkpoints(session)?;
        let mut chain = vec![from.clone()];
        let mut here = from.parent;
        while let Some(ordinal) = here.filter(|ordinal| *ordinal > target.ordinal) {
            let Some(checkpoint) = all.iter().find(|checkpoint| checkpoint.ordinal == ordinal) else { break };
            here = checkpoint.parent;
            if checkpoint.ready && checkpoint.snapshot.is_some() {
                chain.push(checkpoint.clone());
            }
        }
        chain.push(target.clone());
        chain.reverse();
        Ok(chain)
    }

    /// Reads what a session's calls did from its journal.
    fn work(&self, session: SessionId, after: u64, mut reader: Reader<'_>) -> Result<Work, Error> {
        let mut after = after;
        loop {
            let rows = self.store().events(session, after, 1000)?;
            let Some(last) = rows.last() else { break };
            after = match last {
                EventRow::Whole(event) => event.seq,
                EventRow::Damaged { seq, .. } => *seq,
            };
            for row in &rows {
                if let EventRow::Whole(stored) = row
                    && let Ok(event) = stored.event()
                {
                    reader.take(&event, stored.at.as_micros());
                }
            }
        }
        Ok(reader.finish())
    }
}

/// A call that has not ended yet.
struct Open {
    tool: String,
    input: Value,
    perhaps_from: Moment,
    from: Moment,
}

impl Open {
    fn window(&self, to: Moment, perhaps_to: Moment) -> Window {
        Window { perhaps_from: self.perhaps_from, from: self.from, to: to.max(self.from), perhaps_to }
    }
}

/// Follows a journal.
struct Reader<'a> {
    root: &'a Path,
    /// What the session's own paths are relative to.
    project: PathBuf,
    work: Work,
    open: BTreeMap<String, Open>,
    /// Calls that wrote files, and which.
    files: Vec<(PathBuf, String, Moment)>,
    ended: BTreeMap<String, Window>,
    /// When the agent was last heard of.
    heard: Option<Moment>,
    /// When the checkpoint before the run was made.
    run_start: Option<Moment>,
    /// The run that is one call as a whole, unless it tells of calls: since when.
    whole_run: Option<Moment>,
    /// When it was; the checkpoint that follows at once belongs to it.
    whole_run_ended: Option<Window>,
    /// Whether the checkpoint at the end of that run was made before it was called ended.
    end_is_kept: bool,
    before_restore: Option<Moment>,
    /// Whether the run's driver is gone: what is told of it from now on was found out later.
    orphaned: bool,
}

impl<'a> Reader<'a> {
    fn new(root: &'a Path) -> Self {
        Self {
            root,
            project: root.to_owned(),
            work: Work::default(),
            open: BTreeMap::new(),
            files: Vec::new(),
            ended: BTreeMap::new(),
            heard: None,
            run_start: None,
            whole_run: None,
            whole_run_ended: None,
            end_is_kept: false,
            before_restore: None,
            orphaned: false,
        }
    }

    fn hear(&mut self, at: Moment) {
        if !self.orphaned {
            self.heard = Some(at);
        }
    }

    fn take(&mut self, event: &Event, at: Moment) {
        match event {
            Event::RunStarted(run) => {
                self.orphaned = false;
                self.hear(at);
                self.whole_run = is_one_call(&run.agent).then(|| self.run_start.unwrap_or(at));
                self.end_is_kept = false;
            }
            Event::SessionInterrupted(_) | Event::DriverDetached(_) => self.orphaned = true,
            Event::RunEnded(_) => {
                if let Some(from) = self.whole_run.take() {
                    // Of one whose driver died this is when somebody came to look.
                    let to = if self.orphaned { self.heard.unwrap_or(from).max(from) } else { at };
                    self.whole_run_ended = Some(Window { perhaps_to: at, ..Window::sure(from, to) });
                }
            }
            Event::CheckpointCreated(made) => {
                match made.reason {
                    CheckpointReason::RunStart => self.run_start = Some(at),
                    CheckpointReason::BeforeRestore => self.before_restore = Some(at),
                    _ => {}
                }
                let at_end = matches!(made.reason, CheckpointReason::RunEnd | CheckpointReason::Final);
                self.end_is_kept |= at_end && self.whole_run.is_some();
                // The checkpoint at the end of a run is made just before or after the run is called ended. Any other,
                // and a second one, also holds what others did since.
                if let Some(mut window) = self.whole_run_ended.take() {
                    let belongs = at_end && !std::mem::take(&mut self.end_is_kept);
                    let at_once = window.to == window.perhaps_to && at <= later(window.to, AT_ONCE);
                    if belongs && at_once {
                        (window.to, window.perhaps_to) = (at, at);
                    }
                    self.work.shell.push((window, String::new()));
                }
            }
            Event::FilesRestored(_) => {
                let from = earlier(self.before_restore.take().unwrap_or(at), TICK);
                self.work.restored.push(Window::sure(from, at));
            }
            Event::ToolStarted(call) => {
                self.hear(at);
                self.whole_run = None;
                let (tool, input) = (call.tool.clone(), call.input.clone());
                // A call that was told before it ran began no earlier. One that was seen did, nobody knows when.
                let (from, perhaps_from) = match call.write_ahead {
                    true => (earlier(at, TICK), earlier(at, TICK)),
                    false => (at, earlier(at, READ_LATE)),
                };
                let open = Open { tool, input, perhaps_from, from };
                self.open.entry(call.call.clone()).or_insert(open);
            }
            Event::ToolEnded(call) => {
                let Some(open) = self.open.remove(&call.call) else { return };
                let window = match call.end {
                    // Nobody heard how it ended: from when on it was no more open is not known.
                    CallEnd::InDoubt => open.window(self.heard.unwrap_or(open.from), at),
                    _ => {
                        self.hear(at);
                        open.window(at, at)
                    }
                };
                self.close(&call.call, &open, window);
            }
            // Without a call it was found by comparing the tree, and may be anybody's.
            Event::FileChanged(file) => {
                if let Some(call) = &file.call {
                    self.hear(at);
                    let path = self.inside(&file.path);
                    self.files.push((path, call.clone(), at));
                }
            }
            Event::Said(_) => self.hear(at),
            _ => {}
        }
    }

    fn close(&mut self, call: &str, open: &Open, mut window: Window) {
        let in_background = open.input.get("run_in_background").and_then(Value::as_bool) == Some(true);
        if in_background {
            window.perhaps_to = Moment::MAX;
        }
        match sort(&open.tool) {
            Sort::Anything => {
                let with = segno_core::call::subject(&open.input);
                self.work.shell.push((window, with));
            }
            Sort::OneFile => {
                if let Some(path) = segno_core::call::file(&open.input) {
                    let path = self.inside(path);
                    self.work.named.push((path, window));
                }
            }
            Sort::Nothing => {}
        }
        self.ended.insert(call.to_owned(), window);
    }

    fn finish(mut self) -> Work {
        for (call, open) in std::mem::take(&mut self.open) {
            let window = open.window(self.heard.unwrap_or(open.from), Moment::MAX);
            self.close(&call, &open, window);
        }
        if let Some(from) = self.whole_run {
            let to = self.heard.unwrap_or(from).max(from);
            let window = Window { perhaps_to: Moment::MAX, ..Window::sure(from, to) };
            self.work.shell.push((window, String::new()));
        }
        if let Some(window) = self.whole_run_ended {
            self.work.shell.push((window, String::new()));
        }
        for (path, call, at) in std::mem::take(&mut self.files) {
            let window = self.ended.get(&call).copied();
            let window = window.unwrap_or(Window::sure(earlier(at, NEAR), at));
            let to = window.to.max(at);
            self.work.named.push((path, Window { to, ..window }));
        }
        self.work
    }

    /// From the top of the tree.
    fn inside(&self, path: &str) -> PathBuf {
        let path = Path::new(path);
        let path = self.project.join(path.strip_prefix(".").unwrap_or(path));
        path.strip_prefix(self.root).unwrap_or(&path).to_owned()
    }
}

/// Whether a run of this is one call as a whole: nothing tells what it does on the way.
fn is_one_call(agent: &str) -> bool {
    !segno_agents::tells_of_calls(agent)
}

/// What a tool may change.
enum Sort {
    /// Any file.
    Anything,
    /// The file it names.
    OneFile,
    /// None, or only by calls of their own.
    Nothing,
}

fn sort(tool: &str) -> Sort {
    let tool = tool.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| tool.contains(word));
    // First what any other word may be part of.
    if has(&["bash", "shell", "exec", "command", "terminal", "mcp"]) {
        Sort::Anything
    } else if has(&["write", "edit", "patch", "replace", "notebook", "create_file"]) && !tool.contains("todo")
    {
        Sort::OneFile
    } else if has(&["read", "grep", "glob", "search", "fetch", "todo", "plan", "list", "view"])
        || ["ls", "task", "agent", "skill", "question"].contains(&tool.as_str())
    {
        Sort::Nothing
    } else {
        Sort::Anything
    }
}

/// Judges one change after the other.
struct Judge<'a> {
    root: &'a Path,
    ours: &'a Work,
    theirs: &'a Work,
}

impl Judge<'_> {
    fn whose(&self, change: &Change, between: (Moment, Moment)) -> Whose {
        let named = |work: &Work| -> Vec<Window> {
            let of_path = work.named.iter().filter(|(path, _)| *path == change.path);
            of_path.map(|(_, window)| *window).filter(|window| window.meets(widened(between))).collect()
        };
        let shell = |work: &Work| -> Vec<Window> {
            let windows = work.shell.iter().map(|(window, _)| *window);
            windows.filter(|window| window.meets(between)).collect()
        };
        let is_gone = change.kind == ChangeKind::Deleted;
        let (mut our_named, their_named) = (named(self.ours), named(self.theirs));
        if is_gone {
            // A command that was given the name of what it removed says enough.
            let commands = self.ours.shell.iter().filter(|(window, _)| window.meets(between));
            let commands = commands.filter(|(_, command)| names(command, &change.path));
            our_named.extend(commands.map(|(window, _)| *window));
        }
        let (our_shell, their_shell) = (shell(self.ours), shell(self.theirs));
        let at = self.changed_at(change);
        let theirs_then = at.is_some_and(|at| their_shell.iter().any(|window| window.has(at)));
        if our_named.is_empty() && our_shell.is_empty() {
            return Whose::Others;
        }
        if !their_named.is_empty() {
            return if our_named.is_empty() { Whose::Others } else { Whose::Unsure };
        }
        // A command that was at work all the time between the two checkpoints.
        if our_shell.iter().any(|window| window.covers(between)) {
            return if theirs_then { Whose::Unsure } else { Whose::Session };
        }
        // We brought it here ourselves, when we went back or forward: then it was judged already.
        if at.is_some_and(|at| self.ours.restored.iter().any(|window| window.has(at))) {
            return Whose::Session;
        }
        let told = at.filter(|at| earlier(between.0, TICK) <= *at && *at <= later(between.1, NEAR));
        let Some(at) = told else {
            // Its marks tell of something later: it changed again.
            return if our_named.is_empty() { Whose::Unsure } else { Whose::Session };
        };
        if is_gone && !our_named.is_empty() {
            return Whose::Session;
        }
        if our_named.iter().any(|window| window.wrote(at)) {
            return Whose::Session;
        }
        if our_shell.iter().any(|window| window.has(at)) {
            return if theirs_then { Whose::Unsure } else { Whose::Session };
        }
        // Seen late, and it names the file: that is enough.
        let begun = |window: &Window| window.perhaps_from <= at && at < window.from;
        let late = self.ours.shell.iter().filter(|(window, _)| begun(window));
        if !theirs_then && late.into_iter().any(|(_, command)| names(command, &change.path)) {
            return Whose::Session;
        }
        let perhaps = our_shell.iter().any(|window| window.may_have(at));
        // When something went away is told by its directory alone, and somebody may have been there since.
        if perhaps || !our_named.is_empty() || (is_gone && !our_shell.is_empty()) {
            return Whose::Unsure;
        }
        Whose::Others
    }

    /// When a path last changed, as the system has it; for one that is gone, its directory.
    fn changed_at(&self, change: &Change) -> Option<Moment> {
        let path = self.root.join(&change.path);
        let moment = |seconds: i64, nanos: i64| Some(seconds.checked_mul(1_000_000)? + nanos / 1000);
        if change.kind != ChangeKind::Deleted {
            let meta = std::fs::symlink_metadata(&path).ok()?;
            return moment(meta.ctime(), meta.ctime_nsec());
        }
        let above = path.ancestors().skip(1).take_while(|above| above.starts_with(self.root));
        let meta =
            above.filter_map(|above| std::fs::symlink_metadata(above).ok()).find(|meta| meta.is_dir())?;
        moment(meta.mtime(), meta.mtime_nsec())
    }
}

/// Whether a command names a path, or a directory above it.
fn names(command: &str, path: &Path) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let says = |text: &str| {
        !text.is_empty()
            && command.match_indices(text).any(|(at, _)| {
                let before = command.get(..at).and_then(|before| before.chars().next_back());
                let after = command.get(at + text.len()..).and_then(|after| after.chars().next());
                !before.is_some_and(is_part) && !after.is_some_and(is_part)
            })
    };
    path.ancestors().filter_map(Path::to_str).any(says)
        || path.file_name().and_then(std::ffi::OsStr::to_str).is_some_and(says)
}

fn widened((from, to): (Moment, Moment)) -> (Moment, Moment) {
    (earlier(from, NEAR), later(to, NEAR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_what_it_removes() {
        for (command, path) in [
            ("rm gone.txt", "gone.txt"),
            ("rm -rf build && ls", "build/a/b.o"),
            ("git rm src/old.rs", "src/old.rs"),
            ("cd src; rm old.rs", "src/old.rs"),
        ] {
            assert!(names(command, Path::new(path)), "{command}");
        }
        for (command, path) in [("rm gone.txt.bak", "gone.txt"), ("ls", "a"), ("rm -rf rebuild", "build/x")] {
            assert!(!names(command, Path::new(path)), "{command}");
        }
    }

    fn change(path: &str, kind: ChangeKind) -> Change {
        Change {
            path: path.into(),
            kind,
            directory: false,
            size_before: None,
            size_after: None,
            permissions: (None, None),
            lines: None,
        }
    }

    #[test]
    fn what_changed_is_judged_by_calls_and_times() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        let meta = std::fs::symlink_metadata(dir.path().join("f")).unwrap();
        let at = meta.ctime() * 1_000_000 + meta.ctime_nsec() / 1000;
        let window = |from: i64, to: i64| Window::sure(at + from, at + to);
        let (long, second) = (60_000_000, 1_000_000);
        let between = (at - long, at + long);
        let judge = |ours: &Work, theirs: &Work| {
            Judge { root: dir.path(), ours, theirs }.whose(&change("f", ChangeKind::Modified), between)
        };
        let shell = |window| Work { shell: vec![(window, String::new())], ..Work::default() };
        let named = |window| Work { named: vec![("f".into(), window)], ..Work::default() };
        let none = Work::default();
        assert_eq!(judge(&none, &none), Whose::Others);
        assert_eq!(judge(&shell(window(-second, second)), &none), Whose::Session);
        assert_eq!(judge(&shell(window(second, 2 * second)), &none), Whose::Unsure, "just before it");
        assert_eq!(judge(&shell(window(9 * second, 20 * second)), &none), Whose::Others);
        assert_eq!(judge(&shell(window(-2 * long, 2 * long)), &none), Whose::Session);
        assert_eq!(judge(&named(window(-second, second)), &none), Whose::Session);
        assert_eq!(judge(&named(window(second, 2 * second)), &none), Whose::Session, "told of late");
        assert_eq!(judge(&named(window(-3 * second, -second)), &none), Whose::Unsure, "touched since");
        assert_eq!(judge(&named(window(-30 * second, -20 * second)), &none), Whose::Unsure, "touched since");
        let both = shell(window(-second, second));
        assert_eq!(judge(&both, &both), Whose::Unsure);
        assert_eq!(judge(&both, &named(window(-second, second))), Whose::Others);
        let doubt = Window { perhaps_to: at + second, ..window(-30 * second, -20 * second) };
        assert_eq!(judge(&shell(doubt), &none), Whose::Unsure, "nobody heard how it ended");
        let seen = Window { perhaps_from: at - 1000, ..window(1000, second) };
        assert_eq!(judge(&shell(seen), &none), Whose::Unsure, "it may have begun before it was seen");
        let naming = Work { shell: vec![(seen, "echo x > f".to_owned())], ..Work::default() };
        assert_eq!(judge(&naming, &none), Whose::Session);
    }

    #[test]
    fn a_call_that_was_seen_is_sure_from_then_on_only() {
        let window = |write_ahead: bool| {
            let mut reader = Reader::new(Path::new("/"));
            let (call, tool) = ("c".to_owned(), "Bash".to_owned());
            let source = segno_core::event::Source::Stream;
            let input = serde_json::json!({ "command": "make" });
            let started = segno_core::event::ToolStarted {
                call: call.clone(),
                tool,
                input,
                write_ahead,
                source,
                recurs: true,
            };
            reader.take(&Event::ToolStarted(started), 1_000_000);
            let ended = segno_core::event::ToolEnded {
                call,
                tool: None,
                end: CallEnd::Completed,
                output: None,
                source,
                evidence: None,
                recurs: true,
            };
            reader.take(&Event::ToolEnded(ended), 5_000_000);
            let (window, _) = reader.finish().shell.remove(0);
            (window.perhaps_from, window.from, window.to, window.perhaps_to)
        };
        assert_eq!(window(false), (1_000_000 - READ_LATE, 1_000_000, 5_000_000, 5_000_000));
        assert_eq!(window(true), (1_000_000 - TICK, 1_000_000 - TICK, 5_000_000, 5_000_000));
    }
}
