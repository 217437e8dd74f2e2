//! From what somebody wants, and settings, to a run that can begin.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use segno_agents::Agent;
use segno_agents::Baseline;
use segno_agents::Conversation;
use segno_agents::LaunchRequest;
use segno_agents::plain::PlainConfig;
use segno_agents::plain::RuleKind;
use segno_core::Command;
use segno_core::CostBudget;
use segno_core::SessionId;
use segno_core::State;
use segno_core::TokenBudget;
use segno_core::UserKey;
use segno_core::event::Maker;
use segno_core::event::WorkItemMark;

use super::Chosen;
use super::LaunchSettings;
use super::Overridden;
use super::prompt::WorkItem;
use super::versions;
use crate::Engine;
use crate::Error;
use crate::frontend::Frontend;
use crate::resume::ResumedAgent;
use crate::run::Feed;
use crate::run::Limits;
use crate::run::Request;
use crate::run::Stop;
use crate::run::Terminal;
use crate::run::permission::Permissions;

/// What is recorded of the environment: names that hold no secrets and say how the agent was set up.
const RECORDED: &[&str] = &[
    "LANG",
    "LC_ALL",
    "TZ",
    "TERM",
    "SHELL",
    "PATH",
    "HOME",
    "USER",
    "PWD",
    "CI",
    "EDITOR",
    "VIRTUAL_ENV",
    "XDG_CONFIG_HOME",
    "NODE_ENV",
    "RUST_LOG",
];

/// What somebody wants to be run.
#[derive(Default)]
pub struct Intent {
    /// Where it works.
    pub run_in: RunIn,
    /// The directory that it begins in, if not the root of the project. One that is not in the project is none.
    pub directory: Option<PathBuf>,
    /// Go on in the conversation of this session.
    pub continues: Option<SessionId>,
    /// In a copy of that conversation, which stays as it is.
    pub fork: bool,
    /// What it is asked; empty for somebody at its terminal who knows.
    pub prompt: String,
    /// The work item that this is about.
    pub item: Option<WorkItem>,
    /// The file that says what is to be done, as it is named in the record.
    pub file: Option<String>,
    /// The model, if not the configured one.
    pub model: Option<String>,
    /// A cap on turns, if not the configured one.
    pub max_turns: Option<u32>,
    /// Stop after it has used more than so many tokens.
    pub max_tokens: Option<u64>,
    /// Stop after it has cost more than so many millionths of a dollar.
    pub max_micros: Option<u64>,
    /// Stop after so long altogether.
    pub max_duration: Option<Duration>,
    /// Stop after so long without a sign of life; nothing is never.
    pub silence: Option<Duration>,
    /// How long each step of stopping waits.
    pub grace: Option<Duration>,
    /// Do not let the agent report its calls before they run.
    pub no_hooks: bool,
    /// More arguments for the agent.
    pub args: Vec<String>,
    /// Whether a person gets the agent's own terminal.
    pub interactive: bool,
    /// That terminal, if it is this process's own.
    pub terminal: Option<Terminal>,
    /// Who answers when the agent asks whether a call may run; none leaves it to the agent.
    pub permissions: Option<Permissions>,
    /// Where the agent's own output goes as it came, if anybody wants it.
    pub raw: Option<Box<dyn Write + Send>>,
    /// The key under which taking a session up twice does it once.
    pub key: Option<UserKey>,
}

/// In which session, and in which conversation, an agent works.
pub enum RunIn {
    /// In a new session.
    New(FreshSession),
    /// In this session, in a new conversation.
    Open {
        /// The session.
        session: SessionId,
        /// Caps that are set in it first.
        caps: Vec<Command>,
    },
    /// In this session, which this process drives already.
    Driven {
        /// The session.
        session: SessionId,
        /// Whether its newest conversation with the agent goes on, if there is one.
        same: bool,
    },
    /// In this session, from where it stopped.
    Again {
        /// The session.
        session: SessionId,
        /// Who goes on, in which conversation, and what it is told.
        agent: ResumedAgent,
        /// Whether the breaker is closed.
        reset_breaker: bool,
    },
}

