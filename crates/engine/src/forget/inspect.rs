//! Finds what is to be forgotten.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use segno_core::Event;
use segno_core::List;
use segno_core::SessionId;
use segno_redact::forget::Forget;
use segno_redact::forget::Replacements;
use segno_redact::forget::Secret;
use segno_store::EventRow;
use segno_store::Filter;
use segno_store::Holds;
use segno_store::Rewritten;
use segno_store::StoredEvent;
use segno_workspace::Snapshots;

use super::Findings;
use super::FoundSession;
use super::FoundSnapshot;
use super::Wish;
use crate::Engine;
use crate::Error;

/// How many events are read at once.
const PAGE: usize = 500;
/// How long somebody else's work on snapshots is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Files of others are looked into up to this size.
const LARGEST: u64 = 1 << 30;

impl Engine {
    /// Looks through everything. Nothing is changed.
    ///
    /// # Errors
    /// If somebody drives a session that it would be taken out of, or something cannot be read.
    pub fn look_to_forget(&self, wish: &Wish) -> Result<Findings, Error> {
        let mut findings = Findings::default();
        for (id, project) in self.sessions_of(wish)? {
            let (mut events, mut after) = (0, 0);
            let instead = self.new_names(wish, id, Replacements::default())?;
            loop {
                let page = self.rewritten(wish, id, after, &instead, &mut findings)?;
                events += page.events.len() as u64;
                match page.last {
                    Some(last) => after = last,
                    None => break,
                }
            }
            if events > 0 {
                refuse_project(wish, &project)?;
                self.over_or_refused(id)?;
                findings.sessions.push(FoundSession { session_id: id, project, events });
            }
        }
        if let Forget::Secret(secret) = &wish.what {
            let mut rows = self.store().search(&holds(secret))?;
            // These follow from the events, which are counted above.
            for derived in ["events", "items", "states", "sessions", "blobs"] {
                if !findings.sessions.is_empty() {
                    rows.remove(derived);
                }
            }
            findings.rows = rows;
        }
        self.look_into_snapshots(wish, &mut findings)?;
        self.look_into_transcripts(wish, &mut findings)?;
        self.look_into_files(wish, &mut findings)?;
        self.look_beyond(wish, &mut findings)?;
        Ok(findings)
    }

    /// Agents' transcripts that are kept: those that hold a secret, or all of a session whose texts go.
    fn look_into_transcripts(&self, wish: &Wish, findings: &mut Findings) -> Result<(), Error> {
        if self.is_copy() {
            return Ok(());
        }
        let places = match wish.session {
            Some(session) => self.transcripts_of_session(session)?,
            None => self.all_transcripts(),
        };
        for path in places {
            match &wish.what {
                Forget::Texts if self.transcript_is_forgotten(&path) => {}
                Forget::Texts => findings.transcripts.push(path),
                Forget::Secret(secret) => match self.transcript_holds(&path, &|bytes| secret.is_in(bytes)) {
                    Some(true) => findings.transcripts.push(path),
                    Some(false) => {}
                    None => findings.beyond(path, "a kept transcript that is damaged"),
                },
            }
        }
        Ok(())
    }

    /// The sessions that are meant, with their projects.
    pub(super) fn sessions_of(&self, wish: &Wish) -> Result<BTreeMap<SessionId, String>, Error> {
        let all = self.list(&Filter::default())?;
        let all = all.into_iter().map(|summary| (summary.session_id, summary.project));
        Ok(all.filter(|(id, _)| wish.session.is_none_or(|only| only == *id)).collect())
    }

    /// Gives the names that somebody gave in a session other ones, if all texts go.
    pub(super) fn new_names(
        &self,
        wish: &Wish,
        id: SessionId,
        mut instead: Replacements,
    ) -> Result<Replacements, Error> {
        if matches!(wish.what, Forget::Secret(_)) {
            return Ok(instead);
        }
        let mut after = 0;
        loop {
            let rows = match self.store().events(id, after, PAGE) {
                Err(segno_store::Error::NotFound(_)) => return Ok(instead),
                rows => rows?,
            };
            let Some(last) = rows.last().map(EventRow::seq) else { return Ok(instead) };
            for row in &rows {
                if let EventRow::Whole(stored) = row {
                    instead.rename(&stored.kind, &stored.body);
                }
            }
            after = last;
        }
    }

