//! Which files are of one conversation.

use std::collections::BTreeMap;
use std::collections::HashMap;

use segno_agents::Lineage;

use super::find;
use super::find::FoundFile;

/// A conversation and its files that have changed.
#[derive(Default)]
pub(super) struct Conversation {
    pub(super) id: String,
    pub(super) lineage: Lineage,
    pub(super) main: Option<FoundFile>,
    pub(super) subs: Vec<FoundFile>,
    born_ns: i64,
}

/// Files by the conversation that they are of, the oldest first: a copy comes after its origin.
pub(super) fn grouped(files: Vec<FoundFile>) -> Vec<Conversation> {
    let known: Vec<(FoundFile, Lineage)> = files
        .into_iter()
        .map(|file| (find::lineage(&file), file))
        .map(|(lineage, file)| (file, lineage))
        .collect();
    let parents: HashMap<String, String> = known
        .iter()
        .filter_map(|(_, lineage)| Some((lineage.id.clone()?, lineage.sub_agent_of.clone()?)))
        .filter(|(child, parent)| child != parent)
        .collect();
    let mut conversations: BTreeMap<String, Conversation> = BTreeMap::new();
    for (file, lineage) in known {
        let own = lineage.id.clone().unwrap_or_default();
        let mut id = lineage.sub_agent_of.clone().unwrap_or_else(|| own.clone());
        for _ in 0..20 {
            match parents.get(&id) {
                Some(parent) => id = parent.clone(),
                None => break,
            }
        }
        let conversation = conversations.entry(id.clone()).or_default();
        conversation.id = id;
        conversation.born_ns = match conversation.born_ns {
            0 => file.stat.born_ns,
            born => born.min(file.stat.born_ns),
        };
        if lineage.sub_agent_of.is_some() {
            conversation.lineage.cwd = conversation.lineage.cwd.take().or(lineage.cwd);
            conversation.subs.push(file);
        } else if let Some(main) = conversation.main.replace(file) {
            // Two files of one conversation: what both have counts once.
            conversation.subs.push(main);
        } else {
            conversation.lineage = lineage;
        }
    }
    let mut all: Vec<Conversation> = conversations.into_values().collect();
    all.sort_by_key(|conversation| conversation.born_ns);
    all
}
