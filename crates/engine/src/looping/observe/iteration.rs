//! What one iteration showed, read from the record: so it is the same for whoever finishes it after a crash.

use std::collections::BTreeMap;
use std::path::Path;

use segno_agents::Outcome;
use segno_core::List;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::event::Channel;
use segno_core::event::Event;
use segno_core::event::LoopBaselineTaken;
use segno_core::looping::Asked;
use segno_core::looping::BaselineMark;
use segno_core::looping::ErrorMark;
use segno_core::looping::GateRule;
use segno_core::looping::LimitClass;
use segno_core::looping::LimitMark;
use segno_core::looping::LoopState;
use segno_core::looping::Observation;
use segno_core::looping::PhasePlan;
use segno_core::looping::PlanWindow;
use segno_core::looping::Repeated;
use segno_core::looping::RunEnd;
use segno_core::looping::TestCounts;
use segno_core::looping::TestEnd;
use segno_core::rows::RunRow;
use segno_core::state::WindowMark;
use segno_store::Page;

use crate::Engine;
use crate::Error;
use crate::looping::evidence::gather::Measured;

/// How many of the newest runs are looked through for one.
const RUNS: usize = 5;
/// How many of them are looked through for who wrote what is judged.
const WRITERS: usize = 50;
/// How many of the newest events are looked through for the agent's last status block.
const NEWEST: u64 = 400;
/// So many of them at a time.
const PAGE: u64 = 50;
/// An agent that ends with an error sooner than this has not begun, if it did nothing.
const AT_ONCE_MS: u64 = 20_000;

impl Engine {
    /// The row of the newest run, if it is the one that is meant.
    pub(crate) fn run_row(&self, state: &State) -> Result<Option<RunRow>, Error> {
        let Some(run) = &state.run else { return Ok(None) };
        let page = Page { after: None, limit: RUNS, newest_first: true };
        let rows = self.store().page(state.session_id, List::Runs, &page)?;
        Ok(rows.iter().map(segno_store::Item::row::<RunRow>).find(|row| row.run == run.id))
    }

    /// The model that a phase works with, if it is not the usual one. One that judges gets another than the one that
    /// wrote what is judged, where two are known to be there.
    pub(crate) fn model_for(&self, state: &State, phase: &PhasePlan) -> Result<Option<String>, Error> {
        let judges = phase.on_reject.as_ref().is_some_and(|reject| reject.other_model);
        if phase.model.is_some() || !judges {
            return Ok(phase.model.clone());
        }
        let page = Page { after: None, limit: WRITERS, newest_first: true };
        let rows = self.store().page(state.session_id, List::Runs, &page)?;
        let mut rows = rows.iter().map(segno_store::Item::row::<RunRow>);
        let wrote = rows.find(|row| row.phase.as_deref().is_some_and(|name| name != phase.name));
        Ok(wrote.and_then(|row| {
            let models = segno_agents::by_name(&row.agent)?.capabilities().models;
            other_model(models, row.model.as_deref()?)
        }))
    }

