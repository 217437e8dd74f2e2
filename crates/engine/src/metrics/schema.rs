//! What is counted and what it is called: one schema for all agents.

use serde::Deserialize;
use serde::Serialize;

/// How a number behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It goes up and down.
    Gauge,
    /// It only grows.
    Counter,
    /// How many were at most so large: the last label, `le`, says how large; `sum` is all of them together.
    Histogram,
}

/// What is known of a number beside its value.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Family {
    /// Its name for Prometheus.
    pub name: &'static str,
    /// Its name for OpenTelemetry.
    pub otel: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// Its unit, as OpenTelemetry writes units.
    pub unit: &'static str,
    /// It is counted in so many parts of its unit.
    pub parts: u64,
    /// Its labels, in order.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

/// Up to how long runs are counted together, in seconds.
pub(super) const RUN_SECONDS: [u64; 8] = [10, 30, 60, 300, 900, 3_600, 14_400, 43_200];

macro_rules! families {
    ($($name:ident { $prometheus:literal, $otel:literal, $kind:ident, $unit:literal / $parts:literal, [$($label:literal),*], $help:literal })*) => {
        /// A number that is exported.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Name {
            $(#[doc = $help] $name,)*
        }

        impl Name {
            /// Every one, in the order in which they are shown.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// What is known of it.
            pub fn family(self) -> &'static Family {
                match self {
                    $(Self::$name => &Family {
                        name: $prometheus,
                        otel: $otel,
                        kind: Kind::$kind,
                        unit: $unit,
                        parts: $parts,
                        labels: &[$($label),*],
                        help: $help,
                    },)*
                }
            }
        }
    };
}

families! {
    Sessions { "segno_sessions", "segno.sessions", Gauge, "{session}" / 1, ["project", "agent", "status", "need"], "Sessions by where they stand, and whom they wait for" }
    Running { "segno_sessions_driven", "segno.sessions.driven", Gauge, "{session}" / 1, ["project", "agent"], "Sessions that somebody drives now" }
    OverBudget { "segno_sessions_over_budget", "segno.sessions.over_budget", Gauge, "{session}" / 1, ["project", "agent"], "Open sessions beyond a budget of theirs" }
    Breakers { "segno_breakers_open", "segno.breakers.open", Gauge, "{session}" / 1, ["project", "agent"], "Sessions whose breaker is open" }
    Questions { "segno_questions_waiting", "segno.questions.waiting", Gauge, "{question}" / 1, ["project", "agent"], "Questions that wait for the answer of a person" }
    OpenCalls { "segno_calls_open", "segno.calls.open", Gauge, "{call}" / 1, ["project", "agent"], "Tool calls that have begun and not ended" }
    Doubts { "segno_calls_in_doubt", "segno.calls.in_doubt", Gauge, "{call}" / 1, ["project", "agent"], "Tool calls that nobody knows the end of" }
    LimitUsed { "segno_limit_used_ratio", "segno.limit.used", Gauge, "1" / 1_000_000, ["agent", "window"], "How much of a window of the agent's plan is used, as it was told last; 1 is all" }
    LimitResets { "segno_limit_reset_timestamp_seconds", "segno.limit.reset", Gauge, "s" / 1, ["agent", "window"], "When that window opens again, in seconds since 1970" }
    LimitRefuses { "segno_limit_refuses", "segno.limit.refuses", Gauge, "1" / 1, ["agent", "window"], "Whether that window refuses work now" }
    Runs { "segno_runs_total", "segno.runs", Counter, "{run}" / 1, ["project", "agent", "model", "outcome"], "Agent processes that have ended, by how" }
    RunSeconds { "segno_run_duration_seconds", "gen_ai.invoke_agent.duration", Histogram, "s" / 1_000, ["project", "agent"], "How long agent processes ran" }
    Turns { "segno_turns_total", "segno.turns", Counter, "{turn}" / 1, ["project", "agent"], "Turns of agents, in their own counting" }
    Calls { "segno_calls_total", "segno.calls", Counter, "{call}" / 1, ["project", "agent", "outcome"], "Tool calls that have ended: completed, failed or denied" }
    Tokens { "segno_tokens_total", "segno.tokens", Counter, "{token}" / 1, ["project", "agent", "model", "type"], "Tokens: input, output, cache_read, cache_write, or other where nobody said which" }
    Cost { "segno_cost_dollars_total", "segno.cost", Counter, "USD" / 1_000_000, ["project", "agent", "model"], "What that cost, as the agent says, else by list prices" }
    Unpriced { "segno_tokens_unpriced_total", "segno.tokens.unpriced", Counter, "{token}" / 1, ["project", "agent", "model"], "Tokens whose price nobody knows" }
    Checkpoints { "segno_checkpoints_total", "segno.checkpoints", Counter, "{checkpoint}" / 1, ["project", "agent"], "Checkpoints that were made" }
    Restores { "segno_restores_total", "segno.restores", Counter, "{restore}" / 1, ["project", "agent"], "How often something was put back to a checkpoint" }
    Errors { "segno_errors_total", "segno.errors", Counter, "{error}" / 1, ["project", "agent"], "Errors that were recorded" }
    Events { "segno_events_total", "segno.events", Counter, "{event}" / 1, ["project", "agent"], "Events in the journals" }
}

/// What OpenTelemetry calls a label, by its conventions for generative AI where they have a name for it.
pub fn attribute(label: &str) -> &'static str {
    match label {
        "agent" => "gen_ai.agent.name",
        "model" => "gen_ai.response.model",
        "type" => "gen_ai.token.type",
        "project" => "segno.project",
        "status" => "segno.session.status",
        "need" => "segno.session.need",
        "outcome" => "segno.outcome",
        "window" => "segno.limit.window",
        _ => "segno.other",
    }
}

/// One number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Number {
    /// Which.
    pub name: Name,
    /// The values of its labels.
    pub labels: Vec<String>,
    /// Its value, in the parts of its family.
    pub value: u64,
}

impl Number {
    /// Its value in its unit.
    #[expect(clippy::cast_precision_loss, reason = "beyond 2^53 nobody counts one by one")]
    pub fn amount(&self) -> f64 {
        let is_count = self.labels.len() > self.name.family().labels.len()
            && self.labels.last().is_some_and(|le| le != SUM);
        self.value as f64 / if is_count { 1.0 } else { self.name.family().parts as f64 }
    }
}

/// The last label of a histogram's sum.
pub const SUM: &str = "sum";
/// The last label of how many there are in all.
pub const ALL: &str = "+Inf";
