//! Finds the log that an agent keeps of a conversation.

use std::path::Path;
use std::path::PathBuf;

use segno_agents::LogLocation;

/// Most entries of directories that are looked at; more are nobody's.
const ENTRIES: usize = 200_000;

/// The log of a conversation, wherever it is below the directory of all logs; the newest directories first.
pub(crate) fn find(location: &LogLocation, root: &Path, id: &str) -> Option<PathBuf> {
    let mut left = ENTRIES;
    below(location, root, location.depth, id, &mut left)
}

fn below(location: &LogLocation, dir: &Path, depth: usize, id: &str, left: &mut usize) -> Option<PathBuf> {
    if depth == 0 && location.prefix.is_empty() {
        // The id is the name: a directory may hold thousands of others.
        *left = left.checked_sub(1)?;
        let name = format!("{id}.jsonl");
        return Some(dir.join(&name)).filter(|path| location.is_of(&name, id) && path.is_file());
    }
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path()).collect();
    *left = left.checked_sub(entries.len())?;
    if depth == 0 {
        return entries.into_iter().find(|path| is_of(location, path, id) && path.is_file());
    }
    entries.sort_unstable();
    entries.iter().rev().find_map(|entry| below(location, entry, depth - 1, id, left))
}

/// Whether a path is that of the log of a conversation.
pub(crate) fn is_of(location: &LogLocation, path: &Path, id: &str) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| location.is_of(name, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_found_by_their_conversation() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let location = |agent: &str| {
            let agent = segno_agents::by_name(agent).unwrap();
            agent.conversation_log().and_then(|log| log.location()).unwrap()
        };
        let plain = write("p/-home-me/ab-1.jsonl");
        write("p/-home-me/other.jsonl");
        write("p/ab-1.jsonl");
        let claude = location("claude");
        assert_eq!(find(&claude, &dir.path().join("p"), "ab-1"), Some(plain));
        write("s/2026/01/02/rollout-2026-01-02-ab-1.jsonl");
        let newest = write("s/2026/11/16/rollout-2026-11-16-ab-1.jsonl");
        let codex = location("codex");
        assert_eq!(find(&codex, &dir.path().join("s"), "ab-1"), Some(newest));
        for id in ["b-1", "", "../p/x", "nobody"] {
            assert_eq!(find(&codex, &dir.path().join("s"), id), None, "{id}");
            assert_eq!(find(&claude, &dir.path().join("p"), id), None, "{id}");
        }
    }
}
