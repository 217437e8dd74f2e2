//! A session as an entry of a go-team registry, with its folder.

use segno_core::State;
use segno_core::Status;
use segno_core::event::CheckpointReason;
use segno_core::event::RestoreKind;
use segno_core::rows::CheckpointRow;
use segno_core::rows::FileRow;
use segno_core::rows::OutputRow;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::REGISTRY;
use super::checkpoint::checksum;
use super::then::Then;
use super::then::outputs;
use super::then::team_state;
use super::wire;
use super::word;
use crate::family::Family;
use crate::files::FileSet;
use crate::node::Node;
use crate::packed::sha256;
use crate::snapshot::Snapshot;

/// The documents' numbers, where a session has none of its own.
const STEPS: u32 = 9;
const AUTO_SAVE_SECONDS: u64 = 30;

/// The file of a checkpoint below the folder of the family.
fn checkpoint_file(session: &str, row: &CheckpointRow) -> String {
    format!("{session}/{}.json", row.id)
}

/// The numbers of the checkpoints whose files have to be made, for which it must be known how the session was then.
pub fn checkpoints_to_make(snapshot: &Snapshot<'_>, existing: &FileSet) -> Vec<(u64, u64)> {
    let id = session_name(snapshot);
    let rows = snapshot.rows::<CheckpointRow>().into_iter();
    let ours = rows.filter(|row| row.ready && !row.aside && !row.is_from_elsewhere());
    let is_there =
        |row: &CheckpointRow| existing.get(&checkpoint_file(&id, row)).is_some_and(super::is_whole);
    ours.filter(|row| !is_there(row)).map(|row| (row.ordinal, row.seq)).collect()
}

/// The session's name in the registry, and that of its folder.
pub fn session_name(snapshot: &Snapshot<'_>) -> String {
    snapshot.name(Family::GoTeam)
}

/// The files, the registry last: what it names is there.
pub fn write(snapshot: &Snapshot<'_>, existing: &FileSet) -> Vec<(String, Vec<u8>)> {
    let writer = Writer {
        snapshot,
        existing,
        id: session_name(snapshot),
        checkpoints: snapshot
            .rows::<CheckpointRow>()
            .into_iter()
            .filter(|row| row.ready && !row.aside)
            .collect(),
        outputs: snapshot.rows(),
        files: snapshot.rows(),
    };
    let mut files: Vec<_> = writer.checkpoints.iter().filter_map(|row| writer.checkpoint(row)).collect();
    let rollbacks = writer.rollbacks();
    if !rollbacks.is_empty() {
        let history = wire::RollbackHistory { session_id: writer.id.clone(), history: rollbacks };
        files.push(writer.json("rollback-history.json", &history, &[]));
    }
    if let Some(recovery) = writer.recovery() {
        files.push(writer.json("recovery.json", &recovery, &["last_known_state", "git_state"]));
    }
    files.push(writer.json("manifest.json", &writer.manifest(), &[]));
    let inner = ["state", "context", "outputs", "recovery_point", "session"];
    files.push(writer.json("state.json", &writer.live(), &inner));
    files.push((REGISTRY.to_owned(), writer.registry().to_json()));
    files
}

struct Writer<'a> {
    snapshot: &'a Snapshot<'a>,
    existing: &'a FileSet,
    id: String,
    checkpoints: Vec<CheckpointRow>,
    outputs: Vec<OutputRow>,
    files: Vec<FileRow>,
}

