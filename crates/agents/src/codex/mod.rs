//! Codex.

mod diary;
mod hook;
mod interactive;
mod items;
mod launch;
mod patch;
mod reduce;
mod rollout;
mod transcript;
mod wire;

pub use launch::{BYPASS_FLAGS, hook_settings};
pub use transcript::fork_at;

use crate::agent::Agent;
use crate::diary::DiaryPlace;
use crate::hook::{HookError, HookReport};
use crate::launch::{LaunchError, LaunchRequest, LaunchSpec};
use crate::probe::Probe;
use crate::reader::{Reader, ReaderOptions};
use crate::record::RecordPlace;
use crate::tally::{Ending, Tally};
use crate::transcript::{Records, Transcript, folder, is_plain_id};

/// Codex, run with `exec --json`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Codex;

impl Agent for Codex {
    fn name(&self) -> &str {
        "codex"
    }

    fn call_ids_recur(&self) -> bool {
        true
    }

    fn probe(&self) -> Probe {
        Probe {
            programs: vec!["codex".to_owned()],
            version_args: vec!["--version".to_owned()],
            install_hint: "install it with: npm install -g @openai/codex".to_owned(),
        }
    }

    fn launch(&self, request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
        if request.interactive { interactive::launch(request) } else { launch::launch(request) }
    }

    fn reader(&self, options: &ReaderOptions) -> Reader {
        let machine = reduce::Reduce::new(options.baseline);
        Reader::new(Box::new(machine), options, Tally::new(Ending::Announced, options))
    }

    fn record(&self) -> Option<RecordPlace> {
        Some(RecordPlace {
            home_variable: "CODEX_HOME",
            home: ".codex",
            directory: "sessions",
            // Year, month and day.
            depth: 3,
            prefix: "rollout-",
            suffix: ".jsonl",
        })
    }

    fn record_reader(&self, options: &ReaderOptions) -> Option<Reader> {
        let machine = rollout::Rollout::new(options.baseline);
        Some(Reader::new(Box::new(machine), options, Tally::new(Ending::Silent, options)))
    }

    fn hook(&self, payload: &[u8]) -> Result<HookReport, HookError> {
        hook::read(payload)
    }

    fn records(&self, variable: &dyn Fn(&str) -> Option<String>, native_id: &str) -> Option<Records> {
        Some(Records {
            folder: folder(variable, "CODEX_HOME", ".codex", "sessions")?,
            // Year, month and day.
            depth: 3,
            name: is_plain_id(native_id).then(|| format!("-{native_id}.jsonl"))?,
            whole: false,
            sub_agents: None,
        })
    }

    fn transcript(&self, bytes: &[u8]) -> Option<Transcript> {
        Some(transcript::read(bytes))
    }

    fn diary_place(&self) -> Option<DiaryPlace> {
        Some(DiaryPlace {
            variable: "CODEX_HOME",
            home: ".codex",
            below: "sessions",
            depth: 3,
            before: "rollout-",
            kept_open: true,
        })
    }

    fn diary_reader(&self, options: &ReaderOptions, since: Option<&str>) -> Reader {
        let machine = Box::new(diary::Diary::new(since));
        Reader::new(machine, options, Tally::new(Ending::Attended, options))
    }

    fn is_main_diary(&self, head: &[u8]) -> bool {
        diary::is_main(head)
    }

    fn bypass_flags(&self) -> &[&str] {
        BYPASS_FLAGS
    }
}
