//! `segno export` and `segno import`: sessions as files.

use std::io::BufWriter;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::ValueEnum;
use segno_engine::Error;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::event::Project;
use segno_engine::core::looping::LoopPlan;
use segno_engine::layout;
use segno_engine::transfer::Carried;
use segno_engine::transfer::Options;
use segno_engine::transfer::Packing;
use segno_engine::transfer::Source;
use segno_engine::transfer::Transferred;
use segno_engine::transfer::export;
use segno_engine::transfer::import_from as take_in;
use segno_engine::transfer::{self};
use serde_json::json;

use super::args::OneSession;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::files::Access;
use crate::files::Draft;
use crate::output::units;

/// What is true of every file that was refused.
const UNTOUCHED: &str = "nothing was imported from it, and the file is as it was";

/// The form of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Everything, for machines
    #[default]
    Json,
    /// Everything, readable
    Yaml,
    /// A report, for people
    Md,
}

/// Write a session to a file
///
/// Without -o it goes to standard output. A file that ends in .gz or .zst is compressed.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    visible_alias = "session-export",
    after_help = "Examples:\n  segno export last -o session.json.zst\n  segno export last --html -o session.html"
)]
pub struct Args {
    /// The session
    #[command(flatten)]
    pub session: OneSession,
    /// The format; guessed from the file name if it is not given
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// One page that anybody can read, without segno and without a network: conversation, calls with what they changed,
    /// checkpoints, decisions, cost over time. Also if the file ends in .html
    #[arg(long, conflicts_with_all = ["format", "with_files", "with_conversation"])]
    pub html: bool,
    /// The file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the files of its checkpoints too, to FILE.files; import finds them there. Secrets in those files are
    /// included
    #[arg(long, requires = "output")]
    pub with_files: bool,
    /// Write the conversations of its agents too, as the agents keep them, to FILE.conversation; import puts them where
    /// the agents look. Nothing in it is redacted
    #[arg(long, requires = "output")]
    pub with_conversation: bool,
    /// Replace the file if there is one already
    #[arg(long, requires = "output")]
    pub force: bool,
}

/// Import sessions, and the histories that agents keep themselves
///
/// Without a path: everything that Claude Code, Codex, Gemini CLI and opencode, or the agents that are named, keep of their
/// conversations, wherever they keep it. Each conversation becomes a session that can be listed, searched, shown, exported
/// and resumed. What segno recorded itself is not taken in again, and a second time only what is new is read. The files of
/// agents are read and never changed; what is damaged in them is read around and counted. At the end it is said what the
/// agents have deleted, and what they are about to.
///
/// With a path: transcripts (.jsonl, or folders of them), exports and session.yaml views, compressed or not; and folders, or
/// files in them, of other session managers: PRP (.prp-session), AgentForge, go-team (checkpoints), ultra-create, Ralph
/// (.ralph) and atari. A session that is known already is left as it is. The files of its checkpoints are imported from
/// FILE.files, if that is there, and the conversations of its agents are put where the agents look for them from
/// FILE.conversation. Nothing is overwritten.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "Examples:\n  segno import\n  segno import claude codex\n  segno import --report\n  segno import --watch\n  segno import session.json.zst\n  segno import .prp-session"
)]
pub struct ImportArgs {
    /// Agents, and files or folders
    #[arg(value_name = "AGENT|PATH")]
    pub files: Vec<PathBuf>,
    /// Import nothing: say what agents keep, what they have deleted and what they delete this week
    #[arg(long)]
    pub report: bool,
    /// Go on until you stop it: what agents write from now on is imported within seconds
    #[arg(long, conflicts_with = "report")]
    pub watch: bool,
    /// Keep the project that the file names, instead of this one
    #[arg(long)]
    pub keep_project: bool,
    /// Take over the budget that the file claims
    #[arg(long)]
    pub keep_budget: bool,
}

