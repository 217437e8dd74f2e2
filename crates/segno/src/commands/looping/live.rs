//! The live view of a loop: a few calm lines below what scrolls by. State goes in, lines come out.

use std::time::Duration;

use segno_engine::DayStand;
use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::Timestamp;
use segno_engine::core::looping::LoopStatus;
use segno_engine::core::looping::loop_status;
use unicode_width::UnicodeWidthStr as _;

use crate::command_context::short;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

/// The heights of a small chart.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// How many of the newest iterations a chart shows.
const CHART: usize = 30;

/// Everything that the view shows.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) title: String,
    pub(super) status: LoopStatus,
    /// Which iteration of all it is in, or was in last.
    pub(super) iteration: u64,
    /// What is used, each with its cap if there is one.
    pub(super) used: Vec<String>,
    /// How full the windows of the plan are.
    pub(super) limits: Vec<String>,
    /// What is being done, or waited for.
    pub(super) now: String,
}

impl Live {
    /// What there is to show of a loop at this moment; `doing` is what it does beside its agent, such as measuring.
    pub(super) fn of(
        state: &State,
        day: Option<&DayStand>,
        doing: Option<&str>,
        now: Timestamp,
    ) -> Option<Self> {
        let status = loop_status(state, now)?;
        let is_in_one = state.looping.as_ref().is_some_and(|looping| looping.open);
        let iteration = status.total + u64::from(is_in_one);
        let title = format!("{}  {}", short(state.session_id), state.topic.as_deref().unwrap_or(""));
        let limits = state.limits.values().filter_map(|mark| {
            let percent = (mark.utilization?.clamp(0.0, 9.99) * 100.0).round() as u64;
            Some(format!("{} {percent} %", mark.window))
        });
        let doing = doing_now(state, &status, doing, now);
        let used = used(state, day, status.total);
        Some(Self { title, used, limits: limits.collect(), now: doing, status, iteration })
    }

    /// The lines, none wider than `width` and at most `height` of them: what matters least goes first.
    pub(super) fn lines(&self, width: usize, height: usize) -> Vec<Text> {
        let mut lines: Vec<(u8, Text)> = vec![(0, self.head(width)), (2, self.phases(width))];
        lines.extend(self.tests(width).map(|line| (3, line)));
        lines.extend(self.gate().map(|line| (4, line)));
        lines.push((6, fact("breaker", self.breaker())));
        lines.push((5, fact("used", Text::from(self.used.join("   ")))));
        if !self.limits.is_empty() {
            lines.push((7, fact("limits", Text::from(self.limits.join("   ")))));
        }
        lines.push((1, fact("now", Text::new().painted(Meaning::Strong, self.now.clone()))));
        while lines.len() > height.max(1) {
            let Some(least) = lines.iter().map(|(rank, _)| *rank).max() else { break };
            lines.retain(|(rank, _)| *rank != least);
        }
        lines.into_iter().map(|(_, line)| line.cut(width)).collect()
    }

    fn head(&self, width: usize) -> Text {
        let of = self.status.most.map_or_else(String::new, |most| format!(" of {most}"));
        let right = format!("{} {}, iteration {}{of}", self.status.status, self.status.phase, self.iteration);
        let room = width.saturating_sub(right.width() + 6);
        let title = segno_engine::core::text::shorten(&self.title, room.max(10));
        let rule = "─".repeat(width.saturating_sub(title.width() + right.width() + 6));
        Text::new()
            .painted(Meaning::Dim, "─ ")
            .plain(title)
            .painted(Meaning::Dim, format!(" {rule} "))
            .plain(right)
            .painted(Meaning::Dim, " ─")
    }

    /// The phases as a bar; where it does not fit, only the present one has its name.
    fn phases(&self, width: usize) -> Text {
        let phases = &self.status.phases;
        let mark = |state: &str| match state {
            "now" => ("▸", Meaning::Strong),
            "done" => ("✓", Meaning::Done),
            "skipped" => ("–", Meaning::Waiting),
            "sent back" => ("↺", Meaning::Waiting),
            _ => ("·", Meaning::Dim),
        };
        let mut whole = Text::new();
        for (index, phase) in phases.iter().enumerate() {
            let (sign, meaning) = mark(phase.state);
            let arrow = if index > 0 { " → " } else { "" };
            whole = whole.painted(Meaning::Dim, arrow).painted(meaning, format!("{sign} {}", phase.name));
        }
        let line = fact("phases", whole);
        if line.to_line().width() <= width {
            return line;
        }
        let at = phases.iter().position(|phase| phase.name == self.status.phase).map_or(0, |at| at + 1);
        let mut bar = Text::new().plain(format!("{at} of {} ", phases.len()));
        for phase in phases {
            let (sign, meaning) = mark(phase.state);
            bar = bar.painted(meaning, sign);
        }
        fact("phases", bar.painted(Meaning::Strong, format!(" {}", self.status.phase)))
    }