impl Default for RunIn {
    fn default() -> Self {
        Self::New(FreshSession::default())
    }
}

/// A session to be made for a run.
#[derive(Clone, Debug, Default)]
pub struct FreshSession {
    /// What it is about, if somebody said so.
    pub topic: Option<String>,
    /// The command as it was typed, which may have to serve as a topic.
    pub typed: String,
    /// A git branch to begin; `{id}` stands for the session's id.
    pub branch: Option<String>,
    /// Tokens it may use, if not the configured ones.
    pub budget: Option<TokenBudget>,
    /// Money it may cost, if not the configured one.
    pub cost: Option<CostBudget>,
}

/// A run that is ready to begin.
pub struct Launch {
    /// What the engine is asked.
    pub request: Request,
    /// The session as it is.
    pub state: State,
}

/// The conversation that an agent has, and the session it is in.
struct Talk {
    state: State,
    conversation: Conversation,
    baseline: Baseline,
}

impl Engine {
    /// Reads everything that can be wrong before a session is made, then makes it, or takes it up again.
    ///
    /// # Errors
    /// If the session, the one it continues or the one above may not have a run now.
    pub fn plan(
        &self,
        chosen: Chosen,
        mut intent: Intent,
        settings: &LaunchSettings,
        frontend: &dyn Frontend,
        (feed, stop): (&Feed, &Stop),
    ) -> Result<Launch, Error> {
        let hook_command = hook_command(settings, intent.no_hooks, chosen.agent.as_ref())?;
        let run_in = std::mem::take(&mut intent.run_in);
        let briefed = matches!(run_in, RunIn::Again { .. });
        if let RunIn::Again { agent, .. } = &run_in {
            intent.prompt.clone_from(&agent.prompt);
        }
        let talk = self.talk(run_in, &chosen, &intent, settings, frontend)?;
        let state = talk.state;
        // What is taken up again goes on where it was.
        let before = state.run.as_ref().filter(|_| briefed).map(|run| PathBuf::from(&run.directory));
        let project = PathBuf::from(&state.project.path);
        let directory = before.or_else(|| intent.directory.take()).and_then(|there| inside(&project, &there));
        let request = Request {
            session: state.session_id,
            completes: state.made_by == Maker::Run,
            version: versions::known(&settings.state, &chosen.program),
            limits: limits(&chosen, &intent, settings),
            launch: launch(&chosen, &mut intent, settings, &state, talk.conversation, hook_command, frontend),
            given_args: intent.args,
            file: intent.file,
            work_item: intent.item.map(|item| WorkItemMark { id: item.id, title: item.title }),
            below: None,
            briefed,
            baseline: talk.baseline,
            directory: directory.unwrap_or(project),
            recorded_environment: RECORDED
                .iter()
                .copied()
                .chain(segno_agents::log_variables())
                .map(ToOwned::to_owned)
                .collect(),
            capture_command: settings.capture_command.clone(),
            sole_process: settings.sole_process,
            hook_file: settings.hook_file.as_ref().map(crate::hook_file::HookFile::to_bytes),
            scratch: settings.scratch.clone(),
            resources: settings.resources,
            stop: stop.clone(),
            permissions: intent.permissions,
            feed: feed.clone(),
            terminal: intent.terminal,
            raw: intent.raw,
            agent: chosen.agent,
            plain: chosen.plain,
            program: chosen.program,
            environment: chosen.environment,
        };
        Ok(Launch { request, state })
    }

