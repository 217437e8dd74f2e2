//! What an agent reports becomes facts, each under a key that names its place.

use std::borrow::Cow;
use std::path::Path;
use std::path::PathBuf;

use segno_agents::AgentEvent;
use segno_agents::Envelope;
use segno_core::Command;
use segno_core::Fact;
use segno_core::event::Change;

use super::Recorder;
use super::is_mere_use;
use crate::engine::fresh_key;
use crate::run::translate;

/// Most tasks that are remembered.
const LAUNCHED: usize = 10_000;
/// How much of both ends of a line is kept that is too long.
const ENDS: usize = 4096;
/// Most artifacts of one run: more are only in the list of files.
const ARTIFACTS: usize = 10_000;

impl Recorder<'_> {
    /// Takes one thing that the agent reported.
    pub(in crate::run) fn take(&mut self, envelope: &Envelope) {
        self.take_at(envelope, "", self.calls_recur);
    }

    /// The same from the agent's own record, where calls have other places, and ids that do not recur.
    pub(in crate::run) fn take_record(&mut self, envelope: &Envelope) {
        self.take_at(envelope, "record-", false);
    }

    /// What a sub-agent used, from its own log.
    pub(in crate::run) fn take_helper(&mut self, envelope: &Envelope, id: &str) {
        self.take_at(envelope, &format!("helper-{id}-"), false);
    }

    fn take_at(&mut self, envelope: &Envelope, place: &str, calls_recur: bool) {
        if envelope.native_event_id.is_some() {
            self.last_message.clone_from(&envelope.native_event_id);
        }
        let event = self.with_true_change(&envelope.event);
        let event = self.without_middle(event);
        let mut facts = translate::facts_of(&event, &self.run);
        if calls_recur {
            translate::scope_calls(&mut facts, &self.run);
        }
        facts.extend(self.launched(&envelope.event));
        if self.cut_off {
            translate::doubt_failures(&mut facts);
        }
        self.hear_model(&envelope.event);
        facts.extend(self.tokens.take(&envelope.event));
        let spends: Vec<Fact> = facts.iter().filter(|fact| is_about_cost(fact)).cloned().collect();
        // Agents say who they are again and again.
        facts.retain(|fact| match fact {
            Fact::RunNamed(named) => !self.state.run.as_ref().is_some_and(|run| {
                run.is_named(&named.native_id, named.model.as_deref(), named.version.as_deref())
            }),
            Fact::Reported { what, body } if what == translate::TOOLS => {
                self.tools.replace(body.clone()).as_ref() != Some(body)
            }
            _ => true,
        });
        if let AgentEvent::Oversized { bytes, .. } = &envelope.event {
            let most = self.engine.options.line_limit >> 20;
            let text = format!(
                "a line of {} MB is longer than {most} MB (run.max_line_mb); only its beginning and end are kept",
                bytes >> 20
            );
            self.say(&text);
            self.notices.push(text);
        }
        if facts.is_empty() {
            self.hear_price(&spends);
            return;
        }
        // The key holds run and place: reading the capture again after a crash records nothing twice.
        let key = format!("run-{}@{place}{}", self.run, envelope.key());
        let place = key.parse().unwrap_or_else(|_| fresh_key());
        let redactor = self.engine.redactor();
        match self.texts.take(&envelope.event, place, self.engine.now(), facts, &redactor) {
            None => {}
            // What was used is counted at once, and says nothing about whether a text goes on.
            Some((key, facts)) if facts.iter().all(is_mere_use) => {
                self.queue(key, self.engine.now(), facts);
            }
            Some((key, facts)) => self.put(key, facts),
        }
        self.hear_price(&spends);
        if let AgentEvent::FileChanged { path, change, moved_to, .. } = event.as_ref() {
            for (index, (path, change)) in
                translate::files(path, *change, moved_to.as_deref()).into_iter().enumerate()
            {
                self.artifact(&format!("{key}.artifact{index}"), path, change);
            }
        }
    }

    /// Of a line that is too long its two ends are kept. Secrets go before they are cut: half of one is not known as one.
    fn without_middle<'e>(&self, event: Cow<'e, AgentEvent>) -> Cow<'e, AgentEvent> {
        let AgentEvent::Oversized { bytes, head, tail } = event.as_ref() else { return event };
        let redactor = self.engine.redactor();
        let (head, tail) = (redactor.text(head), redactor.text(tail));
        let head = head[..head.floor_char_boundary(ENDS)].to_owned();
        let tail = tail[tail.ceil_char_boundary(tail.len().saturating_sub(ENDS))..].to_owned();
        Cow::Owned(AgentEvent::Oversized { bytes: *bytes, head, tail })
    }

    /// Remembers what goes on after its call was answered, and gives its end when that is told.
    fn launched(&mut self, event: &AgentEvent) -> Option<Fact> {
        match event {
            AgentEvent::ToolFinished { call_id, background: Some(task), .. } => {
                if self.launched.len() < LAUNCHED {
                    self.launched.insert(task.clone(), call_id.clone());
                }
                None
            }
            AgentEvent::TaskStopped { task_id: task, call_id, status, summary }
            | AgentEvent::SubAgentStopped { agent_id: task, call_id, status, summary } => {
                let known = self.launched.remove(task);
                // We stopped the agent, and it stopped what it had launched: how far that came, nobody knows.
                if self.is_stopping && status != "completed" {
                    return None;
                }
                // Whoever takes a run over has not heard of its beginning; then what the call itself says is lost if
                // it still comes, but not that it ended.
                let told =
                    call_id.clone().filter(|call| self.took_over && self.state.calls.open.contains_key(call));
                let call = known.or(told)?;
                Some(translate::task_ended(&call, status, summary.as_deref()))
            }
            _ => None,
        }
    }

    /// A file of the project that the agent made or changed is an artifact, once in each phase.
    fn artifact(&mut self, key: &str, path: &str, change: Change) {
        let root = PathBuf::from(&self.state.project.path);
        let base = self.state.run.as_ref().map_or_else(|| root.clone(), |run| PathBuf::from(&run.directory));
        // A secret that was changed is not known any more, so they go first.
        let path = self.engine.redactor().text(path).into_owned();
        let found = crate::inside(&root, &base, Path::new(&path));
        let Some(path) = found.and_then(|found| Some(found.to_str()?.to_owned())) else { return };
        let path = translate::fit(&path, segno_core::limits::LINE);
        let known = (self.state.phase.clone(), path.clone());
        if change == Change::Deleted || self.artifacts.len() >= ARTIFACTS || !self.artifacts.insert(known) {
            return;
        }
        let key = key.parse().unwrap_or_else(|_| fresh_key());
        self.put(key, vec![Command::RecordArtifact { path, artifact_type: change, phase: None }]);
    }
}

/// Whether a fact tells of the model, of what was used or of what it cost.
fn is_about_cost(fact: &Fact) -> bool {
    matches!(fact, Fact::RunNamed(_) | Fact::TokensRecorded { .. } | Fact::CostRecorded { .. })
}
