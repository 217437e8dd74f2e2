//! The tools: what each is called, what it takes, and which of the program's own commands it is.
//!
//! The whole list is sent to the model again and again, so its words are few; a test keeps it small.

use rmcp::model::JsonObject;
use rmcp::model::Tool;
use segno_engine::core::Command as Act;
use segno_engine::core::event::PauseReason;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::json;

use super::members::*;
use crate::cli::Command;
use crate::commands::args::OneSession;
use crate::commands::args::Page;
use crate::commands::args::SessionRef;
use crate::commands::args::TextSource;
use crate::commands::artifact;
use crate::commands::budget;
use crate::commands::checkpoint;
use crate::commands::decide;
use crate::commands::lifecycle;
use crate::commands::ls;
use crate::commands::mark;
use crate::commands::memory;
use crate::commands::metric;
use crate::commands::output;
use crate::commands::phase;
use crate::commands::resume;
use crate::commands::show;
use crate::commands::task;
use crate::commands::tokens;
use crate::commands::undo;

/// What a tool comes to.
pub(super) enum Wanted {
    /// A command of the program.
    Command(Box<Command>),
    /// One that makes a session, which is held from then on.
    New(Box<Command>),
    /// Work with another session.
    Load(SessionRef),
    /// Go on with a session, and hold it.
    Resume(Box<Command>),
    /// Pause or end the session: what its holder does, and the command of anybody else.
    End(Box<Act>, Box<Command>),
    /// Put files back, if a person confirms it; `instead` is what the person can type.
    GoBack { preview: Box<Command>, apply: Box<Command>, instead: String },
    /// Start an agent in the background: the words of the command line.
    Start(Vec<String>),
    /// Pause the loop of this project, for this reason.
    PauseLoop(Option<String>),
    /// Go on with the loop of this project, in the background.
    ResumeLoop,
}

type Make = fn(JsonObject) -> Result<Wanted, String>;

