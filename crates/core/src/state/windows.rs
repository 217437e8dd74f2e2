//! The windows of the plans that a session's agents use, as they were last told.

use super::State;
use super::WindowMark;
use super::apply::Mark;
use crate::event::LimitSeen;
use crate::limits;
use crate::text::shorten;
use crate::time::Timestamp;

impl State {
    /// An agent told how full the windows are, or which one refuses.
    pub(super) fn limit_seen(&mut self, mark: &Mark, seen: &LimitSeen) {
        let told = seen.agent.clone().or_else(|| self.run.as_ref().map(|run| run.agent.clone()));
        let Some(agent) = told else { return };
        for window in seen.windows.iter().take(limits::WINDOWS) {
            let about = seen.window.as_ref() == Some(&window.name);
            let status = seen.status.clone().filter(|_| about);
            let model = seen.model.clone().filter(|_| about);
            self.window(&agent, &window.name, mark.at, |mark| {
                (mark.status, mark.model) = (status, model);
                mark.utilization = share(window.utilization).or(mark.utilization);
                mark.resets_at = moment(window.resets_at).or(mark.resets_at);
            });
        }
        // Whatever else refuses is no window: it is told by the run that ended for it.
        let is_window = seen.class.as_deref().is_none_or(|class| class == "plan");
        let Some(name) = seen.window.as_ref().filter(|_| is_window) else { return };
        self.window(&agent, name, mark.at, |mark| {
            mark.status.clone_from(&seen.status);
            mark.model.clone_from(&seen.model);
            mark.utilization = share(seen.utilization).or(mark.utilization);
            mark.resets_at = moment(seen.resets_at).or(mark.resets_at);
        });
    }

    fn window(&mut self, agent: &str, name: &str, at: Timestamp, change: impl FnOnce(&mut WindowMark)) {
        let (agent, name) = (shorten(agent, limits::NAME), shorten(name, limits::NAME));
        let key = format!("{agent}:{name}");
        if !self.limits.contains_key(&key) && self.limits.len() >= limits::WINDOWS {
            let oldest = self.limits.iter().min_by_key(|(_, mark)| mark.at).map(|(key, _)| key.clone());
            oldest.and_then(|key| self.limits.remove(&key));
        }
        let mark = self.limits.entry(key).or_insert_with(|| WindowMark {
            agent,
            window: name,
            status: None,
            utilization: None,
            resets_at: None,
            model: None,
            at,
        });
        mark.at = at;
        change(mark);
        mark.status = mark.status.as_deref().map(|word| shorten(word, limits::NAME));
        mark.model = mark.model.as_deref().map(|word| shorten(word, limits::NAME));
    }
}

fn share(told: Option<f64>) -> Option<f64> {
    told.filter(|share| share.is_finite() && *share >= 0.0)
}

fn moment(seconds: Option<i64>) -> Option<Timestamp> {
    seconds.filter(|seconds| *seconds > 0).map(|seconds| Timestamp::EPOCH.plus_seconds(seconds))
}
