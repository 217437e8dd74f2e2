//! Going to a checkpoint: looked at first, a way back kept, and nothing destroyed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use segno_core::Command;
use segno_core::SessionId;
use segno_core::State;
use segno_core::event::CheckpointReason;
use segno_core::event::FilesRestored;
use segno_core::event::RestoreKind;
use segno_workspace::Applied;
use segno_workspace::Plan;
use segno_workspace::Selection;
use segno_workspace::Why;
use segno_workspace::Workspace;

use super::attribution::Whose;
use super::busy::AgentsAllowed;
use super::checkpoint::Checkpoint;
use super::hold::RestoreLock;
use super::snapshot::At;
use super::snapshot::mark;
use crate::Engine;
use crate::Error;
use crate::act::Acting;

/// Where to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreTarget {
    /// To a checkpoint.
    Checkpoint(u64),
    /// Back by so many turns: what the session did in them.
    Undo(u64),
    /// Back to a checkpoint: what the session did since.
    UndoTo(u64),
    /// Forward by so many.
    Redo(u64),
}

/// How to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreRequest {
    /// Where.
    pub target: RestoreTarget,
    /// Which files.
    pub selection: Selection,
    /// Whether files are meant.
    pub files: bool,
    /// Whether plan and values of the session are meant.
    pub state: bool,
    /// Whether later checkpoints count no more.
    pub rollback: bool,
    /// Whether the branch goes back too.
    pub git: bool,
    /// Whether an undo also takes back what others did meanwhile.
    pub all: bool,
}

impl RestoreRequest {
    /// All files to a checkpoint, and nothing else.
    pub fn files_of(ordinal: u64) -> Self {
        Self {
            target: RestoreTarget::Checkpoint(ordinal),
            selection: Selection::All,
            files: true,
            state: false,
            rollback: false,
            git: false,
            all: false,
        }
    }

    /// Files may go back while an agent waits. What the session itself is like, or its branch, may not.
    fn company(&self) -> AgentsAllowed {
        match self.state || self.rollback || self.git {
            true => AgentsAllowed::Nobody,
            false => AgentsAllowed::Waiting,
        }
    }

    fn kind(&self) -> RestoreKind {
        match self.target {
            RestoreTarget::Undo(_) | RestoreTarget::UndoTo(_) => RestoreKind::Undo,
            RestoreTarget::Redo(_) => RestoreKind::Redo,
            RestoreTarget::Checkpoint(_) if self.rollback => RestoreKind::Rollback,
            RestoreTarget::Checkpoint(_) => RestoreKind::Restore,
        }
    }
}

/// What going there will do.
pub struct Preview {
    /// The checkpoint to go to.
    pub target: Checkpoint,
    /// What happens to files; none if they are not meant.
    pub plan: Option<Plan>,
    /// Whether a branch moves, from where to where.
    pub branch: Option<(String, String)>,
    state: State,
    workspace: Option<Workspace>,
    request: RestoreRequest,
    /// The snapshot of what is there now, and its checkpoint once that is recorded.
    safety: Option<String>,
    recorded: Option<u64>,
    /// How often the session had gone somewhere when this was looked at.
    restores: u64,
    /// What would happen if it were all the session's, and whose it was.
    whole: Option<(Plan, BTreeMap<PathBuf, Whose>)>,
    /// What ran while all of it changed, if nothing tells what it did on the way.
    pub(super) ran: Option<String>,
    /// What the user should know.
    pub notices: Vec<String>,
}

impl Preview {
    /// What may have been the session or somebody else; it is left alone unless it is asked for.
    pub fn unsure(&self) -> Vec<PathBuf> {
        let Some((whole, whose)) = &self.whole else { return Vec::new() };
        whole.files().filter(|path| whose.get(path) == Some(&Whose::Unsure)).collect()
    }

    /// Takes that back too.
    pub fn take_unsure(&mut self) {
        if let Some((whole, whose)) = &self.whole {
            self.plan = Some(leave(whole, whose, true));
        }
    }

