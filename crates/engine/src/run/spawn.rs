//! Starting the agent's process.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Stdio;

use segno_agents::LaunchSpec;
use segno_agents::launch::Unsupported;
use segno_core::RunId;
use segno_core::StoreId;
use segno_core::event::Ledger;
use segno_core::event::RunStarted;
use segno_redact::Redactor;
use serde_json::Value;

use super::Request;
use super::capture;
use super::capture::Capture;
use super::capture::Note;
use super::capture_process::CaptureProcess;
use super::cgroup;
use super::hook_server::HookServer;
use super::interactive;
use super::interactive::InteractiveTerminal;
use super::permission::AgentInput;
use super::tree;
use super::tree::Member;
use super::tree::Tree;
use super::unrecorded;
use crate::Error;

/// An agent that has been started.
pub(super) struct Spawned {
    pub(super) child: Child,
    pub(super) member: Member,
    pub(super) tree: Tree,
    pub(super) capture: Capture,
    pub(super) hook_server: Option<HookServer>,
    pub(super) note: Note,
    pub(super) terminal: Option<InteractiveTerminal>,
    pub(super) voice: Option<AgentInput>,
    pub(super) capturing: Option<CaptureProcess>,
}

/// How the agent is to be started, or why it cannot be.
pub(super) fn specify(request: &mut Request, run: &RunId) -> Result<(LaunchSpec, Option<PathBuf>), Error> {
    let fail = |agent: &str, why: String| Error::NotLaunched { agent: agent.to_owned(), why };
    let name = request.agent.name().to_owned();
    let scratch = match &request.scratch {
        Some(base) => {
            // Short on purpose: the names of sockets are limited to about a hundred bytes.
            let dir = base.join(scratch_name(run));
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
            made.map_err(|why| fail(&name, format!("{}: {why}", dir.display())))?;
            Some(dir)
        }
        None => None,
    };
    if let Some(scratch) = &scratch {
        request.launch.private_tmp = Some(scratch.display().to_string());
    }
    let spec = request.agent.launch(&request.launch).map_err(|why| fail(&name, why.to_string()));
    let spec = spec.and_then(|spec| {
        // Settings and plug-ins that an agent reads from files of its own.
        if let Some(scratch) = &scratch {
            for file in &spec.files {
                capture::write_private(scratch, file.name, file.content.as_bytes())?;
            }
        }
        Ok(spec)
    });
    if spec.is_err() {
        remove(scratch.as_deref());
    }
    Ok((spec?, scratch))
}

/// Who starts it, and when.
pub(super) struct Begin<'a> {
    pub(super) run: &'a RunId,
    pub(super) epoch: u64,
    pub(super) now: &'a str,
    pub(super) store: String,
    pub(super) store_id: StoreId,
    /// What keeps secrets out of the record.
    pub(super) redactor: &'a Redactor,
}

