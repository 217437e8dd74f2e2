//! Calls that an agent asks about: answered by rules, else by a person, else refused.
//!
//! The person is asked in a thread of their own: however long they think, the run is watched and recorded meanwhile.
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
use serde_json::json;

use super::journal::Recorder;
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
    /// How long a person may take for an answer.
    pub patience: Option<Duration>,
    /// Where the agent works: relative paths begin there.
    pub directory: std::path::PathBuf,
}

/// Puts one question to a person and waits for the answer.
pub type AskPerson = Box<dyn FnMut(&Question) -> Reply + Send>;

/// A question.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
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

/// The questions of one run.
pub(super) struct Asking {
    voice: Option<AgentInput>,
    permissions: Permissions,
    always: Vec<SameCall>,
    waiting: VecDeque<Asked>,
    /// The question that a person thinks about: its number, and since when.
    open: Option<(u64, Instant)>,
    count: u64,
    ask: Option<mpsc::Sender<(u64, Question)>>,
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
        Self {
            voice: Some(voice),
            permissions,
            always: Vec::new(),
            waiting: VecDeque::new(),
            open: None,
            count: 0,
            ask,
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
            let answer = self.by_rule(asked).or_else(|| self.by_person());
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

    fn by_person(&mut self) -> Option<Answer> {
        let asked = self.waiting.front()?;
        let Some(ask) = &self.ask else {
            let reason = format!("segno: {}", self.permissions.otherwise);
            return Some(answer(Permission::Deny(reason), "policy", None));
        };
        let like = SameCall::of(&asked.tool, &asked.input);
        let Some((number, since)) = self.open else {
            self.count += 1;
            let question = Question { tool: asked.tool.clone(), input: asked.input.clone(), like };
            let heard = ask.send((self.count, question)).is_ok();
            self.open = heard.then(|| (self.count, Instant::now()));
            return if heard { None } else { self.nobody() };
        };
        loop {
            match self.replies.try_recv() {
                // An answer to a question that was given up is none to this one.
                Ok((given, _)) if given != number => {}
                Ok((_, reply)) => {
                    self.open = None;
                    return match reply {
                        Reply::Yes => Some(answer(Permission::Allow, "person", None)),
                        Reply::Always => {
                            self.always.push(like.clone());
                            let answer = answer(Permission::Allow, "person", Some(like.to_string()));
                            Some(Answer { for_all: true, ..answer })
                        }
                        Reply::No(why) => {
                            let why = why.filter(|why| !why.trim().is_empty());
                            let why = why.unwrap_or_else(|| "the person said no".to_owned());
                            Some(answer(Permission::Deny(why), "person", None))
                        }
                        Reply::Gone => self.nobody(),
                    };
                }
                Err(mpsc::TryRecvError::Disconnected) => return self.nobody(),
                Err(mpsc::TryRecvError::Empty) => break,
            }
        }
        if self.permissions.patience.is_some_and(|patience| since.elapsed() >= patience) {
            self.open = None;
            let reason = "segno: nobody answered in time".to_owned();
            return Some(answer(Permission::Deny(reason), "nobody", None));
        }
        None
    }

    /// Nobody is there, now and from now on.
    fn nobody(&mut self) -> Option<Answer> {
        (self.open, self.ask) = (None, None);
        self.permissions.otherwise = "nobody is there to be asked any more".to_owned();
        let reason = format!("segno: {}", self.permissions.otherwise);
        Some(answer(Permission::Deny(reason), "nobody", None))
    }

    fn tell(
        &self,
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