    /// A page of a session's events, those that change.
    pub(super) fn rewritten(
        &self,
        wish: &Wish,
        id: SessionId,
        after: u64,
        instead: &Replacements,
        findings: &mut Findings,
    ) -> Result<Page, Error> {
        let rows = match self.store().events(id, after, PAGE) {
            Ok(rows) => rows,
            // Deleted meanwhile.
            Err(segno_store::Error::NotFound(_)) => Vec::new(),
            Err(why) => return Err(why.into()),
        };
        let mut page = Page { last: rows.last().map(EventRow::seq), events: Vec::new() };
        for row in rows {
            match row {
                EventRow::Whole(stored) => {
                    page.events.extend(self.rewrite(id, &wish.what, &stored, instead)?)
                }
                EventRow::Damaged { seq, what } => {
                    findings.beyond(None, format!("event {seq} of {id} cannot be read: {what}"));
                }
            }
        }
        Ok(page)
    }

    /// A checkpoint's checksum covers its snapshot and its branch, which may be others now.
    fn check_again(
        &self,
        id: SessionId,
        what: &Forget,
        stored: &StoredEvent,
        instead: &mut Replacements,
    ) -> Result<(), Error> {
        if stored.kind != "checkpoint_ready" {
            return Ok(());
        }
        let Ok(Some(changed)) = what.event(&stored.kind, stored.version, &stored.body, instead) else {
            return Ok(());
        };
        if let Ok(Event::CheckpointReady(ready)) = Event::decode(&stored.kind, stored.version, changed.body())
        {
            let checksum = self.checksum(&self.load(id)?.state, &ready)?;
            instead.checksums.insert(ready.checksum, checksum);
        }
        Ok(())
    }

    fn rewrite(
        &self,
        id: SessionId,
        what: &Forget,
        stored: &StoredEvent,
        instead: &Replacements,
    ) -> Result<Option<Rewritten>, Error> {
        // What tells of a forgetting has no texts, and must be believed.
        if stored.kind == "texts_forgotten" {
            return Ok(None);
        }
        let (snapshots, names) = (instead.snapshots.clone(), instead.names.clone());
        let mut instead = Replacements { snapshots, names, ..Replacements::default() };
        self.check_again(id, what, stored, &mut instead)?;
        if let Forget::Secret(_) = what {
            for hash in segno_store::references(&stored.body) {
                // One that is missing or damaged is what `doctor` names.
                if let Ok(text) = self.store().blob(&hash)
                    && let Some(changed) = what.aside(&text)
                {
                    instead.asides.insert(crate::transfer::hex(&hash), changed);
                }
            }
        }
        let changed = what.event(&stored.kind, stored.version, &stored.body, &instead).map_err(|why| {
            Error::NotForgotten(format!("event {} would not be one any more: {why}", stored.seq))
        })?;
        let old_key = match what {
            Forget::Secret(secret) => secret.is_in(stored.key.as_bytes()),
            Forget::Texts => false,
        };
        let key = old_key.then(crate::fresh_key);
        let event = match (changed, old_key) {
            (Some(event), _) => event,
            (None, false) => return Ok(None),
            (None, true) => {
                self.redactor()
                    .record_again(&stored.kind, stored.version, &stored.body, &Default::default())
                    .map_err(crate::engine::unrecordable)?
                    .0
            }
        };
        Ok(Some(Rewritten { seq: stored.seq, key, event }))
    }

    /// Nobody may be driving a session whose record is changed.
    pub(super) fn over_or_refused(&self, id: SessionId) -> Result<Option<segno_store::Over>, Error> {
        match self.store().lease(id)? {
            Some(lease) if crate::lease::life(&lease).may_live() => {
                Err(segno_store::Error::Held(Box::new(lease)).into())
            }
            lease => Ok(lease.as_ref().map(segno_store::Over::from)),
        }
    }

    /// Every shadow directory, opened; none without git or snapshots.
    pub(super) fn shadows(&self, findings: &mut Findings) -> Vec<(PathBuf, Snapshots)> {
        let Some(tree) = &self.options.tree else { return Vec::new() };
        let mut found = Vec::new();
        let mut entries: Vec<PathBuf> = std::fs::read_dir(&tree.shadows)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        entries.sort();
        for path in entries.into_iter().filter(|path| path.join("git/HEAD").is_file()) {
            let opened = match &tree.git {
                Some(git) => Snapshots::open(&path, git, PATIENCE).map_err(|why| why.to_string()),
                None => Err("git is not installed".to_owned()),
            };
            match opened {
                Ok(snapshots) => found.push((path, snapshots)),
                Err(why) => findings.beyond(path, format!("snapshots that cannot be looked into: {why}")),
            }
        }
        found
    }

