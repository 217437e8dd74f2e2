//! Tells somebody who is not looking: on the desktop, by a signed message to a web address, or by a command.
//!
//! Nothing here can fail a loop or hold it up: what is told is told by threads of their own, and what could not be told
//! is heard by whoever watches.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::thread::Scope;
use std::thread::ScopedJoinHandle;

use segno_core::SessionId;
use segno_core::Timestamp;
use segno_redact::Redactor;
use serde_json::json;
use sha2::Digest as _;
use sha2::Sha256;

use crate::looping::driver::news::LoopListener;
use crate::looping::driver::news::LoopNews;
use crate::looping::evidence::command::EvidenceCommand;
use crate::looping::evidence::command::run_evidence;
use crate::post::PATIENCE;
use crate::post::post_json;
use crate::post::wait;
use crate::run::find_program;
use crate::run::resources::Resources;

/// The same thing about the same session is told again after so many seconds.
const SAME: u64 = 60;
/// At most so many messages …
const MOST: usize = 20;
/// … in so many seconds.
const WINDOW: u64 = 600;
/// The longest text.
const LONGEST: usize = 400;
/// Block size of SHA-256 in bytes.
const BLOCK: usize = 64;

/// What somebody should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The work is done.
    Done,
    /// The breaker is open.
    Halted,
    /// It waits for a person.
    Waiting,
    /// The agent asks something.
    Question,
    /// It waits for a limit, or one cannot be waited for.
    Limit,
    /// It ended with an error.
    Crash,
}

impl Occasion {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Halted => "halted",
            Self::Waiting => "waiting",
            Self::Question => "question",
            Self::Limit => "limit",
            Self::Crash => "crash",
        }
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What happened.
    pub occasion: Occasion,
    /// To which session.
    pub session: SessionId,
    /// What that is about.
    pub topic: String,
    /// In words.
    pub text: String,
    /// When.
    pub at: Timestamp,
}

/// A web address that is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// `http://…`, or `https://…` where `curl` is installed.
    pub url: String,
    /// What the messages are signed with; none leaves them unsigned.
    pub secret: Option<String>,
}

/// Who is told, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipients {
    /// The desktop, by `notify-send`.
    pub desktop: bool,
    /// A web address.
    pub webhook: Option<Webhook>,
    /// A command for the shell, with the message in `NOTICE_WHAT`, `NOTICE_SESSION`, `NOTICE_TOPIC` and `NOTICE_TEXT`.
    pub command: Option<String>,
}

/// Tells messages, not too many of them, while the loop goes on.
pub(crate) struct Notifier<'a, 'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    post: &'env Post<'a>,
    listener: &'env dyn LoopListener,
    told: VecDeque<Message>,
    /// Commands that may not be done yet.
    commands: Vec<ScopedJoinHandle<'scope, ()>>,
}

/// How messages go out.
pub(crate) struct Post<'a> {
    recipients: Recipients,
    environment: &'a [(OsString, OsString)],
    directory: &'a Path,
    redactor: Arc<Redactor>,
}

impl<'a, 'scope, 'env> Notifier<'a, 'scope, 'env> {
    /// Tells in threads of this scope, which ends when all is told or given up; what goes wrong is heard by the listener.
    pub(crate) fn new(
        scope: &'scope Scope<'scope, 'env>,
        post: &'env Post<'a>,
        listener: &'env dyn LoopListener,
    ) -> Self {
        Self { scope, post, listener, told: VecDeque::new(), commands: Vec::new() }
    }

    /// Tells it, unless it was told a moment ago or too much was. Does not wait until it is told.
    pub(crate) fn tell(&mut self, message: &Message) {
        let message = fit(message, &self.post.redactor);
        if !self.may_tell(&message) {
            return;
        }
        self.told.push_back(message.clone());
        // Whoever sits at the terminal is told by the face.
        self.listener.hear(&LoopNews::Notice(message.clone()));
        for channel in self.post.channels() {
            let (post, listener, message) = (self.post, self.listener, message.clone());
            let telling = self.scope.spawn(move || {
                if let Err(problem) = post.send(channel, &message) {
                    listener.hear(&LoopNews::Problem(problem));
                }
            });
            if matches!(channel, Channel::Command) {
                self.commands.push(telling);
            }
        }
    }

    /// Waits for the commands that tell somebody, a few seconds at most. An agent that starts takes every process that is
    /// left over for its own, and ends it with its others.
    pub(crate) fn settle(&mut self) {
        for telling in self.commands.drain(..) {
            // One that panicked has told what it could.
            drop(telling.join());
        }
    }

    fn may_tell(&mut self, message: &Message) -> bool {
        let seconds_since = |told: &Message| message.at.micros_since(told.at) / 1_000_000;
        while self.told.front().is_some_and(|told| seconds_since(told) >= WINDOW) {
            self.told.pop_front();
        }
        let same = |told: &&Message| {
            (told.occasion, told.session) == (message.occasion, message.session) && seconds_since(told) < SAME
        };
        self.told.len() < MOST && self.told.iter().rev().find(same).is_none()
    }
}