/// Runs `segno export`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let id = ctx.session_to_read(args.session.id.as_ref())?;
    if args.html || (args.format.is_none() && args.output.as_deref().is_some_and(is_page)) {
        return page(&ctx, id, args);
    }
    let Some(path) = &args.output else {
        let format = args.format.unwrap_or_default().into();
        let mut sink = Sink { context, closed: false };
        let mut buffered = BufWriter::with_capacity(1 << 16, &mut sink);
        let written = export(&ctx.engine, id, format, &mut buffered);
        let flushed = buffered.flush();
        drop(buffered);
        if sink.closed {
            return Err(CommandError::broken_pipe());
        }
        written?;
        return flushed.map_err(|error| CommandError::io("cannot write the export", error));
    };
    let (format, packing) = guess(path, args.format);
    let beside = transfer::files_beside(path);
    let talk = transfer::conversations_beside(path);
    if !args.force {
        refuse_existing(path)?;
        if args.with_files {
            refuse_existing(&beside)?;
        }
        if args.with_conversation {
            refuse_existing(&talk)?;
        }
    }
    let bytes = write_file(&ctx, id, format, packing, path)?;
    let files = args.with_files.then(|| transfer::export_files(&ctx.engine, id, &beside)).transpose()?;
    let talks =
        args.with_conversation.then(|| transfer::export_conversations(&ctx.engine, id, &talk)).transpose()?;
    if let Some((carried, _)) = &talks {
        warn_of_left(context, carried);
    }
    if context.printer.is_json() {
        let mut said = json!({ "session_id": id, "file": path, "bytes": bytes });
        if let Some((carried, bytes)) = &talks {
            let all: Vec<_> = carried.iter().map(carried_json).collect();
            said["conversations"] = json!({ "file": talk, "bytes": bytes, "each": all });
        }
        if let Some((checkpoints, bytes)) = files {
            said["files"] = json!({ "file": beside, "checkpoints": checkpoints, "bytes": bytes });
        }
        return context.printer.json(&said);
    }
    if let Some((checkpoints, bytes)) = files {
        let checkpoints = units::things(checkpoints, "checkpoint");
        let text = format!("files of {checkpoints} in {}   {}", beside.display(), units::bytes(bytes));
        context.printer.talk(text);
    }
    if let Some((carried, bytes)) = &talks {
        let there = carried.iter().filter(|one| matches!(one.came, Transferred::There(_))).count() as u64;
        let count = units::things(there, "conversation");
        let size = units::bytes(*bytes);
        context.printer.talk(format!("{count}, not redacted, in {}   {size}", talk.display()));
    }
    context.printer.talk(format!("exported {} to {}   {}", short(id), path.display(), units::bytes(bytes)));
    Ok(())
}

/// Whether a file's name says that it is a page.
fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html"))
}

/// Writes a session as one page.
fn page(ctx: &CommandContext<'_>, id: SessionId, args: &Args) -> Outcome {
    if args.with_files || args.with_conversation {
        return Err(CommandError::usage("a page has no files of checkpoints beside it")
            .hint("segno export -o session.json --with-files"));
    }
    let (context, zone) = (ctx.context, ctx.context.zone());
    let Some(path) = &args.output else {
        let mut sink = Sink { context, closed: false };
        let mut buffered = BufWriter::with_capacity(1 << 16, &mut sink);
        let written = crate::serve::file::write(&ctx.engine, id, &zone, &mut buffered);
        let flushed = buffered.flush();
        drop(buffered);
        if sink.closed {
            return Err(CommandError::broken_pipe());
        }
        written?;
        return flushed.map_err(|error| CommandError::io("cannot write the page", error));
    };
    if !args.force {
        refuse_existing(path)?;
    }
    let unwritable = |error| CommandError::io(format!("cannot write {}", path.display()), error);
    let mut draft = Draft::begin(path, Access::Private).map_err(unwritable)?;
    let mut buffered = BufWriter::with_capacity(1 << 16, draft.file());
    crate::serve::file::write(&ctx.engine, id, &zone, &mut buffered)?;
    buffered.flush().map_err(unwritable)?;
    drop(buffered);
    let bytes = draft.finish().map_err(unwritable)?;
    if context.printer.is_json() {
        return context.printer.json(&json!({ "session_id": id, "file": path, "bytes": bytes }));
    }
    context.printer.talk(format!("exported {} to {}   {}", short(id), path.display(), units::bytes(bytes)));
    Ok(())
}

