//! One look at a session for a status line: quick, without a change of anything but what the agent itself tells of the
//! windows of its plan, and never an error. What cannot be read is left out.

use std::path::PathBuf;
use std::time::Duration;

use segno_agents::LimitWindow;
use segno_agents::StatusInput;
use segno_core::Fact;
use segno_core::SessionId;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::event::LimitSeen;
use segno_core::event::WindowSeen;

use crate::Actor;
use crate::Choice;
use crate::Engine;
use crate::act::Acting;
use crate::setup::Opening;
use crate::setup::Purpose;
use crate::setup::Setup;
use crate::tree::At;
use crate::watch;

/// How long a store that somebody else writes to is waited for: the line is drawn again soon.
const BUSY: Duration = Duration::from_millis(50);

/// What an agent told its status line, and which agent that was.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The agent.
    pub agent: &'static str,
    /// What it told.
    pub input: StatusInput,
}

impl Told {
    /// Reads it. None if no agent tells such a thing.
    pub fn read(input: &[u8]) -> Option<Self> {
        segno_agents::CODING.iter().find_map(|agent| {
            let input = segno_agents::by_name(agent)?.status_line(input)?;
            Some(Self { agent, input })
        })
    }
}

/// Whose line is drawn.
pub struct StatusVisit {
    /// What the engine is made from.
    pub setup: Setup,
    /// Under whom this process acts.
    pub actor: Actor,
    /// The session that somebody named: an id, the end of one, or `last`.
    pub named: Option<String>,
    /// The project, for whoever names no session.
    pub project: PathBuf,
    /// What an agent told.
    pub told: Option<Told>,
}

impl StatusVisit {
    /// The session as it stands. None if there is none, or it cannot be read now.
    pub fn look(mut self) -> Option<State> {
        self.setup.busy = self.setup.busy.min(BUSY);
        self.setup.view.enabled = false;
        let known = self.conversation();
        // A conversation that nobody records has no session; another one's would be a lie.
        if self.named.is_none() && self.told.is_some() && known.is_none() {
            return None;
        }
        let actor = self.actor.clone();
        let at_most = Some(BUSY);
        let opening = Opening { purpose: Purpose::OneShot, create: false, actor, waits: None, at_most };
        let engine = self.setup.open(opening).ok()?;
        let session = match (&self.named, &known) {
            (Some(named), _) => engine.find(named, Some(&self.project)).ok()?,
            (None, Some(known)) => known.session,
            (None, None) => newest(&engine, &self.project)?,
        };
        let state = engine.load(session).ok()?.state;
        let at = match known {
            Some(known) => At { run: known.run, epoch: known.epoch, ..At::default() },
            None => At { run: self.actor.run.clone(), epoch: self.actor.epoch, ..At::default() },
        };
        self.keep_windows(&engine, &state, &at);
        Some(state)
    }

    fn conversation(&self) -> Option<watch::Known> {
        let told = self.told.as_ref()?;
        watch::known(&self.setup.state, told.agent, told.input.native_id.as_deref()?)
    }

    /// Records what the agent told of its plan's windows, if that is news. The next line tells it again if this fails.
    fn keep_windows(&self, engine: &Engine, state: &State, at: &At) {
        let Some(told) = &self.told else { return };
        // Only the one who runs knows whose windows these are: a line may be drawn of another session.
        let is_own = state.run.as_ref().is_some_and(|run| run.is_running() && run.agent == told.agent);
        let windows = &told.input.windows;
        let is_news = windows.iter().any(|window| is_news(state, told.agent, window));
        if !is_own || !is_news || engine.is_copy() {
            return;
        }
        let seen = LimitSeen {
            agent: Some(told.agent.to_owned()),
            windows: windows.iter().map(seen).collect(),
            ..LimitSeen::default()
        };
        let Ok(body) = serde_json::to_value(seen) else { return };
        let fact = Fact::Reported { what: LimitSeen::REPORT.to_owned(), body };
        if let Err(why) = engine.act_as(state.session_id, [fact], Acting::step(at)) {
            tracing::info!(session = %state.session_id, %why, "the windows of a plan were not recorded");
        }
    }
}

fn newest(engine: &Engine, project: &std::path::Path) -> Option<SessionId> {
    match engine.session_to_read(project).ok()? {
        Choice::One(id) => Some(id),
        Choice::Latest { session, .. } => Some(session.session_id),
        Choice::None | Choice::Several(_) => None,
    }
}

fn seen(window: &LimitWindow) -> WindowSeen {
    WindowSeen { name: window.name.clone(), utilization: window.utilization, resets_at: window.resets_at }
}

/// In whole percent: smaller steps are not recorded.
fn percent(share: f64) -> f64 {
    (share * 100.0).round()
}

fn is_news(state: &State, agent: &str, window: &LimitWindow) -> bool {
    let Some(mark) = state.limits.values().find(|mark| mark.agent == agent && mark.window == window.name)
    else {
        return true;
    };
    let resets_at = window.resets_at.map(|seconds| Timestamp::EPOCH.plus_seconds(seconds));
    let step = match (mark.utilization, window.utilization) {
        (Some(known), Some(told)) => percent(known) != percent(told),
        (known, told) => told.is_some() && known.is_none(),
    };
    step || resets_at.is_some() && resets_at != mark.resets_at
}
