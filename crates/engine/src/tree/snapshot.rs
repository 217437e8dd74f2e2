//! Making a checkpoint's snapshot, and saying that it is ready only when it is on disk.

use segno_core::Command;

use segno_core::Event;
use segno_core::EventKey;
use segno_core::Fact;
use segno_core::Input;
use segno_core::SessionId;
use segno_core::State;
use segno_core::StoreId;
use segno_core::event::CheckpointCreated;
use segno_core::event::CheckpointReady;
use segno_core::event::CheckpointReason;
use segno_core::event::ConversationMark;
use segno_core::event::HeadMark;
use segno_core::event::SnapshotMark;
use segno_workspace::Snapshot;
use segno_workspace::Workspace;

use super::checkpoint::Checkpoint;
use crate::Acted;
use crate::Engine;
use crate::Error;
use crate::act::Acting;
use crate::engine::fresh_key;
use crate::resume::plan::short_branch;

/// Under whom a checkpoint is made, and what is known of the conversation.
#[derive(Clone, Debug, Default)]
pub struct At {
    /// The driver's epoch.
    pub epoch: Option<u64>,
    /// The run.
    pub run: Option<String>,
    /// The agent's own id of the last message.
    pub message: Option<String>,
    /// How far its output was read.
    pub offset: Option<u64>,
    /// Set by whoever does not want the snapshot any more.
    pub cancel: Option<std::sync::Arc<std::sync::atomic::AtomicBool>>,
}

impl Engine {
    /// Sets a checkpoint and takes its snapshot.
    pub fn checkpoint(
        &self,
        session: SessionId,
        name: Option<String>,
        reason: CheckpointReason,
        at: &At,
    ) -> Result<Acted, Error> {
        let command = Command::CreateCheckpoint { name, reason };
        self.act_as(session, vec![command], Acting::step(at))
    }

    /// Gives a session a branch of its own in the project's repository; `{id}` in the name stands for its id.
    pub fn start_branch(&self, session: SessionId, name: &str) -> Result<Acted, Error> {
        let state = self.load(session)?.state;
        let name = name.replace("{id}", &session.to_string()).replace("<id>", &session.to_string());
        let branch = self.workspace(&state)?.start_branch(&name)?;
        let details = Some(branch.as_str().into());
        let noted = Fact::HistoryNoted { action: "branch_started".to_owned(), phase: None, details };
        let set = Command::SetGitBranch { branch: Some(short_branch(&branch).to_owned()), commit: None };
        self.act_all(session, [Input::from(noted), set.into()], None)
    }

    /// Takes the snapshots of the checkpoints among these events, which were just recorded. What fails is recorded
    /// and said aloud; the session itself is not held up by it.
    pub(crate) fn make_ready(
        &self,
        state: &mut State,
        events: &[Event],
        first: u64,
        at: &At,
        notices: &mut Vec<String>,
    ) {
        if self.options.tree.is_none() {
            return;
        }
        for (index, event) in events.iter().enumerate() {
            let Event::CheckpointCreated(created) = event else { continue };
            if let Err(why) = self.make_one_ready(state, created, first + index as u64, at, notices) {
                notices.push(format!("checkpoint {} could not be recorded as ready: {why}", created.id));
            }
        }
    }

    /// Events with those left out whose checkpoints are ready, or were given up.
    pub(crate) fn not_ready(&self, session: SessionId, events: &[Event]) -> Vec<Event> {
        if self.options.tree.is_none() {
            return Vec::new();
        }
        let waits = |event: &Event| match event {
            Event::CheckpointCreated(made) => self
                .checkpoint_number(session, made.ordinal)
                .is_ok_and(|checkpoint| !checkpoint.ready && checkpoint.dropped.is_none()),
            _ => true,
        };
        // What comes later in the list keeps its number by what came before.
        let any = events.iter().any(|event| matches!(event, Event::CheckpointCreated(_)) && waits(event));
        if any { events.to_vec() } else { Vec::new() }
    }

    /// The same for the newest checkpoint, when somebody else recorded it.
    pub(crate) fn make_newest_ready(&self, state: &mut State, at: &At, notices: &mut Vec<String>) {
        let Some(seq) = state.checkpoint.as_ref().map(|mark| mark.seq) else { return };
        let rows = self.store().events(state.session_id, seq - 1, 1).unwrap_or_default();
        if let Some(segno_store::EventRow::Whole(stored)) = rows.first()
            && let Ok(event) = stored.event()
        {
            self.make_ready(state, &[event], seq, at, notices);
        }
    }

    fn make_one_ready(
        &self,
        state: &mut State,
        created: &CheckpointCreated,
        seq: u64,
        at: &At,
        notices: &mut Vec<String>,
    ) -> Result<(), Error> {
        let taken = self.workspace_until(state, at.cancel.clone()).and_then(|workspace| {
            // A tree between two places is nobody's work. What is there is kept all the same.
            notices.extend(super::pending::settle(&workspace).unwrap_or_else(|why| Some(why.to_string())));
            let name = snapshot_name(self.store_id(), state.session_id, created.ordinal);
            let taken = match workspace.snapshot(&name) {
                // Tried before, and the process died before it could say so.
                Err(segno_workspace::Error::NameTaken(_)) => workspace.get(&name)?,
                taken => taken?.snapshot,
            };
            Ok((taken, workspace.head().ok().flatten()))
        });
        let command = match taken {
            Ok((snapshot, head)) => {
                let head = head.map(|head| HeadMark { commit: head.commit, branch: head.branch });
                let ready = self.ready(state, created.ordinal, seq, Some(mark(&snapshot)), head, at)?;
                Command::ReadyCheckpoint(Box::new(ready))
            }
            Err(why) => {
                notices.push(format!("checkpoint {} has no files: {why}", created.id));
                Command::FailCheckpoint { ordinal: created.ordinal, why: why.to_string().into() }
            }
        };
        // That it failed is no last word: the next try may succeed.
        let key = match &command {
            Command::ReadyCheckpoint(_) => ready_key(created.ordinal),
            _ => fresh_key(),
        };
        let acted = self.act_as(state.session_id, vec![command], Acting::step(at).keyed(key))?;
        *state = acted.state;
        // Whoever wrote the files for other tools then had something to say too.
        notices.extend(acted.notices);
        self.thin_out(state, at);
        Ok(())
    }

