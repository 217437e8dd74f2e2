//! The newest agent process of a session.

use super::BelowMark;
use super::GivenAnswer;
use super::OpenQuestion;
use super::RunMark;
use super::State;
use super::apply::Applied;
use super::apply::BRIEF_BEGINS;
use super::apply::Mark;
use super::apply::count;
use crate::event::LimitSeen;
use crate::event::QuestionAnswered;
use crate::event::QuestionAsked;
use crate::event::RunEnded;
use crate::event::RunNamed;
use crate::event::RunStarted;
use crate::limits;

impl State {
    /// An agent process began: it is the newest run, and its calls are counted anew.
    pub(super) fn run_started(&mut self, mark: &Mark, e: &RunStarted) {
        count(&mut self.counts.runs);
        self.calls.next_run();
        self.questions.clear();
        self.keep_unpriced();
        if e.file.is_some() {
            self.file.clone_from(&e.file);
        }
        if e.work_item.is_some() {
            self.work_item.clone_from(&e.work_item);
        }
        // Older programs did not say that a prompt was a brief; its first words do.
        let tells_only =
            e.briefed || e.prompt.as_ref().is_some_and(|prompt| prompt.excerpt().starts_with(BRIEF_BEGINS));
        if e.prompt.is_some() && !tells_only {
            self.asked = Some(mark.seq);
        }
        if self.agent.is_none() {
            self.agents.entry(e.agent.clone()).or_default().active = true;
            self.agent = Some(e.agent.clone());
        }
        self.run = Some(RunMark {
            id: e.run.clone(),
            agent: e.agent.clone(),
            version: e.version.clone(),
            model: None,
            native_id: e.native_id.clone(),
            pid: e.pid,
            process_start: e.process_start,
            adopted: None,
            ledger: e.ledger,
            directory: e.directory.clone(),
            interactive: e.interactive,
            seq: mark.seq,
            started_at: mark.at,
            ended_at: None,
            outcome: None,
            turns: 0,
            below: e.below,
            before: BelowMark { tokens: self.tokens, micros: self.cost.used_micros },
            unpriced: Default::default(),
            list_micros: 0,
            elsewhere: false,
            limit: None,
        });
    }

    /// The run waits for a person's answer.
    pub(super) fn question_asked(&mut self, mark: &Mark, e: &QuestionAsked) {
        if self.questions.len() < limits::ENTRIES {
            self.questions.push(OpenQuestion {
                id: e.id.clone(),
                seq: mark.seq,
                at: mark.at,
                until: e.until,
                tool: e.tool.clone(),
                input: e.input.short(limits::NAME),
                answer: None,
            });
        }
    }

    /// A person answered: the run hears it, and nobody else can answer.
    pub(super) fn question_answered(&mut self, e: &QuestionAnswered) {
        if let Some(open) = self.questions.iter_mut().find(|open| open.id == e.id) {
            let details = e.details.as_ref().map(|details| details.short(limits::LINE));
            open.answer = Some(GivenAnswer { allow: e.allow, details, by: e.by.clone() });
        }
    }

    /// The agent said who it is.
    pub(super) fn run_named(&mut self, e: &RunNamed) {
        if let Some(run) = self.run.as_mut().filter(|run| run.id == e.run) {
            run.native_id = Some(e.native_id.clone());
            run.model = e.model.clone().or(run.model.take());
            run.version = e.version.clone().or(run.version.take());
        }
    }

    /// The newest run ended, once.
    pub(super) fn run_ended(&mut self, mark: &Mark, e: &RunEnded) -> Applied {
        let run = self.run.as_mut().filter(|run| run.id == e.run && run.is_running());
        let Some(run) = run else { return Applied::Repeated };
        let last = mark.at.max(run.started_at);
        run.ended_at = Some(e.at.map_or(last, |at| at.clamp(run.started_at, last)));
        run.outcome = Some(e.outcome.clone());
        // Who asked is gone: nobody can be answered any more.
        self.questions.clear();
        self.tokens_estimated |= e.estimated;
        if run.model.is_none() {
            run.model.clone_from(&e.model);
        }
        if e.native_id.is_some() {
            run.native_id.clone_from(&e.native_id);
        }
        if let Some(limit) = &e.limit {
            let mut limit = LimitSeen { agent: Some(run.agent.clone()), ..LimitSeen::clone(limit) };
            limit.windows.truncate(limits::WINDOWS);
            run.limit = Some(Box::new(limit.clone()));
            self.limit_seen(mark, &limit);
        }
        Applied::Counted
    }
}
