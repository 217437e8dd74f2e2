//! All that a loop was told. It is recorded whole when the loop starts, so a loop that is killed goes on by the same rules.

use serde::Deserialize;
use serde::Serialize;

use super::queue_plan::QueuePlan;
use super::state::HourWindow;
use super::thresholds::Thresholds;
use crate::limits;
use crate::refusal::Refusal;
use crate::text::Text;

/// How many iterations a loop may take if nobody says otherwise.
pub const DEFAULT_ITERATIONS: u64 = 50;

/// What a loop is to do, and by which rules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopPlan {
    /// The name of the workflow, such as `prp`.
    pub workflow: String,
    /// The phases in order; at least one.
    pub phases: Vec<PhasePlan>,
    /// What is to be done, in the user's words; every iteration is told it.
    #[serde(default)]
    pub work: Text,
    /// What the loop may use.
    #[serde(default)]
    pub caps: LoopCaps,
    /// What is done when an agent's account is at a limit.
    #[serde(default)]
    pub limits: LimitPolicy,
    /// Limits of our own, per hour.
    #[serde(default)]
    pub own: OwnWindows,
    /// Whether a phase ends only when the agent also says so explicitly (the second gate).
    #[serde(default)]
    pub signal: bool,
    /// Where work items come from, if there is a queue.
    #[serde(default)]
    pub queue: Option<QueuePlan>,
    /// The hour of our own limits as whoever hands this plan on left it.
    #[serde(default, skip_serializing_if = "is_new_hour")]
    pub hour: HourWindow,
    /// Who is told of what happens, such as `bell`, `desktop` or the name of a hook.
    #[serde(default)]
    pub notify: Vec<String>,
}

fn is_new_hour(hour: &HourWindow) -> bool {
    *hour == HourWindow::default()
}

/// What a loop may use. What is not said is not limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopCaps {
    /// Iterations of all phases together.
    pub iterations: Option<u64>,
    /// Seconds since the start, without the time it was parked.
    pub seconds: Option<u64>,
    /// Tokens in one iteration.
    pub iteration_tokens: Option<u64>,
    /// Millionths of a dollar in one iteration.
    pub iteration_micros: Option<u64>,
    /// Tokens in one day, of all sessions that share the cap.
    pub day_tokens: Option<u64>,
    /// Millionths of a dollar in one day, of all sessions that share the cap.
    pub day_micros: Option<u64>,
}

impl Default for LoopCaps {
    fn default() -> Self {
        Self {
            iterations: Some(DEFAULT_ITERATIONS),
            seconds: None,
            iteration_tokens: None,
            iteration_micros: None,
            day_tokens: None,
            day_micros: None,
        }
    }
}

/// What is done when an agent's account is at a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitPolicy {
    /// Whether the loop waits for the limit to end by itself.
    pub wait: bool,
    /// How many windows in a row are waited for before a person is asked.
    pub max_windows: u32,
    /// The hours in which the loop may work, as minutes of the user's day: from, to. The end may lie on the next day.
    pub hours: Option<(u16, u16)>,
    /// Minutes that the user's clock is ahead of UTC, for `hours`.
    pub zone_minutes: i16,
    /// How many per cent of the longest window (the week) are left for other work.
    pub leave_percent: Option<u8>,
    /// At how many per cent of any window the loop stops before the wall.
    pub stop_at_percent: Option<u8>,
    /// The agents that take over from each other instead of waiting, in order.
    pub agents: Vec<String>,
    /// Whether the first agent takes over again when its window is open.
    pub back: bool,
}

impl Default for LimitPolicy {
    fn default() -> Self {
        Self {
            wait: true,
            max_windows: 3,
            hours: None,
            zone_minutes: 0,
            leave_percent: None,
            stop_at_percent: None,
            agents: Vec::new(),
            back: false,
        }
    }
}

/// Limits of our own, per hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnWindows {
    /// Iterations that may begin in an hour.
    pub calls_per_hour: Option<u64>,
    /// Tokens that may be used in an hour.
    pub tokens_per_hour: Option<u64>,
}

/// One phase of a loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhasePlan {
    /// Its name.
    pub name: String,
    /// What the agent is told in it, beside the work itself.
    pub prompt: Text,
    /// The agent that works in it, if it is another than the loop's.
    pub agent: Option<String>,
    /// The model, if it is another than the agent's own choice.
    pub model: Option<String>,
    /// Whether iterations share a conversation.
    pub context: Context,
    /// When the phase is done.
    pub gate: GateRule,
    /// The commands that measure it.
    pub evidence: Vec<EvidencePlan>,
    /// Files that nobody may change in it, as patterns such as `tests/**`; a change blocks its gate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
    /// When its breaker opens.
    pub thresholds: Thresholds,
    /// Iterations that it may take.
    pub max_iterations: Option<u64>,
    /// Seconds that it may take, without the time the loop was parked.
    pub max_seconds: Option<u64>,
    /// Commands that are run when it begins.
    pub on_start: Vec<String>,
    /// Commands that are run when it is done.
    pub on_complete: Vec<String>,
    /// Commands that are run when the loop stops in it without being done.
    pub on_error: Vec<String>,
    /// Whether somebody looks at it before the next one begins.
    pub breakpoint: bool,
    /// Where work goes back to when it is rejected here.
    pub on_reject: Option<OnReject>,
    /// Whether the workflow can do without it.
    pub optional: bool,
}

