//! What is remembered between commands: the numbers of the last list on a terminal.

use std::path::Path;
use std::path::PathBuf;

use segno_engine::core::SessionId;

use crate::files::Access;
use crate::files::Links;
use crate::files::{self};

/// Lists of terminals that are gone are forgotten when there are more than this.
const MOST_LISTS: usize = 64;

/// Remembers the order in which sessions were shown on this terminal.
pub fn remember(state: &Path, ids: &[SessionId]) {
    let directory = state.join("lists");
    let text = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    // A number that cannot be used later is no reason to fail a list.
    if files::private_directory(&directory).is_ok() {
        let _ = files::replace(&file(&directory), text.as_bytes(), Access::Private);
        forget(&directory);
    }
}

/// The session with this number in the last list of this terminal.
pub fn numbered(state: &Path, text: &str) -> Option<SessionId> {
    if text.len() > 5 || text.starts_with('0') || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: usize = text.parse().ok()?;
    let list = files::read_bounded(&file(&state.join("lists")), 1 << 20, Links::Refuse).ok()??;
    std::str::from_utf8(&list).ok()?.lines().nth(number.checked_sub(1)?)?.parse().ok()
}

/// One list per login session: each terminal has its own numbers.
fn file(directory: &Path) -> PathBuf {
    directory.join(format!("terminal-{}", login_session().unwrap_or(0)))
}

/// Read as text: in a container the session's leader may live outside, and then its number is 0, which is no pid.
fn login_session() -> Option<u32> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(3)?.parse().ok()
}

/// How many sessions are remembered about which somebody said: not now.
const MOST_LATER: usize = 500;

/// Whether somebody said of a session that they do not want to be asked about it.
pub fn is_later(state: &Path, id: SessionId) -> bool {
    later(state).contains(&id)
}

/// Remembers that. Whoever cannot be spared the question is asked again.
pub fn remember_later(state: &Path, id: SessionId) {
    let mut ids = later(state);
    ids.retain(|known| *known != id);
    ids.push(id);
    let old = ids.len().saturating_sub(MOST_LATER);
    let text = ids[old..].iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    if files::private_directory(state).is_ok() {
        let _ = files::replace(&state.join("not-now"), text.as_bytes(), Access::Private);
    }
}

fn later(state: &Path) -> Vec<SessionId> {
    let list = files::read_bounded(&state.join("not-now"), 1 << 20, Links::Refuse).ok().flatten();
    let list = String::from_utf8(list.unwrap_or_default()).unwrap_or_default();
    list.lines().filter_map(|line| line.parse().ok()).collect()
}

fn forget(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut lists: Vec<_> = entries
        .filter_map(|entry| {
            entry.ok().and_then(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        })
        .collect();
    if lists.len() > MOST_LISTS {
        lists.sort();
        let surplus = lists.len() - MOST_LISTS;
        for (_, path) in lists.into_iter().take(surplus) {
            let _ = std::fs::remove_file(path);
        }
    }
}