    /// Whether another preview would do just the same.
    pub(super) fn does_the_same_as(&self, other: &Self) -> bool {
        let deeds = |preview: &Self| {
            preview.plan.as_ref().map(|plan| {
                let (writes, removals): (Vec<_>, Vec<_>) =
                    (plan.writes().collect(), plan.removals().collect());
                (writes, removals, plan.kept.clone(), plan.target.commit)
            })
        };
        let same_files = |one: &Self, other: &Self| match (&one.plan, &other.plan) {
            (Some(one), Some(other)) => one.starts_from_the_same(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        deeds(self) == deeds(other) && same_files(self, other) && self.branch == other.branch
    }
}

/// The plan without what is not the session's.
fn leave(whole: &Plan, whose: &BTreeMap<PathBuf, Whose>, takes_unsure: bool) -> Plan {
    let mut plan = whole.clone();
    plan.leave(|path| match whose.get(path) {
        Some(Whose::Session) => None,
        Some(Whose::Unsure) if takes_unsure => None,
        Some(Whose::Unsure) => Some(Why::Unsure),
        Some(Whose::Others) | None => Some(Why::Others),
    });
    plan
}

/// What going there did.
pub struct Restored {
    /// The session now.
    pub state: State,
    /// What happened to files.
    pub applied: Applied,
    /// The checkpoint that holds what was there before.
    pub safety: Option<u64>,
    /// The branch that was moved, and the ref that keeps where it was.
    pub branch: Option<String>,
    /// What the user should know.
    pub notices: Vec<String>,
}

impl Engine {
    /// Looks at what going somewhere would do. Takes a snapshot of the present tree for it.
    pub fn preview(&self, session: SessionId, request: RestoreRequest) -> Result<Preview, Error> {
        let mut state = self.load(session)?.state;
        let beside = self.refuse_while_driven(&state, request.company())?;
        // What a run did that is not over is in no checkpoint yet.
        if matches!(request.target, RestoreTarget::Undo(_))
            && beside.iter().any(|agent| agent.session == session)
        {
            let reason = CheckpointReason::Asked;
            state = self.checkpoint(session, Some("before undo".to_owned()), reason, &At::default())?.state;
        }
        // A restore that was cut short is settled first, or nothing could be trusted.
        let workspace = request.files.then(|| self.workspace(&state));
        let opened = workspace.as_ref().and_then(|workspace| workspace.as_ref().ok());
        let mut notices = Vec::from_iter(opened.map(super::pending::settle_or_refuse).transpose()?.flatten());
        let (target, from) = self.target(&state, &request, &mut notices)?;
        super::refuse_from_elsewhere(&target)?;
        if request.rollback {
            self.check_rollback(&state, &target)?;
        }
        let branch = match request.git {
            true => Some(self.branch_move(&state, &target)?),
            false => None,
        };
        let mut preview = Preview {
            restores: state.tree.restores,
            target,
            plan: None,
            branch,
            state,
            workspace: None,
            request,
            safety: None,
            recorded: None,
            whole: None,
            ran: None,
            notices,
        };
        if let Some(workspace) = workspace.transpose()? {
            self.look_at_files(&mut preview, workspace, from)?;
        }
        Ok(preview)
    }

    fn look_at_files(
        &self,
        preview: &mut Preview,
        workspace: Workspace,
        from: Option<Checkpoint>,
    ) -> Result<(), Error> {
        let Preview { target, request, state, .. } = &*preview;
        let goal = self.snapshot_of(&workspace, target)?;
        let name = format!("{}/before-{}", state.session_id, uuid::Uuid::now_v7().simple());
        let safety = workspace.safety_snapshot(&name)?.snapshot;
        let planned = || -> Result<(Plan, Option<BTreeMap<PathBuf, Whose>>), Error> {
            let Some(from) = &from else {
                return Ok((workspace.plan(&goal, &request.selection, &safety)?, None));
            };
            let after = self.snapshot_of(&workspace, from)?;
            let plan = workspace.plan_undo(&goal, &after, &request.selection, &safety)?;
            let undoes =
                matches!(request.target, RestoreTarget::Undo(_) | RestoreTarget::UndoTo(_)) && !request.all;
            let whose = undoes.then(|| self.whose(state, &workspace, target, from)).transpose()?;
            Ok((plan, whose))
        };
        let (plan, whose) = planned().inspect_err(|_| {
            let _ = workspace.drop_snapshot(&name);
        })?;
        preview.plan = Some(match &whose {
            Some(whose) => leave(&plan, whose, false),
            None => plan.clone(),
        });
        if whose.is_some() {
            preview.ran = self.one_call(preview.state.session_id).ok().flatten();
        }
        preview.whole = whose.map(|whose| (plan, whose));
        (preview.workspace, preview.safety) = (Some(workspace), Some(name));
        Ok(())
    }

    /// Records what is there now as a checkpoint. From then on nothing takes it away, however long somebody thinks
    /// about the preview.
    pub fn keep_present(&self, preview: &mut Preview) -> Result<(), Error> {
        if let (Some(plan), None) = (&preview.plan, preview.recorded) {
            preview.recorded = Some(self.keep_safety(&mut preview.state, plan)?);
        }
        Ok(())
    }

    /// Lets a preview be.
    pub fn forget(&self, preview: Preview) {
        if let Some(ordinal) = preview.recorded {
            let why = "nothing was changed then".to_owned();
            // A checkpoint too many does no harm.
            let _ = self.act_as(
                preview.state.session_id,
                vec![Command::DropCheckpoint { ordinal, why }],
                Acting::by_itself(),
            );
        }
        if let (Some(workspace), Some(name)) = (&preview.workspace, &preview.safety) {
            let _ = workspace.drop_snapshot(name);
        }
    }

    /// Goes there. The safety checkpoint is in the journal before a file is touched.
    pub fn go(&self, mut preview: Preview) -> Result<Restored, Error> {
        self.keep_present(&mut preview)?;
        let hold = preview.workspace.as_ref().map(Workspace::hold_tree).transpose()?;
        // Whoever goes somewhere records it before letting go of the tree. What was looked at before that is not there
        // any more, and was not what is meant now.
        if self.load(preview.state.session_id)?.state.tree.restores != preview.restores {
            drop(hold);
            self.forget(preview);
            return Err(Error::TreeMoved);
        }
        let Preview { target, plan, branch, state, workspace, request, recorded, .. } = preview;
        let session = state.session_id;
        let at = At::default();
        let (mut state, mut notices) = (state, Vec::new());
        let mut applied = Applied::default();
        let mut commands = Vec::new();
        if let (Some(plan), Some(workspace), Some(ordinal), Some(hold)) = (plan, workspace, recorded, &hold) {
            // First calls are held, then it is asked whether one is open: whoever begins one records it first and then
            // looks whether it is held.
            let going = RestoreLock::begin(workspace.shadow())?;
            let beside = self.refuse_while_held(&state, request.company())?;
            let (kind, to) = (request.kind().as_str(), target.ordinal);
            tracing::info!(%session, kind, to, safety = ordinal, "files are put back");
            applied = workspace.apply_held(hold, &plan).inspect_err(|why| {
                tracing::error!(%session, kind, to, safety = ordinal, %why, "files could not be put back");
            })?;
            going.tell(&beside, &target.id, &applied);
            drop(going);
            commands.push(FilesRestored {
                kind: request.kind(),
                to: target.ordinal,
                safety: ordinal,
                whole: request.selection == Selection::All,
                written: applied.written.len() as u64,
                removed: applied.removed.len() as u64,
                kept: applied.kept.len() as u64,
                branch: None,
            });
        }
        let moved = match &branch {
            Some((from, to)) => {
                let name = format!("{session}-{}", target.id);
                let moved = self.workspace(&state)?.move_branch(from, to, &name)?;
                Some(format!(
                    "{} moved from {} to {}; {} keeps where it was",
                    moved.what, moved.from, moved.to, moved.kept_as
                ))
            }
            None => None,
        };
        if let Some(restored) = commands.last_mut() {
            restored.branch.clone_from(&moved);
        }
        let mut commands: Vec<Command> = commands.into_iter().map(Command::RecordRestore).collect();
        if request.state {
            let (then, more) = segno_store::state_at(self.store(), session, target.seq)?;
            notices.extend(more);
            let outputs = self.outputs_at(session, &then, target.seq)?;
            commands.push(Command::RestoreState { to: target.ordinal, state: Box::new(then) });
            commands.extend(outputs);
        }
        if request.rollback && state.counts.checkpoints > target.ordinal {
            commands.push(Command::InvalidateCheckpoints { after: target.ordinal });
        }
        if !commands.is_empty() {
            let acted = self.act_as(session, commands, Acting::step(&at))?;
            notices.extend(acted.notices);
            state = acted.state;
        }
        drop(hold);
        Ok(Restored { state, applied, safety: recorded, branch: moved, notices })
    }

    /// Records the safety snapshot as a checkpoint, so that going there can itself be undone.
    fn keep_safety(&self, state: &mut State, plan: &Plan) -> Result<u64, Error> {
        let at = At::default();
        let name = Some("before restore".to_owned());
        let command = Command::CreateCheckpoint { name, reason: CheckpointReason::BeforeRestore };
        let acted = self.act_as(state.session_id, vec![command], Acting::by_itself())?;
        *state = acted.state;
        let sign =
            state.checkpoint.clone().ok_or_else(|| Error::NoTree("no checkpoint was made".to_owned()))?;
        let ordinal = state.counts.checkpoints;
        let mut ready = self.ready(state, ordinal, sign.seq, Some(mark(&plan.safety)), None, &at)?;
        ready.safety_only = true;
        *state = self
            .act_as(state.session_id, vec![Command::ReadyCheckpoint(Box::new(ready))], Acting::by_itself())?
            .state;
        Ok(ordinal)
    }

    /// A rollback goes back, never forward, and never to one that counts no more.
    fn check_rollback(&self, state: &State, target: &Checkpoint) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::NoTree(why));
        if !target.valid {
            return refuse(format!(
                "checkpoint {} was invalidated by a rollback to an earlier checkpoint",
                target.id
            ));
        }
        if let Some(at) = state.tree.at
            && target.ordinal > at
        {
            return refuse(format!("checkpoint {} lies ahead: a rollback goes back only", target.id));
        }
        let validation = self.validate(state.session_id, target)?;
        if let Some(problem) = validation.problems.first() {
            return refuse(format!("checkpoint {} is not whole: {problem}", target.id));
        }
        Ok(())
    }

    fn branch_move(&self, state: &State, target: &Checkpoint) -> Result<(String, String), Error> {
        let to = target.head.as_ref().and_then(|head| head.commit.clone()).ok_or_else(|| {
            Error::NoTree(format!("checkpoint {} knows no commit of the project's repository", target.id))
        })?;
        let head = self.workspace(state)?.head()?;
        let from = head
            .and_then(|head| head.commit)
            .ok_or_else(|| Error::NoTree("the project has no repository with a commit".to_owned()))?;
        Ok((from, to))
    }
}
