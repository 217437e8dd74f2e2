//! What agents remember of conversations that they have deleted, and how long they keep the others.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::path::Path;

use segno_agents::AgentEvent;
use segno_agents::InputSource;
use serde::Deserialize;
use serde::Serialize;

use super::AgentImport;
use super::ImportRun;
use super::find;
use super::find::Place;
use super::find::Stat;
use super::lines;
use super::lines::Found;
use super::take::Origin;
use super::take::Taker;
use crate::Engine;
use crate::Error;

/// What a list of prompts is called, for agents that have one.
const LIST: &str = "history.jsonl";
/// A day in nanoseconds.
const DAY: i64 = 86_400 * 1_000_000_000;

/// How an agent's own history stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AgentReport {
    /// The agent.
    pub agent: String,
    /// Where its conversations are.
    pub place: String,
    /// Conversations that its own list of prompts knows; none if it keeps no such list.
    pub listed: Option<u64>,
    /// Conversations that are left.
    pub left: u64,
    /// Conversations of that list that are gone.
    pub deleted: Option<u64>,
    /// Conversations of which the transcript is kept here.
    pub kept: u64,
    /// Those of them that the agent does not have any more: `segno rescue` puts them back.
    pub kept_and_gone: u64,
    /// Whether an import keeps transcripts.
    pub keeping: bool,
    /// Conversations that it deletes within a week.
    pub going: Option<u64>,
    /// After how many days it deletes one; none if it keeps all.
    pub keeps_days: Option<u64>,
    /// The setting that says so, in its own file.
    pub setting: Option<String>,
}

/// A prompt in an agent's own list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Listed {
    /// Claude Code.
    display: Option<String>,
    timestamp: Option<f64>,
    project: Option<String>,
    #[serde(rename = "sessionId")]
    session: Option<String>,
    /// Codex.
    session_id: Option<String>,
    ts: Option<f64>,
    text: Option<String>,
}

/// A prompt of a conversation.
struct Prompt {
    at: String,
    text: String,
    project: Option<String>,
}

/// The directory that has an agent's settings and its list of prompts: its logs are in one below it.
fn home_of(root: &Path) -> &Path {
    root.parent().unwrap_or(root)
}

fn listed(file: &Path) -> Result<BTreeMap<String, Vec<Prompt>>, Error> {
    let mut all: BTreeMap<String, Vec<Prompt>> = BTreeMap::new();
    if !file.is_file() {
        return Ok(all);
    }
    lines::each_line(file, &mut |found| {
        let Found::Line { bytes, .. } = found else { return Ok(()) };
        let Ok(one) = serde_json::from_slice::<Listed>(bytes) else { return Ok(()) };
        let Some(id) = one.session.or(one.session_id).filter(|id| !id.is_empty() && id.len() < 200) else {
            return Ok(());
        };
        let micros = one.timestamp.map(|ms| ms * 1e3).or(one.ts.map(|seconds| seconds * 1e6)).unwrap_or(0.0);
        let at = segno_core::Timestamp::from_micros(micros.clamp(0.0, 4e15) as i64).to_string();
        let text = one.display.or(one.text).unwrap_or_default();
        all.entry(id).or_default().push(Prompt { at, text, project: one.project });
        Ok(())
    })?;
    Ok(all)
}

/// The conversations of which there is a file, and when each was last changed.
fn left(agent: &'static str, location: &segno_agents::LogLocation, root: &Path) -> BTreeMap<String, i64> {
    let mut left = BTreeMap::new();
    for file in find::files(agent, location, root).iter().filter(|file| file.below.is_none()) {
        let name = file.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        // Where the id is only a part of the name, it is the last.
        let id = if location.prefix.is_empty() {
            name
        } else {
            name.get(name.len().saturating_sub(36)..).unwrap_or(name)
        };
        left.insert(id.to_owned(), file.stat.modified_ns);
    }
    left
}

/// How many of the kept conversations are not left. The name of a file may have only the beginning of an id, at its end.
fn gone(agent: &str, kept: &HashSet<String>, left: &BTreeMap<String, i64>) -> u64 {
    let keeping = find::log_of(agent).and_then(|log| log.keeping());
    let Some(segno_agents::Keeping::Files(files)) = keeping else { return 0 };
    let end = |name: &str| match files.named_by {
        Some(length) => name.get(name.len().saturating_sub(length)..).unwrap_or(name).to_owned(),
        None => name.to_owned(),
    };
    let left: HashSet<String> = left.keys().map(|name| end(name)).collect();
    kept.iter().filter(|id| !left.contains(files.name_of(id))).count() as u64
}

