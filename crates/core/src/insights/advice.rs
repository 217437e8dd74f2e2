//! What a person can do about a finding. Nothing here is done by itself: each is a sentence, and mostly a line to copy.

use super::Remedy;
use super::Suggestion;
use super::findings::Usual;
use super::findings::times;
use crate::budget::dollars;

fn make(kind: Remedy, text: impl Into<String>, line: Option<String>) -> Suggestion {
    Suggestion { kind, text: text.into(), line }
}

/// A line for AGENTS.md. What is quoted in it was recorded: it is one line, and no formatting of its own.
fn tell_agents(text: &str, line: String) -> Suggestion {
    make(Remedy::AgentsMd, text, Some(format!("- {line}")))
}

/// A text between backticks.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'"))
}

pub(super) fn error(kind: &str, message: &str) -> Option<Suggestion> {
    let command = |text: &str, line: &str| Some(make(Remedy::Command, text, Some(line.to_owned())));
    match kind {
        "authentication" | "billing" | "setup" => {
            command("The account or the setup is the trouble, not the work: look at it.", "segno doctor")
        }
        "limit" | "overloaded" => Some(limit()),
        "network" | "server" => command(
            "The provider or the network failed: let the agent be started again by itself.",
            "segno run --auto-resume",
        ),
        "context" => Some(make(
            Remedy::Setting,
            "The conversation grew too long: a loop can begin a new one, with a brief, before that.",
            Some("context = { auto = 60 }".to_owned()),
        )),
        "budget" => {
            Some(make(Remedy::Budget, "The agent's own cap stopped it: raise it, or do less at once.", None))
        }
        _ => Some(tell_agents(
            "Tell agents what to do about it.",
            format!("This error comes up here: {}. When it does: (say what helps).", code(message)),
        )),
    }
}

pub(super) fn denial(rule: &str, is_no: bool) -> Suggestion {
    if is_no {
        return tell_agents(
            "It was refused by a person, may destroy something, or is no single command: tell agents not to try.",
            format!("Do not run {}. Instead: (say what is allowed).", code(rule)),
        );
    }
    let text = "If it should be allowed, add the rule to run.allow in your configuration (for runs with --permissions ask or deny), or to the agent's own settings.";
    make(Remedy::AllowRule, text, Some(format!("allow = [{}]", quoted(rule))))
}