/// Whether the iterations of a phase share a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// One conversation for all of them.
    Same,
    /// A new one for each, with a brief.
    Fresh,
    /// The same until the context is this full, then a new one.
    Auto {
        /// In per cent.
        percent: u8,
    },
}

impl Default for Context {
    fn default() -> Self {
        Self::Auto { percent: 60 }
    }
}

/// Where work goes back to when a phase rejects it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OnReject {
    /// The earlier phase.
    pub to: String,
    /// How often, before a person is asked.
    pub most: u32,
    /// Whether that phase then works with the other model.
    pub other_model: bool,
}

/// A command that measures a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvidencePlan {
    /// What it is called in conditions.
    pub name: String,
    /// The command, as a shell takes it.
    pub command: String,
    /// How many seconds it may take.
    pub seconds: u64,
    /// What is read from it.
    pub reads: Reads,
    /// The file that it writes its report to, from the project's root on; else its output is read.
    pub report: Option<String>,
}

impl Default for EvidencePlan {
    fn default() -> Self {
        Self {
            name: String::new(),
            command: String::new(),
            seconds: 600,
            reads: Reads::default(),
            report: None,
        }
    }
}

/// What is read from an evidence command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// Test results if it reports some, and its exit status.
    #[default]
    Tests,
    /// Only its exit status.
    Exit,
    /// Lines such as `name=12`, each a measured number, and its exit status.
    Metrics,
}

/// When a phase is done: the first gate. All values are measured, none is quoted from the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateRule {
    /// New tests are there and fail; old ones are as before.
    Red {
        /// How many new tests there must be.
        criteria: u64,
    },
    /// All tests pass, several times in a row.
    Green {
        /// How many times.
        runs: u32,
    },
    /// All tests pass, and the agent is through or has had its iterations.
    Refactor {
        /// How many.
        iterations: u64,
    },
    /// Documents are there.
    Document {
        /// How many.
        docs: u64,
        /// Whether one must be a record of a decision.
        adr: bool,
    },
    /// The review approves, and nothing that is measured contradicts it.
    Qa,
    /// Every evidence command succeeds; there is at least one, and reported tests pass.
    #[default]
    Until,
    /// Measured numbers are where they should be.
    Metrics(Vec<MetricRule>),
    /// Nothing is measured: the explicit signal alone decides.
    Signal,
}

/// Where a measured number should be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricRule {
    /// Its name.
    pub name: String,
    /// It is this or more.
    pub at_least: Option<f64>,
    /// It is this or less.
    pub at_most: Option<f64>,
    /// It is exactly this.
    pub equals: Option<f64>,
}

impl LoopPlan {
    /// The phase of this name.
    pub fn phase(&self, name: &str) -> Option<&PhasePlan> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// The phase after this one.
    pub fn after(&self, name: &str) -> Option<&PhasePlan> {
        let at = self.phases.iter().position(|phase| phase.name == name)?;
        self.phases.get(at + 1)
    }

    /// The phase before this one.
    pub fn before(&self, name: &str) -> Option<&PhasePlan> {
        let at = self.phases.iter().position(|phase| phase.name == name)?;
        self.phases.get(at.checked_sub(1)?)
    }

    /// The names of the phases in order.
    pub fn phase_names(&self) -> Vec<String> {
        self.phases.iter().map(|phase| phase.name.clone()).collect()
    }

    /// Whether it can be kept and followed.
    pub fn check(&self) -> Result<(), Refusal> {
        limits::name("workflow", &self.workflow)?;
        if self.phases.is_empty() {
            return Err(Refusal::bad("workflow", "it has no phases"));
        }
        if self.phases.len() > limits::LOOP_PHASES {
            return Err(Refusal::TooMany { what: "phases of a loop", limit: limits::LOOP_PHASES });
        }
        for (index, phase) in self.phases.iter().enumerate() {
            phase.check()?;
            let earlier = self.phases.get(..index).unwrap_or_default();
            if earlier.iter().any(|other| other.name == phase.name) {
                return Err(Refusal::bad("workflow", format!("it lists phase {} twice", phase.name)));
            }
            if let Some(reject) = &phase.on_reject
                && !earlier.iter().any(|other| other.name == reject.to)
            {
                return Err(Refusal::bad(
                    "workflow",
                    format!("no phase {} before {}", reject.to, phase.name),
                ));
            }
        }
        self.limits.check()?;
        self.queue.as_ref().map_or(Ok(()), QueuePlan::check)?;
        let bytes = self.kept_bytes();
        if bytes > limits::LOOP_PLAN {
            let why = format!("{bytes} bytes of it would be kept, more than {}", limits::LOOP_PLAN);
            return Err(Refusal::bad("plan", why));
        }
        Ok(())
    }

