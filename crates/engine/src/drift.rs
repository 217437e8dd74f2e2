//! What recorded agents said that this program does not know, and whether they are newer than tested: said before a ledger
//! lies.

use std::collections::BTreeMap;

use segno_agents::drift;
use segno_core::Event;
use segno_core::SessionId;
use segno_store::EventRow;
use segno_store::Filter;
use serde::Serialize;
use serde_json::Value;

use crate::Engine;
use crate::Error;

/// How many of the newest sessions are looked at, and how many of the newest events of each.
const SESSIONS: usize = 200;
const EVENTS: u64 = 20_000;
const PAGE: usize = 1_000;
/// The kind of event that holds what nobody knows.
const REPORTED: &str = "reported";
/// Names that are kept apart; the rest are counted together.
const NAMES: usize = 20;

/// What is known of an agent's version beyond what was tested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// The agent.
    pub agent: String,
    /// The newest version that was recorded.
    pub version: Option<String>,
    /// The version that was tested.
    pub tested: Option<&'static str>,
    /// It is newer than tested.
    pub newer: bool,
    /// Kinds of lines and messages that nobody here knows, with how often they came.
    pub unknown_kinds: BTreeMap<String, u64>,
    /// Hooks that could not be understood, in the same way.
    pub unknown_hooks: BTreeMap<String, u64>,
}

impl Drift {
    /// Whether there is anything to say of it.
    pub fn is_news(&self) -> bool {
        self.newer || !self.unknown_kinds.is_empty() || !self.unknown_hooks.is_empty()
    }

    /// In a few words.
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        if let (true, Some(version), Some(tested)) = (self.newer, &self.version, self.tested) {
            parts.push(format!("{version} is newer than tested ({tested})"));
        }
        for (what, names) in [("kind", &self.unknown_kinds), ("hook", &self.unknown_hooks)] {
            if names.is_empty() {
                continue;
            }
            let list: Vec<String> = names.iter().map(|(name, count)| format!("{name} ×{count}")).collect();
            let many = if names.len() == 1 { "" } else { "s" };
            parts.push(format!("{} unknown {what}{many}: {}", names.len(), list.join(", ")));
        }
        parts.join("; ")
    }

    fn count(names: &mut BTreeMap<String, u64>, name: String) {
        let name = if names.len() < NAMES || names.contains_key(&name) { name } else { "others".to_owned() };
        *names.entry(name).or_default() += 1;
    }
}

impl Engine {
    /// What the newest sessions tell of each agent.
    ///
    /// # Errors
    /// If the list of sessions cannot be read. A session that cannot be read keeps nobody from the others.
    pub fn drift(&self) -> Result<Vec<Drift>, Error> {
        let mut found: BTreeMap<String, Drift> = BTreeMap::new();
        let filter = Filter { limit: Some(SESSIONS), ..Filter::default() };
        for summary in self.list(&filter)? {
            let Ok(state) = self.load(summary.session_id).map(|loaded| loaded.state) else { continue };
            let Some(run) = state.run else { continue };
            let tested = drift::tested(&run.agent);
            let entry = found.entry(run.agent.clone()).or_insert_with(|| Drift {
                agent: run.agent.clone(),
                tested,
                ..Drift::default()
            });
            // The list begins with the newest.
            if entry.version.is_none() {
                entry.newer =
                    run.version.as_deref().is_some_and(|version| drift::is_newer(&run.agent, version));
                entry.version = run.version;
            }
            if let Err(why) = self.count_unknown(summary.session_id, state.seq, entry) {
                tracing::warn!(session = %summary.session_id, %why, "what it does not know was not counted");
            }
        }
        Ok(found.into_values().collect())
    }

    fn count_unknown(&self, session: SessionId, last: u64, drift: &mut Drift) -> Result<(), Error> {
        let hooks = known_hooks(&drift.agent);
        let mut after = last.saturating_sub(EVENTS);
        loop {
            let rows = self.events(session, after, PAGE)?;
            let Some(newest) = rows.last().map(EventRow::seq) else { return Ok(()) };
            for row in &rows {
                let EventRow::Whole(stored) = row else { continue };
                if stored.kind != REPORTED {
                    continue;
                }
                let Ok(Event::Reported(reported)) = stored.event() else { continue };
                match reported.what.as_str() {
                    "unknown" => Drift::count(&mut drift.unknown_kinds, kind_of(&reported.body)),
                    "hook" => {
                        let event = reported.body.get("event").and_then(Value::as_str).unwrap_or_default();
                        if !hooks.is_empty() && !hooks.iter().any(|hook| hook == event) {
                            Drift::count(&mut drift.unknown_hooks, segno_core::text::shorten(event, 60));
                        }
                    }
                    "hook_malformed" => Drift::count(&mut drift.unknown_hooks, "malformed".to_owned()),
                    _ => {}
                }
            }
            after = newest;
        }
    }
}

/// The hooks that an agent is asked for. Empty for one that has none of that form.
fn known_hooks(agent: &str) -> Vec<String> {
    let form = segno_agents::by_name(agent).and_then(|agent| Some(agent.watching()?.form));
    let Some(segno_agents::watching::Form::Hooks(make)) = form else { return Vec::new() };
    let settings = make("true");
    let hooks = settings.get("hooks").and_then(Value::as_object);
    hooks.map(|hooks| hooks.keys().cloned().collect()).unwrap_or_default()
}

/// What a line that nobody knows calls itself.
fn kind_of(body: &Value) -> String {
    let raw = body.get("raw").unwrap_or(&Value::Null);
    let word = |name: &str| raw.get(name).and_then(Value::as_str);
    let name = match (word("type").or_else(|| word("event")).or_else(|| word("kind")), word("subtype")) {
        (Some(kind), Some(subtype)) => format!("{kind}/{subtype}"),
        (Some(kind), None) => kind.to_owned(),
        (None, _) => "without a name".to_owned(),
    };
    segno_core::text::shorten(&name, 60)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_named_by_what_they_say_they_are() {
        for (body, name) in [
            (json!({ "raw": { "type": "system", "subtype": "new" } }), "system/new"),
            (json!({ "raw": { "type": "news" } }), "news"),
            (json!({ "raw": 5 }), "without a name"),
            (json!({}), "without a name"),
        ] {
            assert_eq!(kind_of(&body), name);
        }
    }

    #[test]
    fn it_is_said_in_a_few_words() {
        let drift = Drift {
            agent: "claude".to_owned(),
            version: Some("3.0.0".to_owned()),
            tested: Some("2.1.325"),
            newer: true,
            unknown_kinds: [("news".to_owned(), 3), ("system/new".to_owned(), 1)].into(),
            ..Drift::default()
        };
        assert_eq!(
            drift.words(),
            "3.0.0 is newer than tested (2.1.325); 2 unknown kinds: news ×3, system/new ×1"
        );
    }
}
