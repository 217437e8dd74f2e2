//! How to start an agent, as data. Whoever runs it carries this out to the letter.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;
use thiserror::Error;

/// Which conversation to open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Conversation {
    /// A new one; the agent chooses its id.
    #[default]
    New,
    /// A new one under this id, for agents that let us choose. A known id survives any crash of the agent.
    NewWithId(String),
    /// Go on with this one.
    Resume(String),
    /// A copy of this one, which stays as it is.
    Fork {
        /// The conversation to copy. For Gemini CLI the path of its record: it copies files, not ids.
        from: String,
        /// The id of the copy, for agents that let us choose.
        id: Option<String>,
        /// The native event to go back to, for agents that can.
        at: Option<String>,
    },
}

/// What is wanted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LaunchRequest {
    /// What the agent shall do. It goes through stdin: no length limit, not visible in process lists, never an option.
    pub prompt: String,
    /// The conversation.
    pub conversation: Conversation,
    /// The program to run instead of the one looked up.
    pub program: Option<String>,
    /// The model, if not the one the person configured.
    pub model: Option<String>,
    /// A cap on turns.
    pub max_turns: Option<u32>,
    /// A cap on money for this run.
    pub max_cost_usd: Option<f64>,
    /// Arguments of the person's own, passed on as they are.
    pub extra_args: Vec<String>,
    /// The command that receives hook payloads, such as `["segno", "hook", "claude"]`. None: no hooks. Claude Code,
    /// Gemini CLI and opencode run it beside the person's own hooks; for Codex it takes the place of the person's
    /// `notify` in this run.
    pub hook_command: Option<Vec<String>>,
    /// A directory of this session alone, for the agent's sockets and scratch files, and for [`LaunchSpec::files`].
    /// An absolute path.
    pub private_tmp: Option<String>,
    /// Calls that the agent's own rules do not settle are asked about on its standard output, and answered on its
    /// standard input. Only for an agent that can.
    pub forwards_permission_prompts: bool,
    /// A person sits at the terminal: the agent's own interface is opened there. A prompt, if there is one, is what it
    /// begins with.
    pub interactive: bool,
    /// Allow an agent that insists on a git repository to work outside of one.
    pub outside_git: bool,
    /// More variables to set.
    pub env: BTreeMap<String, String>,
}

/// What the agent cannot do for us; whoever runs it must, or must say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// It knows no cap on turns.
    MaxTurns,
    /// It knows no cap on money.
    MaxCost,
    /// It does not let us choose the conversation's id: read it from the stream.
    ChosenId,
    /// It cannot go back inside a conversation by itself.
    ForkAt,
    /// It reports no tool call before it runs, or not under the id that its output gives it: the record of calls is
    /// observed, not write-ahead.
    ToolHooks,
    /// It knows no conversations.
    Conversations,
    /// It knows no models.
    Model,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchSpec {
    /// The program: a path, or a name to look up.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables to set, after the removal.
    pub env_set: BTreeMap<String, String>,
    /// Variables to remove first.
    pub env_remove: Vec<String>,
    /// What to write to stdin before closing it. Empty: stdin is closed from the start.
    pub stdin: Vec<u8>,
    /// Whether stdin stays open, for answers.
    pub keeps_stdin: bool,
    /// Files to write before the start, readable by the user alone. They stand below the request's `private_tmp`, and
    /// what needs them names them there.
    pub files: Vec<PrivateFile>,
    /// The native id the conversation will have, if that is known beforehand.
    pub native_id: Option<String>,
    /// What of the request the agent does not do.
    pub unsupported: Vec<Unsupported>,
}

/// A file of one run: settings or a plug-in that the agent is pointed to, so that no file of the person is touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateFile {
    /// Its name in the private directory of the session: one component.
    pub name: &'static str,
    /// What it holds.
    pub content: String,
}

/// Why a request makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// Agents without a person need something to do.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// A value would be read as an option, or cannot be an argument at all.
    #[error("{what} {value:?} cannot be passed on a command line")]
    BadValue {
        /// Which value.
        what: &'static str,
        /// What it is.
        value: String,
    },
    /// The agent wants ids of a certain form.
    #[error("{value:?} is not a UUID, which this agent requires")]
    NotUuid {
        /// What it is.
        value: String,
    },
    /// The agent knows its conversations by id, but copies only the file of one.
    #[error("{value:?} is not the path of a conversation's record, which is all that this agent can copy")]
    NotRecord {
        /// What it is.
        value: String,
    },
    /// No program was given.
    #[error("no command to run")]
    NoCommand,
}

impl LaunchSpec {
    /// Names the conversation on the command line; its id is known by that.
    pub(crate) fn name_conversation(
        &mut self,
        args: &mut Vec<String>,
        option: &str,
        value: String,
        id: &str,
    ) {
        args.extend([option.to_owned(), value]);
        self.native_id = Some(id.to_owned());
    }

