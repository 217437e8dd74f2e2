//! From flags to what a loop is told.

use std::time::Duration;

use segno_engine::core::looping::Context as Conversation;
use segno_engine::core::looping::EvidencePlan;
use segno_engine::core::looping::GateRule;
use segno_engine::core::looping::LimitPolicy;
use segno_engine::core::looping::LoopCaps;
use segno_engine::core::looping::LoopPlan;
use segno_engine::core::looping::OwnWindows;
use segno_engine::core::looping::PhasePlan;
use segno_engine::core::looping::QueuePlan;
use segno_engine::looping::NamedWorkflow;

use super::args::BeginArgs;
use super::args::ContextWish;
use crate::commands::args::TextSource;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;

/// Largest text of what is to be done.
const LARGEST: u64 = 1024 * 1024;

/// The plan that these flags ask for.
pub(super) fn plan(context: &Context, args: &BeginArgs) -> Outcome<LoopPlan> {
    let queue = super::queue::plan(context, args)?;
    let work = work(args, queue.as_ref())?;
    let found = workflow(context, &args.workflow)?;
    check_flags(args, &found)?;
    let mut phases = found.phases(&measured(args), args.optional_phases);
    if queue.is_some() && args.workflow == "simple" && args.until.is_empty() && !args.no_signal {
        // The tracker is asked whether an item is closed; the agent says when it is through.
        phases.iter_mut().for_each(|phase| phase.gate = GateRule::Signal);
    } else if phases.iter().all(|phase| phase.evidence.is_empty()) && args.workflow == "simple" {
        return Err(CommandError::usage("nothing measures the work, so the loop could never be done")
            .hint("--until 'cargo test'   names a command that succeeds when it is done"));
    }
    let given = |phase: &PhasePlan| phase.evidence.iter().any(|one| args.until.contains(&one.command));
    if !args.until.is_empty() && !phases.iter().any(given) {
        return Err(CommandError::usage(format!(
            "no phase of {} is measured, so --until would never run",
            found.name
        ))
        .hint(format!("segno workflow show {}", found.name)));
    }
    for phase in &mut phases {
        apply(phase, args, &found.workflow.limits.agents);
    }
    let file = found.workflow.limits.own();
    let plan = LoopPlan {
        workflow: found.name.clone(),
        phases,
        work: work.into(),
        caps: caps(args),
        limits: limits(context, args, found.workflow.limits.policy()),
        own: OwnWindows {
            calls_per_hour: args.calls_per_hour.or(file.calls_per_hour),
            tokens_per_hour: args.tokens_per_hour.or(file.tokens_per_hour),
        },
        signal: !args.no_signal,
        queue,
        ..LoopPlan::default()
    };
    plan.check().map_err(segno_engine::Error::Refused)?;
    Ok(plan)
}

/// Says which patterns protect nothing as things are: it may be a slip, or a file that is still to be made.
pub(in crate::commands) fn warn_of_protected<'a>(
    context: &Context,
    patterns: impl IntoIterator<Item = &'a String>,
) {
    for pattern in segno_engine::looping::unmatched(patterns, &context.project.root) {
        let what = format!("no file matches {pattern} now, so nothing is protected by it yet");
        let hint = "* and ? stand within a name, ** for any number of directories, all else for itself";
        context.printer.warn_with(what, &[hint.to_owned()]);
    }
}

/// A workflow of this name. One of the project that runs commands is refused until somebody trusts the project.
pub(in crate::commands) fn workflow(context: &Context, name: &str) -> Outcome<NamedWorkflow> {
    let found = NamedWorkflow::find(name, &context.project.root).map_err(bad_workflow)?;
    let trusted = context.loaded()?.trust.is_trusted();
    found.check_trust(trusted).map_err(bad_workflow)?;
    // Also one without commands decides what ends a loop, and may stand in the place of one that is built in.
    if let Some(path) = found.path.as_ref().filter(|_| !trusted) {
        let why = format!("{} is the project's, and this project is not trusted", path.display());
        return Err(CommandError::config("workflow", why).hint("look at it, then: segno trust"));
    }
    Ok(found)
}

/// What is wrong with a workflow.
pub(in crate::commands) fn bad_workflow(why: segno_engine::looping::WorkflowError) -> CommandError {
    use segno_engine::looping::WorkflowError as E;
    let hint = match &why {
        E::Unknown { meant: Some(near), .. } => {
            format!("segno workflow show {near}   (or: segno workflow list)")
        }
        E::Unknown { .. } => "segno workflow list".to_owned(),
        E::Untrusted { .. } => "look at it, then: segno trust".to_owned(),
        E::Unreadable { .. } | E::Wrong { .. } => "segno workflow check".to_owned(),
    };
    CommandError::config("workflow", why.to_string()).hint(hint)
}

