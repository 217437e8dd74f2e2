//! What an event says, in words: one short line for a person.
//!
//! Every kind has its line here, so a new kind of event does not compile until somebody has said it in words.

use std::collections::HashMap;
use std::time::Duration;

use segno_engine::core::call::subject;
use segno_engine::core::event::{CallEnd, Channel, Unit, UnknownEvent};
use segno_engine::core::{Event, Text as Content, Timestamp};
use serde_json::Value;

use super::style::Meaning;
use super::units;

/// How many open calls are remembered, to tell how long they took.
const CALLS: usize = 10_000;

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
    /// Calls that have begun: the tool, what it was about, and when.
    open: HashMap<String, (String, String, Timestamp)>,
}

impl Teller {
    /// One event in words.
    pub fn tell(&mut self, at: Timestamp, event: &Event) -> Line {
        match event {
            Event::ToolStarted(e) => {
                let what = subject(&e.input);
                if self.open.len() < CALLS {
                    self.open.entry(e.call.clone()).or_insert_with(|| (e.tool.clone(), what.clone(), at));
                }
                let note = if e.write_ahead { "begins, told before it ran" } else { "begins" };
                Line { note: note.to_owned(), ..line(&e.tool, what) }
            }
            Event::ToolEnded(e) => {
                let (tool, what, took) = match self.open.remove(&e.call) {
                    Some((tool, what, begun)) => (tool, what, Some(at.micros_since(begun))),
                    None => (e.tool.clone().unwrap_or_else(|| "call".to_owned()), e.call.clone(), None),
                };
                let (end, meaning) = match e.end {
                    CallEnd::Completed => ("completed", Meaning::Plain),
                    CallEnd::Failed => ("failed", Meaning::Waiting),
                    CallEnd::Denied => ("denied", Meaning::Lost),
                    CallEnd::InDoubt => ("in doubt: nobody knows whether it ended", Meaning::Waiting),
                };
                let mut note = vec![end.to_owned()];
                note.extend(took.map(|took| units::duration(Duration::from_micros(took))));
                note.extend(e.output.as_ref().map(|output| units::bytes(output.bytes())));
                note.extend(e.evidence.as_ref().map(|evidence| format!("known from {evidence}")));
                Line { note: note.join("   "), meaning, ..line(&tool, what) }
            }
            other => tell(other),
        }
    }
}

fn line(word: &str, what: impl Into<String>) -> Line {
    Line { word: word.to_owned(), what: what.into(), note: String::new(), meaning: Meaning::Plain }
}

fn noted(word: &str, what: impl Into<String>, note: impl Into<String>) -> Line {
    Line { note: note.into(), ..line(word, what) }
}

fn colored(meaning: Meaning, line: Line) -> Line {
    Line { meaning, ..line }
}

