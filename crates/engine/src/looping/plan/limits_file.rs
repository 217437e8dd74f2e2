//! What a workflow's file says of limits: `[limits]`. Whoever starts a loop may say otherwise with flags.

use segno_core::looping::LimitPolicy;
use segno_core::looping::OwnWindows;
use segno_core::looping::parse_hours;
use serde::Deserialize;

/// `[limits]` of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsFile {
    /// The agents that take over from each other instead of waiting, in order.
    pub agents: Vec<String>,
    /// Whether the first of them takes over again when its window is open.
    pub back: bool,
    /// The hours in which the loop may work, like `22:00-07:00`.
    pub hours: Option<String>,
    /// How many per cent of the week are left for other work.
    pub leave: Option<u8>,
    /// At how many per cent of any window it stops.
    pub stop_at: Option<u8>,
    /// Iterations that may begin in an hour.
    pub calls_per_hour: Option<u64>,
    /// Tokens that may be used in an hour.
    pub tokens_per_hour: Option<u64>,
    /// How many windows in a row are waited for before a person is asked.
    pub max_windows: Option<u32>,
}

impl LimitsFile {
    /// What is wrong with it, if something is.
    ///
    /// # Errors
    /// In words.
    pub fn check(&self) -> Result<(), String> {
        if let Some(hours) = &self.hours {
            parse_hours(hours).ok_or_else(|| format!("hours = {hours:?} is not like 22:00-07:00"))?;
        }
        for (name, percent) in [("leave", self.leave), ("stop_at", self.stop_at)] {
            if percent.is_some_and(|percent| !(1..=100).contains(&percent)) {
                return Err(format!("{name} is between 1 and 100 per cent"));
            }
        }
        for (name, most) in
            [("calls_per_hour", self.calls_per_hour), ("tokens_per_hour", self.tokens_per_hour)]
        {
            if most == Some(0) {
                return Err(format!("with {name} = 0 nothing could ever begin"));
            }
        }
        Ok(())
    }

    /// As a loop is told it.
    pub fn policy(&self) -> LimitPolicy {
        let usual = LimitPolicy::default();
        LimitPolicy {
            agents: self.agents.clone(),
            back: self.back,
            hours: self.hours.as_deref().and_then(parse_hours),
            leave_percent: self.leave,
            stop_at_percent: self.stop_at,
            max_windows: self.max_windows.unwrap_or(usual.max_windows),
            ..usual
        }
    }

    /// Our own limits, as a loop is told them.
    pub fn own(&self) -> OwnWindows {
        OwnWindows { calls_per_hour: self.calls_per_hour, tokens_per_hour: self.tokens_per_hour }
    }
}