/// Refuses flags that would change nothing.
fn check_flags(args: &BeginArgs, found: &NamedWorkflow) -> Outcome {
    if args.optional_phases && !found.workflow.phases.iter().any(|phase| phase.optional) {
        return Err(CommandError::usage(format!("{} has no optional phases", found.name))
            .hint(format!("segno workflow show {}   (prp has one)", found.name)));
    }
    if args.back && args.agent.len() < 2 {
        return Err(CommandError::usage("--back needs another agent that takes over in the meantime")
            .hint("--agent claude,codex --back"));
    }
    Ok(())
}

/// What is to be done, in words.
fn work(args: &BeginArgs, queue: Option<&QueuePlan>) -> Outcome<String> {
    let text = match (&args.prompt, &args.file) {
        (Some(prompt), _) => prompt.clone(),
        (None, Some(path)) if path.as_os_str() == "-" => TextSource::Stdin.read(LARGEST)?,
        (None, Some(path)) => TextSource::File(path.clone()).read(LARGEST)?,
        (None, None) if queue.is_some() => queue.map(super::queue::default_prompt).unwrap_or_default(),
        (None, None) => {
            return Err(CommandError::usage("what is to be done?")
                .hint("segno loop --prompt \"make the tests pass\" --until 'cargo test'   (or: segno loop TASK.md …)"));
        }
    };
    if text.trim().is_empty() {
        return Err(CommandError::usage("the text that says what is to be done is empty"));
    }
    Ok(if queue.is_some() { super::queue::with_names(&text) } else { text })
}

/// The commands that somebody gave for this loop.
fn measured(args: &BeginArgs) -> Vec<EvidencePlan> {
    let named = |(index, command): (usize, &String)| EvidencePlan {
        name: if index == 0 { "until".to_owned() } else { format!("until {}", index + 1) },
        command: command.clone(),
        seconds: args.until_timeout.map_or(EvidencePlan::default().seconds, |time| time.as_secs().max(1)),
        ..EvidencePlan::default()
    };
    args.until.iter().enumerate().map(named).collect()
}

fn apply(phase: &mut PhasePlan, args: &BeginArgs, agents: &[String]) {
    if phase.agent.is_none() {
        phase.agent = args.agent.first().or(agents.first()).cloned();
    }
    // A phase that judges takes another model than the one that wrote what is judged.
    if phase.model.is_none() && !phase.on_reject.as_ref().is_some_and(|reject| reject.other_model) {
        phase.model.clone_from(&args.model);
    }
    match args.context {
        Some(ContextWish::Same) => phase.context = Conversation::Same,
        Some(ContextWish::Fresh) => phase.context = Conversation::Fresh,
        None => {}
    }
    phase.protect.extend(args.protect.iter().cloned());
}

/// Iterations of a queue in all, unless somebody says.
const QUEUE_ITERATIONS: u64 = 500;

fn caps(args: &BeginArgs) -> LoopCaps {
    let usual = LoopCaps::default();
    LoopCaps {
        // With a queue, each item has the usual number. An agent that makes a new item of each that it closes must not go on
        // for ever; whoever waits for new items wants just that.
        iterations: args.max_iterations.or(match (&args.work, args.watch) {
            (None, _) => usual.iterations,
            (Some(_), false) => Some(QUEUE_ITERATIONS),
            (Some(_), true) => None,
        }),
        seconds: args.max_time.map(|time: Duration| time.as_secs()),
        iteration_tokens: args.iteration_budget,
        iteration_micros: args.iteration_cost,
        ..usual
    }
}

/// What the workflow says of limits, and what the flags say instead.
fn limits(context: &Context, args: &BeginArgs, file: LimitPolicy) -> LimitPolicy {
    LimitPolicy {
        wait: !args.no_wait,
        hours: args.hours.or(file.hours),
        zone_minutes: zone_minutes(context),
        leave_percent: args.leave.or(file.leave_percent),
        stop_at_percent: args.stop_at.or(file.stop_at_percent),
        agents: match &args.agent[..] {
            [] => file.agents,
            // Who names one wants that one.
            [_] => Vec::new(),
            several => several.to_vec(),
        },
        back: args.back || file.back,
        max_windows: file.max_windows,
    }
}

/// How far this machine's clock is ahead of UTC, in minutes.
fn zone_minutes(context: &Context) -> i16 {
    let now = jiff::Timestamp::now();
    i16::try_from(context.zone().to_offset(now).seconds() / 60).unwrap_or(0)
}
