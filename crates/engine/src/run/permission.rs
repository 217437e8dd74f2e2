//! Calls that an agent asks about: answered by rules, else by a person, else refused.
//!
//! The person is asked in a thread of their own: however long they think, the run is watched and recorded meanwhile.
//! The question is in the journal too, where it can be answered from anywhere (`question.rs`); the first answer counts.
//! What was asked and who answered what is in the journal before the agent hears of it.

use std::collections::VecDeque;
use std::io::Write;
use std::process::ChildStdin;
use std::sync::mpsc;
use std::time::Duration;
use std::time::Instant;

use segno_agents::Agent;
use segno_agents::AgentEvent;
use segno_agents::Permission;
use segno_agents::PermissionRule;
use segno_agents::Raw;
use segno_agents::SameCall;
use segno_agents::plain_path;
use segno_core::Fact;
use segno_core::SessionId;
use segno_core::Timestamp;
use segno_core::event::QuestionAsked;
use segno_core::event::QuestionClosed;
use segno_core::state::GivenAnswer;
use serde_json::json;

use super::journal::Recorder;
use super::question::QuestionNames;
use super::question::answered_elsewhere;
use super::question::answered_here;
use crate::Error;

/// Who answers the agent of a run.
#[derive(Default)]
pub struct Permissions {
    /// Calls that may run.
    pub allow: Vec<PermissionRule>,
    /// Calls that may not, whatever else is said.
    pub deny: Vec<PermissionRule>,
    /// Asks a person about what no rule settles. Without one it is refused.
    pub person: Option<AskPerson>,
    /// Why it is refused, when nobody is asked.
    pub otherwise: String,
    /// Whether a question waits in the journal for whoever answers it from elsewhere, also without such a person.
    pub waits: bool,
    /// Tells somebody who is not looking that a question waits.
    pub tell: Option<TellPerson>,
    /// How long a person may take for an answer.
    pub patience: Option<Duration>,
    /// Where the agent works: relative paths begin there.
    pub directory: std::path::PathBuf,
}

/// Puts one question to a person and waits for the answer.
pub type AskPerson = Box<dyn FnMut(&Question) -> Reply + Send>;

/// Tells somebody that a question waits.
pub type TellPerson = Box<dyn FnMut(&Question) + Send>;

/// A question.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Its name in the journal, if it is there.
    pub id: Option<String>,
    /// The session that asks.
    pub session: SessionId,
    /// What that is about.
    pub topic: String,
    /// When it was asked.
    pub at: Timestamp,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: Raw,
    /// What an answer for the whole run would be about.
    pub like: SameCall,
}

/// What a person says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// This once.
    Yes,
    /// This and all like it, to the end of the run.
    Always,
    /// No, and why.
    No(Option<String>),
    /// There is nobody any more.
    Gone,
}

/// What is said to the agent's standard input, by a thread that may wait for it.
pub(super) struct AgentInput(mpsc::Sender<Vec<u8>>);

impl AgentInput {
    /// Begins with the prompt. Dropping it closes the standard input.
    pub(super) fn start(mut stdin: ChildStdin, prompt: Vec<u8>) -> Self {
        let (say, said) = mpsc::channel::<Vec<u8>>();
        std::thread::spawn(move || {
            for line in std::iter::once(prompt).chain(said) {
                if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
                    break;
                }
            }
        });
        Self(say)
    }

    fn say(&self, line: Vec<u8>) {
        // An agent that has ended needs no answer.
        let _ = self.0.send(line);
    }
}

struct Asked {
    request_id: String,
    call: Option<String>,
    tool: String,
    input: Raw,
}

/// An answer, and where it came from.
struct Answer {
    permission: Permission,
    by: &'static str,
    rule: Option<String>,
    for_all: bool,
}

/// The question that a person thinks about.
struct Open {
    number: u64,
    since: Instant,
    /// Its name in the journal, if it waits there.
    id: Option<String>,
}

/// The questions of one run.
pub(super) struct Asking {
    voice: Option<AgentInput>,
    permissions: Permissions,
    always: Vec<SameCall>,
    waiting: VecDeque<Asked>,
    open: Option<Open>,
    count: u64,
    names: QuestionNames,
    ask: Option<mpsc::Sender<(u64, Question)>>,
    tell: Option<mpsc::Sender<Question>>,
    replies: mpsc::Receiver<(u64, Reply)>,
}