/// Says which conversations stay behind, and why.
fn warn_of_left(context: &Context, carried: &[Carried]) {
    for one in carried {
        if let Transferred::Not(why) = &one.came {
            let Carried { agent, conversation, .. } = one;
            context.printer.warn(format!("conversation {conversation} of {agent} stays behind: {why}"));
        }
    }
}

fn carried_json(one: &Carried) -> serde_json::Value {
    let (came, path, why) = match &one.came {
        Transferred::There(path) => ("there", Some(path), None),
        Transferred::Already(path) => ("already", Some(path), None),
        Transferred::Not(why) => ("not", None, Some(why)),
    };
    json!({ "agent": one.agent, "conversation": one.conversation, "came": came, "path": path, "why": why })
}

/// What the name of a file says about its form.
fn guess(path: &Path, format: Option<Format>) -> (Format, Packing) {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().to_lowercase());
    let (name, packing) = match (name.strip_suffix(".gz"), name.strip_suffix(".zst")) {
        (Some(rest), _) => (rest.to_owned(), Packing::Gzip),
        (_, Some(rest)) => (rest.to_owned(), Packing::Zstd),
        (None, None) => (name, Packing::Plain),
    };
    let by_name = if name.ends_with(".yaml") || name.ends_with(".yml") {
        Format::Yaml
    } else if name.ends_with(".md") {
        Format::Md
    } else {
        Format::Json
    };
    (format.unwrap_or(by_name), packing)
}

/// What is in a file may be the only one of its kind.
pub(super) fn refuse_existing(path: &Path) -> Outcome {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.is_dir() => {
            let why = format!("{} exists already; nothing was written", path.display());
            Err(CommandError::new(ExitCode::Refused, "file_exists", why).hint("--force   replaces it"))
        }
        _ => Ok(()),
    }
}

/// Writes a text to a file that is there whole or not at all.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> Outcome {
    let unwritable = |error| CommandError::io(format!("cannot write {}", path.display()), error);
    let mut draft = Draft::begin(path, Access::Private).map_err(unwritable)?;
    draft.file().write_all(bytes).map_err(unwritable)?;
    draft.finish().map_err(unwritable)?;
    Ok(())
}

/// Writes an export to a file that is there whole or not at all.
fn write_file(
    ctx: &CommandContext<'_>,
    id: SessionId,
    format: Format,
    packing: Packing,
    path: &Path,
) -> Outcome<u64> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfit = |why: String| {
        CommandError::failure("unwritable", format!("cannot write {}: {why}", path.display()))
            .hint("-o FILE   in a directory that exists")
    };
    if !folder.is_dir() {
        return Err(unfit(format!("there is no directory {}", folder.display())));
    }
    if path.is_dir() {
        return Err(unfit("it is a directory".to_owned()));
    }
    Ok(transfer::write_file(&ctx.engine, id, format.into(), packing, path)?)
}

/// Standard output as a stream for exports.
struct Sink<'a> {
    context: &'a Context,
    /// Whether the reader went away, which is no failure.
    closed: bool,
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.context.printer.raw(bytes).map_err(|error| {
            if error.is_silent() {
                self.closed = true;
                std::io::ErrorKind::BrokenPipe.into()
            } else {
                std::io::Error::other(error.to_string())
            }
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl From<Format> for segno_engine::transfer::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Json => Self::Json,
            Format::Yaml => Self::Yaml,
            Format::Md => Self::Markdown,
        }
    }
}