/// How somebody is told.
#[derive(Clone, Copy)]
enum Channel {
    Desktop,
    Webhook,
    Command,
}

impl<'a> Post<'a> {
    /// For these recipients; commands get this environment and run in this directory. Secrets are taken out of what is
    /// told.
    pub(crate) fn new(
        recipients: Recipients,
        environment: &'a [(OsString, OsString)],
        directory: &'a Path,
        redactor: Arc<Redactor>,
    ) -> Self {
        Self { recipients, environment, directory, redactor }
    }

    /// The channels that somebody wants to be told by.
    fn channels(&self) -> impl Iterator<Item = Channel> + use<> {
        let wanted = [
            (self.recipients.desktop, Channel::Desktop),
            (self.recipients.webhook.is_some(), Channel::Webhook),
            (self.recipients.command.is_some(), Channel::Command),
        ];
        wanted.into_iter().filter_map(|(wanted, channel)| wanted.then_some(channel))
    }

    fn send(&self, channel: Channel, message: &Message) -> Result<(), String> {
        match (channel, &self.recipients.webhook, &self.recipients.command) {
            (Channel::Desktop, ..) => self.desktop(message).map_err(|why| format!("notify-send: {why}")),
            (Channel::Webhook, Some(webhook), _) => {
                post(webhook, &body(message), self.environment).map_err(|why| format!("the webhook: {why}"))
            }
            (Channel::Command, _, Some(command)) => self.command(command, message),
            (Channel::Webhook | Channel::Command, ..) => Ok(()),
        }
    }

    fn desktop(&self, message: &Message) -> Result<(), String> {
        let program = find_program("notify-send", self.environment).ok_or("it is not installed")?;
        let child = std::process::Command::new(program)
            .args(["--app-name=segno", "--", &message.title(), &message.text])
            .env_clear()
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|why| why.to_string())?;
        wait(child).map(drop)
    }

    fn command(&self, command: &str, message: &Message) -> Result<(), String> {
        let mut environment = self.environment.to_vec();
        let values = [
            ("NOTICE_WHAT", message.occasion.as_str().to_owned()),
            ("NOTICE_SESSION", message.session.to_string()),
            ("NOTICE_TOPIC", message.topic.clone()),
            ("NOTICE_TEXT", message.text.clone()),
        ];
        environment.extend(values.map(|(name, value)| (name.into(), value.into())));
        let wanted = EvidenceCommand {
            command,
            directory: self.directory,
            environment: &environment,
            timeout: PATIENCE,
            resources: Resources::default(),
            adopts: false,
            guard: &[],
        };
        let shown = run_evidence(&wanted, &self.redactor, &|| false).map_err(|why| why.to_string())?;
        match shown.passes() {
            true => Ok(()),
            false => Err(format!("the command that tells somebody: {}", shown.words())),
        }
    }
}

/// Tells one message through every channel that somebody wants, and waits until it is told. Answers with what went wrong.
pub fn tell_once(
    recipients: &Recipients,
    environment: &[(OsString, OsString)],
    directory: &Path,
    redactor: Arc<Redactor>,
    message: &Message,
) -> Vec<String> {
    let message = fit(message, &redactor);
    let post = Post::new(recipients.clone(), environment, directory, redactor);
    post.channels().filter_map(|channel| post.send(channel, &message).err()).collect()
}

impl Message {
    /// What it is about, in a few words.
    pub fn title(&self) -> String {
        format!("segno: {} {}", self.topic, self.occasion.as_str())
    }
}

/// Without secrets, without control characters, and short.
fn fit(message: &Message, redactor: &Redactor) -> Message {
    let clean = |text: &str| {
        let text = redactor.text(text).into_owned();
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        segno_core::text::shorten(text.trim(), LONGEST)
    };
    Message { topic: clean(&message.topic), text: clean(&message.text), ..message.clone() }
}

fn body(message: &Message) -> String {
    json!({
        "event": "segno.loop",
        "what": message.occasion.as_str(),
        "session": message.session.to_string(),
        "topic": message.topic,
        "text": message.text,
        "at": message.at.to_string(),
    })
    .to_string()
}

/// HMAC-SHA256 in hexadecimal.
pub(crate) fn signature(secret: &[u8], body: &[u8]) -> String {
    let mut key = [0_u8; BLOCK];
    if secret.len() > BLOCK {
        key[..32].copy_from_slice(&Sha256::digest(secret));
    } else {
        key[..secret.len()].copy_from_slice(secret);
    }
    let pad = |with: u8| key.map(|byte| byte ^ with);
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(body).finalize();
    let outer = Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize();
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sends a signed message. Only a 2xx answer counts.
fn post(webhook: &Webhook, body: &str, environment: &[(OsString, OsString)]) -> Result<(), String> {
    let signed = webhook
        .secret
        .as_ref()
        .map(|secret| format!("X-Segno-Signature: sha256={}", signature(secret.as_bytes(), body.as_bytes())));
    post_json(&webhook.url, signed.as_deref(), body, environment).map_err(|why| why.to_string())
}

#[cfg(test)]
#[path = "notify_tests.rs"]
mod tests;