impl Asking {
    pub(super) fn new(voice: AgentInput, mut permissions: Permissions) -> Self {
        let (reply, replies) = mpsc::channel();
        let ask = permissions.person.take().map(|mut person| {
            let (ask, asked) = mpsc::channel::<(u64, Question)>();
            // It waits for a person, who may never answer; nobody waits for it.
            std::thread::spawn(move || {
                for (number, question) in asked {
                    if reply.send((number, person(&question))).is_err() {
                        break;
                    }
                }
            });
            ask
        });
        let tell = permissions.tell.take().map(|mut tell| {
            let (told, questions) = mpsc::channel::<Question>();
            // A web address or a command may take its time.
            std::thread::spawn(move || questions.iter().for_each(|question| tell(&question)));
            told
        });
        Self {
            voice: Some(voice),
            permissions,
            always: Vec::new(),
            waiting: VecDeque::new(),
            open: None,
            count: 0,
            names: QuestionNames::new(),
            ask,
            tell,
            replies,
        }
    }

    /// Whether a person thinks about something: the agent is silent for their sake.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Hears what the agent says.
    pub(super) fn hear(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::PermissionRequested { request_id: Some(id), call_id, tool, input } => {
                self.waiting.push_back(Asked {
                    request_id: id.clone(),
                    call: call_id.clone(),
                    tool: tool.clone(),
                    input: input.clone(),
                });
            }
            // It has done what it was asked, and waits for more as long as somebody might say it.
            AgentEvent::Result { .. } => self.voice = None,
            _ => {}
        }
    }

    /// Answers what can be answered now.
    pub(super) fn settle(&mut self, agent: &dyn Agent, recorder: &mut Recorder<'_>) -> Result<(), Error> {
        while let Some(asked) = self.waiting.front() {
            let answer = match self.by_rule(asked) {
                Some(answer) => Some(answer),
                None => self.by_person(recorder)?,
            };
            let Some(answer) = answer else { break };
            let Some(asked) = self.waiting.pop_front() else { break };
            self.tell(agent, recorder, &asked, answer)?;
        }
        Ok(())
    }

    fn by_rule(&self, asked: &Asked) -> Option<Answer> {
        let Asked { tool, input, .. } = asked;
        let rules = &self.permissions;
        let resolve = |path: &str| ways_to(&rules.directory, path);
        if let Some(rule) = rules.deny.iter().find(|rule| rule.denies(tool, input, &resolve)) {
            let reason = format!("segno: a rule forbids it: {rule}");
            return Some(answer(Permission::Deny(reason), "rule", Some(rule.to_string())));
        }
        if let Some(rule) = rules.allow.iter().find(|rule| rule.allows(tool, input, &resolve)) {
            return Some(answer(Permission::Allow, "rule", Some(rule.to_string())));
        }
        let same = SameCall::of(tool, input);
        let rule = self.always.iter().find(|rule| **rule == same)?;
        Some(answer(Permission::Allow, "person", Some(rule.to_string())))
    }

    /// What a person says, here or elsewhere; none as long as they think about it.
    fn by_person(&mut self, recorder: &mut Recorder<'_>) -> Result<Option<Answer>, Error> {
        let Some(asked) = self.waiting.front() else { return Ok(None) };
        if self.ask.is_none() && !self.permissions.waits {
            let reason = format!("segno: {}", self.permissions.otherwise);
            return Ok(Some(answer(Permission::Deny(reason), "policy", None)));
        }
        let Some(open) = &self.open else { return self.put_question(recorder) };
        let like = SameCall::of(&asked.tool, &asked.input);
        let (number, since, id) = (open.number, open.since, open.id.clone());
        if let Some(given) = id.as_deref().and_then(|id| answered_elsewhere(&recorder.state, id)) {
            return Ok(Some(of_person(&given)));
        }
        loop {
            match self.replies.try_recv() {
                // An answer to a question that was given up is none to this one.
                Ok((given, _)) if given != number => {}
                Ok((_, Reply::Gone)) => return Ok(self.nobody()),
                Ok((_, reply)) => {
                    let given = GivenAnswer {
                        allow: matches!(reply, Reply::Yes | Reply::Always),
                        details: match &reply {
                            Reply::No(why) => why.clone().filter(|why| !why.trim().is_empty()),
                            Reply::Yes | Reply::Always | Reply::Gone => None,
                        },
                        by: "terminal".to_owned(),
                    };
                    // Somebody else may have been faster.
                    if let Some(id) = &id
                        && let Some(first) = answered_here(recorder, id, &given)?
                    {
                        return Ok(Some(of_person(&first)));
                    }
                    let mut answer = of_person(&given);
                    if reply == Reply::Always {
                        (answer.rule, answer.for_all) = (Some(like.to_string()), true);
                        self.always.push(like);
                    }
                    return Ok(Some(answer));
                }
                Err(mpsc::TryRecvError::Disconnected) if self.permissions.waits => break,
                Err(mpsc::TryRecvError::Disconnected) => return Ok(self.nobody()),
                Err(mpsc::TryRecvError::Empty) => break,
            }
        }
        if self.permissions.patience.is_some_and(|patience| since.elapsed() >= patience) {
            let reason = "segno: nobody answered in time".to_owned();
            return Ok(Some(answer(Permission::Deny(reason), "nobody", None)));
        }
        Ok(None)
    }

    /// Puts the first question to whoever is there, and into the journal for whoever is elsewhere.
    fn put_question(&mut self, recorder: &mut Recorder<'_>) -> Result<Option<Answer>, Error> {
        let Some(asked) = self.waiting.front() else { return Ok(None) };
        let id = self
            .permissions
            .waits
            .then(|| self.names.name(&recorder.run, &asked.request_id, &asked.tool, asked.input.get()));
        let question = Question {
            id: id.clone(),
            session: recorder.session,
            topic: recorder.state.topic.clone().unwrap_or_default(),
            at: recorder.engine.now(),
            tool: asked.tool.clone(),
            input: asked.input.clone(),
            like: SameCall::of(&asked.tool, &asked.input),
        };
        self.count += 1;
        let heard = self.ask.as_ref().is_some_and(|ask| ask.send((self.count, question.clone())).is_ok());
        if !heard && !self.permissions.waits {
            return Ok(self.nobody());
        }
        self.open = Some(Open { number: self.count, since: Instant::now(), id: id.clone() });
        if let Some(id) = id {
            let patience = self.permissions.patience.map(|patience| patience.as_secs().min(i64::MAX as u64));
            let until = patience.map(|seconds| question.at.plus_seconds(seconds as i64));
            recorder.note(segno_core::Command::AskQuestion(Box::new(QuestionAsked {
                id: id.clone(),
                call: asked.call.clone(),
                tool: asked.tool.clone(),
                input: asked.input.get().into(),
                until,
            })));
            recorder.flush()?;
            if !heard {
                recorder.say(&format!("{} waits for an answer: segno answer {id}", asked.tool));
            }
            if let Some(tell) = &self.tell {
                let _ = tell.send(question);
            }
        }
        Ok(None)
    }

    /// Nobody is there, now and from now on.
    fn nobody(&mut self) -> Option<Answer> {
        self.ask = None;
        self.permissions.waits = false;
        self.permissions.otherwise = "nobody is there to be asked any more".to_owned();
        let reason = format!("segno: {}", self.permissions.otherwise);
        Some(answer(Permission::Deny(reason), "nobody", None))
    }

    fn tell(
        &mut self,
        agent: &dyn Agent,
        recorder: &mut Recorder<'_>,
        asked: &Asked,
        answer: Answer,
    ) -> Result<(), Error> {
        let (word, reason) = match &answer.permission {
            Permission::Allow => ("allow", None),
            Permission::Deny(reason) => ("deny", Some(reason)),
        };
        let body = json!({
            "request_id": asked.request_id, "call": asked.call, "tool": asked.tool, "answer": word,
            "by": answer.by, "rule": answer.rule, "reason": reason, "for_all": answer.for_all,
        });
        recorder.note(Fact::Reported { what: "permission_answered".to_owned(), body });
        if let Some(id) = self.open.take().and_then(|open| open.id) {
            let why = if answer.by == "person" { "answered" } else { "nobody answered" }.to_owned();
            recorder.note(segno_core::Command::CloseQuestion(QuestionClosed { id, why }));
        }
        // A store that cannot take it now does not hold the agent up: it is in hand.
        recorder.flush()?;
        let line = agent.answer_permission(&asked.request_id, &asked.input, &answer.permission);
        if let (Some(voice), Some(line)) = (&self.voice, line) {
            voice.say(line);
        }
        Ok(())
    }
}

