//! Which session somebody means.

use std::path::Path;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_core::Status;
use segno_core::Summary;
use segno_core::Timestamp;
use segno_core::event::Maker;
use segno_core::rows::RunRow;
use segno_layouts::Family;
use segno_store::Filter;

use crate::Engine;
use crate::Error;

/// Fewer digits than this are the number of a list, never the end of an id.
pub const SHORTEST_ENDING: usize = 4;

/// What a text, or the lack of one, comes to.
#[derive(Clone, Debug)]
pub enum Choice {
    /// This one.
    One(SessionId),
    /// None.
    None,
    /// This one, because something happened in it last; others that are open could be meant as well.
    Latest {
        /// It.
        session: Box<Summary>,
        /// How many others are open.
        others: usize,
    },
    /// One of these; somebody must say which.
    Several(Vec<Summary>),
}

/// How many of the sessions in which something happened last are looked through for the last run.
const RECENT: usize = 50;

impl Engine {
    /// The session that a text names: an id, its shortest unique ending, or `last`.
    pub fn find(&self, text: &str, project: Option<&Path>) -> Result<SessionId, Error> {
        let not_found = || Error::SessionNotFound { session_id: text.chars().take(60).collect() };
        if text == "last" {
            let filter = Filter { project: project.map(path_text), limit: Some(1), ..Filter::default() };
            let newest = self.list(&filter)?.into_iter().next();
            return newest.map(|summary| summary.session_id).ok_or_else(not_found);
        }
        if let Ok(id) = text.parse::<SessionId>() {
            return Ok(id);
        }
        // People copy the short form with its ellipsis.
        let suffix = text.trim_start_matches('…').trim_start_matches("...");
        let found = self.store().find(suffix, 6)?;
        match found.as_slice() {
            [] => Err(not_found()),
            [id] => Ok(*id),
            several => Err(ambiguous(text, several)),
        }
    }

    /// The shortest end of an id that people type and that means no other session.
    pub fn ending(&self, id: SessionId) -> String {
        const USUAL: usize = 6;
        let text = id.to_string();
        let ends = (0..=text.len().saturating_sub(USUAL)).rev().map(|start| &text[start..]);
        let mut ends = ends.filter(|end| end.starts_with(|c: char| c != '_'));
        // Who cannot look gives the whole id.
        let end = ends.find(|end| self.store().find(end, 2).is_ok_and(|found| found.len() <= 1));
        end.unwrap_or(&text).to_owned()
    }

    /// The session of a project that has this name in the files of another session manager: the one that it came with, or
    /// the end of that, or the one that we write there.
    ///
    /// # Errors
    /// If there is none, or several.
    pub fn find_foreign(&self, name: &str, project: &Path) -> Result<SessionId, Error> {
        let not_found = || Error::SessionNotFound { session_id: name.chars().take(60).collect() };
        if name.len() < SHORTEST_ENDING {
            return Err(not_found());
        }
        let mut whole = Vec::new();
        let mut ends = Vec::new();
        for one in self.list(&Filter { project: Some(path_text(project)), ..Filter::default() })? {
            let loaded = match one.made_by {
                Maker::Import => self.load(one.session_id).ok(),
                _ => None,
            };
            let came_with = |family| segno_layouts::foreign_name(family, &loaded.as_ref()?.state);
            let came_with: Vec<&str> = Family::ALL.into_iter().filter_map(came_with).collect();
            // The end of a name that nobody gave is an accident, and must not pass for what somebody meant.
            let ours = |family| {
                let own = segno_layouts::own_name(family, one.session_id, one.uid);
                // The documents of go-team leave out how every name begins.
                own == name || (family == Family::GoTeam && own.strip_prefix("session-") == Some(name))
            };
            if came_with.contains(&name) || Family::ALL.into_iter().any(ours) {
                whole.push(one.session_id);
            } else if came_with.iter().any(|known| known.ends_with(name)) {
                ends.push(one.session_id);
            }
        }
        match if whole.is_empty() { ends } else { whole }.as_slice() {
            [] => Err(not_found()),
            [id] => Ok(*id),
            several => Err(ambiguous(name, several)),
        }
    }

    /// The same, of a session that is in this store: a whole id is not believed without a look.
    ///
    /// # Errors
    /// If the text names no session of this store, or several.
    pub fn find_known(&self, text: &str, project: Option<&Path>) -> Result<SessionId, Error> {
        let id = self.find(text, project)?;
        match self.lease(id) {
            Err(missing @ Error::SessionNotFound { .. }) => Err(missing),
            // Whoever works with it will say what else is wrong.
            _ => Ok(id),
        }
    }