pub(super) fn question(rule: &str, yes: u64, no: u64) -> Option<Suggestion> {
    match (yes, no) {
        (0, 0) => Some(make(
            Remedy::Setting,
            "Nobody answered in time: let yourself be called, or wait longer (run.ask_seconds).",
            Some("segno config set notify.desktop true".to_owned()),
        )),
        (_, 0) => Some(make(
            Remedy::AllowRule,
            "It was allowed every time: add the rule to run.allow in your configuration.",
            Some(format!("allow = [{}]", quoted(rule))),
        )),
        (0, _) => Some(make(
            Remedy::DenyRule,
            "It was refused every time: add the rule to run.deny in your configuration.",
            Some(format!("deny = [{}]", quoted(rule))),
        )),
        _ => None,
    }
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(super) fn repeat(what: &str) -> Suggestion {
    tell_agents(
        "Tell agents to stop when nothing changes; in a loop the breaker does it.",
        format!(
            "If {} says the same twice, do not run it again: change something first, or ask.",
            code(what)
        ),
    )
}

pub(super) fn breaker() -> Suggestion {
    make(
        Remedy::Gate,
        "Measure smaller steps, so that progress is seen: a narrower evidence command, or more phases.",
        Some("segno loop --until 'COMMAND THAT TESTS ONE STEP'".to_owned()),
    )
}

pub(super) fn limit() -> Suggestion {
    make(
        Remedy::Command,
        "A loop waits for the window by itself and goes on; [limits] of a workflow hands over to another agent meanwhile.",
        Some("segno loop".to_owned()),
    )
}

pub(super) fn budget(unit: &str, usual: &Usual) -> Suggestion {
    let (flag, amount, words) = match unit {
        "money" => ("--cost", usual.micros, dollars(round_up(usual.micros))),
        _ => ("--budget", usual.tokens, round_up(usual.tokens).to_string()),
    };
    let text = match amount {
        0 => "Plan a larger one, or smaller pieces of work.".to_owned(),
        _ => format!(
            "Nine of ten of these sessions use no more than {words}: plan so much, or smaller pieces of work."
        ),
    };
    make(
        Remedy::Budget,
        text,
        (amount > 0).then(|| format!("segno run {flag} {}", words.trim_start_matches('$'))),
    )
}

/// Two digits, the rest zeros, no less than it was.
fn round_up(amount: u64) -> u64 {
    let step = 10_u64.saturating_pow(amount.max(1).ilog10().saturating_sub(1));
    amount.div_ceil(step).saturating_mul(step)
}

pub(super) fn crash(what: &str) -> Suggestion {
    match what {
        "run: timed out" => make(
            Remedy::Command,
            "Give it more time, or smaller pieces of work.",
            Some("segno run --timeout 2h".to_owned()),
        ),
        "run: max turns" => make(
            Remedy::Command,
            "Give it more turns, or smaller pieces of work.",
            Some("segno run --max-turns 80".to_owned()),
        ),
        "run: agent missing" => make(
            Remedy::Command,
            "The agent was not found: look at what is installed.",
            Some("segno doctor".to_owned()),
        ),
        _ => make(
            Remedy::Setting,
            "Let an agent that dies be started again by itself.",
            Some("segno config set resume.auto true".to_owned()),
        ),
    }
}

pub(super) fn failing_call(what: &str, failed: u64, of: u64) -> Suggestion {
    tell_agents(
        "Tell agents how it is done here.",
        format!("{} failed {} of {of} times here. What works: (say it).", code(what), failed),
    )
}

pub(super) fn file(path: &str, edits: u64, turns: u64) -> Suggestion {
    tell_agents(
        "Tell agents what hangs on it and how it is tested, or split it.",
        format!(
            "{} was edited {} in {turns} turns. Read all of it first; afterwards run: (its tests).",
            code(path),
            times(edits)
        ),
    )
}

pub(super) fn phase(phase: &str, held_up: Option<(&str, u64)>) -> Suggestion {
    let text = match held_up {
        Some((condition, count)) => format!(
            "The condition {} of its gate did not hold in {count} iterations: measure it in smaller steps, or say in the prompt of {phase} how to reach it.",
            code(condition)
        ),
        None => format!("Split {phase} into smaller phases, each with something that is measured."),
    };
    make(Remedy::Gate, text, Some("segno gate".to_owned()))
}

pub(super) fn resume(what: &str) -> Suggestion {
    match what {
        "the run ended: limit" | "paused again: limit reached" => limit(),
        "the run ended: timed out" | "paused again: timed out" => crash("run: timed out"),
        "the run ended: agent missing" => crash("run: agent missing"),
        _ => make(
            Remedy::Command,
            "Go on in a new conversation, with a brief of what was done.",
            Some("segno resume --from fresh".to_owned()),
        ),
    }
}

pub(super) fn checkpoint() -> Suggestion {
    make(
        Remedy::Command,
        "Let agents be recorded by hooks, which make a checkpoint before each prompt, or make one by hand.",
        Some("segno init".to_owned()),
    )
}

pub(super) fn dear(usual: &Usual) -> Suggestion {
    let usual = budget("money", usual);
    Suggestion { text: format!("A cap stops a run in time. {}", usual.text), ..usual }
}

pub(super) fn bad_ends() -> Suggestion {
    make(
        Remedy::Budget,
        "Cap single runs, so that one that goes wrong costs less.",
        Some("segno run --run-cost 2".to_owned()),
    )
}