/// The ways to tell a place: without what changes nothing, and where links lead.
fn ways_to(directory: &std::path::Path, path: &str) -> Vec<String> {
    // An agent opens `~` itself, or means a file of that name: there is no telling, and no rule lets it through.
    let plain = plain_path(&directory.to_string_lossy(), path);
    let mut paths = vec![plain.clone()];
    // What is there already is resolved; the rest of the path is still to be made.
    let whole = if path.starts_with('/') { std::path::PathBuf::from(path) } else { directory.join(path) };
    let mut rest = Vec::new();
    let mut part = whole.as_path();
    loop {
        if let Ok(real) = std::fs::canonicalize(part) {
            let real = rest.iter().rev().fold(real, |real: std::path::PathBuf, part| real.join(part));
            paths.push(plain_path("/", &real.to_string_lossy()));
            break;
        }
        let (Some(parent), Some(name)) = (part.parent(), part.file_name()) else { break };
        rest.push(name);
        part = parent;
    }
    paths.dedup();
    paths
}

fn answer(permission: Permission, by: &'static str, rule: Option<String>) -> Answer {
    Answer { permission, by, rule, for_all: false }
}

/// What a person said, as an answer to the agent.
fn of_person(given: &GivenAnswer) -> Answer {
    match given.allow {
        true => answer(Permission::Allow, "person", None),
        false => {
            let why = given.details.clone().unwrap_or_else(|| "the person said no".to_owned());
            answer(Permission::Deny(why), "person", None)
        }
    }
}
