//! What an event says, in words: one short line for a person.
//!
//! Every kind has its line here, so a new kind of event does not compile until somebody has said it in words.

use std::collections::HashMap;
use std::time::Duration;

use segno_engine::core::Event;
use segno_engine::core::Text as Content;
use segno_engine::core::Timestamp;
use segno_engine::core::call::subject;
use segno_engine::core::event::CallEnd;
use segno_engine::core::event::Channel;
use segno_engine::core::event::CheckpointReason;
use segno_engine::core::event::Forgotten;
use segno_engine::core::event::TextsForgotten;
use segno_engine::core::event::ToolEnded;
use segno_engine::core::event::ToolStarted;
use segno_engine::core::event::Unit;
use segno_engine::core::event::UnknownEvent;

use super::loop_words;
use super::reported_words;
use super::reported_words::or;
use super::sanitize;
use super::style::Meaning;
use super::units;

/// How many calls and checkpoints are remembered, to tell later events of them in words.
const REMEMBERED: usize = 10_000;

/// One event in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What kind of thing happened, in a word or two.
    pub word: String,
    /// What exactly.
    pub what: String,
    /// Sizes, times and outcomes, for the end of the line.
    pub note: String,
    /// What it means.
    pub meaning: Meaning,
}

/// Tells events in the order of the journal.
#[derive(Debug, Default)]
pub struct Teller {
    /// The project with a slash at its end: paths in it are shown without it.
    root: String,
    calls: HashMap<String, Call>,
    /// The ids of checkpoints by their numbers.
    checkpoints: HashMap<u64, String>,
}

/// A call that has begun.
#[derive(Debug)]
struct Call {
    tool: String,
    what: String,
    begun: Timestamp,
    ended: bool,
}

impl Teller {
    /// One for the events of a session that works in this directory.
    pub fn new(root: &str) -> Self {
        Self { root: format!("{}/", root.trim_end_matches('/')), ..Self::default() }
    }

    /// One event in words.
    pub fn tell(&mut self, at: Timestamp, event: &Event) -> Line {
        match event {
            Event::ToolStarted(e) => self.call_started(at, e),
            Event::ToolEnded(e) => self.call_ended(at, e),
            Event::CheckpointCreated(e) => {
                if self.checkpoints.len() < REMEMBERED {
                    self.checkpoints.insert(e.ordinal, e.id.to_string());
                }
                let why = checkpoint_reason(e.reason);
                // A name that somebody gave says more than where it comes from.
                let why = if e.reason == CheckpointReason::Risky { e.name.clone() } else { why.to_owned() };
                noted("checkpoint", e.id.to_string(), why)
            }
            other => tell(other, &|ordinal| {
                self.checkpoints.get(&ordinal).cloned().unwrap_or_else(|| format!("number {ordinal}"))
            }),
        }
    }

    /// A hook and the agent's output may both tell of a call: whoever comes second tells nothing new.
    fn call_started(&mut self, at: Timestamp, e: &ToolStarted) -> Line {
        let told = if e.write_ahead { "told by a hook before it ran" } else { "told in its output" };
        if let Some(call) = self.calls.get(&e.call) {
            let told = format!("begins, also {told}");
            return colored(Meaning::Dim, noted(&call.tool, call.what.clone(), told));
        }
        let what = subject(&e.input);
        let what = what.strip_prefix(&self.root).filter(|_| self.root.len() > 1).unwrap_or(&what).to_owned();
        if self.calls.len() >= REMEMBERED {
            self.calls.retain(|_, call| !call.ended);
        }
        if self.calls.len() < REMEMBERED {
            let call = Call { tool: e.tool.clone(), what: what.clone(), begun: at, ended: false };
            self.calls.insert(e.call.clone(), call);
        }
        noted(&e.tool, what, if e.write_ahead { format!("begins, {told}") } else { "begins".to_owned() })
    }