/// A tool: name, what it does, its members (`!` marks those it needs), and what it comes to.
struct Spec(&'static str, &'static str, &'static [(&'static str, &'static str)], Make);

const TEXT: &str = "string";
const COUNT: &str = "integer";
const TEXTS: &str = "array";
const YES: &str = "boolean";

const TOOLS: &[Spec] = &[
    Spec(
        "new",
        "Begin a durable session for this work",
        &[
            ("topic!", TEXT),
            ("intent", TEXT),
            ("file", TEXT),
            ("workflow", TEXT),
            ("phases", TEXTS),
            ("budget", COUNT),
            ("parallel", YES),
        ],
        |it| {
            let it: New = read(it)?;
            Ok(Wanted::New(Box::new(Command::New(it.into()))))
        },
    ),
    Spec("load", "Work with this session from now on", &[("session!", TEXT)], |it| {
        let it: Named = read(it)?;
        Ok(Wanted::Load(it.session.parse()?))
    }),
    Spec(
        "list",
        "List sessions of this project, open ones first",
        &[("status", TEXT), ("everywhere", YES), ("limit", COUNT)],
        |it| {
            let it: ListWanted = read(it)?;
            let status = it.status.map(|name| choice(&name)).transpose()?;
            let (everywhere, limit) = (it.everywhere, it.limit.or(Some(20)));
            command(Command::Ls(ls::Args {
                status: status.into_iter().collect(),
                all: false,
                open: false,
                everywhere,
                project_filter: None,
                since: None,
                limit,
            }))
        },
    ),
    Spec("status", "Where the session stands", &[("session", TEXT)], |it| {
        let it: MaybeNamed = read(it)?;
        Ok(Wanted::Command(Box::new(status(it.session.map(|it| it.parse()).transpose()?))))
    }),
    Spec(
        "brief",
        "What to know before going on: done, in doubt, changed, open",
        &[("session", TEXT)],
        |it| {
            let it: MaybeNamed = read(it)?;
            let args = resume::Args { session: one(it.session)?, show_brief: true, ..Default::default() };
            command(Command::Resume(args))
        },
    ),
    Spec(
        "show",
        "Read one list of the session: conversation, tools, history, decisions, files, errors, memory, artifacts, \
         outputs, tasks, checkpoints, milestones, verifications or runs",
        &[("part!", TEXT), ("limit", COUNT), ("after", COUNT), ("session", TEXT)],
        |it| {
            let it: Show = read(it)?;
            let page = Page { limit: it.limit.or(Some(30)), after: it.after, full: false };
            command(Command::Show(show::Args { session: one(it.session)?, part: part(&it.part)?, page }))
        },
    ),
    Spec("pause", "Pause the session; another context window can resume it", &[("reason", TEXT)], |it| {
        let it: Reason = read(it)?;
        let act = Act::Pause { reason: PauseReason::Asked, details: it.reason.as_deref().map(Into::into) };
        let args = lifecycle::PauseArgs { session: OneSession::default(), reason: it.reason };
        Ok(Wanted::End(Box::new(act), Box::new(Command::Pause(args))))
    }),
    Spec("resume", "Go on with a session that waits", &[("session", TEXT)], |it| {
        let it: MaybeNamed = read(it)?;
        let args = resume::Args { session: one(it.session)?, no_run: true, yes: true, ..Default::default() };
        Ok(Wanted::Resume(Box::new(Command::Resume(args))))
    }),
    Spec("complete", "Finish the session for good", &[("summary", TEXT)], |it| {
        let it: Summary = read(it)?;
        let act = Act::Complete { summary: it.summary.as_deref().map(Into::into) };
        let args = lifecycle::CompleteArgs { session: OneSession::default(), summary: it.summary };
        Ok(Wanted::End(Box::new(act), Box::new(Command::Complete(args))))
    }),
    Spec("abort", "Give the session up; its record stays", &[("reason", TEXT)], |it| {
        let it: Reason = read(it)?;
        let act = Act::Abort { reason: it.reason.as_deref().map(Into::into) };
        let args =
            lifecycle::AbortArgs { session: OneSession::default(), reason: it.reason, remove_files: false };
        Ok(Wanted::End(Box::new(act), Box::new(Command::Abort(args))))
    }),
    Spec(
        "phase",
        "Go on to a phase; verify: pass, fail or skip for the one that is left",
        &[("name!", TEXT), ("step", COUNT), ("of", COUNT), ("verify", TEXT), ("details", TEXT)],
        |it| {
            let it: Phase = read(it)?;
            command(Command::Phase(phase::Args {
                name: Some(it.name),
                step: it.step,
                of: it.of,
                verify: it.verify.map(|name| choice(&name)).transpose()?,
                check: "phase".to_owned(),
                details: it.details,
            }))
        },
    ),
    Spec("progress", "How far the work is, in per cent", &[("percent!", COUNT)], |it| {
        let it: Percent = read(it)?;
        if it.percent > 100 {
            return Err("percent is from 0 to 100".to_owned());
        }
        command(Command::Progress(phase::ProgressArgs { percent: it.percent }))
    }),
    Spec("intent", "What should be true when the work is done", &[("text!", TEXT)], |it| {
        command(Command::Intent(phase::IntentArgs { text: read::<Words>(it)?.text }))
    }),
    Spec(
        "tokens",
        "Record tokens that were used",
        &[
            ("total", COUNT),
            ("input", COUNT),
            ("output", COUNT),
            ("cache_read", COUNT),
            ("cache_write", COUNT),
        ],
        |it| {
            let it: Tokens = read(it)?;
            let apart = [it.input, it.output, it.cache_read, it.cache_write].iter().any(Option::is_some);
            match (it.total, apart) {
                (Some(_), true) => return Err("give total, or the others, not both".to_owned()),
                (None, false) => return Err("how many? give total, or input and output".to_owned()),
                _ => {}
            }
            command(Command::Tokens(tokens::Args {
                total: it.total,
                input: it.input,
                output: it.output,
                cache_read: it.cache_read,
                cache_write: it.cache_write,
                estimate: None,
                cost: None,
            }))
        },
    ),
    Spec("budget_check", "Whether so many more tokens fit", &[("tokens", COUNT)], |it| {
        let it: Fits = read(it)?;
        let check = budget::Command::Check { tokens: it.tokens };
        command(Command::Budget(budget::Args { command: Some(check) }))
    }),
    Spec(
        "decide",
        "Record a decision and why",
        &[
            ("question!", TEXT),
            ("choice!", TEXT),
            ("because", TEXT),
            ("alternatives", TEXTS),
            ("parent", COUNT),
        ],
        |it| {
            let it: Decide = read(it)?;
            command(Command::Decide(decide::Args {
                question: it.question,
                choice: it.choice,
                because: it.because,
                alternative: it.alternatives,
                parent: it.parent,
                branch: None,
            }))
        },
    ),
    Spec(
        "artifact",
        "Record a file that was created, modified or deleted",
        &[("path!", TEXT), ("change!", TEXT)],
        |it| {
            let it: Artifact = read(it)?;
            let add = artifact::Command::Add { path: it.path, change: choice(&it.change)?, phase: None };
            command(Command::Artifact(artifact::Args { command: Some(add) }))
        },
    ),
    Spec(
        "output",
        "Keep a result under a name; without content: read it",
        &[("name!", TEXT), ("content", TEXT), ("kind", TEXT)],
        |it| {
            let it: Output = read(it)?;
            let kind = it.kind.map(|name| choice(&name)).transpose()?.unwrap_or_default();
            let wanted = match it.content {
                // As it is: a text that begins with @ names no file here.
                Some(text) => output::Command::Set { name: it.name, content: TextSource::Inline(text), kind },
                None => output::Command::Get { name: it.name },
            };
            command(Command::Output(output::Args { command: Some(wanted) }))
        },
    ),
    Spec("metric", "Keep a number, true or false", &[("name!", TEXT), ("value!", "")], |it| {
        let it: Metric = read(it)?;
        let value = match it.value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let set = metric::Command::Set { name: it.name, value };
        command(Command::Metric(metric::Args { command: Some(set) }))
    }),
    Spec("milestone", "A milestone was reached", &[("name!", TEXT), ("details", TEXT)], |it| {
        let it: Milestone = read(it)?;
        command(Command::Milestone(mark::MilestoneArgs { name: it.name, details: it.details }))
    }),
    Spec("breakpoint", "Wait for the person here; only they let it go on", &[("name!", TEXT)], |it| {
        let wait = mark::BreakpointCommand::Wait { name: read::<Name>(it)?.name };
        command(Command::Breakpoint(mark::BreakpointArgs { command: Some(wait) }))
    }),
    Spec("note", "Add a note to the history", &[("text!", TEXT)], |it| {
        let text = read::<Words>(it)?.text;
        command(Command::Note(mark::NoteArgs { text, action: "note".to_owned() }))
    }),
    Spec("error", "Record an error", &[("message!", TEXT), ("kind", TEXT)], |it| {
        let it: Failure = read(it)?;
        command(Command::Error(mark::ErrorArgs { message: it.message, kind: it.kind }))
    }),
    Spec(
        "memory",
        "Record what was asked of a memory, and what it said",
        &[("query!", TEXT), ("result", TEXT), ("source", TEXT)],
        |it| {
            let it: Memory = read(it)?;
            let result = it.result.map(TextSource::Inline);
            let used = memory::Use { query: it.query, result, source: it.source };
            command(Command::Memory(memory::Args { command: Some(memory::Command::Query(used)) }))
        },
    ),
    Spec(
        "task",
        "Add a task (text), or mark one as done or dropped (its number)",
        &[("add", TEXT), ("done", COUNT), ("drop", COUNT)],
        |it| {
            let it: Task = read(it)?;
            let wanted = match (it.add, it.done, it.drop) {
                (Some(text), None, None) => task::Command::Add { text },
                (None, Some(id), None) => task::Command::Done { id },
                (None, None, Some(id)) => task::Command::Drop { id },
                _ => return Err("give one of add, done and drop".to_owned()),
            };
            command(Command::Task(task::Args { command: Some(wanted) }))
        },
    ),
    Spec("checkpoint", "Keep files and state as they are now", &[("name", TEXT), ("reason", TEXT)], |it| {
        let it: Checkpoint = read(it)?;
        let create = checkpoint::Command::Create { name: it.name, reason: it.reason };
        command(Command::Checkpoint(checkpoint::Args { command: Some(create) }))
    }),
    Spec(
        "diff",
        "What changed in the files since a checkpoint",
        &[("since", TEXT), ("until", TEXT), ("paths", TEXTS), ("stat", YES)],
        |it| {
            let it: Diff = read(it)?;
            command(Command::Diff(crate::commands::diff::DiffArgs {
                paths: it.paths,
                since: it.since,
                until: it.until,
                stat: it.stat,
            }))
        },
    ),
    Spec("restore", "Put files back to a checkpoint; the person is asked", &[("checkpoint!", TEXT)], |it| {
        let it: Restore = read(it)?;
        let restore = |flags: undo::RestoreFlags| {
            let restore = checkpoint::Command::Restore {
                name: it.checkpoint.clone(),
                paths: Vec::new(),
                files: true,
                state: false,
                flags,
            };
            Box::new(Command::Checkpoint(checkpoint::Args { command: Some(restore) }))
        };
        let (preview, apply) = (restore(only_look()), restore(without_question()));
        Ok(Wanted::GoBack { preview, apply, instead: format!("segno checkpoint restore {}", it.checkpoint) })
    }),
    Spec(
        "rollback",
        "Put plan and files back to a checkpoint; the person is asked",
        &[("checkpoint!", TEXT)],
        |it| {
            let it: Restore = read(it)?;
            let roll = |flags| {
                let to = vec![it.checkpoint.clone()];
                Box::new(Command::Rollback(undo::RollbackArgs { to, git: false, flags }))
            };
            let (preview, apply) = (roll(only_look()), roll(without_question()));
            Ok(Wanted::GoBack { preview, apply, instead: format!("segno rollback {}", it.checkpoint) })
        },
    ),
    Spec(
        "run",
        "Have an agent (claude, codex, gemini, opencode) do something in a durable session of its own",
        &[("prompt!", TEXT), ("agent", TEXT), ("model", TEXT), ("budget", COUNT)],
        |it| {
            let it: Run = read(it)?;
            let mut words = vec!["run".to_owned(), "--detach".to_owned(), format!("--prompt={}", it.prompt)];
            words.extend(it.agent.map(|name| format!("--agent={name}")));
            words.extend(it.model.map(|name| format!("--model={name}")));
            words.extend(it.budget.map(|tokens| format!("--budget={tokens}")));
            Ok(Wanted::Start(words))
        },
    ),
    Spec("pause-loop", "Pause the loop of this project", &[("reason", TEXT)], |it| {
        Ok(Wanted::PauseLoop(read::<Reason>(it)?.reason))
    }),
    Spec("resume-loop", "Go on with the loop of this project", &[], |it| {
        read::<Nothing>(it)?;
        Ok(Wanted::ResumeLoop)
    }),
];

/// The list of tools, as it is sent.
pub(super) fn list() -> Vec<Tool> {
    let tool = |Spec(name, does, members, _): &Spec| {
        let mut properties = JsonObject::new();
        let mut required = Vec::new();
        for (member, kind) in *members {
            let name = member.trim_end_matches('!');
            if member.ends_with('!') {
                required.push(name);
            }
            let schema = match *kind {
                "" => json!({}),
                TEXTS => json!({ "type": TEXTS, "items": { "type": TEXT } }),
                kind => json!({ "type": kind }),
            };
            properties.insert(name.to_owned(), schema);
        }
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        Tool::new(*name, *does, schema)
    };
    TOOLS.iter().map(tool).collect()
}

/// What is wanted of a tool; none if there is no such tool.
pub(super) fn wanted(tool: &str, arguments: JsonObject) -> Option<Result<Wanted, String>> {
    let Spec(.., make) = TOOLS.iter().find(|Spec(name, ..)| *name == tool)?;
    Some(make(arguments))
}

/// Where a session stands.
pub(super) fn status(session: Option<SessionRef>) -> Command {
    let whole = show::Args { session: OneSession { id: session }, part: NO_PART, page: Page::default() };
    Command::Show(whole)
}

fn command(command: Command) -> Result<Wanted, String> {
    Ok(Wanted::Command(Box::new(command)))
}

fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments)).map_err(|why| format!("the arguments do not fit: {why}"))
}

