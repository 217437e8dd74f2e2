//! What became of calls in doubt, as far as the agent's own record tells.
//!
//! After a crash every open call is in doubt. The agent writes its own record of the conversation, and that may hold a
//! result which never reached us: it was lost with the capture, or its driver died before it read it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::path::Path;
use std::path::PathBuf;

use segno_agents::Agent;
use segno_agents::TokenCounts;
use segno_agents::transcript::CallStatus;
use segno_agents::transcript::Transcript;
use segno_agents::transcript::TranscriptCall;
use segno_core::Command;
use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::call::subject;
use segno_core::event::CallEnd;
use segno_core::rows::RunRow;
use segno_core::rows::ToolRow;
use segno_core::text::shorten;
use segno_store::Item;
use serde_json::Value;

use super::words::without_shell;
use crate::Engine;
use crate::Error;
use crate::act::Acting;
use crate::run::log_find::find;

/// How much of the end of a record is read: a call without an end is among the last.
const TAIL: u64 = 32 << 20;
/// Most records of sub-agents that are looked at.
const SUB_AGENTS: usize = 64;
/// Most runs whose calls are looked for.
const RUNS: usize = 8;
/// How much of a result is kept, in characters.
const OUTPUT: usize = 1 << 20;

/// A call that is in doubt no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The call.
    pub call: String,
    /// How it ended.
    pub end: CallEnd,
}

impl Engine {
    /// Looks in the agents' own records for the ends of calls in doubt, and records what it finds. A record that is
    /// not there or cannot be read says nothing, and is no error.
    pub fn gather_evidence(&self, session: SessionId) -> Result<Vec<Settled>, Error> {
        self.gather_evidence_as(session, self.options.actor.epoch)
    }