impl Writer<'_> {
    fn state(&self) -> &State {
        self.snapshot.state
    }

    /// A file of the session's folder. What an import kept of it is known by its name alone.
    fn json(&self, name: &str, ours: &impl serde::Serialize, inner: &[&str]) -> (String, Vec<u8>) {
        let path = format!("{}/{name}", self.id);
        let beyond = |ours: &Node| Node::beyond(self.existing.get(&path)?, ours, inner);
        let node = self.snapshot.document((Family::GoTeam, name), ours, beyond, inner);
        (path, node.to_json())
    }

    fn topic(&self) -> String {
        self.state().topic.clone().unwrap_or_default()
    }

    fn step(&self) -> u32 {
        self.rolled_back_to().map_or(self.state().step.unwrap_or(1), |row| self.step_of(row).0)
    }

    /// The step's name; before the first phase of a loop that is the one that it begins with.
    fn phase(&self) -> Option<String> {
        let state = self.state();
        let back = self.rolled_back_to().map(|row| self.step_of(row).1);
        let first = || Some(state.workflow.as_ref()?.phases.first()?.clone());
        back.or_else(|| state.phase.clone()).or_else(first).or_else(|| Some("init".to_owned()))
    }

    /// The checkpoint that the session was taken back to, until it moves on: it stands at the step of that, as the
    /// document wants it.
    fn rolled_back_to(&self) -> Option<&CheckpointRow> {
        let state = self.state();
        let mark =
            state.tree.restored.back().filter(|mark| mark.kind == RestoreKind::Rollback && mark.whole)?;
        let row = self.checkpoints.iter().find(|row| row.ordinal == mark.to)?;
        let moved = self.checkpoints.iter().any(|later| later.seq > mark.seq);
        (!moved && row.phase == state.phase && row.step == state.step).then_some(row)
    }

    /// What an import kept of a file: it is shown until the session has something of its own to say there.
    fn came(&self, file: &str, path: &[&str]) -> Option<&Value> {
        let kept = self.snapshot.carried_file(Family::GoTeam, file)?;
        path.iter().try_fold(kept, |value, name| value.get(name))
    }

    fn current_checkpoint(&self) -> Option<String> {
        let newest = self.checkpoints.iter().rev().find(|row| row.valid);
        let came = || self.came(REGISTRY, &["current_checkpoint"])?.as_str().map(ToOwned::to_owned);
        newest.map(|row| row.id.clone()).or_else(came)
    }

    /// The checkpoint that can be gone back to.
    fn recovery_checkpoint(&self) -> Option<String> {
        let came = self.came("state.json", &["recovery_point", "checkpoint"]).and_then(Value::as_str);
        let came = came.filter(|_| !self.checkpoints.iter().any(|row| row.valid));
        came.map(ToOwned::to_owned).or_else(|| self.current_checkpoint())
    }

    /// How many steps are done. What came with the session holds as long as it is at that step.
    fn steps_done(&self, total: u32) -> u32 {
        if self.state().status == Status::Completed {
            return total;
        }
        let came = |name: &str| self.came(REGISTRY, &[name])?.as_u64();
        let done = self.came(REGISTRY, &["progress", "steps_completed"]).and_then(Value::as_u64);
        let done = done.filter(|_| came("current_step") == Some(u64::from(self.step())));
        let done = done.and_then(|done| u32::try_from(done).ok());
        done.unwrap_or_else(|| self.step().saturating_sub(1)).min(total)
    }

    /// The branch of the newest checkpoint, if the session has none of its own; before there is one, that of its project.
    fn branch(&self) -> Option<String> {
        let head =
            || self.checkpoints.iter().rev().find_map(|row| branch(row.head.as_ref()?.branch.as_deref()?));
        let now = || branch(self.snapshot.branch.as_deref()?);
        self.state().branch.clone().or_else(head).or_else(now)
    }

    /// The id of the checkpoint with a number, also of one that is not listed any more.
    fn checkpoint_id(&self, number: u64) -> String {
        let known = self.checkpoints.iter().find(|row| row.ordinal == number);
        known.map_or_else(|| format!("cp-{number:02}"), |row| row.id.clone())
    }

    fn entry(&self) -> wire::Entry {
        let state = self.state();
        let total_steps = state.of.unwrap_or(STEPS);
        let steps_completed = self.steps_done(total_steps);
        wire::Entry {
            id: self.id.clone(),
            topic: self.topic(),
            status: word(state.status),
            created_at: state.created_at,
            updated_at: state.updated_at,
            current_step: self.step(),
            current_checkpoint: self.current_checkpoint(),
            progress: wire::Progress {
                steps_completed,
                total_steps,
                percentage: (steps_completed * 100 / total_steps.max(1)).min(100) as u8,
            },
            git_branch: self.branch(),
            resumable: state.is_resumable(),
            completed_at: state.completed_at,
            segno: wire::EntryExtension { session_id: state.session_id.to_string(), seq: state.seq },
        }
    }

    /// The registry with our entry in it; those of others stay as they are.
    fn registry(&self) -> Node {
        let present = self.existing.get(REGISTRY).and_then(|bytes| Node::read_json(bytes).ok());
        let mut mine = Node::of(&self.entry());
        let mut sessions = match present.as_ref().and_then(|registry| registry.member("sessions")) {
            Some(Node::List(entries)) => entries.clone(),
            _ => Vec::new(),
        };
        let name = Node::Text(self.id.clone());
        if let Some(carried) = self.snapshot.carried_file(Family::GoTeam, REGISTRY) {
            mine.adopt(&Node::of(carried), &["progress"]);
        }
        let place = sessions.iter().position(|entry| entry.member("id") == Some(&name));
        if let Some(place) = place {
            mine.adopt(&sessions[place], &["progress"]);
        }
        // Whoever else writes the registry may have been at our entry.
        crate::foreign_edit::seal_entry(&mut mine);
        match place {
            Some(place) => sessions[place] = mine,
            None => sessions.push(mine),
        }
        let mut registry = Node::Map(vec![
            ("version".to_owned(), Node::Text("1.0.0".to_owned())),
            ("sessions".to_owned(), Node::List(sessions)),
            ("last_active_session".to_owned(), name),
        ]);
        if let Some(present) = &present {
            registry.adopt(present, &[]);
        }
        registry
    }

    /// The step that a checkpoint is of, and its name: the one that it was made at the end of, else the one it was made in.
    fn step_of(&self, row: &CheckpointRow) -> (u32, String) {
        let phases = self.state().workflow.iter().flat_map(|workflow| &workflow.phases);
        let ended = row.of_phase().filter(|_| row.is_for(CheckpointReason::PhaseComplete));
        let done = phases.zip(1..).find(|(phase, _)| Some(phase.as_str()) == ended);
        if let Some((phase, number)) = done {
            return (number, phase.clone());
        }
        let named = if row.name.is_empty() { &row.reason } else { &row.name };
        (row.step.unwrap_or(1), row.phase.as_ref().unwrap_or(named).clone())
    }

    fn manifest(&self) -> wire::Manifest {
        let state = self.state();
        let came = self.came("manifest.json", &["checkpoints"]).and_then(Value::as_array);
        let came = |id: &str| came.into_iter().flatten().find(|one| one.get("id") == Some(&json!(id)));
        let checkpoints = self.checkpoints.iter().map(|row| {
            let (step, step_name) = self.step_of(row);
            let mut entry = Node::of(&wire::ManifestEntry {
                id: row.id.clone(),
                step,
                step_name,
                timestamp: row.created_at,
                valid: row.valid,
                invalidated_by: row.invalidated_by.map(|number| self.checkpoint_id(number)),
            });
            if let Some(came) = came(&row.id).filter(|_| row.is_from_elsewhere()) {
                entry.adopt(&Node::of(came), &[]);
            }
            entry
        });
        wire::Manifest {
            session_id: self.id.clone(),
            topic: self.topic(),
            created_at: state.created_at,
            updated_at: state.updated_at,
            checkpoints: checkpoints.collect(),
            current_checkpoint: self.current_checkpoint(),
            current_step: self.step(),
            rollback_history: self.rollbacks(),
        }
    }

    /// Every time it went back, those that it came with first.
    fn rollbacks(&self) -> Vec<Node> {
        let came = self.came("manifest.json", &["rollback_history"]).and_then(Value::as_array);
        let came = came.into_iter().flatten().map(Node::of);
        came.chain(self.own_rollbacks().iter().map(Node::of)).collect()
    }

    fn own_rollbacks(&self) -> Vec<wire::Rollback> {
        let restored = &self.state().tree.restored;
        let of = |ordinal: u64| self.checkpoints.iter().find(|row| row.ordinal == ordinal);
        let rolled_back = restored.iter().filter(|mark| mark.kind == RestoreKind::Rollback);
        rolled_back
            .map(|mark| {
                // The newest one then; one that is gone back to may be the newest itself.
                let before = || self.checkpoints.iter().rev().filter(|row| row.seq < mark.seq);
                let from = before().find(|row| row.ordinal > mark.to).or_else(|| before().next());
                let to = of(mark.to);
                wire::Rollback {
                    id: format!("rb-{}", mark.seq),
                    timestamp: mark.at,
                    from_checkpoint: from.map(|row| row.id.clone()),
                    from_step: from.map(|row| self.step_of(row).0),
                    to_checkpoint: to.map(|row| row.id.clone()),
                    to_step: to.map(|row| self.step_of(row).0),
                    reason: "observer_requested",
                }
            })
            .collect()
    }

    fn team_state(&self) -> wire::TeamState {
        wire::TeamState { phase: self.phase(), current_step: self.step(), ..team_state(self.state()) }
    }

    fn live(&self) -> wire::Live {
        let state = self.state();
        let checkpoint = self.recovery_checkpoint();
        wire::Live {
            session_id: self.id.clone(),
            saved_at: state.updated_at,
            save_trigger: self.snapshot.save_trigger.clone(),
            state: self.team_state(),
            context: wire::Context {
                last_action: state.last_action.clone(),
                pending_tasks: state.tasks.open.values().cloned().collect(),
                current_file: state.position.as_ref().map(|position| position.file.clone()),
                current_line: state.position.as_ref().and_then(|position| position.line),
            },
            outputs: outputs(state, &self.outputs, &self.files),
            recovery_point: wire::RecoveryPoint {
                checkpoint: checkpoint.clone(),
                actions_since_checkpoint: state.actions_since_checkpoint,
                can_resume_from_action: state.is_resumable(),
            },
            session: wire::SessionBlock {
                id: self.id.clone(),
                status: word(state.status),
                created_at: state.created_at,
                auto_save: wire::AutoSave {
                    enabled: state.status.is_open(),
                    interval: AUTO_SAVE_SECONDS,
                    last_save: state.updated_at,
                },
                recovery: wire::RecoveryBlock {
                    enabled: state.is_resumable(),
                    last_checkpoint: checkpoint,
                    actions_since_checkpoint: state.actions_since_checkpoint,
                },
            },
            segno: self.snapshot.extension(),
        }
    }

    /// How to go on, for a session that was interrupted. One that somebody paused was not.
    fn recovery(&self) -> Option<wire::Recovery> {
        let state = self.state();
        let mark = state.recovery.as_ref();
        if !matches!(state.status, Status::Interrupted | Status::Halted) {
            return None;
        }
        let reason = state.reason.as_ref().map(|reason| reason.what.clone());
        let why =
            mark.map(|mark| mark.interrupt_reason.clone()).or(reason).unwrap_or_default().to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| why.contains(word));
        let interrupt_reason = if has(&["time", "silent"]) {
            "timeout"
        } else if has(&["error", "fail", "breaker", "missing"]) {
            "error"
        } else if has(&["asked", "budget", "limit", "ctrl", "ended", "stopped"]) {
            "disconnect"
        } else {
            "crash"
        };
        let checkpoint = self.recovery_checkpoint();
        let recommended = if checkpoint.is_some() { "checkpoint" } else { "live_state" };
        let mut options = Vec::new();
        let mut offer = |kind, target, description, data_loss| {
            let id = options.len() as u32 + 1;
            options.push(wire::RecoveryOption {
                id,
                kind,
                target,
                description,
                data_loss,
                recommended: kind == recommended,
            });
        };
        if let Some(id) = checkpoint {
            let lost = format!("{} actions since checkpoint", state.actions_since_checkpoint);
            offer("checkpoint", Some(id), "Resume from last checkpoint (safe)", lost);
        }
        let doubt = match state.calls.in_doubt.len() {
            0 => "nothing".to_owned(),
            calls => format!("nothing; calls in doubt: {calls}"),
        };
        offer(
            "live_state",
            Some("state.json".to_owned()),
            "Resume from last auto-save (experimental)",
            doubt,
        );
        offer("fresh_start", None, "Start fresh from step 1", "all progress".to_owned());
        let last = mark.map(|mark| &mark.last_known_state);
        let head = self.checkpoints.last().and_then(|row| row.head.as_ref());
        Some(wire::Recovery {
            session_id: self.id.clone(),
            interrupted_at: mark.map_or(state.updated_at, |mark| mark.interrupted_at),
            interrupt_reason,
            last_known_state: wire::LastKnown {
                step: last.and_then(|last| last.step).unwrap_or(self.step()),
                step_name: last.map_or_else(|| state.phase.clone(), |last| last.phase.clone()),
                agent: last.and_then(|last| last.agent.clone()).or_else(|| state.agent.clone()),
                action: last.and_then(|last| last.action.clone()).or_else(|| state.last_action.clone()),
            },
            recovery_options: options,
            recommended,
            auto_resume_enabled: state.is_resumable(),
            git_state: wire::GitState {
                branch: self.branch(),
                last_commit: head.and_then(|head| head.commit.clone()),
                uncommitted_changes: None,
            },
        })
    }

    /// A checkpoint is written once; later only its validity changes. None of one that came with the session and has a
    /// file: that holds what nobody here knows, so it stays as it is.
    fn checkpoint(&self, row: &CheckpointRow) -> Option<(String, Vec<u8>)> {
        let path = checkpoint_file(&self.id, row);
        let present = self.existing.object(&path).ok().flatten();
        let is_ours = present.as_ref().is_some_and(|file| file.contains_key(crate::EXTENSION));
        if row.is_from_elsewhere() && !is_ours && self.existing.get(&path).is_some() {
            return None;
        }
        let known = present.filter(|file| file.get("checksum") == Some(&json!(checksum(file))));
        let mut file = known.unwrap_or_else(|| self.new_checkpoint(row));
        file.insert("valid".to_owned(), json!(row.valid));
        if let Some(number) = row.invalidated_by {
            file.insert("invalidated_by".to_owned(), json!(self.checkpoint_id(number)));
        }
        Some((path, ordered(&file).to_json()))
    }

    /// What a checkpoint held: the session as it was then, and not as it is now. Of one that came without its file only
    /// its row is known.
    fn new_checkpoint(&self, row: &CheckpointRow) -> Map<String, Value> {
        let (head, row_at) = (row.head.as_ref(), row.created_at);
        let then = self.snapshot.then.get(&row.ordinal).cloned();
        let Then { mut state, outputs, files } = then.unwrap_or_else(|| match row.is_from_elsewhere() {
            true => Then::unknown(self.state()),
            // Where the journal does not tell, what is known of the present is kept to what was there then.
            false => {
                let is_then = |row: &&FileRow| row.changed_at.is_none_or(|at| at <= row_at);
                let files: Vec<FileRow> = self.files.iter().filter(is_then).cloned().collect();
                Then::of(self.state(), &self.outputs, &files)
            }
        });
        let (step_number, step_name) = self.step_of(row);
        // One at the end of a step is of that step, though the next one has begun.
        state.phase = Some(step_name.clone());
        state.current_step = step_number;
        let checkpoint = wire::Checkpoint {
            id: row.id.clone(),
            session_id: self.id.clone(),
            step_number,
            step_name,
            created_at: row.created_at,
            state,
            outputs,
            files,
            git: wire::Git {
                enabled: head.is_some(),
                branch: head.and_then(|head| branch(head.branch.as_deref()?)),
                commit_hash: head.and_then(|head| head.commit.clone()),
            },
        };
        let mut file = match json!(checkpoint) {
            Value::Object(members) => members,
            // A struct is an object.
            _ => Map::new(),
        };
        file.insert("checksum".to_owned(), json!(checksum(&file)));
        file.insert(
            crate::EXTENSION.to_owned(),
            json!({ "checkpoint": sha256(row.checksum.as_bytes()), "ordinal": row.ordinal }),
        );
        file
    }
}

/// The members of a checkpoint in the document's order.
fn ordered(file: &Map<String, Value>) -> Node {
    const ORDER: [&str; 12] = [
        "id",
        "session_id",
        "step_number",
        "step_name",
        "created_at",
        "state",
        "outputs",
        "files",
        "git",
        "checksum",
        "valid",
        "invalidated_by",
    ];
    let first = ORDER.iter().filter_map(|name| Some(((*name).to_owned(), Node::of(file.get(*name)?))));
    let rest = file.iter().filter(|(name, _)| !ORDER.contains(&name.as_str()));
    Node::Map(first.chain(rest.map(|(name, value)| (name.clone(), Node::of(value)))).collect())
}

/// The branch as people call it.
fn branch(name: &str) -> Option<String> {
    Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned())
}
