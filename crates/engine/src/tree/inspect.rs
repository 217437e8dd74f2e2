//! Looking at checkpoints: what changed between two, and whether one is whole.

use segno_core::SessionId;
use segno_core::State;
use segno_core::event::CheckpointReady;
use segno_workspace::Change;
use segno_workspace::Selection;
use segno_workspace::Side;
use serde_json::Value;
use serde_json::json;

use super::checkpoint::Checkpoint;
use super::checkpoint::from_elsewhere;
use super::checkpoint::refuse_from_elsewhere;
use crate::Engine;
use crate::Error;

/// What is different between two checkpoints, or one and now.
#[derive(Debug)]
pub struct Compared {
    /// Files.
    pub files: Vec<Change>,
    /// Values of the session: name, before, after.
    pub values: Vec<(String, Value, Value)>,
    /// Commits of the project's repository, before and after.
    pub commits: (Option<String>, Option<String>),
}

/// Whether a checkpoint can be relied on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validation {
    /// What is wrong.
    pub problems: Vec<String>,
    /// How many objects of its snapshot were read.
    pub objects: u64,
    /// How many bytes they have.
    pub bytes: u64,
}

impl Engine {
    /// What is different between a checkpoint and another one, or now.
    pub fn compare(
        &self,
        session: SessionId,
        before: &Checkpoint,
        after: Option<&Checkpoint>,
        lines: bool,
    ) -> Result<Compared, Error> {
        for checkpoint in [Some(before), after].into_iter().flatten() {
            refuse_from_elsewhere(checkpoint)?;
        }
        let state = self.load(session)?.state;
        let workspace = self.workspace(&state)?;
        let first = self.snapshot_of(&workspace, before)?;
        let files = match after {
            Some(after) => {
                let second = self.snapshot_of(&workspace, after)?;
                workspace.diff(&first, Side::Snapshot(&second), lines)?
            }
            None => workspace.diff(&first, Side::Present, lines)?,
        };
        let (then, _) = segno_store::state_at(self.store(), session, before.seq)?;
        let now = match after {
            Some(after) => segno_store::state_at(self.store(), session, after.seq)?.0,
            None => state,
        };
        let commit = |checkpoint: &Checkpoint| checkpoint.head.as_ref().and_then(|head| head.commit.clone());
        let last = match after {
            Some(after) => commit(after),
            None => workspace.head()?.and_then(|head| head.commit),
        };
        Ok(Compared { files, values: values(&then, &now), commits: (commit(before), last) })
    }

    /// Only the files that are different now from a checkpoint.
    pub(crate) fn changed_files(&self, state: &State, before: &Checkpoint) -> Result<Vec<Change>, Error> {
        let workspace = self.workspace(state)?;
        let first = self.snapshot_of(&workspace, before)?;
        Ok(workspace.diff(&first, Side::Present, false)?)
    }

    /// The same as text that people read.
    pub fn diff_text(
        &self,
        session: SessionId,
        before: &Checkpoint,
        after: Option<&Checkpoint>,
        selection: &Selection,
    ) -> Result<Vec<u8>, Error> {
        let state = self.load(session)?.state;
        let workspace = self.workspace(&state)?;
        let first = self.snapshot_of(&workspace, before)?;
        Ok(match after {
            Some(after) => {
                let second = self.snapshot_of(&workspace, after)?;
                workspace.diff_text(&first, Side::Snapshot(&second), selection)?
            }
            None => workspace.diff_text(&first, Side::Present, selection)?,
        })
    }

    /// Reads everything that belongs to a checkpoint.
    pub fn validate(&self, session: SessionId, checkpoint: &Checkpoint) -> Result<Validation, Error> {
        let state = self.load(session)?.state;
        let mut validation = Validation::default();
        let mut problem = |why: String| validation.problems.push(why);
        if checkpoint.is_from_elsewhere() {
            problem(from_elsewhere(checkpoint));
            return Ok(validation);
        }
        if !checkpoint.ready {
            let why = checkpoint.problem.as_ref().map(|why| why.short(200)).or(checkpoint.dropped.clone());
            problem(why.unwrap_or_else(|| "it never became ready".to_owned()));
            return Ok(validation);
        }
        let said = CheckpointReady {
            ordinal: checkpoint.ordinal,
            seq: checkpoint.seq,
            snapshot: checkpoint.snapshot.clone(),
            conversation: checkpoint.conversation.clone(),
            head: checkpoint.head.clone(),
            ..CheckpointReady::default()
        };
        if self.checksum(&state, &said)? != checkpoint.checksum {
            problem("its checksum does not fit what is recorded".to_owned());
        }
        if !checkpoint.valid {
            problem(format!(
                "invalidated by a rollback to an earlier checkpoint ( {:?})",
                checkpoint.invalidated_by.unwrap_or(0)
            ));
        }
        let (_, notices) = segno_store::state_at(self.store(), session, checkpoint.seq)?;
        notices.into_iter().for_each(&mut problem);
        if checkpoint.snapshot.is_some() {
            let workspace = self.workspace(&state)?;
            let verified = self.snapshot_of(&workspace, checkpoint).and_then(|s| Ok(workspace.verify(&s)?));
            match verified {
                Ok(verified) => (validation.objects, validation.bytes) = (verified.objects, verified.bytes),
                Err(why) => validation.problems.push(why.to_string()),
            }
        }
        Ok(validation)
    }
}

/// The values that people compare: plan, metrics, outputs, use.
fn values(then: &State, now: &State) -> Vec<(String, Value, Value)> {
    let of = |state: &State| -> Vec<(String, Value)> {
        let mut values = vec![
            ("phase".to_owned(), json!(state.phase_label())),
            ("iteration".to_owned(), json!(state.iteration)),
            ("status".to_owned(), json!(state.status)),
            ("progress".to_owned(), json!(state.progress())),
            ("tokens".to_owned(), json!(state.budget.tokens_used)),
            ("cost_micros".to_owned(), json!(state.cost.used_micros)),
            ("tool_calls".to_owned(), json!(state.calls.total)),
            ("decisions".to_owned(), json!(state.decisions.count)),
            ("open_tasks".to_owned(), json!(state.tasks.open.len())),
            ("errors".to_owned(), json!(state.errors.count)),
        ];
        values.extend(state.metrics.iter().map(|(name, value)| (format!("metric {name}"), json!(value))));
        values.extend(state.outputs.iter().map(|(name, mark)| (format!("output {name}"), json!(mark.bytes))));
        values
    };
    let (before, after) = (of(then), of(now));
    let mut names: Vec<&String> = before.iter().chain(&after).map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    let value = |values: &[(String, Value)], name: &str| {
        values.iter().find(|(known, _)| known == name).map_or(Value::Null, |(_, value)| value.clone())
    };
    names
        .into_iter()
        .map(|name| (name.clone(), value(&before, name), value(&after, name)))
        .filter(|(_, before, after)| before != after)
        .collect()
}