    pub(crate) fn gather_evidence_as(
        &self,
        session: SessionId,
        epoch: Option<u64>,
    ) -> Result<Vec<Settled>, Error> {
        let state = self.load(session)?.state;
        let mut settled = Vec::new();
        for command in self.look_for_evidence(&state)? {
            let Command::SettleCall { call, end, .. } = &command else { continue };
            let one = Settled { call: call.clone(), end: *end };
            match self.act_as(session, vec![command], Acting::driver(&self.options.actor, epoch, None)) {
                Ok(_) => settled.push(one),
                // Somebody found out the same meanwhile.
                Err(Error::Refused(segno_core::Refusal::Unknown { .. })) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(settled)
    }

    fn look_for_evidence(&self, state: &State) -> Result<Vec<Command>, Error> {
        let keys: Vec<String> = state.calls.in_doubt.keys().cloned().collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut by_run: BTreeMap<String, Vec<Item>> = BTreeMap::new();
        for row in self.store().rows(state.session_id, List::Tools, &keys)? {
            let run = row.row::<ToolRow>().run;
            if let Some(run) = run.or_else(|| state.run.as_ref().map(|run| run.id.clone())) {
                by_run.entry(run).or_default().push(row);
            }
        }
        // Ids of runs sort by time.
        let runs: Vec<String> = by_run.keys().rev().take(RUNS).cloned().collect();
        let mut found = Vec::new();
        for run in self.store().rows(state.session_id, List::Runs, &runs)? {
            let calls = by_run.remove(&run.key).unwrap_or_default();
            found.extend(self.evidence_of_run(&run.row(), &calls));
        }
        Ok(found)
    }

    fn evidence_of_run(&self, run: &RunRow, calls: &[Item]) -> Vec<Command> {
        let Some(found) = self.log_of_run(run) else { return Vec::new() };
        let Some(log) = found.agent.conversation_log() else { return Vec::new() };
        let sub_agents = newest_files(found.sub_agents.as_deref());
        let files = std::iter::once(&found.path).chain(&sub_agents);
        let transcripts: Vec<Transcript> =
            files.filter_map(|file| Some(log.transcript(&tail(file)?))).collect();
        let recur = found.agent.capabilities().call_ids_recur;
        // What such an agent says of calls that failed is that they were cut off.
        let cut_off = run.reason == Some(crate::run::STOPPED_TO_GO_ON.into());
        calls
            .iter()
            .filter_map(|row| {
                let call = transcripts.iter().find_map(|transcript| matching(transcript, row, recur))?;
                let end = match call.status {
                    CallStatus::Finished => CallEnd::Completed,
                    CallStatus::Failed | CallStatus::Denied if cut_off || was_stopped(call) => return None,
                    CallStatus::Failed => CallEnd::Failed,
                    CallStatus::Denied => CallEnd::Denied,
                    CallStatus::Open => return None,
                };
                let output =
                    call.output_text().map(|text| shorten(&self.redactor().text(&text), OUTPUT).into());
                let evidence =
                    format!("{}'s own record of conversation {}", found.agent.name(), found.native_id);
                Some(Command::SettleCall { call: row.key.clone(), end, output, evidence })
            })
            .collect()
    }

    /// What a run used, as far as the agent's own log of the conversation tells.
    pub(crate) fn used_by_log(&self, session: SessionId, run: &str) -> Option<TokenCounts> {
        let row = self.store().rows(session, List::Runs, &[run.to_owned()]).ok()?.into_iter().next()?;
        let run: RunRow = row.row();
        let found = self.log_of_run(&run)?;
        let since = run.started_at?.to_string();
        let bytes = tail(&found.path)?;
        let log = found.agent.conversation_log()?;
        let used = log.used_since(&bytes, &since);
        // What sub-agents used stands in logs of their own.
        let sub_agents = newest_files(found.sub_agents.as_deref());
        let theirs = sub_agents.iter().filter_map(|file| log.used_since(&tail(file)?, &since));
        theirs.fold(used, |sum, used| Some(sum.unwrap_or_default().plus(used)))
    }

    /// Where the log of the conversation is that a run had.
    pub(crate) fn log_path(&self, run: &RunRow) -> Option<PathBuf> {
        self.log_of_run(run).map(|found| found.path)
    }

    fn log_of_run(&self, run: &RunRow) -> Option<FoundLog> {
        let native_id = run.native_id.as_deref()?;
        let agent = segno_agents::by_name(&run.agent)?;
        let location = agent.conversation_log()?.location()?;
        // The agent looked where its own variables said, not ours.
        let theirs = run.environment.as_object().filter(|all| !all.is_empty());
        let variable = |name: &str| match theirs {
            Some(theirs) => theirs.get(name).and_then(Value::as_str).map(ToOwned::to_owned),
            None => self.options.variables.get(name).cloned(),
        };
        let path = find(&location, Path::new(&location.root(&variable)?), native_id)?;
        let sub_agents =
            location.sub_agents.and_then(|below| Some(path.parent()?.join(native_id).join(below)));
        Some(FoundLog { agent, native_id: native_id.to_owned(), path, sub_agents })
    }
}

/// Whether the agent says of a call that failed only that it was itself stopped meanwhile: what the call did by then,
/// nobody knows.
fn was_stopped(call: &TranscriptCall) -> bool {
    call.output_text().is_some_and(|text| text.contains("[Request interrupted by user"))
}

/// A log that is there.
struct FoundLog {
    agent: Box<dyn Agent>,
    native_id: String,
    path: PathBuf,
    sub_agents: Option<PathBuf>,
}

/// The call of a log that is the one of the ledger, if its end is there.
fn matching<'a>(transcript: &'a Transcript, row: &Item, recur: bool) -> Option<&'a TranscriptCall> {
    // From the second call with an id on, its name in the ledger has a number behind it.
    let (id, nth) =
        match row.key.rsplit_once('#').and_then(|(id, nth)| Some((id, nth.parse::<usize>().ok()?))) {
            Some((id, nth)) => (id, nth),
            None => (row.key.as_str(), 1),
        };
    let same_id = || transcript.calls.iter().filter(|call| call.call_id == row.key || call.call_id == id);
    if same_id().count() > 1 || nth > 1 {
        // Only if it was to do the same, too: the log may begin later, and the ledger may have other conversations.
        let wanted = subject(&row.row::<ToolRow>().input?);
        let call = same_id().nth(nth - 1)?;
        return Some(call).filter(|call| call.is_settled() && subject(&input(call)) == wanted);
    }
    let by_id = same_id().next();
    if by_id.is_some() || !recur {
        return by_id.filter(|call| call.is_settled());
    }
    // The record has other ids than the output: only what was to be done tells them apart, if it was done once.
    let wanted = without_shell(&subject(&row.row::<ToolRow>().input?));
    let mut same = transcript
        .calls
        .iter()
        .filter(|call| !wanted.is_empty() && without_shell(&subject(&input(call))) == wanted);
    match (same.next(), same.next()) {
        (Some(one), None) => Some(one).filter(|call| call.is_settled()),
        _ => None,
    }
}

fn input(call: &TranscriptCall) -> Value {
    call.input.read().unwrap_or_default()
}

/// The newest files of a folder.
fn newest_files(folder: Option<&Path>) -> Vec<PathBuf> {
    let Some(Ok(entries)) = folder.map(std::fs::read_dir) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?, entry.path())))
        .filter(|(meta, _)| meta.is_file())
        .filter_map(|(meta, path)| Some((meta.modified().ok()?, path)))
        .collect();
    files.sort();
    files.into_iter().rev().take(SUB_AGENTS).map(|(_, path)| path).collect()
}

/// The end of a log, in whole lines.
fn tail(path: &Path) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let skipped = length.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(skipped)).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    if skipped > 0 {
        // It begins in the middle of a line.
        let begin = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        bytes.drain(..begin);
    }
    Some(bytes)
}