    /// The session, made or taken up again, and the conversation in it.
    fn talk(
        &self,
        run_in: RunIn,
        chosen: &Chosen,
        intent: &Intent,
        settings: &LaunchSettings,
        frontend: &dyn Frontend,
    ) -> Result<Talk, Error> {
        let from = match (&run_in, intent.continues) {
            (RunIn::New(_) | RunIn::Open { .. }, Some(session)) => {
                Some(self.continued(session, chosen.agent.name(), intent.fork, frontend)?)
            }
            _ => None,
        };
        let state = match run_in {
            RunIn::New(new) => {
                self.check_start_below()?;
                self.check_day(&super::project_at(&settings.project).path)?;
                self.create_for_run(new, intent, settings, frontend)?
            }
            RunIn::Open { session, caps } => {
                self.check_start_below()?;
                self.prepare_open(session, caps, frontend)?;
                self.take_up(session, false, intent.key.clone(), frontend)?
            }
            RunIn::Driven { session, same } => {
                let from = match same {
                    true => self.continued_or_before(session, chosen.agent.name(), frontend),
                    false => Err(Error::NoConversation { session, agent: chosen.agent.name().to_owned() }),
                };
                let (conversation, baseline) = match from {
                    Ok(from) => (Conversation::Resume(from.native_id), from.baseline),
                    Err(Error::NoConversation { .. }) => (fresh(chosen, false), Baseline::Fresh),
                    Err(why) => return Err(why),
                };
                return Ok(Talk { state: self.load_to_start(session, frontend)?, conversation, baseline });
            }
            RunIn::Again { session, agent, reset_breaker } => {
                let known = self.continued(agent.from, chosen.agent.name(), true, frontend);
                let known = known.map_or(Baseline::Unknown, |from| from.baseline);
                let (conversation, baseline) = match agent.conversation {
                    Conversation::New => (fresh(chosen, false), Baseline::Fresh),
                    given @ Conversation::NewWithId(_) => (given, Baseline::Fresh),
                    other @ (Conversation::Resume(_) | Conversation::Fork { .. }) => (other, known),
                };
                let state = self.take_up(session, reset_breaker, intent.key.clone(), frontend)?;
                return Ok(Talk { state, conversation, baseline });
            }
        };
        let Some(from) = from else {
            let conversation = fresh(chosen, intent.interactive);
            return Ok(Talk { state, conversation, baseline: Baseline::Fresh });
        };
        let conversation = match intent.fork {
            true => {
                let id = Some(new_conversation()).filter(|_| chosen.agent.capabilities().chooses_id);
                Conversation::Fork { from: from.native_id, id, at: None }
            }
            false => Conversation::Resume(from.native_id),
        };
        Ok(Talk { state, conversation, baseline: from.baseline })
    }
}

/// A conversation of its own, under a known id where the agent lets us choose one: that survives any crash of it.
fn fresh(chosen: &Chosen, at_terminal: bool) -> Conversation {
    let can = chosen.agent.capabilities();
    match can.chooses_id || (at_terminal && can.chooses_id_at_terminal) {
        true => Conversation::NewWithId(new_conversation()),
        false => Conversation::New,
    }
}

/// What the agent itself is started with.
fn launch(
    chosen: &Chosen,
    intent: &mut Intent,
    settings: &LaunchSettings,
    state: &State,
    conversation: Conversation,
    hook_command: Option<Vec<String>>,
    frontend: &dyn Frontend,
) -> LaunchRequest {
    let common = &chosen.settings.common;
    let max_cost_usd = max_cost(state, common.max_cost_usd);
    // What somebody says for this run, and a cap of the session, is not undone by what the settings add.
    let said = Overridden {
        model: intent.model.is_some(),
        max_turns: intent.max_turns.is_some(),
        max_cost: state.cost.hard && max_cost_usd.is_some(),
    };
    let configured = said.take_out(&common.extra_args);
    let capped = state.budget.hard || (state.cost.hard && state.cost.limit_micros.is_some());
    if capped && chosen.agent.capabilities().tells_use_late {
        frontend.warn(&format!(
            "{} says what it used only at its end: a cap cannot stop this run, only the next one",
            chosen.agent.name()
        ));
    }
    let tells = |plain: &PlainConfig| {
        plain.rules.iter().any(|rule| matches!(rule.kind, RuleKind::Tokens | RuleKind::Cost))
    };
    if capped && chosen.plain.as_ref().is_some_and(|plain| !tells(plain)) {
        frontend.warn(&format!(
            "{} does not say what it uses: a cap cannot stop it, only what segno runs below it counts",
            chosen.agent.name()
        ));
    }
    let money = (state.cost.hard && state.cost.limit_micros.is_some()) || intent.max_micros.is_some();
    if money && chosen.plain.is_some() && chosen.agent.capabilities().tells_cost {
        frontend.warn(&format!(
            "what {} costs is known only as far as its rule finds it: a cap on money stops it when that tells, and \
             nothing more is started when it never does",
            chosen.agent.name()
        ));
    }
    LaunchRequest {
        prompt: std::mem::take(&mut intent.prompt),
        conversation,
        program: Some(chosen.program.display().to_string()),
        model: intent.model.take().or_else(|| Some(common.model.clone()).filter(|model| !model.is_empty())),
        max_turns: max_turns(chosen, intent, settings),
        max_cost_usd,
        extra_args: configured.into_iter().chain(intent.args.iter().cloned()).collect(),
        hook_command,
        private_tmp: None,
        interactive: intent.interactive,
        forwards_permission_prompts: intent.permissions.is_some(),
        outside_git: repository(&settings.project).is_none(),
        env: common.env.clone(),
    }
}