/// The first line of a text that has something on it.
fn first(text: &Content) -> String {
    text.excerpt().lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

fn maybe(text: Option<&Content>) -> String {
    text.map(first).unwrap_or_default()
}

fn size(text: &Content) -> String {
    units::bytes(text.bytes())
}

fn amount(unit: Unit, amount: u64) -> String {
    match unit {
        Unit::Tokens => units::tokens(amount),
        Unit::Cost => units::dollars(amount),
    }
}

/// Parts of a line that are not empty.
fn parts(parts: &[String]) -> String {
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
fn tell(event: &Event) -> Line {
    match event {
        Event::SessionCreated(e) => {
            noted("created", e.topic.clone().unwrap_or_default(), e.phase.clone().unwrap_or_default())
        }
        Event::SessionImported(e) => line("imported", format!("from {}", e.source)),
        Event::JournalImported(e) => line("imported", format!("with its journal, from {}", e.source)),
        Event::ItemsImported(e) => {
            line("imported", format!("{} of {}", units::things(e.items.len() as u64, "row"), e.list.as_str()))
        }
        Event::SessionPaused(e) => {
            let what = parts(&[e.reason.as_str().to_owned(), maybe(e.details.as_ref())]);
            colored(Meaning::Waiting, line("paused", what))
        }
        Event::SessionResumed(e) => line("resumed", maybe(e.details.as_ref())),
        Event::SessionInterrupted(e) => {
            let what = parts(&[e.reason.as_str().to_owned(), maybe(e.details.as_ref())]);
            colored(Meaning::Lost, line("interrupted", what))
        }
        Event::SessionHalted(e) => colored(Meaning::Lost, line("halted", first(&e.reason))),
        Event::SessionCompleted(e) => colored(Meaning::Done, line("completed", maybe(e.summary.as_ref()))),
        Event::SessionAborted(e) => colored(Meaning::Lost, line("aborted", maybe(e.reason.as_ref()))),
        Event::SessionFailed(e) => colored(Meaning::Lost, line("failed", maybe(e.reason.as_ref()))),
        Event::DriverAttached(e) => {
            colored(Meaning::Dim, line("driver", format!("{} (pid {}) drives", e.holder.what, e.holder.pid)))
        }
        Event::DriverDetached(_) => colored(Meaning::Dim, line("driver", "has let go")),
        Event::RequestMade(e) => {
            let asked = format!("{:?}", e.request).to_lowercase();
            noted("asked", format!("its driver to {asked}"), maybe(e.details.as_ref()))
        }
        Event::RequestAnswered(e) => {
            let what = if e.obeyed { "the driver did what it was asked" } else { "the driver did not do it" };
            noted("answered", what, maybe(e.details.as_ref()))
        }
        Event::LateRecorded(e) => colored(
            Meaning::Waiting,
            line("late", format!("{}, from a driver that had been replaced", e.kind.replace('_', " "))),
        ),
        Event::TopicSet(e) => line("topic", e.topic.clone()),
        Event::IntentSet(e) => line("intent", first(&e.intent)),
        Event::ProjectSet(e) => line("project", e.project.path.clone()),
        Event::GitBranchSet(e) => line("branch", e.branch.clone().unwrap_or_else(|| "none".to_owned())),
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
        Event::WorkflowStateSet(_) => line("workflow", "its state was set"),
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
        Event::CostRecorded(e) => colored(Meaning::Dim, line("cost", units::dollars(e.micros))),
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
        Event::AgentStateSet(e) => line("agent", format!("state of {} was set", e.agent)),
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
        Event::CheckpointCreated(e) => {
            noted("checkpoint", e.name.clone(), e.reason.as_str().replace('_', " "))
        }
        Event::CheckpointReady(e) => {
            let files = e.snapshot.as_ref().map_or_else(
                || "without files".to_owned(),
                |snapshot| {
                    let changed = units::things(snapshot.changed, "file");
                    format!("{changed} changed of {}", units::count(snapshot.files))
                },
            );
            colored(Meaning::Dim, noted("checkpoint", format!("number {} is ready", e.ordinal), files))
        }
        Event::CheckpointFailed(e) => {
            colored(Meaning::Lost, noted("checkpoint", format!("number {} failed", e.ordinal), first(&e.why)))
        }
        Event::CheckpointPinned(e) => {
            let what = if e.pinned { "pinned" } else { "no longer pinned" };
            line("checkpoint", format!("number {} {what}", e.ordinal))
        }
        Event::CheckpointDropped(e) => {
            noted("checkpoint", format!("files of number {} are no longer kept", e.ordinal), e.why.clone())
        }
        Event::CheckpointsInvalidated(e) => {
            line("checkpoint", format!("numbers {} to {} invalidated by a rollback", e.after + 1, e.up_to))
        }
        Event::FilesRestored(e) => noted(
            e.kind.as_str(),
            format!("files as in checkpoint number {}", e.to),
            format!("{} written, {} removed, {} left alone", e.written, e.removed, e.kept),
        ),
        Event::StateRestored(e) => line("rollback", format!("state as in checkpoint number {}", e.to)),
        Event::RunStarted(e) => {
            let version = e.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
            let prompt = e.prompt.as_ref().map_or_else(|| e.command.join(" "), first);
            noted("run", format!("{}{version} starts: {prompt}", e.agent), format!("pid {}", e.pid))
        }
        Event::RunNamed(e) => colored(
            Meaning::Dim,
            noted("run", format!("conversation {}", e.native_id), e.model.clone().unwrap_or_default()),
        ),
        Event::RunAdopted(_) => line("run", "goes on under another driver"),
        Event::RunEnded(e) => {
            let meaning = if e.outcome == "completed" { Meaning::Done } else { Meaning::Waiting };
            let exit = match (e.exit_code, e.signal) {
                (_, Some(signal)) => format!("signal {signal}"),
                (Some(0) | None, None) => String::new(),
                (Some(code), None) => format!("exit {code}"),
            };
            let cost = e.cost_micros.map(units::dollars).unwrap_or_default();
            let took = units::duration(Duration::from_millis(e.duration_ms));
            let what = parts(&[e.outcome.replace('_', " "), first(&e.reason)]);
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
        Event::TurnCompleted(e) => colored(Meaning::Dim, line("turn", format!("{} ended", e.turn))),
        Event::Reported(e) => colored(Meaning::Dim, line("reported", reported(&e.what, &e.body))),
        Event::RecoveryChosen(e) => {
            let how = if e.automatic { "by itself" } else { "" };
            noted("resume", format!("from {}", e.target.as_deref().unwrap_or(e.recovery.as_str())), how)
        }
        Event::ResumeAttempted(e) => {
            noted("resume", format!("attempt {} of {}", e.attempt, e.of), first(&e.why))
        }
        Event::Unknown(UnknownEvent { kind, version, .. }) => {
            colored(Meaning::Dim, line("unknown", format!("{kind} version {version}, of a newer segno")))
        }
    }
}

/// What an agent reported about itself: its name, and the plain values beside it.
fn reported(what: &str, body: &Value) -> String {
    let values = body.as_object().into_iter().flatten().filter_map(|(name, value)| match value {
        Value::String(text) if !text.is_empty() => Some(format!("{name} {text}")),
        Value::Number(number) => Some(format!("{name} {number}")),
        Value::Bool(true) => Some(name.clone()),
        _ => None,
    });
    let values: Vec<String> = values.take(4).collect();
    parts(&[what.replace('_', " "), values.join(", ")])
}