    /// How much of it is kept in the state: a long text is set aside when it is recorded.
    fn kept_bytes(&self) -> usize {
        let mut bare = self.clone();
        let mut kept = 0;
        let prompts = bare.phases.iter_mut().map(|phase| &mut phase.prompt);
        for text in prompts.chain([&mut bare.work]) {
            let bytes = usize::try_from(text.bytes()).unwrap_or(usize::MAX);
            kept += bytes.min(limits::LOOP_PROMPT);
            *text = Text::default();
        }
        kept + serde_json::to_string(&bare).map_or(0, |json| json.len())
    }
}

/// Whether a pattern can mean files of a project. `*` and `?` stand within a name, `**` for any number of directories, and
/// all else for itself: a bracket that is not closed is a slip, and would protect nothing.
pub fn check_pattern(pattern: &str) -> Result<(), Refusal> {
    const WHAT: &str = "pattern of protected files";
    limits::name(WHAT, pattern)?;
    if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
        return Err(Refusal::bad(WHAT, format!("{pattern} is not in the project")));
    }
    let unclosed = |open, close| pattern.matches(open).count() > pattern.matches(close).count();
    if let Some(open) = [('[', ']'), ('{', '}')].into_iter().find(|(open, close)| unclosed(*open, *close)) {
        return Err(Refusal::bad(WHAT, format!("{pattern} has a {} that is not closed", open.0)));
    }
    Ok(())
}

impl LimitPolicy {
    fn check(&self) -> Result<(), Refusal> {
        if let Some((from, to)) = self.hours
            && (from >= 1_440 || to > 1_440 || from == to)
        {
            return Err(Refusal::bad("hours", "they are minutes of a day, and not the same"));
        }
        for percent in [self.leave_percent, self.stop_at_percent].into_iter().flatten() {
            if percent == 0 || percent > 100 {
                return Err(Refusal::bad("percentage", format!("{percent} is not between 1 and 100")));
            }
        }
        self.agents.iter().try_for_each(|agent| limits::name("agent", agent))
    }
}

impl PhasePlan {
    fn check(&self) -> Result<(), Refusal> {
        limits::name("phase", &self.name)?;
        limits::optional_name("agent", self.agent.as_deref())?;
        limits::optional_name("model", self.model.as_deref())?;
        if self.thresholds.no_progress == 0 || self.thresholds.start_failures == 0 {
            return Err(Refusal::bad("threshold", "a loop that gets nowhere has to stop at some time"));
        }
        if self.evidence.len() > limits::EVIDENCE {
            return Err(Refusal::TooMany { what: "evidence commands", limit: limits::EVIDENCE });
        }
        for (index, evidence) in self.evidence.iter().enumerate() {
            limits::name("evidence", &evidence.name)?;
            if evidence.command.trim().is_empty() {
                return Err(Refusal::bad("evidence command", format!("{} has no command", evidence.name)));
            }
            let earlier = self.evidence.get(..index).unwrap_or_default();
            if earlier.iter().any(|other| other.name == evidence.name) {
                return Err(Refusal::bad("evidence", format!("{} is listed twice", evidence.name)));
            }
        }
        if self.protect.len() > limits::EVIDENCE {
            return Err(Refusal::TooMany { what: "patterns of protected files", limit: limits::EVIDENCE });
        }
        self.protect.iter().try_for_each(|pattern| check_pattern(pattern))?;
        match &self.gate {
            GateRule::Until | GateRule::Red { .. } | GateRule::Green { .. } | GateRule::Refactor { .. }
                if self.evidence.is_empty() =>
            {
                let why = "has no command that measures it: give it `evidence`, or name one with --until";
                Err(Refusal::bad("gate", format!("phase {} {why}", self.name)))
            }
            GateRule::Metrics(rules) if rules.is_empty() => {
                Err(Refusal::bad("gate", format!("phase {} names no number", self.name)))
            }
            GateRule::Metrics(rules) => rules.iter().try_for_each(|rule| limits::name("metric", &rule.name)),
            GateRule::Red { .. }
            | GateRule::Green { .. }
            | GateRule::Refactor { .. }
            | GateRule::Document { .. }
            | GateRule::Qa
            | GateRule::Until
            | GateRule::Signal => Ok(()),
        }
    }
}