    fn call_ended(&mut self, at: Timestamp, e: &ToolEnded) -> Line {
        let call = self.calls.get_mut(&e.call);
        let again = call.as_ref().is_some_and(|call| call.ended);
        let (tool, what, took) = match call {
            Some(call) => {
                call.ended = true;
                (call.tool.clone(), call.what.clone(), Some(at.micros_since(call.begun)))
            }
            None => (e.tool.clone().unwrap_or_else(|| "call".to_owned()), e.call.clone(), None),
        };
        let (end, meaning) = match e.end {
            CallEnd::Completed => ("completed", Meaning::Plain),
            CallEnd::Failed => ("failed", Meaning::Waiting),
            CallEnd::Denied => ("denied", Meaning::Lost),
            CallEnd::InDoubt => ("in doubt: nobody knows whether it ended", Meaning::Waiting),
        };
        let size = e.output.as_ref().map(|output| units::bytes(output.bytes()));
        let found = e.evidence.as_ref().map(|evidence| format!("known from {evidence}"));
        if again && found.is_none() {
            let told = parts(&[format!("{end}, told again"), size.unwrap_or_default()]);
            return colored(Meaning::Dim, noted(&tool, what, told));
        }
        let mut note = vec![end.to_owned()];
        note.extend(took.map(|took| units::duration(Duration::from_micros(took))));
        note.extend(size);
        note.extend(found);
        Line { note: note.join("   "), meaning, ..line(&tool, what) }
    }
}

/// The same from the word that is recorded; one that is not known stays as it is.
pub fn recorded_reason(word: &str) -> String {
    let known = serde_json::from_value(serde_json::Value::String(word.to_owned()));
    known.map_or_else(|_| sanitize::line(word).into_owned(), |reason| checkpoint_reason(reason).to_owned())
}

/// Why a checkpoint was made, in words.
pub fn checkpoint_reason(reason: CheckpointReason) -> &'static str {
    match reason {
        CheckpointReason::Asked => "asked for",
        CheckpointReason::PhaseComplete => "a phase is complete",
        CheckpointReason::Milestone => "at a milestone",
        CheckpointReason::AgentSwitch => "another agent takes over",
        CheckpointReason::Breakpoint => "at a breakpoint",
        CheckpointReason::Final => "the work is done",
        CheckpointReason::RunStart => "before the run",
        CheckpointReason::Turn => "before the turn",
        CheckpointReason::RunEnd => "after the run",
        CheckpointReason::ToolCount => "after so many calls",
        CheckpointReason::Risky => "before a risky call",
        CheckpointReason::Interrupt => "the work was interrupted",
        CheckpointReason::BeforeRestore => "before files are put back",
    }
}

pub(super) fn line(word: &str, what: impl Into<String>) -> Line {
    Line { word: word.to_owned(), what: what.into(), note: String::new(), meaning: Meaning::Plain }
}

pub(super) fn noted(word: &str, what: impl Into<String>, note: impl Into<String>) -> Line {
    Line { note: note.into(), ..line(word, what) }
}

pub(super) fn colored(meaning: Meaning, line: Line) -> Line {
    Line { meaning, ..line }
}