    fn look_into_snapshots(&self, wish: &Wish, findings: &mut Findings) -> Result<(), Error> {
        let secret = match &wish.what {
            Forget::Secret(secret) => secret,
            Forget::Texts => return self.snapshots_of_session(wish, findings),
        };
        let mut trees = BTreeMap::new();
        for summary in self.list(&Filter::default())? {
            trees.insert(summary.session_id.to_string(), summary.project);
        }
        for (directory, snapshots) in self.shadows(findings) {
            let held = match snapshots.holding(&|bytes| secret.is_in(bytes)) {
                Ok(held) => held,
                Err(why) => {
                    findings.beyond(directory, format!("snapshots that cannot be looked into: {why}"));
                    continue;
                }
            };
            for holding in held {
                let name = holding.snapshot.name;
                let owner = name.split('/').next().unwrap_or_default().to_owned();
                match trees.get(&owner) {
                    Some(_) if wish.session.is_some_and(|only| only.to_string() != owner) => {}
                    Some(project) => {
                        self.refuse_driven_by_name(&owner)?;
                        for path in &holding.paths {
                            let file = Path::new(project).join(path);
                            if std::fs::read(&file).is_ok_and(|bytes| secret.is_in(&bytes)) {
                                let what = "a file of the project; the next checkpoint keeps it again";
                                findings.beyond(file, what);
                            }
                        }
                        let directory = directory.clone();
                        findings.snapshots.push(FoundSnapshot { directory, name, paths: holding.paths });
                    }
                    // What a removed session left behind is ours too.
                    None if crate::tree::snapshot::store_of(&name) == Some(self.store_id()) => {
                        let directory = directory.clone();
                        findings.snapshots.push(FoundSnapshot { directory, name, paths: holding.paths });
                    }
                    None => findings.beyond(
                        directory.clone(),
                        format!("the snapshot {name}, which no session of this store knows"),
                    ),
                }
            }
        }
        Ok(())
    }

    fn refuse_driven_by_name(&self, name: &str) -> Result<(), Error> {
        match name.parse::<SessionId>() {
            Ok(id) => self.over_or_refused(id).map(drop),
            Err(_) => Ok(()),
        }
    }

    /// With its texts a session loses its snapshots.
    fn snapshots_of_session(&self, wish: &Wish, findings: &mut Findings) -> Result<(), Error> {
        let Some(id) = wish.session else { return Ok(()) };
        let Some(tree) = &self.options.tree else { return Ok(()) };
        let project = self.load(id)?.state.project.path;
        for checkpoint in self.checkpoints(id)?.into_iter().filter(|checkpoint| checkpoint.ready) {
            if let Some(snapshot) = checkpoint.snapshot {
                let directory = tree.shadow(Path::new(&project));
                findings.snapshots.push(FoundSnapshot { directory, name: snapshot.name, paths: Vec::new() });
            }
        }
        Ok(())
    }

    /// What is not ours to change: the agents' own logs, and what nobody can know.
    fn look_beyond(&self, wish: &Wish, findings: &mut Findings) -> Result<(), Error> {
        let concerned: Vec<FoundSession> = findings.sessions.clone();
        for session in &concerned {
            for run in self.items(session.session_id, List::Runs)? {
                let Some(path) = self.log_path(&run.row()) else { continue };
                let holds = match &wish.what {
                    Forget::Secret(secret) => {
                        super::files::read(&path, LARGEST).is_none_or(|bytes| secret.is_in(&bytes))
                    }
                    Forget::Texts => true,
                };
                if holds {
                    findings.beyond(path, "the agent's own log of the conversation");
                }
            }
        }
        let projects: std::collections::BTreeSet<&String> =
            concerned.iter().map(|session| &session.project).collect();
        for project in projects {
            if Path::new(project).join(".git").exists() {
                findings.beyond(
                    Path::new(project).join(".git"),
                    "the project's git repository, if it was committed",
                );
            }
        }
        findings.beyond(
            None,
            "exports, copies of the store made by hand, and whoever was sent it: change the secret",
        );
        Ok(())
    }
}

/// A session is known by where its project is: while that is there, it cannot be forgotten.
fn refuse_project(wish: &Wish, project: &str) -> Result<(), Error> {
    match &wish.what {
        Forget::Secret(secret) if secret.is_in(project.as_bytes()) && Path::new(project).exists() => {
            Err(Error::NotForgotten(format!(
                "it is in the path of a project that is there, by which its sessions are known: {project}; \
                 give that directory another name, then forget it"
            )))
        }
        Forget::Secret(_) | Forget::Texts => Ok(()),
    }
}

/// What changes in a page of events.
pub(super) struct Page {
    /// The last event that was looked at; none at the end.
    pub(super) last: Option<u64>,
    pub(super) events: Vec<Rewritten>,
}

/// The same question in the form that a store takes.
pub(super) fn holds(secret: &Secret) -> Holds {
    let secret = secret.clone();
    Arc::new(move |bytes| secret.is_in(bytes))
}