    /// The tests over the newest iterations as a small chart.
    fn tests(&self, width: usize) -> Option<Text> {
        let counts = self.status.tests.as_ref().filter(|tests| tests.total > 0 || tests.build_failed)?;
        if counts.build_failed {
            return Some(fact("tests", Text::new().painted(Meaning::Lost, "they do not build")));
        }
        let words = format!("{} of {} pass, {} fail", counts.passed, counts.total, counts.failed);
        let most = CHART.min(width.saturating_sub(words.width() + 12));
        let measured: Vec<(u64, u64)> = self.status.recent.iter().filter_map(|recent| recent.tests).collect();
        let newest = measured.get(measured.len().saturating_sub(most)..).unwrap_or_default();
        let bar = |(passed, all): &(u64, u64)| {
            let height = usize::try_from(passed.saturating_mul(7) / (*all).max(1)).unwrap_or(0);
            BARS[height.min(BARS.len() - 1)]
        };
        let meaning = if counts.failed == 0 { Meaning::Done } else { Meaning::Waiting };
        let chart: String = newest.iter().map(bar).chain((!newest.is_empty()).then_some(' ')).collect();
        Some(fact("tests", Text::new().painted(meaning, chart).plain(words)))
    }

    /// The conditions of the gate, those that do not hold first.
    fn gate(&self) -> Option<Text> {
        let gate = self.status.gate.as_ref()?;
        let mut text = Text::new();
        for wanted in [false, true] {
            for condition in gate.conditions.iter().filter(|one| one.holds == wanted) {
                text = text.then(sign(wanted)).plain(match wanted {
                    true => format!("{}   ", condition.name),
                    false => format!("{}: {}   ", condition.name, condition.value),
                });
            }
        }
        if let Some(said) = gate.gate_2 {
            text = text.then(sign(said)).plain("the agent says that it is done");
        }
        (!text.is_empty()).then(|| fact("gate", text))
    }

    fn breaker(&self) -> Text {
        use segno_engine::core::looping::BreakerState;
        let meaning = match self.status.breaker.state {
            BreakerState::Closed => Meaning::Plain,
            BreakerState::HalfOpen => Meaning::Waiting,
            BreakerState::Open => Meaning::Lost,
        };
        Text::new().painted(meaning, super::status::breaker_words(&self.status.breaker))
    }
}

fn fact(name: &str, value: Text) -> Text {
    Text::new().painted(Meaning::Dim, format!("  {name:<8} ")).then(value)
}

fn sign(holds: bool) -> Text {
    let (sign, meaning) = if holds { ("✓ ", Meaning::Done) } else { ("✗ ", Meaning::Lost) };
    Text::new().painted(meaning, sign)
}

/// What is used, each with its cap if there is one.
pub(super) fn used(state: &State, day: Option<&DayStand>, iterations: u64) -> Vec<String> {
    let told = state.budget.tokens_used > 0 || state.cost.used_micros > 0 || state.unpriced_tokens() > 0;
    let capped = state.budget.hard || state.cost.limit_micros.is_some();
    let day = day.filter(|day| day.caps.is_set());
    if iterations > 0 && !told && !capped && day.is_none() {
        return vec!["its agent does not tell".to_owned()];
    }
    let tokens = match state.budget.hard {
        true => format!(
            "{} of {}",
            units::count(state.budget.tokens_used),
            units::tokens(state.budget.total_budget)
        ),
        false => units::tokens(state.budget.tokens_used),
    };
    let limit =
        state.cost.limit_micros.map_or_else(String::new, |limit| format!(" of {}", units::dollars(limit)));
    let money = format!("{}{limit}", units::money(state.cost.used_micros, state.unpriced_tokens()));
    let mut used = vec![tokens, money];
    if let Some(day) = day {
        used.extend(day.caps.tokens.map(|most| {
            format!("today {} of {}", units::count(day.used.tokens(day.caps.count)), units::tokens(most))
        }));
        used.extend(
            day.caps
                .micros
                .map(|most| format!("today {} of {}", units::dollars(day.used.micros), units::dollars(most))),
        );
    }
    used
}

/// What is being done, or waited for, in words.
fn doing_now(state: &State, status: &LoopStatus, doing: Option<&str>, at: Timestamp) -> String {
    if let (Some(words), Some(left)) = (&status.waiting_for, &status.countdown) {
        return format!("waits {left}: {words}");
    }
    // What was done last is not what goes on there.
    if state.breakpoint.is_some() {
        return format!("{}: segno breakpoint continue", status.next);
    }
    if state.status == Status::Halted {
        return status.next.clone();
    }
    if let Some(doing) = doing {
        return doing.to_owned();
    }
    let newest = state.calls.open.values().max_by_key(|call| call.seq);
    match newest {
        Some(call) => {
            let input = serde_json::from_str(&call.input).unwrap_or_default();
            format!("{} {}", call.tool, segno_engine::core::call::subject(&input))
        }
        // What was done last was often before this agent began.
        None => match state.run.as_ref().filter(|run| run.is_running()) {
            Some(run) => format!("{} works, {}", run.agent, running(run.started_at, at)),
            None => state.last_action.clone().unwrap_or_else(|| status.next.clone()),
        },
    }
}

/// For how long, in whole seconds: what is redrawn each second should not flicker.
fn running(since: Timestamp, at: Timestamp) -> String {
    units::duration(Duration::from_secs((at.micros_since(since) / 1_000_000).max(1)))
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