/// One of the words that a flag of the command line takes.
fn choice<T: clap::ValueEnum>(name: &str) -> Result<T, String> {
    T::from_str(name, true).map_err(|_| {
        let known = T::value_variants().iter().filter_map(clap::ValueEnum::to_possible_value);
        let known: Vec<String> = known.map(|value| value.get_name().to_owned()).collect();
        format!("{name} is none of {}", known.join(", "))
    })
}

fn one(session: Option<String>) -> Result<OneSession, String> {
    Ok(OneSession { id: session.map(|it| it.parse()).transpose()? })
}

fn only_look() -> undo::RestoreFlags {
    undo::RestoreFlags { dry_run: true, yes: false }
}

fn without_question() -> undo::RestoreFlags {
    undo::RestoreFlags { dry_run: false, yes: true }
}

/// No list, but where the session stands.
const NO_PART: show::Part = show::Part {
    conversation: false,
    tools: false,
    history: false,
    decisions: false,
    files: false,
    errors: false,
    memory: false,
    artifacts: false,
    outputs: false,
    tasks: false,
    checkpoints: false,
    milestones: false,
    verifications: false,
    runs: false,
};

fn part(name: &str) -> Result<show::Part, String> {
    let mut part = NO_PART;
    let wanted = match name {
        "conversation" => &mut part.conversation,
        "tools" => &mut part.tools,
        "history" => &mut part.history,
        "decisions" => &mut part.decisions,
        "files" => &mut part.files,
        "errors" => &mut part.errors,
        "memory" => &mut part.memory,
        "artifacts" => &mut part.artifacts,
        "outputs" => &mut part.outputs,
        "tasks" => &mut part.tasks,
        "checkpoints" => &mut part.checkpoints,
        "milestones" => &mut part.milestones,
        "verifications" => &mut part.verifications,
        "runs" => &mut part.runs,
        _ => return Err(format!("there is no list {name}; the tool's description names them")),
    };
    *wanted = true;
    Ok(part)
}