    /// What is said of a checkpoint that is on disk.
    pub(super) fn ready(
        &self,
        state: &State,
        ordinal: u64,
        seq: u64,
        snapshot: Option<SnapshotMark>,
        head: Option<HeadMark>,
        at: &At,
    ) -> Result<CheckpointReady, Error> {
        let conversation = state.run.as_ref().and_then(|run| {
            Some(ConversationMark {
                agent: run.agent.clone(),
                native_id: run.native_id.clone()?,
                message: at.message.clone(),
                offset: at.offset,
                exact: !run.is_running() || (at.message.is_some() && state.calls.open.is_empty()),
            })
        });
        let mut ready =
            CheckpointReady { ordinal, seq, snapshot, conversation, head, ..CheckpointReady::default() };
        ready.checksum = self.checksum(state, &ready)?;
        Ok(ready)
    }

    /// Over the journal up to the sign, the snapshot and the conversation: BLAKE3 of these lines, each ended by a line
    /// feed, an absent value being empty.
    pub(crate) fn checksum(&self, state: &State, ready: &CheckpointReady) -> Result<String, Error> {
        let rows = self.store().events(state.session_id, ready.seq.saturating_sub(1), 1)?;
        let chain = match rows.into_iter().next() {
            Some(segno_store::EventRow::Whole(event)) if event.seq == ready.seq => {
                blake3::Hash::from_bytes(event.hash).to_hex().to_string()
            }
            _ => String::new(),
        };
        let text = |text: Option<&String>| text.cloned().unwrap_or_default();
        let conversation = ready.conversation.as_ref();
        let lines = [
            "segno checkpoint 1".to_owned(),
            state.uid.to_string(),
            ready.ordinal.to_string(),
            ready.seq.to_string(),
            chain,
            text(ready.snapshot.as_ref().map(|snapshot| &snapshot.commit)),
            text(conversation.map(|conversation| &conversation.agent)),
            text(conversation.map(|conversation| &conversation.native_id)),
            text(conversation.and_then(|conversation| conversation.message.as_ref())),
            text(ready.head.as_ref().and_then(|head| head.commit.as_ref())),
            text(ready.head.as_ref().and_then(|head| head.branch.as_ref())),
        ];
        Ok(blake3::hash((lines.join("\n") + "\n").as_bytes()).to_hex().to_string())
    }

    /// The snapshot of a checkpoint.
    pub(crate) fn snapshot_of(
        &self,
        workspace: &Workspace,
        checkpoint: &Checkpoint,
    ) -> Result<Snapshot, Error> {
        let mark = checkpoint.snapshot.as_ref().filter(|_| checkpoint.ready).ok_or_else(|| {
            let why = checkpoint.problem.as_ref().map(|why| why.short(200)).or(checkpoint.dropped.clone());
            let why = why.map_or(String::new(), |why| format!(": {why}"));
            Error::NoTree(format!("checkpoint {} has no files{why}", checkpoint.id))
        })?;
        let snapshot = workspace.get(&mark.name)?;
        if snapshot.commit.to_string() != mark.commit {
            return Err(Error::NoTree(format!(
                "checkpoint {} is not the one that was recorded: its snapshot was replaced",
                checkpoint.id
            )));
        }
        Ok(snapshot)
    }
}

/// The same for every try, so that a checkpoint becomes ready once.
fn ready_key(ordinal: u64) -> EventKey {
    format!("checkpoint-{ordinal}-ready").parse().unwrap_or_else(|_| fresh_key())
}

/// What stands before the store's id in the name of a snapshot.
const OF_STORE: &str = ".of-";

/// Several stores may keep snapshots of one project: each name says whose it is.
pub(super) fn snapshot_name(store: StoreId, session: SessionId, ordinal: u64) -> String {
    format!("{session}/{ordinal:06}{OF_STORE}{store}")
}

/// The store that a snapshot's name says; none for those of earlier versions.
pub(crate) fn store_of(name: &str) -> Option<StoreId> {
    name.split_once(OF_STORE)?.1.get(..36)?.parse().ok()
}

/// A snapshot as the journal has it.
pub(crate) fn mark(snapshot: &Snapshot) -> SnapshotMark {
    SnapshotMark {
        name: snapshot.name.clone(),
        commit: snapshot.commit.to_string(),
        tree: snapshot.tree.to_string(),
        files: snapshot.files,
        bytes: snapshot.bytes,
        changed: snapshot.changed,
        left_out: snapshot.left_out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_store() {
        let store = StoreId::new(uuid::Uuid::now_v7());
        let session: SessionId = "session_20261116_175231_719260".parse().unwrap();
        let name = snapshot_name(store, session, 7);
        assert_eq!(store_of(&name), Some(store));
        assert_eq!(store_of(&format!("{name}-2")), Some(store));
        assert_eq!(store_of("session_20261116_175231_719260/000007"), None);
    }
}
