//! What every agent can be asked.

use std::time::Duration;

use crate::claude::Claude;
use crate::codex::Codex;
use crate::diary::{DiaryPlace, Untold};
use crate::gemini::Gemini;
use crate::hook::{HookError, HookReport};
use crate::launch::{LaunchError, LaunchRequest, LaunchSpec};
use crate::opencode::OpenCode;
use crate::permission::Permission;
use crate::plain::Plain;
use crate::probe::{self, Probe};
use crate::raw::Raw;
use crate::reader::{Reader, ReaderOptions};
use crate::record::RecordPlace;
use crate::stop::{STOP_LADDER, Silence, StopStep};
use crate::tally::{Ending, Tally};
use crate::transcript::{Records, Transcript};

/// Knows one kind of agent. Answers are data; nothing here touches the world.
pub trait Agent: std::fmt::Debug + Send + Sync {
    /// The name used in commands and records.
    fn name(&self) -> &str;

    /// How to find out whether it is there.
    fn probe(&self) -> Probe;

    /// The version in what the probe printed.
    fn version(&self, output: &str) -> Option<String> {
        probe::parse_version(output)
    }

    /// How to start it.
    fn launch(&self, request: &LaunchRequest) -> Result<LaunchSpec, LaunchError>;

    /// A reader for the output of one process.
    fn reader(&self, options: &ReaderOptions) -> Reader;

    /// Where its own record of a conversation is, if that tells more than its output and is written as it works.
    fn record(&self) -> Option<RecordPlace> {
        None
    }

    /// A reader for that record, from where this process began to write it. It tells of calls and tokens only, and its
    /// outcome means only what it counted.
    fn record_reader(&self, _options: &ReaderOptions) -> Option<Reader> {
        None
    }

    /// Reads one hook payload. A well-formed payload of a hook nobody knows is a report without answers.
    fn hook(&self, payload: &[u8]) -> Result<HookReport, HookError>;

    /// Reads the agent's own record of a conversation, if it keeps one.
    fn transcript(&self, bytes: &[u8]) -> Option<Transcript>;

    /// Where it keeps its record of a conversation while that goes on, if it can be followed there.
    fn diary_place(&self) -> Option<DiaryPlace> {
        None
    }

    /// A reader for that record, of a run with a person at the agent's terminal. What is in it from before `since`
    /// (RFC 3339, UTC) is no part of the run. Without a record it judges the end, and that is all.
    fn diary_reader(&self, options: &ReaderOptions, _since: Option<&str>) -> Reader {
        Reader::new(Box::new(Untold), options, Tally::new(Ending::Attended, options))
    }

    /// Whether a record that begins like this is that of the conversation with the person.
    fn is_main_diary(&self, _head: &[u8]) -> bool {
        true
    }

    /// Whether it can ask us about calls that its own rules do not settle.
    fn asks_permission(&self) -> bool {
        false
    }

    /// What to write to its standard input when it has asked. None for an agent that does not ask there.
    fn answer_permission(&self, _request_id: &str, _input: &Raw, _answer: &Permission) -> Option<Vec<u8>> {
        None
    }

    /// Where it keeps that record, given the variables it was started with.
    fn records(&self, variable: &dyn Fn(&str) -> Option<String>, native_id: &str) -> Option<Records> {
        let _ = (variable, native_id);
        None
    }

    /// Whether the next process counts its tool calls with the same ids again, as Codex does (`item_0`, `item_1`). Only
    /// for an agent whose hooks, if it has any, do not tell of calls by these ids.
    fn call_ids_recur(&self) -> bool {
        false
    }

    /// Whether it says what it used only when it ends: until then no cap can be held against it.
    fn tells_use_late(&self) -> bool {
        false
    }

    /// How to end it.
    fn stop_ladder(&self) -> &[StopStep] {
        &STOP_LADDER
    }

    /// How long it may be silent without being stuck.
    fn silence(&self) -> Silence {
        Silence { at_least: Duration::from_secs(7 * 60), heartbeats: false }
    }

    /// Arguments that would switch off its permissions or its sandbox. Never used here; configuration that is not
    /// trusted must not bring them in either.
    fn bypass_flags(&self) -> &[&str];
}

/// The agent of that name. `plain` runs whatever command the request names.
pub fn by_name(name: &str) -> Option<Box<dyn Agent>> {
    match name {
        "claude" => Some(Box::new(Claude)),
        "codex" => Some(Box::new(Codex)),
        "gemini" => Some(Box::new(Gemini)),
        "opencode" => Some(Box::new(OpenCode)),
        "plain" => Some(Box::new(Plain::default())),
        _ => None,
    }
}

/// The names [`by_name`] knows.
pub const NAMES: &[&str] = &["claude", "codex", "gemini", "opencode", "plain"];