/// The first line of a text that has something on it.
fn first(text: &Content) -> String {
    text.excerpt().lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// The last line of a text that has something on it.
fn last(text: &Content) -> String {
    let mut lines = text.excerpt().lines().map(str::trim);
    lines.rfind(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

fn maybe(text: Option<&Content>) -> String {
    text.map(first).unwrap_or_default()
}

fn size(text: &Content) -> String {
    units::bytes(text.bytes())
}

pub(crate) fn amount(unit: Unit, amount: u64) -> String {
    match unit {
        Unit::Tokens => units::tokens(amount),
        Unit::Cost => units::dollars(amount),
    }
}

/// Parts of a line that are not empty.
pub(super) fn parts(parts: &[String]) -> String {
    parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("   ")
}

fn step(step: Option<u32>, of: Option<u32>) -> String {
    match (step, of) {
        (Some(step), Some(of)) => format!("step {step} of {of}"),
        (Some(step), None) => format!("step {step}"),
        _ => String::new(),
    }
}

#[expect(clippy::too_many_lines, reason = "one line for each kind of event; splitting them helps nobody")]
fn tell(event: &Event, checkpoint: &dyn Fn(u64) -> String) -> Line {
    match event {
        Event::SessionCreated(e) => {
            noted("created", e.topic.clone().unwrap_or_default(), e.phase.clone().unwrap_or_default())
        }
        Event::SessionImported(e) => line("imported", format!("from {}", e.source)),
        Event::JournalImported(e) => line("imported", format!("with its journal, from {}", e.source)),
        Event::TextsForgotten(e) => line("forgotten", forgotten(e)),
        Event::ItemsImported(e) => {
            line("imported", format!("{} of {}", units::things(e.items.len() as u64, "row"), e.list.as_str()))
        }
        Event::SessionPaused(e) => {
            let what = parts(&[e.reason.as_str().replace('_', " "), maybe(e.details.as_ref())]);
            colored(Meaning::Waiting, line("paused", what))
        }
        Event::SessionResumed(e) => line("resumed", or(maybe(e.details.as_ref()), "the session")),
        Event::SessionInterrupted(e) => {
            let what = parts(&[e.reason.as_str().replace('_', " "), maybe(e.details.as_ref())]);
            colored(Meaning::Lost, line("interrupted", what))
        }
        Event::SessionHalted(e) => colored(Meaning::Lost, line("halted", first(&e.reason))),
        Event::SessionCompleted(e) => {
            colored(Meaning::Done, line("completed", or(maybe(e.summary.as_ref()), "the session")))
        }
        Event::SessionAborted(e) => {
            colored(Meaning::Lost, line("aborted", or(maybe(e.reason.as_ref()), "the session")))
        }
        Event::SessionFailed(e) => {
            colored(Meaning::Lost, line("failed", or(maybe(e.reason.as_ref()), "the session")))
        }
        Event::DriverAttached(e) => {
            let who = format!("{} drives the session", e.holder.what);
            colored(Meaning::Dim, noted("driver", who, format!("pid {}", e.holder.pid)))
        }
        Event::DriverDetached(_) => colored(Meaning::Dim, line("driver", "nobody drives the session")),
        Event::RequestMade(e) => {
            let asked = e.request.as_str();
            noted("asked", format!("its driver to {asked}"), maybe(e.details.as_ref()))
        }
        Event::RequestAnswered(e) => {
            let what = if e.obeyed { "the driver did what it was asked" } else { "the driver did not do it" };
            noted("answered", what, maybe(e.details.as_ref()))
        }
        Event::QuestionAsked(e) => {
            let what = format!("{} {}", e.tool, first(&e.input));
            colored(Meaning::Waiting, noted("question", what, format!("segno answer {}", e.id)))
        }
        Event::QuestionAnswered(e) => {
            let word = if e.allow { "yes" } else { "no" };
            noted("answer", format!("{word}, by {}", e.by), maybe(e.details.as_ref()))
        }
        Event::QuestionClosed(e) => noted("question", e.why.clone(), e.id.clone()),
        Event::LateRecorded(e) => colored(
            Meaning::Waiting,
            line("late", format!("{}, from a driver that had been replaced", e.kind.replace('_', " "))),
        ),
        Event::TopicSet(e) => line("topic", e.topic.clone()),
        Event::SessionArranged(e) => {
            let plus = e.tags_added.iter().map(|tag| format!("#{tag}"));
            let minus = e.tags_removed.iter().map(|tag| format!("no #{tag}"));
            let pinned = e.pinned.map(|pinned| if pinned { "pinned" } else { "not pinned" }.to_owned());
            let archived = e.archived.map(|away| if away { "archived" } else { "not archived" }.to_owned());
            let topic = e.topic.iter().map(|topic| format!("called {topic}"));
            line(
                "order",
                topic.chain(plus).chain(minus).chain(pinned).chain(archived).collect::<Vec<_>>().join(", "),
            )
        }
        Event::IntentSet(e) => line("intent", first(&e.intent)),
        Event::ProjectSet(e) => line("project", e.project.path.clone()),
        Event::GitBranchSet(e) => line("git branch", e.branch.clone().unwrap_or_else(|| "none".to_owned())),
        Event::WorkflowSet(e) => noted("workflow", e.workflow.name.clone(), e.workflow.phases.join(", ")),
        Event::PhaseAdvanced(e) => {
            let from = e.from.as_ref().map_or(String::new(), |from| format!("{from} → "));
            noted("phase", format!("{from}{}", e.to), step(e.step, e.of))
        }
        Event::StepSet(e) => line("step", step(Some(e.step), e.of)),
        Event::IterationStarted(e) => line("iteration", e.iteration.to_string()),
        Event::AttemptStarted(e) => line("attempt", e.attempt.to_string()),
        Event::PhaseVerified(e) => noted(
            "verified",
            parts(&[e.phase.clone().unwrap_or_default(), e.check.clone(), e.verdict.as_str().to_owned()]),
            maybe(e.details.as_ref()),
        ),
        Event::WorkflowStateSet(_) => line("workflow", "its own state was stored"),
        Event::ProgressSet(e) => line("progress", format!("{} %", e.percent)),
        Event::TokensRecorded(e) => {
            let about = if e.estimated { "about " } else { "" };
            let cached = match e.tokens.cache_read {
                0 => String::new(),
                cached => format!("{} of them read from the cache", units::count(cached)),
            };
            colored(
                Meaning::Dim,
                noted("tokens", format!("{about}{}", units::tokens(e.tokens.total())), cached),
            )
        }
        Event::CostRecorded(e) => {
            let list =
                e.list.as_ref().map(|list| format!("by the list of {} for {}", list.as_of, list.model));
            colored(Meaning::Dim, noted("cost", units::dollars(e.micros), list.unwrap_or_default()))
        }
        Event::BudgetSet(e) => {
            let stops = if e.hard { "stops there" } else { "warns only" };
            noted("budget", amount(e.unit, e.total), stops)
        }
        Event::BudgetExtended(e) => line("budget", format!("extended by {}", amount(e.unit, e.added))),
        Event::BudgetWarned(e) => colored(
            Meaning::Waiting,
            line("budget", format!("runs low: {} of {}", amount(e.unit, e.used), amount(e.unit, e.total))),
        ),
        Event::BudgetExceeded(e) => colored(
            Meaning::Lost,
            line("budget", format!("used up: {} of {}", amount(e.unit, e.used), amount(e.unit, e.total))),
        ),
        Event::ArtifactRecorded(e) => noted("artifact", e.path.clone(), e.artifact_type.as_str()),
        Event::FileChanged(e) => noted("file", e.path.clone(), e.change.as_str()),
        Event::HistoryNoted(e) => {
            let note = e.details.as_ref().filter(|text| text.bytes() > 200).map(size).unwrap_or_default();
            noted(&e.action, maybe(e.details.as_ref()), note)
        }
        Event::OutputRecorded(e) => noted("output", e.name.clone(), size(&e.content)),
        Event::MetricSet(e) => line("metric", format!("{} {}", e.name, serde_json::json!(e.value))),
        Event::TaskAdded(e) => line("task", format!("{} added: {}", e.task, first(&e.text))),
        Event::TaskEnded(e) => {
            line("task", format!("{} {}", e.task, if e.done { "done" } else { "dropped" }))
        }
        Event::AgentSwitched(e) => {
            let from = e.from.as_ref().map_or(String::new(), |from| format!("{from} → "));
            line("agent", format!("{from}{}", e.to))
        }
        Event::AgentStateSet(e) => line("agent", format!("the state of {} was stored", e.agent)),
        Event::PositionSet(e) => {
            let line_number = e.line.map_or(String::new(), |line| format!(":{line}"));
            line("at", format!("{}{line_number}", e.file.clone().unwrap_or_default()))
        }
        Event::MilestoneReached(e) => noted("milestone", e.name.clone(), maybe(e.details.as_ref())),
        Event::BreakpointReached(e) => {
            colored(Meaning::Waiting, noted("breakpoint", e.name.clone(), maybe(e.details.as_ref())))
        }
        Event::BreakpointContinued(e) => {
            noted("breakpoint", format!("{} passed", e.name), maybe(e.details.as_ref()))
        }
        Event::DecisionMade(e) => {
            noted("decided", format!("{} {}", first(&e.question), first(&e.choice)), maybe(e.reason.as_ref()))
        }
        Event::BranchSwitched(e) => line("branch", format!("decisions go on in {}", e.branch)),
        Event::ToolStarted(e) => line(&e.tool, subject(&e.input)),
        Event::ToolEnded(e) => noted(e.tool.as_deref().unwrap_or("call"), e.call.clone(), e.end.as_str()),
        Event::MemoryUsed(e) => noted("memory", first(&e.query), e.source.clone().unwrap_or_default()),
        Event::CacheSet(e) => line("cache", format!("{} kept", e.key)),
        Event::CacheRemoved(e) => line("cache", format!("{} removed", e.key)),
        Event::ErrorRecorded(e) => colored(
            Meaning::Lost,
            noted("error", first(&e.message), e.error_kind.clone().unwrap_or_default()),
        ),
        // The teller knows more of these.
        Event::CheckpointCreated(e) => noted("checkpoint", e.id.to_string(), checkpoint_reason(e.reason)),
        Event::CheckpointReady(e) => {
            let files = e.snapshot.as_ref().map_or_else(
                || "without files".to_owned(),
                |snapshot| {
                    let files = units::things(snapshot.files, "file");
                    parts(&[
                        format!("{files}, {} changed", units::count(snapshot.changed)),
                        units::bytes(snapshot.bytes),
                    ])
                },
            );
            let ready = format!("{} is on disk", checkpoint(e.ordinal));
            colored(Meaning::Dim, noted("checkpoint", ready, files))
        }
        Event::CheckpointFailed(e) => {
            let failed = format!("{} has no files", checkpoint(e.ordinal));
            colored(Meaning::Lost, noted("checkpoint", failed, first(&e.why)))
        }
        Event::CheckpointPinned(e) => {
            let what = if e.pinned { "is kept for good" } else { "is no longer kept for good" };
            line("checkpoint", format!("{} {what}", checkpoint(e.ordinal)))
        }
        Event::CheckpointDropped(e) => {
            let dropped = format!("the files of {} are no longer kept", checkpoint(e.ordinal));
            noted("checkpoint", dropped, e.why.clone())
        }
        Event::CheckpointsInvalidated(e) => {
            let (from, to) = (checkpoint(e.after + 1), checkpoint(e.up_to));
            let which = if from == to { from } else { format!("{from} to {to}") };
            line("checkpoint", format!("{which} invalidated by a rollback"))
        }
        Event::FilesRestored(e) => noted(
            &e.kind.as_str().replace('_', " "),
            format!("files as in {}", checkpoint(e.to)),
            format!("{} written, {} removed, {} left alone", e.written, e.removed, e.kept),
        ),
        Event::StateRestored(e) => line("rollback", format!("state as in {}", checkpoint(e.to))),
        Event::RunStarted(e) => {
            let version = e.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
            let prompt = e.prompt.as_ref().map_or_else(|| e.command.join(" "), first);
            noted("run starts", format!("{}{version}: {prompt}", e.agent), format!("pid {}", e.pid))
        }
        Event::RunNamed(e) => colored(
            Meaning::Dim,
            noted("run", format!("conversation {}", e.native_id), e.model.clone().unwrap_or_default()),
        ),
        Event::RunAdopted(_) => line("run", "the agent lives on and is driven again"),
        Event::RunEnded(e) => {
            let meaning = if e.outcome == "completed" { Meaning::Done } else { Meaning::Waiting };
            let exit = match (e.exit_code, e.signal) {
                (_, Some(signal)) => format!("signal {signal}"),
                (Some(0) | None, None) => String::new(),
                (Some(code), None) => format!("exit {code}"),
            };
            let cost = e.cost_micros.map(units::dollars).unwrap_or_default();
            let took = units::duration(Duration::from_millis(e.duration_ms));
            let (outcome, reason) = (e.outcome.replace('_', " "), first(&e.reason));
            let stderr = e.stderr.as_ref().map(last).filter(|line| !line.is_empty() && *line != reason);
            let stderr = stderr.map_or_else(String::new, |line| format!("standard error: {line}"));
            let reason = if reason == outcome { String::new() } else { reason };
            let what = parts(&[outcome, reason, stderr]);
            colored(meaning, noted("run ended", what, parts(&[took, exit, cost])))
        }
        Event::Said(e) => {
            let (word, meaning) = match e.channel {
                Channel::Text => ("says", Meaning::Plain),
                Channel::Thinking => ("thinks", Meaning::Dim),
                Channel::Input => ("is told", Meaning::Plain),
            };
            colored(meaning, noted(word, first(&e.text), size(&e.text)))
        }
        Event::TurnCompleted(e) => {
            let number = if e.turn > 0 { format!("turn {}", e.turn) } else { "the agent's turn".to_owned() };
            let took = e.duration_ms.map(|took| units::duration(Duration::from_millis(took)));
            let steps = e.steps.map(|steps| units::things(steps, "model request"));
            let note = parts(&[steps.unwrap_or_default(), took.unwrap_or_default()]);
            colored(Meaning::Dim, noted("turn ended", number, note))
        }
        Event::Reported(e) => reported_words::reported(&e.what, &e.body),
        Event::RecoveryChosen(e) => {
            let how = if e.automatic { "chosen by itself" } else { "" };
            noted("resume", format!("from {}", e.target.as_deref().unwrap_or(e.recovery.as_str())), how)
        }
        Event::ResumeAttempted(e) => {
            noted("resume", format!("attempt {} of {}", e.attempt, e.of), first(&e.why))
        }
        Event::LoopStarted(e) => loop_words::started(e),
        Event::LoopBaselineTaken(e) => loop_words::baseline(e),
        Event::IterationEnded(e) => loop_words::iteration_ended(e),
        Event::BreakerChanged(e) => loop_words::breaker(e),
        Event::GateMeasured(e) => loop_words::measured(e),
        Event::GateAccepted(e) => loop_words::accepted(e),
        Event::GatePassed(e) => loop_words::passed(e),
        Event::LoopParked(e) => loop_words::parked(e),
        Event::LoopWoken(e) => loop_words::woken(e),
        Event::OperatorNoted(e) => noted("note", first(&e.text), "for the next prompt"),
        Event::PhaseSkipped(e) => loop_words::skipped(e),
        Event::HandedOver(e) => loop_words::handed_over(e),
        Event::ItemTaken(e) => loop_words::item_taken(e),
        Event::ItemEnded(e) => loop_words::item_ended(e),
        Event::QueueListed(e) => loop_words::queue_listed(e),
        Event::Unknown(UnknownEvent { kind, version, .. }) => {
            colored(Meaning::Dim, line("unknown", format!("{kind} version {version}, of a newer segno")))
        }
    }
}

/// What was forgotten, and how much of it.
fn forgotten(event: &TextsForgotten) -> String {
    let what = match event.what {
        Forgotten::Secret => "a secret",
        Forgotten::Texts => "texts",
    };
    // Beside those that held it, events that name a snapshot without it.
    format!("{what}: {} written anew", units::things(event.events.len() as u64, "event"))
}
