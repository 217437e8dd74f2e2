//! What a scripted agent can do.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

/// One step of a script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Prints a line.
    Print(String),
    /// Prints a line to stderr.
    Stderr(String),
    /// Prints a JSON value as a line.
    Json(Value),
    /// Prints text as it is, without a line feed: half a line, CRLF, a zero.
    Raw(String),
    /// Prints bytes, given in hexadecimal: `ff 00 0d0a`.
    Hex(String),
    /// Prints so many bytes in lines, as fast as they are taken.
    Flood {
        /// How many.
        bytes: u64,
        /// Bytes in a line.
        #[serde(default = "line_length")]
        line: usize,
    },
    /// Prints one line of about so many bytes.
    LongLine {
        /// How many.
        bytes: usize,
        /// What it looks like.
        #[serde(default)]
        shape: Shape,
    },
    /// Sends what it prints from now on nowhere.
    CloseStdout,
    /// Does nothing for a while.
    SleepMs(u64),
    /// Writes a file, whole or not at all.
    Write {
        /// Which.
        path: String,
        /// What.
        content: String,
    },
    /// Adds to a file.
    Append {
        /// Which.
        path: String,
        /// What.
        content: String,
    },
    /// Waits until a file is there. This is how a test holds it.
    WaitFor {
        /// Which.
        path: String,
        /// How long at most.
        #[serde(default = "wait_seconds")]
        seconds: u64,
    },
    /// Reads stdin: so many lines, or 0 for all of it.
    Stdin(u64),
    /// Writes arguments, stdin and agent variables of this process to a fresh file in this directory, as a JSON object
    /// `{args, stdin, env}`. This is how it plays a hook.
    Record(String),
    /// Plays these steps if what stdin said matches.
    IfStdin {
        /// A regular expression.
        matches: String,
        /// The steps.
        steps: Vec<Step>,
    },
    /// Calls hooks as Claude Code does: a shell command with the payload on stdin.
    Hook {
        /// The hook event.
        event: String,
        /// Its payload. `hook_event_name`, `session_id` and `cwd` are added.
        #[serde(default)]
        payload: serde_json::Map<String, Value>,
        /// The command. None: those that `--settings` names for the event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        /// What to do when no hook refuses.
        #[serde(default)]
        allowed: Vec<Step>,
        /// What to do when one refuses.
        #[serde(default)]
        denied: Vec<Step>,
    },
    /// Calls the program that `-c notify=[…]` names, as Codex does: with the payload as its last argument.
    Notify(Value),
    /// Starts a child that plays steps and lives on.
    Spawn {
        /// How it gets away from us.
        how: How,
        /// What it does.
        steps: Vec<Step>,
        /// Where it writes its process id; this step waits for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid_file: Option<String>,
        /// Whether it keeps our stdout and stderr open.
        #[serde(default)]
        keep_output: bool,
        /// Whether it is started without any environment, so that nothing it carries says where it came from.
        #[serde(default)]
        bare: bool,
    },
    /// Ignores these signals from now on.
    Ignore(Vec<SignalName>),
    /// Plays these steps when the signal comes, beside whatever is going on.
    OnSignal {
        /// Which.
        signal: SignalName,
        /// The steps.
        steps: Vec<Step>,
    },
    /// Plays steps again and again.
    Repeat {
        /// How often.
        times: u64,
        /// The steps.
        steps: Vec<Step>,
    },
    /// Sends itself a signal.
    Kill(SignalName),
    /// Ends with this code.
    Exit(u8),
}

/// How a child gets away from its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Not at all: an ordinary child.
    Plain,
    /// Ignoring hang-ups.
    Nohup,
    /// In a session of its own.
    Setsid,
    /// In a session of its own, and no longer our child.
    DoubleFork,
}

/// What a long line looks like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Plain text.
    #[default]
    Plain,
    /// An event of Claude Code.
    Claude,
    /// An event of Codex.
    Codex,
}

/// A signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the names say it")]
pub enum SignalName {
    Abrt,
    Hup,
    Int,
    Kill,
    Quit,
    Segv,
    Stop,
    Term,
    Usr1,
}

fn line_length() -> usize {
    120
}

fn wait_seconds() -> u64 {
    30
}