    /// What the run of an iteration was like. `told` is the agent's own account, if this process heard it.
    pub(crate) fn observe_run(&self, state: &State, told: Option<&Outcome>) -> Result<Observation, Error> {
        let Some(row) = self.run_row(state)? else { return Ok(Observation::default()) };
        let calls = self.call_facts(state)?;
        let mut delta = self.tree_delta(state)?;
        if delta.after.is_none() {
            // No checkpoint tells how the agent left it: it is as it is, before anything is measured.
            delta.after = self.present_tree(state)?;
        }
        let text = match &row.text {
            Some(text) => self.whole(text)?,
            None => String::new(),
        };
        // Some agents end with a sentence of their own: their status block was said before it.
        let status = match segno_evidence::last_complete(&text) {
            Some(_) => text.clone(),
            None => self.last_block_said(state)?.unwrap_or_default(),
        };
        let outcome = row.outcome.clone().unwrap_or_default();
        let idle = delta.files == 0 && delta.commits == 0 && text.trim().is_empty() && calls.calls == 0;
        let not_begun = idle && ended_at_once(&row);
        // Of a start that failed, what the program itself printed tells most.
        let said = row.error.as_ref().or(row.stderr.as_ref().or(row.reason.as_ref()).filter(|_| not_begun));
        let error = said.map(|error| error.short(2_000)).filter(|_| outcome != "completed");
        let error = error.or_else(|| cut_short(&row));
        let denied_all = calls.calls > 0 && calls.denials == calls.calls;
        let limit = limit_of(state, told, &row).or_else(|| limit_by_word(&outcome, &row));
        let end = match outcome.as_str() {
            _ if limit.is_some() => RunEnd::Limited,
            "agent_missing" => RunEnd::StartFailed,
            "failed" | "interrupted" if not_begun => RunEnd::StartFailed,
            "denied" => RunEnd::CannotAct,
            "completed" | "failed" | "max_turns" if denied_all => RunEnd::CannotAct,
            "stopped" => RunEnd::Stopped,
            "timed_out" | "interrupted" => RunEnd::Cut,
            _ => RunEnd::Ran,
        };
        Ok(Observation {
            end,
            asked: (end == RunEnd::Stopped).then_some(Asked::Stop),
            seconds: row.duration_ms.unwrap_or(0) / 1_000,
            calls: calls.calls,
            denials: calls.denials.max(row.denials),
            denied: calls.denied,
            allow: calls.allow,
            question: super::claims::question(&text),
            error: error.map(|error| ErrorMark::of(&error)),
            claims: super::claims::claims(&status),
            tree_before: delta.before,
            tree_after: delta.after,
            files_changed: delta.files,
            commits: delta.commits,
            repeated: Repeated { identical: calls.identical, cycle: calls.cycle },
            tokens: row.tokens.map_or(0, |used| used.counted(state.budget.count)),
            micros: row.money(),
            limit,
            windows: windows(&state.limits, &row.agent, self.now()),
            context_percent: row.context.and_then(segno_core::event::ContextFill::percent),
            outcome,
            ..Observation::default()
        })
    }

    /// The newest words of the agent itself in its newest run that hold a whole status block. An agent that only prints
    /// lines says one in many of them: lines without a message of their own that follow each other are one text.
    fn last_block_said(&self, state: &State) -> Result<Option<String>, Error> {
        let mut before = state.seq;
        let mut lines = Vec::new();
        while before > 0 && state.seq - before < NEWEST {
            let after = before.saturating_sub(PAGE);
            let most = usize::try_from(before - after).unwrap_or(0);
            for row in self.store().events(state.session_id, after, most)?.iter().rev() {
                let segno_store::EventRow::Whole(stored) = row else { continue };
                match stored.event() {
                    // What an earlier run said decides nothing today.
                    Ok(Event::RunStarted(_)) => return Ok(block_of(&mut lines)),
                    Ok(Event::Said(said)) if said.channel == Channel::Text && said.parent.is_none() => {
                        let words = self.whole(&said.text)?;
                        if segno_evidence::last_complete(&words).is_some() {
                            return Ok(Some(block_of(&mut lines).unwrap_or(words)));
                        }
                        match said.message {
                            None => lines.push(words),
                            Some(_) => {
                                if let Some(block) = block_of(&mut lines) {
                                    return Ok(Some(block));
                                }
                            }
                        }
                    }
                    _ => {}
                }
            }
            before = after;
        }
        Ok(block_of(&mut lines))
    }

