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

use super::confirm;
use super::members::*;
use crate::cli::Command;
use crate::commands::answer;
use crate::commands::args::OneSession;
use crate::commands::args::Page;
use crate::commands::args::SessionRef;
use crate::commands::args::TextSource;
use crate::commands::artifact;
use crate::commands::budget;
use crate::commands::checkpoint;
use crate::commands::decide;
use crate::commands::lifecycle;
use crate::commands::looping;
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
    /// Something that only a person decides: done if they confirm what `ask` makes of the preview's document. `instead` is
    /// what they can type.
    Confirm { preview: Box<Command>, apply: Then, ask: Asks, instead: String },
    /// Start an agent in the background: the words of the command line.
    Start(Vec<String>),
    /// Pause the loop of this project, for this reason.
    PauseLoop(Option<String>),
    /// Go on with the loop of this project, in the background.
    ResumeLoop,
}

/// What is done when a person has confirmed it.
pub(super) enum Then {
    /// A command of the program.
    Do(Box<Command>),
    /// Work in the background: the words of the command line.
    Start(Vec<String>),
}

/// What a person is asked, made of the document of a preview.
pub(super) type Asks = Box<dyn Fn(&Value) -> String>;

type Make = fn(JsonObject) -> Result<Wanted, String>;

/// A tool: its name, what it does, its members, and what it comes to.
struct Spec(&'static str, &'static str, &'static [Member], Make);

/// A tool whose members are those of a type, which reads them too.
macro_rules! tool {
    ($name:literal, $does:expr, $members:ident, |$it:ident| $wanted:expr $(,)?) => {
        Spec($name, $does, $members::LIST, |arguments| {
            let $it: $members = read(arguments)?;
            $wanted
        })
    };
}

const TOOLS: &[Spec] = &[
    tool!("new", "Begin a durable session for this work", New, |it| {
        Ok(Wanted::New(Box::new(Command::New(it.into()))))
    }),
    tool!("load", "Work with this session from now on", Named, |it| {
        Ok(Wanted::Load(it.session.parse()?))
    }),
    tool!("list", "List sessions of this project, open ones first", ListWanted, |it| {
        let status = it.status.map(|name| choice(&name)).transpose()?;
        let (everywhere, limit) = (it.everywhere.unwrap_or_default(), it.limit.or(Some(20)));
        command(Command::Ls(ls::Args {
            tag: Vec::new(),
            topic: None,
            pinned: false,
            archived: false,
            status: status.into_iter().collect(),
            all: false,
            open: false,
            everywhere,
            project_filter: None,
            since: None,
            limit,
        }))
    }),
    tool!("status", "Where the session stands", MaybeNamed, |it| {
        Ok(Wanted::Command(Box::new(status(it.session.map(|it| it.parse()).transpose()?))))
    }),
    tool!("brief", "What to know before going on: done, in doubt, changed, open", MaybeNamed, |it| {
        let args = resume::Args { session: one(it.session)?, show_brief: true, ..Default::default() };
        command(Command::Resume(args))
    }),
    tool!(
        "show",
        "Read one list of the session: conversation, tools, history, decisions, files, errors, memory, artifacts, \
         outputs, tasks, checkpoints, milestones, verifications or runs",
        Show,
        |it| {
            let page = Page { limit: it.limit.or(Some(30)), after: it.after, full: false };
            command(Command::Show(show::Args { session: one(it.session)?, part: part(&it.part)?, page }))
        },
    ),
    tool!("pause", "Pause the session; another context window can resume it", Reason, |it| {
        let act = Act::Pause { reason: PauseReason::Asked, details: it.reason.as_deref().map(Into::into) };
        let args = lifecycle::PauseArgs { session: OneSession::default(), reason: it.reason };
        Ok(Wanted::End(Box::new(act), Box::new(Command::Pause(args))))
    }),
    tool!("resume", "Go on with a session that waits", MaybeNamed, |it| {
        let args = resume::Args { session: one(it.session)?, no_run: true, yes: true, ..Default::default() };
        Ok(Wanted::Resume(Box::new(Command::Resume(args))))
    }),
    tool!("complete", "Finish the session for good", Summary, |it| {
        let act = Act::Complete { summary: it.summary.as_deref().map(Into::into) };
        let args = lifecycle::CompleteArgs { session: OneSession::default(), summary: it.summary };
        Ok(Wanted::End(Box::new(act), Box::new(Command::Complete(args))))
    }),
    tool!("abort", "Give the session up; its record stays", Reason, |it| {
        let act = Act::Abort { reason: it.reason.as_deref().map(Into::into) };
        let args =
            lifecycle::AbortArgs { session: OneSession::default(), reason: it.reason, remove_files: false };
        Ok(Wanted::End(Box::new(act), Box::new(Command::Abort(args))))
    }),
    tool!("phase", "Go on to a phase; verify: pass, fail or skip for the one that is left", Phase, |it| {
        command(Command::Phase(phase::Args {
            name: Some(it.name),
            step: it.step,
            of: it.of,
            verify: it.verify.map(|name| choice(&name)).transpose()?,
            check: "phase".to_owned(),
            details: it.details,
        }))
    }),
    tool!("progress", "How far the work is, in per cent", Percent, |it| {
        if it.percent > 100 {
            return Err("percent is from 0 to 100".to_owned());
        }
        command(Command::Progress(phase::ProgressArgs { percent: it.percent }))
    }),
    tool!("intent", "What should be true when the work is done", Words, |it| {
        command(Command::Intent(phase::IntentArgs { text: it.text }))
    }),
    tool!("tokens", "Record tokens that were used", Tokens, |it| {
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
    }),
    tool!("budget_check", "Whether so many more tokens fit", Fits, |it| {
        let check = budget::Command::Check { tokens: it.tokens };
        command(Command::Budget(budget::Args { command: Some(check) }))
    }),
    tool!("decide", "Record a decision and why", Decide, |it| {
        command(Command::Decide(decide::Args {
            question: it.question,
            choice: it.choice,
            because: it.because,
            alternative: it.alternatives.unwrap_or_default(),
            parent: it.parent,
            branch: None,
        }))
    }),
    tool!("artifact", "Record a file that was created, modified or deleted", Artifact, |it| {
        let add = artifact::Command::Add { path: it.path, change: choice(&it.change)?, phase: None };
        command(Command::Artifact(artifact::Args { command: Some(add) }))
    }),
    tool!("output", "Keep a result under a name; without content: read it", Output, |it| {
        let kind = it.kind.map(|name| choice(&name)).transpose()?.unwrap_or_default();
        let wanted = match it.content {
            // As it is: a text that begins with @ names no file here.
            Some(text) => output::Command::Set { name: it.name, content: TextSource::Inline(text), kind },
            None => output::Command::Get { name: it.name },
        };
        command(Command::Output(output::Args { command: Some(wanted) }))
    }),
    tool!("metric", "Keep a number, true or false", Metric, |it| {
        let value = match it.value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let set = metric::Command::Set { name: it.name, value };
        command(Command::Metric(metric::Args { command: Some(set) }))
    }),
    tool!("milestone", "A milestone was reached", Milestone, |it| {
        command(Command::Milestone(mark::MilestoneArgs { name: it.name, details: it.details }))
    }),
    tool!("breakpoint", "Wait for the person here; only they let it go on", Name, |it| {
        let wait = mark::BreakpointCommand::Wait { name: it.name };
        command(Command::Breakpoint(mark::BreakpointArgs { command: Some(wait) }))
    }),
    tool!(
        "answer",
        "What waits for the person; with question and answer: ask them to confirm it",
        Answer,
        |it| {
            let answer = |id: &str, said: Vec<String>| {
                let (id, confirmed_through) = (Some(id.to_owned()), Some("segno mcp"));
                let through = None;
                Box::new(Command::Answer(answer::Args { id, answer: said, confirmed_through, through }))
            };
            match (it.question, it.answer) {
                (None, None) => command(Command::Answer(answer::Args::default())),
                (Some(id), None) => Ok(Wanted::Command(answer(&id, Vec::new()))),
                (Some(id), Some(said)) => {
                    let (preview, apply) = (answer(&id, Vec::new()), answer(&id, vec![said.clone()]));
                    let instead = format!("segno answer {id}");
                    let ask = Box::new(move |question: &Value| confirm::answer(question, &said));
                    Ok(Wanted::Confirm { preview, apply: Then::Do(apply), ask, instead })
                }
                (None, Some(_)) => Err("which question?".to_owned()),
            }
        }
    ),
    tool!("note", "Add a note to the history", Words, |it| {
        let text = it.text;
        command(Command::Note(mark::NoteArgs { text, action: "note".to_owned() }))
    }),
    tool!("error", "Record an error", Failure, |it| {
        command(Command::Error(mark::ErrorArgs { message: it.message, kind: it.kind }))
    }),
    tool!("memory", "Record what was asked of a memory, and what it said", Memory, |it| {
        let result = it.result.map(TextSource::Inline);
        let used = memory::Use { query: it.query, result, source: it.source };
        command(Command::Memory(memory::Args { command: Some(memory::Command::Query(used)) }))
    }),
    tool!("task", "Add a task (text), or mark one as done or dropped (its number)", Task, |it| {
        let wanted = match (it.add, it.done, it.drop) {
            (Some(text), None, None) => task::Command::Add { text },
            (None, Some(id), None) => task::Command::Done { id },
            (None, None, Some(id)) => task::Command::Drop { id },
            _ => return Err("give one of add, done and drop".to_owned()),
        };
        command(Command::Task(task::Args { command: Some(wanted) }))
    }),
    tool!("checkpoint", "Keep files and state as they are now", Checkpoint, |it| {
        let create = checkpoint::Command::Create { name: it.name, reason: it.reason };
        command(Command::Checkpoint(checkpoint::Args::of(create)))
    }),
    tool!("diff", "What changed in the files since a checkpoint", Diff, |it| {
        command(Command::Diff(crate::commands::diff::DiffArgs {
            paths: it.paths.unwrap_or_default(),
            since: it.since,
            until: it.until,
            stat: it.stat.unwrap_or_default(),
        }))
    }),
    tool!("restore", "Put files back to a checkpoint; the person is asked", Restore, |it| {
        let restore = |flags: undo::RestoreFlags| {
            let restore = checkpoint::Command::Restore {
                name: it.checkpoint.clone(),
                paths: Vec::new(),
                files: true,
                state: false,
                flags,
            };
            Box::new(Command::Checkpoint(checkpoint::Args::of(restore)))
        };
        let (preview, apply) = (restore(only_look()), restore(without_question()));
        let instead = format!("segno checkpoint restore {}", it.checkpoint);
        Ok(Wanted::Confirm { preview, apply: Then::Do(apply), ask: Box::new(confirm::files), instead })
    }),
    tool!("rollback", "Put plan and files back to a checkpoint; the person is asked", Restore, |it| {
        let roll = |flags| {
            let to = vec![it.checkpoint.clone()];
            Box::new(Command::Rollback(undo::RollbackArgs { to, git: false, flags }))
        };
        let (preview, apply) = (roll(only_look()), roll(without_question()));
        let instead = format!("segno rollback {}", it.checkpoint);
        Ok(Wanted::Confirm { preview, apply: Then::Do(apply), ask: Box::new(confirm::files), instead })
    }),
    tool!(
        "run",
        "Have an agent (claude, codex, gemini, opencode) do something in a durable session of its own",
        Run,
        |it| {
            let mut words = vec!["run".to_owned(), "--detach".to_owned(), format!("--prompt={}", it.prompt)];
            words.extend(it.agent.map(|name| format!("--agent={name}")));
            words.extend(it.model.map(|name| format!("--model={name}")));
            words.extend(it.budget.map(|tokens| format!("--budget={tokens}")));
            Ok(Wanted::Start(words))
        },
    ),
    tool!(
        "loop",
        "Have an agent try again and again, in a durable session of its own, until these commands succeed",
        Loop,
        |it| {
            if it.prompt.is_none() == it.file.is_none() {
                return Err("say what is to be done: prompt or file, one of them".to_owned());
            }
            if it.until.is_empty() {
                return Err("name at least one command that measures the work: until".to_owned());
            }
            Ok(loop_wanted(it))
        },
    ),
    tool!("pause-loop", "Pause the loop of this project", Reason, |it| Ok(Wanted::PauseLoop(it.reason))),
    tool!("resume-loop", "Go on with the loop of this project", Nothing, |_nothing| {
        Ok(Wanted::ResumeLoop)
    }),
];

/// The list of tools, as it is sent.
pub(super) fn list() -> Vec<Tool> {
    let tool = |Spec(name, does, members, _): &Spec| {
        let mut properties = JsonObject::new();
        let mut required = Vec::new();
        for member in *members {
            if member.needed {
                required.push(member.name);
            }
            properties.insert(member.name.to_owned(), member.schema());
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

/// A loop in the background. Its commands run without the agent's own rules of permission: so a person sees them first.
fn loop_wanted(it: Loop) -> Wanted {
    let mut flags = Vec::new();
    flags.extend(it.prompt.iter().map(|text| format!("--prompt={text}")));
    flags.extend(it.until.iter().map(|command| format!("--until={command}")));
    flags.extend(it.agent.iter().map(|name| format!("--agent={name}")));
    flags.extend(it.workflow.iter().map(|name| format!("--workflow={name}")));
    flags.extend(it.max_iterations.map(|most| format!("--max-iterations={most}")));
    flags.extend(it.budget.map(|tokens| format!("--budget={tokens}")));
    // A name that begins with a dash is a file too.
    let file = it.file.map(|file| if file.starts_with('-') { format!("./{file}") } else { file });
    flags.extend(file.clone());
    let typed: Vec<String> = flags.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
    let begin = looping::BeginArgs {
        file: file.map(Into::into),
        prompt: it.prompt,
        until: it.until,
        agent: it.agent.into_iter().collect(),
        workflow: it.workflow.unwrap_or_else(|| "simple".to_owned()),
        max_iterations: it.max_iterations,
        budget: it.budget,
        dry_run: true,
        ..Default::default()
    };
    let preview = Command::Loop(looping::Args { command: None, begin: Box::new(begin) });
    let words = ["loop", "--detach"].into_iter().map(ToOwned::to_owned).chain(flags).collect();
    Wanted::Confirm {
        preview: Box::new(preview),
        apply: Then::Start(words),
        ask: Box::new(confirm::looping),
        instead: format!("segno loop {}", typed.join(" ")),
    }
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