    /// A copy can neither have an id that we choose nor end before the conversation does.
    pub(crate) fn only_whole_copies(&mut self, id: Option<&String>, at: Option<&String>) {
        self.unsupported.extend(id.map(|_| Unsupported::ChosenId));
        self.unsupported.extend(at.map(|_| Unsupported::ForkAt));
    }
}

impl LaunchRequest {
    /// The arguments for the model, as all agents that know models take them.
    pub(crate) fn model_args(&self) -> Result<Vec<String>, LaunchError> {
        match &self.model {
            Some(model) => Ok(vec!["--model".to_owned(), plain_value("model", model)?]),
            None => Ok(Vec::new()),
        }
    }
}

/// Settings that send each of these hooks to a line of a shell, in the form that Claude Code gave them.
pub(crate) fn hooks_for(events: &[&str], line: &str, timeout: u64) -> Value {
    let entry = json!([{
        "hooks": [{ "type": "command", "command": line, "timeout": timeout }]
    }]);
    let events: serde_json::Map<String, Value> =
        events.iter().map(|event| ((*event).to_owned(), entry.clone())).collect();
    json!({ "hooks": events })
}

/// Variables that an agent sets for the programs it runs. An agent started from inside another must not inherit them:
/// it would take itself for a part of that one, talk to its sockets, or carry its secrets along.
pub const PARENT_AGENT_ENV: &[&str] = &[
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_TMPDIR",
    "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PID",
    "CLAUDE_PROJECT_DIR",
    "CODEX_CI",
    "CODEX_INTERNAL_ORIGINATOR_OVERRIDE",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "CODEX_TOOL_CALL_ID",
    "CODEX_VERSION",
    "GEMINI_CLI",
    "GEMINI_CWD",
    "GEMINI_PLANS_DIR",
    "GEMINI_PROJECT_DIR",
    "GEMINI_SESSION_ID",
    "OPENCODE",
    "OPENCODE_CALLER",
    "OPENCODE_PID",
    "OPENCODE_SESSION_ID",
];

impl LaunchRequest {
    /// The parts of a specification that are the same for every agent.
    pub(crate) fn spec(&self, program: &str) -> LaunchSpec {
        LaunchSpec {
            program: self.program.clone().unwrap_or_else(|| program.to_owned()),
            args: Vec::new(),
            env_set: self.env.clone(),
            env_remove: PARENT_AGENT_ENV.iter().map(|name| (*name).to_owned()).collect(),
            stdin: Vec::new(),
            keeps_stdin: false,
            files: Vec::new(),
            native_id: None,
            unsupported: Vec::new(),
        }
    }

    /// Adds a file to `spec` and says where it will be; `None` without a directory for it.
    pub(crate) fn private_file(
        &self,
        spec: &mut LaunchSpec,
        name: &'static str,
        content: String,
    ) -> Option<String> {
        let path = format!("{}/{name}", self.private_tmp.as_deref()?.trim_end_matches('/'));
        spec.files.push(PrivateFile { name, content });
        Some(path)
    }

    /// The prompt as the last argument, where nothing can take it for an option. None if there is none.
    pub(crate) fn first_prompt(&self) -> Result<Option<String>, LaunchError> {
        if self.prompt.contains('\0') {
            return Err(LaunchError::BadValue { what: "prompt", value: self.prompt.clone() });
        }
        Ok(Some(self.prompt.clone()).filter(|prompt| !prompt.trim().is_empty()))
    }

    pub(crate) fn prompt_bytes(&self) -> Result<Vec<u8>, LaunchError> {
        if self.prompt.trim().is_empty() {
            return Err(LaunchError::EmptyPrompt);
        }
        Ok(self.prompt.clone().into_bytes())
    }
}

/// A value that stands alone as an argument: it must not look like an option.
pub(crate) fn plain_value(what: &'static str, value: &str) -> Result<String, LaunchError> {
    if value.is_empty() || value.starts_with('-') || value.contains('\0') {
        return Err(LaunchError::BadValue { what, value: value.to_owned() });
    }
    Ok(value.to_owned())
}

/// Arguments given by the person: theirs to choose, as long as the operating system can carry them.
pub(crate) fn extra_args(args: &[String]) -> Result<Vec<String>, LaunchError> {
    match args.iter().find(|arg| arg.contains('\0')) {
        Some(arg) => Err(LaunchError::BadValue { what: "argument", value: arg.clone() }),
        None => Ok(args.to_vec()),
    }
}

pub(crate) fn uuid(value: &str) -> Result<String, LaunchError> {
    let groups: Vec<usize> = value.split('-').map(str::len).collect();
    let hex = value.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    if groups == [8, 4, 4, 4, 12] && hex {
        Ok(value.to_owned())
    } else {
        Err(LaunchError::NotUuid { value: value.to_owned() })
    }
}

/// One command line for a shell, each word quoted so that it arrives as it is.
pub(crate) fn shell_line(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    quoted.join(" ")
}

/// One word for a shell, quoted so that it arrives as it is.
pub fn shell_word(word: &str) -> String {
    let safe = !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(&byte));
    if safe { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