/// Runs `segno import`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn import(context: &Context, args: &ImportArgs) -> Outcome {
    if let Some(wish) = super::history::wish(args)? {
        return super::history::run(context, args, wish);
    }
    if args.watch || args.report {
        let what = if args.watch { "--watch" } else { "--report" };
        let why = format!("{what} is about what agents keep themselves, and this is something else");
        return Err(CommandError::usage(why).hint("segno import --watch   segno import claude --watch"));
    }
    let ctx = CommandContext::open_or_make(context)?;
    let config = context.config()?;
    let root = &context.project.root;
    let mut taken = Vec::new();
    let mut talks = Vec::new();
    let mut foreign = Vec::new();
    for path in &args.files {
        let meta = std::fs::metadata(path)
            .map_err(|error| CommandError::io(format!("cannot read {}", path.display()), error))?;
        if !meta.is_file() && !meta.is_dir() {
            let why = format!("{} cannot be imported: it is neither a file nor a folder", path.display());
            return Err(CommandError::failure("session_corrupted", why));
        }
        let project = (!args.keep_project).then(|| Project {
            path: root.display().to_string(),
            name: root.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            kind: None,
        });
        let options = Options {
            source: path.display().to_string(),
            project,
            keep_budget: args.keep_budget,
            budget: config.token_budget(None, false),
        };
        if meta.is_dir() || layout::is_agentforge(path) {
            let imports = layout::import(&ctx.engine, path, &options).map_err(untaken)?;
            foreign.extend(tell_foreign(&ctx, &imports, &mut taken));
            continue;
        }
        let imported = match take_in(&ctx.engine, &Source::file(path), &options) {
            Ok(imported) => imported,
            Err(error @ (Error::NotImportable(_) | Error::SessionCorrupted { .. })) => {
                match layout::import(&ctx.engine, path, &options) {
                    Ok(imports) => {
                        foreign.extend(tell_foreign(&ctx, &imports, &mut taken));
                        continue;
                    }
                    // Nobody's: what is wrong with it as one of ours is what helps.
                    Err(_) if !layout::is_foreign(path) => return Err(untaken(error)),
                    Err(other) => return Err(untaken(other)),
                }
            }
            Err(error) => return Err(untaken(error)),
        };
        for notice in &imported.notices {
            context.printer.warn(notice.clone());
        }
        let beside = transfer::files_beside(path);
        if beside.is_file() {
            // The session is there; without files its checkpoints still have their state.
            match transfer::import_files(&ctx.engine, &imported.state, &beside) {
                Ok(notices) => notices.into_iter().for_each(|notice| context.printer.warn(notice)),
                Err(why) => context
                    .printer
                    .warn(format!("the files in {} were not imported: {why}", beside.display())),
            }
        }
        talks.extend(import_conversations(context, &ctx, &imported.state, path));
        context.printer.talk(format!("imported {} as {}", path.display(), imported.state.session_id));
        if let Some(plan) = ctx.engine.loop_elsewhere(imported.state.session_id)? {
            // Without the rest of a long text its beginning has to do.
            let work = ctx.engine.whole(&plan.work).unwrap_or_else(|_| plan.work.short(200));
            was_a_loop(context, &work, &plan);
        }
        taken.push(imported.state.session_id);
    }
    if context.printer.is_json() {
        let mut said = json!({ "imported": taken, "conversations": talks });
        if !foreign.is_empty() {
            said["layouts"] = json!(foreign);
        }
        context.printer.json(&said)?;
    }
    ctx.finish();
    Ok(())
}