    /// The view in a project of a session that this text names, for one that this store does not know.
    pub fn view_named(project: &Path, text: &str) -> Option<PathBuf> {
        let fits = |id: &str| {
            id.parse::<SessionId>().is_ok()
                && (id == text || text.len() >= SHORTEST_ENDING && id.ends_with(text))
        };
        let sessions = project.join(".segno/sessions");
        let entries = std::fs::read_dir(&sessions).ok()?.flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| text == "last" || fits(name))
            .collect();
        names.sort();
        let path = sessions.join(names.pop()?).join("session.yaml");
        path.is_file().then_some(path)
    }

    /// The session that somebody who only looks means: the one of the project in which something happened last.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn session_to_read(&self, project: &Path) -> Result<Choice, Error> {
        let latest = self.recent(project, 1)?.into_iter().next();
        self.latest(project, latest)
    }

    /// The loop that somebody means who asks about one: the one of the project in which something happened last; without
    /// any loop, the session in which something did.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn loop_to_read(&self, project: &Path) -> Result<Choice, Error> {
        let recent = self.recent(project, RECENT)?;
        // One that cannot be read is no reason not to find another.
        let is_loop =
            |one: &&Summary| self.load(one.session_id).is_ok_and(|loaded| loaded.state.looping.is_some());
        let meant = recent.iter().find(is_loop).or(recent.first()).cloned();
        self.latest(project, meant)
    }

    /// The session that somebody means who asks what was done to the files, or takes it back: that of the project's last
    /// run; without any run, the one in which something happened last.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn session_of_last_run(&self, project: &Path) -> Result<Choice, Error> {
        let recent = self.recent(project, RECENT)?;
        let mut last: Option<(Timestamp, &Summary)> = None;
        for summary in &recent {
            // One that cannot be read is no reason not to find another.
            let run = self.newest_run(summary.session_id).ok().flatten();
            let started = run.and_then(|run| run.row::<RunRow>().started_at);
            if let Some(started) = started.filter(|started| last.is_none_or(|(newest, _)| newest < *started))
            {
                last = Some((started, summary));
            }
        }
        let meant = last.map(|(_, summary)| summary).or(recent.first()).cloned();
        self.latest(project, meant)
    }

    /// The session that somebody means who changes something: the open one. Of several, one that is active rather than
    /// one that waits, and then the one in which something happened last.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn session_to_change(&self, project: &Path) -> Result<Choice, Error> {
        match self.open_session(project)? {
            Choice::Several(sessions) => {
                let active = sessions.iter().find(|summary| summary.status == Status::Active);
                let meant = active.or(sessions.first()).cloned();
                self.latest(project, meant)
            }
            found => Ok(found),
        }
    }

    /// The project's one open session, if there is just one.
    pub fn open_session(&self, project: &Path) -> Result<Choice, Error> {
        let mut sessions = self.open_sessions(project)?;
        // Of a loop and the item that it works on, the loop is meant.
        let ids: Vec<SessionId> = sessions.iter().map(|one| one.session_id).collect();
        sessions.retain(|one| one.parent.is_none_or(|parent| !ids.contains(&parent)));
        Ok(match sessions.len() {
            0 => Choice::None,
            1 => Choice::One(sessions.remove(0).session_id),
            _ => Choice::Several(sessions),
        })
    }

    fn open_sessions(&self, project: &Path) -> Result<Vec<Summary>, Error> {
        let open = Status::ALL.into_iter().filter(|status| status.is_open()).collect();
        self.list(&Filter {
            project: Some(path_text(project)),
            statuses: open,
            archived: Some(false),
            limit: Some(20),
            ..Filter::default()
        })
    }

    /// The project's sessions, the one in which something happened last first.
    fn recent(&self, project: &Path, most: usize) -> Result<Vec<Summary>, Error> {
        self.list(&Filter { project: Some(path_text(project)), limit: Some(most), ..Filter::default() })
    }

    fn latest(&self, project: &Path, meant: Option<Summary>) -> Result<Choice, Error> {
        let Some(meant) = meant else { return Ok(Choice::None) };
        let open = self.open_sessions(project)?;
        let others = open.iter().filter(|other| other.session_id != meant.session_id).count();
        Ok(match others {
            0 => Choice::One(meant.session_id),
            others => Choice::Latest { session: Box::new(meant), others },
        })
    }
}

fn ambiguous(text: &str, several: &[SessionId]) -> Error {
    let ids: Vec<String> = several.iter().map(ToString::to_string).collect();
    Error::Ambiguous(format!("{text} could be {}", ids.join(", ")))
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}
