//! Claude Code.

mod content;
mod diary;
mod hook;
mod interactive;
mod launch;
mod permission;
mod reduce;
mod result;
mod system;
mod transcript;
mod wire;
mod wire_system;

pub use launch::{BYPASS_FLAGS, hook_settings};

use std::time::Duration;

use crate::agent::Agent;
use crate::diary::DiaryPlace;
use crate::hook::{HookError, HookReport};
use crate::launch::{LaunchError, LaunchRequest, LaunchSpec};
use crate::permission::Permission;
use crate::probe::Probe;
use crate::raw::Raw;
use crate::reader::{Reader, ReaderOptions};
use crate::stop::Silence;
use crate::tally::{Ending, Tally};
use crate::transcript::{Records, Transcript, folder, is_plain_id};

/// Claude Code, run with `-p` and its `stream-json` output.
#[derive(Debug, Clone, Copy, Default)]
pub struct Claude;

impl Agent for Claude {
    fn name(&self) -> &str {
        "claude"
    }

    fn probe(&self) -> Probe {
        Probe {
            programs: vec!["claude".to_owned()],
            version_args: vec!["--version".to_owned()],
            install_hint: "install it with: npm install -g @anthropic-ai/claude-code".to_owned(),
        }
    }

    fn launch(&self, request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
        if request.interactive { interactive::launch(request) } else { launch::launch(request) }
    }

    fn reader(&self, options: &ReaderOptions) -> Reader {
        Reader::new(Box::<reduce::Reduce>::default(), options, Tally::new(Ending::Announced, options))
    }

    fn hook(&self, payload: &[u8]) -> Result<HookReport, HookError> {
        hook::read(payload)
    }

    fn transcript(&self, bytes: &[u8]) -> Option<Transcript> {
        Some(transcript::read(bytes))
    }

    fn records(&self, variable: &dyn Fn(&str) -> Option<String>, native_id: &str) -> Option<Records> {
        Some(Records {
            folder: folder(variable, "CLAUDE_CONFIG_DIR", ".claude", "projects")?,
            // One folder for each directory it was started in; resumed elsewhere, a conversation stays in the first.
            depth: 1,
            name: is_plain_id(native_id).then(|| format!("{native_id}.jsonl"))?,
            whole: true,
            sub_agents: Some(format!("{native_id}/subagents")),
        })
    }

    /// Its own timers are 300 s inside an answer and 360 s before one; a running tool beats every 30 s.
    fn silence(&self) -> Silence {
        Silence { at_least: Duration::from_secs(7 * 60), heartbeats: true }
    }

    fn asks_permission(&self) -> bool {
        true
    }

    fn answer_permission(&self, request_id: &str, input: &Raw, answer: &Permission) -> Option<Vec<u8>> {
        Some(permission::answer(request_id, input, answer))
    }

    fn diary_place(&self) -> Option<DiaryPlace> {
        Some(DiaryPlace {
            variable: "CLAUDE_CONFIG_DIR",
            home: ".claude",
            below: "projects",
            depth: 1,
            before: "",
            kept_open: false,
        })
    }

    fn diary_reader(&self, options: &ReaderOptions, since: Option<&str>) -> Reader {
        let machine = Box::new(diary::Diary::new(since));
        Reader::new(machine, options, Tally::new(Ending::Attended, options))
    }

    fn bypass_flags(&self) -> &[&str] {
        BYPASS_FLAGS
    }
}