/// Starts it. Its output goes to the capture.
pub(super) fn spawn(
    request: &Request,
    spec: &LaunchSpec,
    scratch: Option<PathBuf>,
    begin: Begin<'_>,
    captures: &Path,
) -> Result<Spawned, Error> {
    let Begin { run, epoch, now, store, store_id, redactor } = begin;
    let mut note = Note {
        session: request.session,
        run: run.clone(),
        agent: request.agent.name().to_owned(),
        plain: request.plain.clone(),
        expected_native_id: spec.native_id.clone(),
        resumed: request.baseline != segno_agents::Baseline::Fresh,
        completes: request.completes,
        limits: Some(request.limits),
        resources: request.resources,
        cgroup: None,
        scratch: scratch.clone(),
        store,
        store_id: Some(store_id),
        epoch,
        record: log_directory(request, spec).filter(|_| !request.launch.interactive),
        source: super::log_beside::Source::default(),
        interactive: interactive::interactive_run(request, spec, now),
        holder: Some(crate::lease::here("segno run")),
        watched: false,
    };
    let capture = Capture::create(captures, &note)?;
    super::secrets::write(capture.dir(), redactor.known())?;
    let intended = started(request, spec, run, Member { pid: 0, start: 0 }, redactor);
    if let Err(why) = unrecorded::intend(capture.dir(), &intended) {
        capture.discard();
        remove(scratch.as_deref());
        return Err(why);
    }
    let mut command = std::process::Command::new(&request.program);
    let removed = |name: &OsStr| spec.env_remove.iter().any(|removed| OsStr::new(removed) == name);
    let inherited = request.environment.iter().find(|(name, _)| name == tree::MARK);
    let mark = tree::mark(inherited.and_then(|(_, value)| value.to_str()), run);
    command
        .args(&spec.args)
        .current_dir(&request.directory)
        .env_clear()
        .envs(request.environment.iter().filter(|(name, _)| !removed(name)).cloned())
        .envs(&spec.env_set)
        .env("SEGNO_SESSION", request.session.to_string())
        .env("SEGNO_RUN", run.as_str())
        .env("SEGNO_EPOCH", epoch.to_string())
        .env(tree::MARK, mark)
        .env_remove(super::hook_server::VARIABLE);
    let terminal = note.interactive.as_ref().map(|interactive| {
        InteractiveTerminal::acquire(
            request.agent.as_ref(),
            interactive,
            capture.dir(),
            request.terminal.as_ref(),
        )
    });
    let mut capturing = None;
    if terminal.is_none() {
        let kept = CaptureProcess::start(&request.capture_command, capture.dir());
        let (capture_process, out, err) = match kept {
            Ok(kept) => kept,
            Err(why) => {
                let why = format!("what it prints cannot be kept: {why}");
                capture.discard();
                remove(scratch.as_deref());
                return Err(Error::NotLaunched { agent: request.agent.name().to_owned(), why });
            }
        };
        capturing = Some(capture_process);
        command
            .stdin(if spec.stdin.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(out)
            .stderr(err)
            // Ctrl-C on our terminal is for us; the agent is told in its own way.
            .process_group(0);
    }
    if let Some(content) = &request.hook_file {
        command.env(super::HOOK, capture::write_private(capture.dir(), "hook.json", content)?);
    }
    // Beside the capture: what the agent's tools may write to is none of its business.
    let hook_server = request.hook_file.as_ref().and_then(|_| HookServer::open(capture.dir()));
    if hook_server.is_some() {
        command.env(super::hook_server::VARIABLE, capture.dir().join(super::hook_server::NAME));
    }
    let adopts = request.sole_process && tree::adopt_orphans();
    crate::fault::moment("made");
    let spawned = command.spawn();
    crate::fault::moment("spawned");
    let mut child = match spawned {
        Ok(child) => child,
        Err(why) => {
            capture.discard();
            remove(scratch.as_deref());
            return Err(Error::NotLaunched {
                agent: request.agent.name().to_owned(),
                why: format!("{}: {why}", request.program.display()),
            });
        }
    };
    let member = tree::just_started(child.id());
    unrecorded::begun(capture.dir(), member);
    crate::fault::moment("noted");
    // A child that it starts before it is in the group is found by its parents and its mark.
    note.cgroup = cgroup::make(run, &request.resources).filter(|group| cgroup::enter(group, child.id()));
    if note.cgroup.is_some() {
        capture::write_note(capture.dir(), &note)?;
    }
    let mut voice = None;
    if let Some(stdin) = child.stdin.take_if(|_| spec.keeps_stdin) {
        voice = Some(AgentInput::start(stdin, spec.stdin.clone()));
    }
    if let Some(mut stdin) = child.stdin.take() {
        let prompt = spec.stdin.clone();
        // An agent that reads its prompt late, or never, must not hold us up.
        std::thread::spawn(move || {
            let _ = stdin.write_all(&prompt);
        });
    }
    let mut tree = Tree::new(run, member, adopts, note.cgroup.clone());
    tree.spare(capturing.as_ref().and_then(CaptureProcess::pid));
    Ok(Spawned { child, member, tree, capture, hook_server, note, terminal, voice, capturing })
}

/// Where the agent's own records will be, by the environment that it gets.
fn log_directory(request: &Request, spec: &LaunchSpec) -> Option<super::log_beside::LogDirectory> {
    let inherited = |name: &str| request.environment.iter().find(|(known, _)| known == name);
    super::log_beside::log_directory(
        request.agent.as_ref(),
        spec.native_id.as_deref(),
        &request.directory,
        |name| {
            let set = spec.env_set.get(name).map(PathBuf::from);
            set.or_else(|| inherited(name).map(|(_, value)| PathBuf::from(value)))
        },
    )
}

fn scratch_name(run: &RunId) -> String {
    format!("sg-{}", run.short())
}

/// Whether a path is the scratch space that was made for a run: a private directory of ours that bears the run's id.
pub(super) fn is_scratch_of(path: &Path, run: &RunId) -> bool {
    let plain = path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
    let named = path.file_name().and_then(|found| found.to_str()) == Some(scratch_name(run).as_str());
    let private = || {
        std::fs::symlink_metadata(path).is_ok_and(|meta| {
            meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0
        })
    };
    plain && named && private()
}

/// Removes scratch space of a run.
pub(super) fn remove(scratch: Option<&Path>) {
    if let Some(scratch) = scratch {
        let _ = std::fs::remove_dir_all(scratch);
    }
}

/// What is recorded of the start.
pub(super) fn started(
    request: &Request,
    spec: &LaunchSpec,
    run: &RunId,
    member: Member,
    redactor: &Redactor,
) -> RunStarted {
    let hooks = request.launch.hook_command.is_some() && !spec.unsupported.contains(&Unsupported::ToolHooks);
    let environment: serde_json::Map<String, Value> = request
        .environment
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)))
        .filter(|(name, _)| request.recorded_environment.iter().any(|allowed| allowed == name))
        // What is cut off may be half of a secret, so they go first.
        .map(|(name, value)| (name, segno_core::text::shorten(&redactor.text(value), 500)))
        .map(|(name, value)| (name.to_owned(), Value::String(value)))
        .collect();
    let prompt = &request.launch.prompt;
    let program = request.program.display().to_string();
    RunStarted {
        run: run.to_string(),
        agent: request.agent.name().to_owned(),
        version: request.version.clone(),
        native_id: spec.native_id.clone(),
        resumed: match &request.launch.conversation {
            segno_agents::Conversation::Resume(id) => Some(id.clone()),
            segno_agents::Conversation::Fork { from, .. } => Some(from.clone()),
            _ => None,
        },
        pid: member.pid,
        process_start: member.start,
        ledger: if hooks { Ledger::WriteAhead } else { Ledger::Observed },
        prompt: (!prompt.is_empty()).then(|| prompt.as_str().into()),
        // A prompt that goes in as an argument is kept once.
        command: [program]
            .into_iter()
            .chain(spec.args.iter().filter(|arg| *arg != prompt).cloned())
            .collect(),
        environment: Value::Object(environment),
        directory: request.directory.display().to_string(),
        interactive: request.launch.interactive,
        args: request.given_args.clone(),
        file: request.file.clone(),
        work_item: request.work_item.clone(),
        below: request.below,
        briefed: request.briefed,
    }
}
