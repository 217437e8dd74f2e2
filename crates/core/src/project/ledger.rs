//! Rows of tool calls and runs.

use serde::Serialize;
use serde_json::Value;

use super::Changes;
use crate::event::RunEnded;
use crate::event::RunNamed;
use crate::event::RunStarted;
use crate::event::ToolEnded;
use crate::event::ToolStarted;
use crate::rows::RunPatch;
use crate::rows::ToolPatch;
use crate::state::Applied;
use crate::text::Aside;
use crate::text::Text;
use crate::text::shorten;

/// How much of what a call put out its row has, in characters. The journal has all of it.
pub(super) const OUTPUT: usize = 500;

impl Changes<'_> {
    pub(super) fn tool_started(&mut self, e: &ToolStarted, applied: Applied) {
        let call = self.name_of_call(&e.call, e.recurs);
        let mut patch = ToolPatch {
            call: Some(call.clone()),
            tool: Some(e.tool.clone()),
            input: Some(Some(e.input.clone())),
            ..ToolPatch::default()
        };
        if applied == Applied::Counted {
            patch.state = Some("open".to_owned());
            patch.started_at = Some(Some(self.mark.at));
            patch.write_ahead = Some(e.write_ahead);
            patch.run = Some(self.mark.run.clone());
            patch.phase = Some(self.state.phase.clone());
        } else if e.write_ahead {
            patch.write_ahead = Some(true);
        }
        self.put(call, &patch);
    }

    pub(super) fn tool_ended(&mut self, e: &ToolEnded, applied: Applied) {
        let call = self.name_of_call(&e.call, e.recurs);
        let patch = ToolPatch {
            call: Some(call.clone()),
            state: Some(e.end.as_str().to_owned()),
            // It ended when that was told first.
            ended_at: (applied == Applied::Counted).then_some(Some(self.mark.at)),
            tool: e.tool.clone(),
            output: e.output.as_ref().map(|output| Some(beginning(output))),
            output_bytes: e.output.as_ref().map(|output| Some(output.bytes())),
            evidence: e.evidence.clone().map(Some),
            ..ToolPatch::default()
        };
        self.put(call, &patch);
    }

    /// A call whose id was there before has a name of its own in the ledger.
    fn name_of_call(&self, call: &str, recurs: bool) -> String {
        let newest = self.state.calls.newest.as_ref().filter(|_| recurs);
        newest.map_or_else(|| call.to_owned(), Clone::clone)
    }

    /// Nobody here will hear how a call of another store ended.
    pub(super) fn calls_in_doubt(&mut self) {
        for call in self.state.calls.in_doubt.keys() {
            let patch = ToolPatch {
                call: Some(call.clone()),
                state: Some("in_doubt".to_owned()),
                ..ToolPatch::default()
            };
            self.put(call.clone(), &patch);
        }
    }

    pub(super) fn run_started(&mut self, e: &RunStarted) {
        // Whoever adds a field there is asked here whether the row has it.
        let RunStarted {
            run,
            agent,
            version,
            native_id,
            resumed,
            pid,
            process_start,
            ledger,
            prompt,
            command,
            environment,
            directory,
            interactive,
            args,
            file,
            work_item,
            below,
            briefed,
        } = e;
        let patch = RunPatch {
            run: Some(run.clone()),
            agent: Some(agent.clone()),
            version: Some(version.clone()),
            native_id: Some(native_id.clone()),
            resumed: Some(resumed.clone()),
            pid: Some(Some(*pid)),
            process_start: Some(Some(*process_start)),
            ledger: Some(word(ledger)),
            prompt: Some(prompt.clone()),
            command: Some(command.clone()),
            environment: Some(environment.clone()),
            directory: Some(Some(directory.clone())),
            interactive: interactive.then_some(true),
            args: Some(args.clone()).filter(|args| !args.is_empty()),
            file: file.clone().map(Some),
            work_item: work_item.clone().map(Some),
            below: below.map(Some),
            briefed: briefed.then_some(true),
            started_at: Some(Some(self.mark.at)),
            phase: self.state.phase.clone().map(Some),
            iteration: Some(self.state.iteration).filter(|iteration| *iteration > 0),
            state: Some("running".to_owned()),
            ..RunPatch::default()
        };
        self.put(run.clone(), &patch);
    }

    pub(super) fn run_named(&mut self, e: &RunNamed) {
        let patch = RunPatch {
            native_id: Some(Some(e.native_id.clone())),
            model: e.model.clone().map(Some),
            version: e.version.clone().map(Some),
            ..RunPatch::default()
        };
        self.put(e.run.clone(), &patch);
    }

    /// What is reckoned of the newest run by a price list, as it is now.
    pub(super) fn cost_recorded(&mut self) {
        let Some(run) = &self.state.run else { return };
        if run.list_micros == 0 && self.mark.run.as_ref() != Some(&run.id) {
            return;
        }
        let patch = RunPatch { list_micros: Some(run.list_micros), ..RunPatch::default() };
        let run = run.id.clone();
        self.put(run, &patch);
    }

    pub(super) fn run_ended(&mut self, e: &RunEnded) {
        let RunEnded {
            run,
            outcome,
            reason,
            native_id,
            exit_code,
            signal,
            turns,
            duration_ms,
            tokens,
            estimated,
            cost_micros,
            denials,
            unparsed,
            swept,
            text,
            error,
            stderr,
            at,
            context,
            limit: _,
            model,
        } = e;
        let patch = RunPatch {
            run: Some(run.clone()),
            outcome: Some(Some(outcome.clone())),
            reason: Some(Some(reason.clone())),
            native_id: native_id.clone().map(Some),
            model: model.clone().map(Some),
            exit_code: Some(*exit_code),
            signal: Some(*signal),
            turns: Some(*turns),
            duration_ms: Some(Some(*duration_ms)),
            tokens: Some(Some(*tokens)),
            estimated: estimated.then_some(true),
            cost_micros: Some(*cost_micros),
            context: context.map(Some),
            denials: Some(*denials),
            unparsed: Some(*unparsed),
            swept: Some(*swept),
            text: Some(text.clone()),
            error: Some(error.clone()),
            stderr: Some(stderr.clone()),
            at: at.map(Some),
            ended_at: Some(Some(at.unwrap_or(self.mark.at))),
            state: Some("ended".to_owned()),
            ..RunPatch::default()
        };
        self.put(run.clone(), &patch);
    }
}

/// What a row shows of an output; where the rest of a long one is stays with it.
fn beginning(output: &Text) -> Text {
    match output {
        Text::Whole(text) => shorten(text, OUTPUT).into(),
        Text::Aside(aside) => {
            Text::Aside(Aside { excerpt: shorten(&aside.excerpt, OUTPUT), ..aside.clone() })
        }
    }
}

/// The word that a value is stored as.
pub(super) fn word(value: &impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok().as_ref().and_then(Value::as_str).map(ToOwned::to_owned)
}