/// After how many days an agent deletes a conversation, as its settings say it or by itself.
fn keeps(agent: &str, home: &Path) -> (Option<u64>, Option<String>) {
    let settings = |name: &str| -> serde_json::Value {
        let text = std::fs::read_to_string(home.join(name)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    };
    match agent {
        "claude" => {
            let days = settings("settings.json")["cleanupPeriodDays"].as_u64();
            (
                Some(days.unwrap_or(30)),
                Some("\"cleanupPeriodDays\": 36500   in ~/.claude/settings.json".to_owned()),
            )
        }
        "gemini" => {
            let said = settings("settings.json")["general"]["sessionRetention"].clone();
            let off = said["enabled"].as_bool() == Some(false);
            let days = said["maxAge"].as_str().and_then(|age| age.strip_suffix('d')?.parse().ok());
            let setting =
                "\"general\": {\"sessionRetention\": {\"enabled\": false}}   in ~/.gemini/settings.json";
            ((!off).then(|| days.unwrap_or(30)), Some(setting.to_owned()))
        }
        _ => (None, None),
    }
}

impl Engine {
    /// How agents' own histories stand. Nothing is recorded.
    ///
    /// # Errors
    /// If a list cannot be read.
    pub fn history_report(&self, agents: &[String]) -> Result<Vec<AgentReport>, Error> {
        let mut reports = Vec::new();
        for agent in segno_agents::CODING {
            if !agents.is_empty() && !agents.iter().any(|name| name == agent) {
                continue;
            }
            let report = match find::place(self, agent) {
                Some(Place::Files(location, root))
                    if root.is_dir()
                        || home_of(&root).join(LIST).is_file()
                        || !self.kept_conversations(agent).is_empty() =>
                {
                    let home = home_of(&root);
                    let left = left(agent, &location, &root);
                    let list = home.join(LIST);
                    let listed = listed(&list)?;
                    let known = list.is_file();
                    let deleted = listed.keys().filter(|id| !left.contains_key(*id)).count() as u64;
                    let (keeps_days, setting) = keeps(agent, home);
                    let now_ns = self.now().as_micros().saturating_mul(1_000);
                    let going = keeps_days.map(|days| {
                        let oldest =
                            now_ns.saturating_sub(DAY.saturating_mul(i64::try_from(days).unwrap_or(0)));
                        left.values().filter(|changed| **changed < oldest.saturating_add(7 * DAY)).count()
                            as u64
                    });
                    let kept = self.kept_conversations(agent);
                    AgentReport {
                        kept_and_gone: gone(agent, &kept, &left),
                        kept: kept.len() as u64,
                        keeping: self.options.keep_transcripts,
                        agent: (*agent).to_owned(),
                        place: root.display().to_string(),
                        listed: known.then_some(listed.len() as u64),
                        left: left.len() as u64,
                        deleted: known.then_some(deleted),
                        going,
                        keeps_days,
                        setting,
                    }
                }
                Some(Place::Database(database, path)) if path.is_file() => {
                    let all = segno_store::index::foreign_conversations(&path, database.rows.conversations);
                    let left =
                        all.map_or(0, |all| all.iter().filter(|one| one.parent.is_none()).count() as u64);
                    let (agent, place) = ((*agent).to_owned(), path.display().to_string());
                    AgentReport { agent, place, left, ..AgentReport::default() }
                }
                _ => continue,
            };
            reports.push(report);
        }
        Ok(reports)
    }
}

impl ImportRun<'_> {
    /// Keeps what was asked in conversations that the agent has deleted.
    pub(super) fn prompts(&mut self, agent: &'static str, import: &mut AgentImport) -> Result<(), Error> {
        let Some(Place::Files(location, root)) = find::place(self.engine, agent) else { return Ok(()) };
        let list = home_of(&root).join(LIST);
        let Some(stat) = Stat::of(&list) else { return Ok(()) };
        let left: HashSet<String> = left(agent, &location, &root).into_keys().collect();
        let name = list.to_string_lossy().into_owned();
        let mark = segno_store::index::FileNote { used: left.len().to_string(), ..stat.note() };
        if self.index.file(agent, &name)?.as_ref() == Some(&mark) {
            return Ok(());
        }
        for (id, prompts) in listed(&list)? {
            if left.contains(&id) || self.index.session_of(agent, &id)?.is_some() {
                continue;
            }
            let windows = self.recorded()?.windows_of(agent, &id);
            if !windows.is_empty() {
                continue;
            }
            let cwd = prompts.iter().find_map(|prompt| prompt.project.clone());
            let mut taker = Taker::new(self.engine, agent, &id, Origin { cwd, ..Origin::default() }, import)?;
            for (index, prompt) in prompts.into_iter().enumerate() {
                let event = AgentEvent::Input { source: InputSource::User, text: prompt.text, parent: None };
                taker.prompt(&prompt.at, index, event)?;
            }
            taker.finish()?;
            let (session, is_new) = (taker.session(), taker.is_new && taker.is_changed);
            import.new_sessions += u64::from(is_new);
            import.only_prompts += u64::from(is_new);
            let session = session.map(|session| session.to_string()).unwrap_or_default();
            self.index.note_conversation(agent, &id, &session, None)?;
        }
        self.index.note_file(agent, &name, &mark).map_err(Into::into)
    }
}