/// Says what was taken over from other session managers.
fn tell_foreign(
    ctx: &CommandContext<'_>,
    imports: &[layout::LayoutImport],
    taken: &mut Vec<SessionId>,
) -> Vec<serde_json::Value> {
    let mut all = Vec::new();
    for import in imports {
        let printer = &ctx.context.printer;
        printer.talk(format!("{} is {}", import.folder.display(), import.family.title()));
        for notice in &import.notices {
            printer.warn(notice.clone());
        }
        let mut sessions = Vec::new();
        for one in &import.sessions {
            let id = one.state.session_id;
            for notice in &one.notices {
                printer.warn(format!("{}: {notice}", one.foreign_id));
            }
            if !one.missing.is_empty() {
                let missing = one.missing.join(", ");
                printer.warn(format!("{}: not there: {missing}; what is there was imported", one.foreign_id));
            }
            printer.talk(format!("imported {} as {id}", one.foreign_id));
            taken.push(id);
            sessions.push(json!({
                "session_id": id, "foreign_id": one.foreign_id, "missing": one.missing, "notices": one.notices,
            }));
        }
        if let Some(one) = import.sessions.iter().rfind(|one| one.state.is_resumable()) {
            // Who had no agent here is given one.
            let agent = if one.state.run.is_none() { " --agent claude" } else { "" };
            printer.hint(format!("segno resume {}{agent}", ctx.engine.ending(one.state.session_id)));
        }
        all.push(json!({
            "family": import.family.as_str(), "folder": import.folder, "sessions": sessions,
            "notices": import.notices,
        }));
    }
    all
}

/// A loop that came from elsewhere is none here: its commands are somebody else's. Says what to type instead.
fn was_a_loop(context: &Context, work: &str, plan: &LoopPlan) {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let mut commands: Vec<&str> =
        plan.phases.iter().flat_map(|phase| phase.evidence.iter().map(|one| one.command.as_str())).collect();
    commands.sort_unstable();
    commands.dedup();
    let until: String = commands.iter().map(|command| format!(" --until {}", quoted(command))).collect();
    let work = segno_engine::core::text::shorten(&work.replace('\n', " "), 200);
    let typed = format!("segno loop --workflow {}{until} --prompt {}", plan.workflow, quoted(&work));
    context.printer.warn_with(
        "it was a loop; here it is not, because its commands come from elsewhere",
        &[format!("look at them, then begin it here: {typed}")],
    );
}

/// Puts the conversations that came along where the agents look for them, and says what became of each.
fn import_conversations(
    context: &Context,
    ctx: &CommandContext<'_>,
    state: &State,
    path: &Path,
) -> Vec<serde_json::Value> {
    let beside = transfer::conversations_beside(path);
    if !beside.is_file() {
        return Vec::new();
    }
    let carried = match transfer::import_conversations(&ctx.engine, state, &beside) {
        Ok(carried) => carried,
        // The session is there, and goes on with its brief.
        Err(why) => {
            context.printer.warn(format!("the conversations were not imported: {why}"));
            return Vec::new();
        }
    };
    for Carried { agent, conversation, came } in &carried {
        let said = match came {
            Transferred::There(path) => {
                format!("conversation {conversation} of {agent} is in {}", path.display())
            }
            Transferred::Already(path) => {
                format!("conversation {conversation} of {agent} was here already, in {}", path.display())
            }
            Transferred::Not(_) => continue,
        };
        context.printer.talk(said);
    }
    warn_of_left(context, &carried);
    carried.iter().map(carried_json).collect()
}

/// Why a file was not taken in. The store is well, so what helps a damaged store does not help here.
fn untaken(error: segno_engine::Error) -> CommandError {
    use segno_engine::Error as E;
    match &error {
        E::SessionCorrupted { session_id, details } => damaged(session_id, details),
        E::NotImportable(_) => CommandError::from(error).hint(UNTOUCHED),
        _ => error.into(),
    }
}

fn damaged(file: impl std::fmt::Display, why: impl std::fmt::Display) -> CommandError {
    CommandError::new(
        ExitCode::StoreDamaged,
        "session_corrupted",
        format!("Session {file} state file is corrupted: {why}"),
    )
    .hint(UNTOUCHED)
}
