//! The limit that a run ended for, as the journal keeps it: its time is a moment.

use std::time::Duration;

use jiff::tz::TimeZone;
use segno_agents::Agent;
use segno_agents::Limit;
use segno_agents::ResetTime;
use segno_agents::limit::ClockTime;
use segno_core::Timestamp;
use segno_core::event::Event;
use segno_core::event::LimitSeen;
use segno_core::event::WindowSeen;
use segno_core::limits;
use segno_store::EventRow;

use super::journal::Recorder;
use super::translate::fit;
use crate::zones;

/// What the journal keeps of a limit that was told at `said`.
pub(super) fn seen(recorder: &Recorder<'_>, limit: &Limit, said: Timestamp) -> LimitSeen {
    let zone = match &limit.resets {
        Some(ResetTime::Clock(ClockTime { zone: None, .. })) => {
            zones::local(variable(recorder, "TZ").as_deref())
        }
        _ => TimeZone::UTC,
    };
    let name = |text: &String| fit(text, limits::NAME);
    let overage = limit.overage.clone().unwrap_or_default();
    LimitSeen {
        agent: recorder.state.run.as_ref().map(|run| run.agent.clone()),
        class: Some(limit.class.as_str().to_owned()),
        status: Some("rejected".to_owned()),
        window: limit.window.as_ref().map(name),
        utilization: None,
        resets_at: limit.resets.as_ref().and_then(|time| moment(time, said, &zone)),
        model: limit.model.as_ref().map(name),
        windows: limit
            .windows
            .iter()
            .map(|window| WindowSeen {
                name: name(&window.name),
                utilization: window.utilization,
                resets_at: window.resets_at,
            })
            .collect(),
        overage: overage.status.as_ref().map(name),
        overage_disabled_reason: overage.disabled_reason.as_ref().map(name),
        using_overage: overage.in_use,
    }
}

/// The limit behind an agent's silence, if its standard error tells of one that is not over. `quiet` is how long it has
/// said nothing on either stream.
pub(super) fn behind_silence(
    agent: &dyn Agent,
    stderr: &str,
    quiet: Duration,
    now: Timestamp,
) -> Option<Limit> {
    let limit = agent.silent_wait(stderr)?;
    let quiet = u64::try_from(quiet.as_millis()).unwrap_or(u64::MAX);
    let resets = match limit.resets {
        // It was said before it fell silent.
        Some(ResetTime::After(ms)) => ResetTime::After(ms.checked_sub(quiet).filter(|left| *left > 0)?),
        Some(ResetTime::At(seconds)) if Timestamp::EPOCH.plus_seconds(seconds) > now => {
            ResetTime::At(seconds)
        }
        Some(ResetTime::At(_) | ResetTime::Clock(_)) | None => return None,
    };
    Some(Limit { resets: Some(resets), ..limit })
}

/// In seconds since 1970, never before the moment itself.
fn moment(time: &ResetTime, said: Timestamp, local: &TimeZone) -> Option<i64> {
    let said = jiff::Timestamp::from_microsecond(said.as_micros()).ok()?;
    let at = time.resolve(said, local, &zones::named)?;
    Some(at.as_second().saturating_add(i64::from(at.subsec_nanosecond() > 0)))
}

/// A variable that the agent was started with, as far as it was recorded.
fn variable(recorder: &Recorder<'_>, name: &str) -> Option<String> {
    let started = recorder.state.run.as_ref()?.seq;
    let rows = recorder.engine.events(recorder.session, started.checked_sub(1)?, 1).ok()?;
    let EventRow::Whole(row) = rows.into_iter().next()? else { return None };
    let Ok(Event::RunStarted(started)) = Event::decode(&row.kind, row.version, &row.body) else {
        return None;
    };
    started.environment.get(name)?.as_str().map(ToOwned::to_owned)
}
