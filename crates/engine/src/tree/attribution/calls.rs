//! What the calls of a session did, read from its journal.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use segno_core::Event;
use segno_core::event::CallEnd;
use segno_core::event::CheckpointReason;
use serde_json::Value;

use super::super::busy::real;
use super::window::AT_ONCE;
use super::window::Moment;
use super::window::NEAR;
use super::window::READ_LATE;
use super::window::TICK;
use super::window::Window;
use super::window::earlier;
use super::window::later;

/// What the calls of a session did, as far as its journal tells.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// When a shell, or anything else that may write where it likes, was at work, and with what.
    pub(super) shell: Vec<(Window, String)>,
    /// Files that calls name.
    pub(super) named: Vec<(PathBuf, Window)>,
    /// When files were brought somewhere by going back or forward.
    pub(super) restored: Vec<Window>,
}

/// A call that has not ended yet.
pub(super) struct Open {
    pub(super) tool: String,
    pub(super) input: Value,
    pub(super) perhaps_from: Moment,
    pub(super) from: Moment,
}

impl Open {
    pub(super) fn window(&self, to: Moment, perhaps_to: Moment) -> Window {
        Window { perhaps_from: self.perhaps_from, from: self.from, to: to.max(self.from), perhaps_to }
    }
}

/// Follows a journal.
pub(super) struct Reader<'a> {
    pub(super) root: &'a Path,
    /// What the session's own paths are relative to.
    pub(super) project: PathBuf,
    /// Where its run began, if that is known: then they are relative to that.
    pub(super) directory: Option<PathBuf>,
    pub(super) work: Work,
    pub(super) open: BTreeMap<String, Open>,
    /// Calls that wrote files, and which.
    pub(super) files: Vec<(PathBuf, String, Moment)>,
    pub(super) ended: BTreeMap<String, Window>,
    /// When the agent was last heard of.
    pub(super) heard: Option<Moment>,
    /// When the checkpoint before the run was made.
    pub(super) run_start: Option<Moment>,
    /// The run that is one call as a whole, unless it tells of calls: since when.
    pub(super) whole_run: Option<Moment>,
    /// When it was; the checkpoint that follows at once belongs to it.
    pub(super) whole_run_ended: Option<Window>,
    /// Whether the checkpoint at the end of that run was made before it was called ended.
    pub(super) end_is_kept: bool,
    pub(super) before_restore: Option<Moment>,
    /// Whether the run's driver is gone: what is told of it from now on was found out later.
    pub(super) orphaned: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self {
            root,
            project: root.to_owned(),
            directory: None,
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

    pub(super) fn hear(&mut self, at: Moment) {
        if !self.orphaned {
            self.heard = Some(at);
        }
    }

    pub(super) fn take(&mut self, event: &Event, at: Moment) {
        match event {
            Event::RunStarted(run) => {
                self.orphaned = false;
                self.directory = Some(real(&run.directory)).filter(|there| there.starts_with(self.root));
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

    pub(super) fn close(&mut self, call: &str, open: &Open, mut window: Window) {
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

    pub(super) fn finish(mut self) -> Work {
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
    pub(super) fn inside(&self, path: &str) -> PathBuf {
        let path = Path::new(path);
        let from = self.directory.as_ref().unwrap_or(&self.project);
        let path = from.join(path.strip_prefix(".").unwrap_or(path));
        path.strip_prefix(self.root).unwrap_or(&path).to_owned()
    }
}

/// Whether a run of this is one call as a whole: nothing tells what it does on the way.
pub(super) fn is_one_call(agent: &str) -> bool {
    !segno_agents::tells_of_calls(agent)
}

/// What a tool may change.
pub(crate) enum Sort {
    /// Any file.
    Anything,
    /// The file it names.
    OneFile,
    /// None, or only by calls of their own.
    Nothing,
}

pub(crate) fn sort(tool: &str) -> Sort {
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

#[cfg(test)]
mod tests {
    use super::*;

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