fn limits(chosen: &Chosen, intent: &Intent, settings: &LaunchSettings) -> Limits {
    let seconds = |seconds: u64| (seconds > 0).then(|| Duration::from_secs(seconds));
    let silence = intent.silence.map(|silence| silence.as_secs());
    let silence = silence.or(chosen.settings.common.silence_seconds).unwrap_or(settings.silence_seconds);
    let keeps_turns = !intent.interactive && chosen.agent.capabilities().caps_turns;
    Limits {
        silence: seconds(silence),
        max_duration: intent
            .max_duration
            .or_else(|| seconds(settings.wall_seconds))
            .filter(|limit| !limit.is_zero()),
        grace: intent.grace.unwrap_or(settings.grace),
        turns: max_turns(chosen, intent, settings).filter(|_| !keeps_turns),
        tokens: intent.max_tokens,
        micros: intent.max_micros,
    }
}

fn max_turns(chosen: &Chosen, intent: &Intent, settings: &LaunchSettings) -> Option<u32> {
    let positive = |n: u32| Some(n).filter(|n| *n > 0);
    let own = intent.max_turns.or_else(|| positive(chosen.settings.common.max_turns));
    own.or_else(|| positive(settings.max_turns))
}

/// What is left of a hard budget is also the agent's own cap, so that it stops by itself.
fn max_cost(state: &State, configured: f64) -> Option<f64> {
    let left = state
        .cost
        .limit_micros
        .filter(|_| state.cost.hard)
        .map(|limit| limit.saturating_sub(state.cost.used_micros) as f64 / 1e6);
    let configured = Some(configured).filter(|cost| *cost > 0.0);
    match (left, configured) {
        (Some(left), Some(configured)) => Some(left.min(configured)),
        (left, configured) => left.or(configured),
    }
}

fn hook_command(
    settings: &LaunchSettings,
    no_hooks: bool,
    agent: &dyn Agent,
) -> Result<Option<Vec<String>>, Error> {
    if no_hooks || !settings.hooks || !agent.capabilities().hooks {
        return Ok(None);
    }
    let own = settings.hook_program.to_str().ok_or(Error::ProgramNotText)?;
    Ok(Some(vec![own.to_owned(), "hook".to_owned(), agent.name().to_owned()]))
}

/// A directory of a project, as it is named from the root of that.
fn inside(project: &Path, directory: &Path) -> Option<PathBuf> {
    let (root, there) = (project.canonicalize().ok()?, directory.canonicalize().ok()?);
    let below = there.strip_prefix(root).ok().filter(|_| there.is_dir())?;
    Some(if below.as_os_str().is_empty() { project.to_owned() } else { project.join(below) })
}

/// The repository that a directory is in.
fn repository(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|directory| directory.join(".git").exists())
}

fn new_conversation() -> String {
    uuid::Uuid::now_v7().to_string()
}
