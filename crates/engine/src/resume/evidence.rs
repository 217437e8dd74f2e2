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
use segno_agents::transcript::CallStatus;
use segno_agents::transcript::Records;
use segno_agents::transcript::Transcript;
use segno_agents::transcript::TranscriptCall;
use segno_core::Command;
use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::call::subject;
use segno_core::event::CallEnd;
use segno_core::text::shorten;
use segno_store::Item;
use serde_json::Value;

use super::words::without_shell;
use crate::Engine;
use crate::Error;

/// How much of the end of a record is read: a call without an end is among the last.
const TAIL: u64 = 32 << 20;
/// Most records of sub-agents that are looked at.
const SUB_AGENTS: usize = 64;
/// Most folders that are looked into for a record.
const FOLDERS: usize = 20_000;
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
            match self.act_with(session, vec![command], None, epoch) {
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
            let run = row.body.get("run").and_then(Value::as_str).map(ToOwned::to_owned);
            if let Some(run) = run.or_else(|| state.run.as_ref().map(|run| run.id.clone())) {
                by_run.entry(run).or_default().push(row);
            }
        }
        // Ids of runs sort by time.
        let runs: Vec<String> = by_run.keys().rev().take(RUNS).cloned().collect();
        let mut found = Vec::new();
        for run in self.store().rows(state.session_id, List::Runs, &runs)? {
            let calls = by_run.remove(&run.key).unwrap_or_default();
            found.extend(self.evidence_of_run(&run.body, &calls));
        }
        Ok(found)
    }

    fn evidence_of_run(&self, run: &Value, calls: &[Item]) -> Vec<Command> {
        let word = |name: &str| run.get(name).and_then(Value::as_str);
        let (Some(name), Some(native_id)) = (word("agent"), word("native_id")) else { return Vec::new() };
        let Some(agent) = segno_agents::by_name(name) else { return Vec::new() };
        // The agent looked where its own variables said, not ours.
        let theirs = run.get("environment").and_then(Value::as_object).filter(|all| !all.is_empty());
        let variable = |name: &str| match theirs {
            Some(theirs) => theirs.get(name).and_then(Value::as_str).map(ToOwned::to_owned),
            None => self.options.variables.get(name).cloned(),
        };
        let Some(records) = agent.records(&variable, native_id) else { return Vec::new() };
        let Some(file) = find(&records) else { return Vec::new() };
        let mut transcripts: Vec<Transcript> = read(agent.as_ref(), &file).into_iter().collect();
        if let Some(folder) = records.sub_agents.as_ref().and_then(|folder| Some(file.parent()?.join(folder)))
        {
            transcripts.extend(newest_files(&folder).iter().filter_map(|file| read(agent.as_ref(), file)));
        }
        let recur = agent.call_ids_recur();
        calls
            .iter()
            .filter_map(|row| {
                let call = transcripts.iter().find_map(|transcript| matching(transcript, row, recur))?;
                let end = match call.status {
                    CallStatus::Finished => CallEnd::Completed,
                    CallStatus::Failed => CallEnd::Failed,
                    CallStatus::Open => return None,
                };
                let output = call.output_text().map(|text| shorten(&text, OUTPUT).into());
                let evidence = format!("{name}'s own record of conversation {native_id}");
                Some(Command::SettleCall { call: row.key.clone(), end, output, evidence })
            })
            .collect()
    }
}

/// The call of a record that is the one of the ledger, if its end is there.
fn matching<'a>(transcript: &'a Transcript, row: &Item, recur: bool) -> Option<&'a TranscriptCall> {
    let by_id = transcript.calls.iter().rev().find(|call| call.call_id == row.key);
    if by_id.is_some() || !recur {
        return by_id.filter(|call| call.is_settled());
    }
    // The record has other ids than the output: only what was to be done tells them apart, if it was done once.
    let wanted = without_shell(&subject(row.body.get("input")?));
    let mut same = transcript.calls.iter().filter(|call| {
        let input: Value = call.input.read().unwrap_or_default();
        !wanted.is_empty() && without_shell(&subject(&input)) == wanted
    });
    match (same.next(), same.next()) {
        (Some(one), None) => Some(one).filter(|call| call.is_settled()),
        _ => None,
    }
}

/// The file of a record, wherever it is below its folder.
fn find(records: &Records) -> Option<PathBuf> {
    let fits = |name: &str| if records.whole { name == records.name } else { name.ends_with(&records.name) };
    let mut folders = vec![(PathBuf::from(&records.folder), 0)];
    let mut looked = 0;
    while let Some((folder, depth)) = folders.pop() {
        looked += 1;
        if looked > FOLDERS {
            return None;
        }
        if depth == records.depth && records.whole {
            let file = folder.join(&records.name);
            if file.is_file() {
                return Some(file);
            }
            continue;
        }
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        // Folders are named by date in some records: the newest is taken first.
        names.sort();
        for path in names {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if depth < records.depth && path.is_dir() {
                folders.push((path, depth + 1));
            } else if depth == records.depth && fits(name) && path.is_file() {
                return Some(path);
            }
        }
    }
    None
}

/// The newest files of a folder.
fn newest_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?, entry.path())))
        .filter(|(meta, _)| meta.is_file())
        .filter_map(|(meta, path)| Some((meta.modified().ok()?, path)))
        .collect();
    files.sort();
    files.into_iter().rev().take(SUB_AGENTS).map(|(_, path)| path).collect()
}

/// What the end of a record says.
fn read(agent: &dyn Agent, path: &Path) -> Option<Transcript> {
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
    agent.transcript(&bytes)
}