    /// Adds what the evidence commands showed, compared with what there was when the phase and the loop began.
    pub(crate) fn add_measured(
        &self,
        state: &State,
        looping: &LoopState,
        seen: &mut Observation,
        measured: &Measured,
        times: u32,
        differs: bool,
    ) -> Result<(), Error> {
        seen.evidence.clone_from(&measured.evidence);
        seen.protected.clone_from(&measured.protected);
        seen.tests.clone_from(&measured.tests);
        seen.metrics.clone_from(&measured.metrics);
        seen.restless.clone_from(&measured.restless);
        seen.measured = times;
        // Where tests are to fail, that they do is no error. A command that tells of none fails for another reason.
        let to_fail = measured.tests.is_some()
            && looping.phase_plan().is_some_and(|plan| matches!(plan.gate, GateRule::Red { .. }));
        if seen.error.is_none() && !to_fail {
            seen.error.clone_from(&measured.error);
        }
        let before = looping.last.as_deref();
        let same_tree = before
            .is_some_and(|before| before.bound_to().is_some() && before.bound_to() == measured.tree.as_ref());
        seen.flaky = differs || (same_tree && before.is_some_and(|before| before.tests != measured.tests));
        // The same for what there was when the phase began: an agent that changed nothing has mended nothing.
        if let (Some(baseline), Some(tests)) = (&looping.baseline, &measured.tests) {
            let same_tree = baseline.tree.is_some() && baseline.tree == measured.tree;
            seen.flaky |= same_tree && baseline.tests.ran() > 0 && baseline.tests != *tests;
        }
        // What the commands wrote is not what the agent did.
        seen.measured_tree.clone_from(&measured.tree);
        let taken =
            looping.baseline.as_ref().map(|mark| self.baseline_event(state, mark)).transpose()?.flatten();
        if let Some(taken) = &taken {
            name_changes(seen, taken);
            let root = Path::new(&state.project.path);
            seen.lost = crate::looping::evidence::unloaded::lost(&taken.unloaded, &measured.names, root);
        }
        let Some(counts) = &measured.tests else { return Ok(()) };
        let now = &measured.names;
        let unnamed =
            |counts: &TestCounts, names: &BTreeMap<String, TestEnd>| names.is_empty() && counts.total > 0;
        if let Some(baseline) = looping.reference() {
            // What is damaged is compared by its numbers.
            let before = self.baseline_event(state, baseline)?.map(|taken| taken.names).unwrap_or_default();
            // Where one side names no tests, only their numbers are known, and the gate says so. Of tests that could not be
            // loaded there are no names to be lost.
            let lost = !baseline.tests.build_failed && unnamed(&baseline.tests, &before);
            seen.by_number = lost || unnamed(counts, now);
            if !seen.by_number {
                seen.changes = segno_core::looping::changes(&before, now);
            }
        }
        if let Some(first) = &looping.first {
            let before = self.baseline_event(state, first)?.map(|taken| taken.names).unwrap_or_default();
            // Which of them failed then only names can tell.
            let named = !unnamed(&first.tests, &before) && !unnamed(counts, now);
            seen.since_start = named.then(|| segno_core::looping::since_start(&before, now));
        }
        Ok(())
    }

    /// The event of a baseline, which has all by name; none if it is damaged.
    fn baseline_event(&self, state: &State, mark: &BaselineMark) -> Result<Option<LoopBaselineTaken>, Error> {
        let rows = self.store().events(state.session_id, mark.seq.saturating_sub(1), 1)?;
        let event = match rows.first() {
            Some(segno_store::EventRow::Whole(stored)) => stored.event().ok(),
            _ => None,
        };
        Ok(match event {
            Some(Event::LoopBaselineTaken(taken)) => Some(taken),
            _ => None,
        })
    }
}

/// The text of lines that were read from the last one backwards, if it holds a whole status block.
fn block_of(lines: &mut Vec<String>) -> Option<String> {
    let text: Vec<String> = lines.drain(..).rev().collect();
    Some(text.join("\n")).filter(|text| segno_evidence::last_complete(text).is_some())
}

/// Says which files that measure, or that are protected, are not what they were.
fn name_changes(seen: &mut Observation, before: &LoopBaselineTaken) {
    for mark in &mut seen.evidence {
        if let Some(then) = before.evidence.iter().find(|then| then.name == mark.name) {
            (mark.changed, mark.changed_settings) =
                crate::looping::evidence::fingerprint::changed(&then.files, &mark.files);
        }
    }
    if let (Some(then), Some(now)) = (&before.protected, &mut seen.protected) {
        now.changed = crate::looping::evidence::protect::changed(then, now);
    }
}

/// Whether an agent ended by itself within moments, without a turn or a token. One that a signal ended was at work, for
/// all anybody knows.
fn ended_at_once(row: &RunRow) -> bool {
    let soon = row.duration_ms.is_some_and(|ms| ms < AT_ONCE_MS);
    let spent = row.tokens.is_some_and(|used| used.counted(segno_core::budget::Counting::All) > 0);
    soon && row.exit_code.is_some() && row.signal.is_none() && !spent && row.turns == 0
}

/// What cut a run short that says nothing of it itself: a signal, silence, a time that was up. The same again is the same
/// error, whatever else the agent did.
fn cut_short(row: &RunRow) -> Option<String> {
    let reason = || row.reason.as_ref().map(|reason| reason.short(200)).unwrap_or_default();
    match (row.outcome.as_deref()?, row.signal, row.exit_code) {
        ("interrupted" | "failed", Some(signal), _) => {
            Some(format!("the agent was ended by signal {signal}"))
        }
        ("interrupted" | "failed", None, Some(code)) if code != 0 => {
            Some(format!("the agent ended with exit code {code}"))
        }
        ("timed_out", ..) => Some(format!("the agent was stopped: {}", reason())),
        _ => None,
    }
}

/// The other one of two models that whoever uses Claude Code has; the first of them for any third one.
fn other_model(models: &[&str], model: &str) -> Option<String> {
    let model = model.to_ascii_lowercase();
    models.iter().find(|name| !model.contains(**name)).map(|name| (*name).to_owned())
}

/// The limit that the newest run ended for, as it is on record.
fn limit_of(state: &State, told: Option<&Outcome>, row: &RunRow) -> Option<LimitMark> {
    let seen = state.run.as_ref()?.limit.as_deref()?;
    let class = seen.limit_class()?;
    if matches!(class, LimitClass::Setup | LimitClass::Budget) {
        return None;
    }
    let said = row.error.as_ref().or(row.reason.as_ref());
    let words = told.and_then(|told| told.limit.as_ref()?.text.clone());
    let words = words.or_else(|| said.map(|said| said.short(segno_core::limits::LOOP_TEXT)));
    Some(LimitMark {
        class,
        until: seen.resets_at.map(|seconds| Timestamp::from_micros(seconds.saturating_mul(1_000_000))),
        window: seen.window.clone(),
        model_only: seen.model.clone(),
        account: row.agent.clone(),
        words: segno_core::text::shorten(&words.unwrap_or_default(), segno_core::limits::LOOP_TEXT),
    })
}

/// How full the windows of an agent's plan are that have not ended since they were told of.
fn windows(known: &BTreeMap<String, WindowMark>, agent: &str, now: Timestamp) -> Vec<PlanWindow> {
    let present = known.values().filter(|mark| mark.agent == agent && mark.model.is_none());
    let present = present.filter(|mark| mark.resets_at.is_none_or(|end| end > now));
    present
        .filter_map(|mark| {
            // A window may be more than full.
            let used_percent = (mark.utilization?.clamp(0.0, 1.0) * 100.0).round() as u8;
            let longest = ["seven_day", "weekly"].contains(&mark.window.as_str());
            Some(PlanWindow { name: mark.window.clone(), used_percent, resets_at: mark.resets_at, longest })
        })
        .collect()
}

/// All that is known of a limit if nobody heard the agent's own account.
fn limit_by_word(outcome: &str, row: &RunRow) -> Option<LimitMark> {
    (outcome == "limit").then(|| LimitMark {
        class: LimitClass::Transient,
        account: row.agent.clone(),
        words: row
            .reason
            .as_ref()
            .map(|reason| reason.short(segno_core::limits::LOOP_TEXT))
            .unwrap_or_default(),
        ..LimitMark::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_the_agent_that_have_not_ended() {
        let at = Timestamp::from_micros;
        let mark =
            |agent: &str, window: &str, utilization, end: Option<i64>, model: Option<&str>| WindowMark {
                agent: agent.to_owned(),
                window: window.to_owned(),
                status: None,
                utilization,
                resets_at: end.map(at),
                model: model.map(ToOwned::to_owned),
                at: at(0),
            };
        let known: BTreeMap<String, WindowMark> = [
            mark("claude", "five_hour", Some(0.931), Some(50), None),
            mark("claude", "seven_day", Some(1.2), None, None),
            mark("claude", "overage", None, None, None),
            mark("claude", "seven_day_opus", Some(0.5), None, Some("opus")),
            mark("codex", "weekly", Some(0.4), None, None),
            mark("codex", "5h", Some(0.9), Some(10), None),
        ]
        .into_iter()
        .map(|mark| (format!("{}:{}", mark.agent, mark.window), mark))
        .collect();
        let seen = |agent: &str| -> Vec<(String, u8, bool)> {
            let all = windows(&known, agent, at(20)).into_iter();
            all.map(|window| (window.name, window.used_percent, window.longest)).collect()
        };
        assert_eq!(
            seen("claude"),
            [("five_hour".to_owned(), 93, false), ("seven_day".to_owned(), 100, true)]
        );
        assert_eq!(seen("codex"), [("weekly".to_owned(), 40, true)], "the other one has ended");
    }

    #[test]
    fn who_judges_is_another_one() {
        let models = segno_agents::by_name("claude").unwrap().capabilities().models;
        assert_eq!(other_model(models, "claude-opus-4-1-20250805").as_deref(), Some("sonnet"));
        assert_eq!(other_model(models, "Sonnet").as_deref(), Some("opus"));
        assert_eq!(other_model(models, "claude-haiku-4-5").as_deref(), Some("sonnet"));
        assert_eq!(other_model(&[], "opus"), None);
    }
}
