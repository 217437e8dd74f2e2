//! Keeping the files of a family current: each replaced as a whole, in the order that the family wants, and only if it
//! changes. Files of somebody else are never replaced.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;

use segno_core::List;
use segno_core::State;
use segno_core::Status;
use segno_core::limits;
use segno_core::text::shorten as fit;
use segno_files::Replaced;
use segno_layouts::Came;
use segno_layouts::Facts;
use segno_layouts::Family;
use segno_layouts::FileSet;
use segno_layouts::ForeignEdit;
use segno_layouts::Looked;
use segno_layouts::Snapshot;
use segno_layouts::go_team;
use segno_layouts::go_team::REGISTRY;
use segno_layouts::ultra_create::CURRENT;
use segno_store::Page;
use serde_json::Value;

use super::below::is_below;
use super::below::keep_beside;
use super::below::kept_beside;
use super::below::read_below;
use super::below::remove_below;
use super::below::sweep_below;
use super::below::write_known;
use super::folder;
use super::foreign_edits::Answer;
use super::present::Present;
use crate::Engine;
use crate::Error;
use crate::files;

/// The file that keeps a folder out of the repository, and out of snapshots with it.
pub(super) const IGNORE: &str = ".gitignore";
pub(super) const IGNORED: &[u8] = b"# Kept current by segno for other tools.\n*\n";

/// A file that the document of AgentForge has in a folder that it makes.
pub(super) const KEEP: &str = ".gitkeep";

/// How often it is tried to write beside another program that writes the same files.
const ROUNDS: u32 = 5;

/// How the files of a family stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As they would be written now.
    Current,
    /// There, but not as they would be written now.
    Differs,
    /// Not there.
    Missing,
    /// Of another session, which is not written over.
    NotOurs(String),
    /// The family has no words for the session.
    Unfit(String),
    /// Another program changes them again and again.
    LeftAlone(String),
}

/// A family for one session.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Which.
    pub family: Family,
    /// Its folder.
    pub folder: PathBuf,
    /// How its files stand.
    pub standing: Standing,
    /// Each file that is not as it would be written: what is there, and what would be.
    pub changes: Vec<(String, Option<Vec<u8>>, Vec<u8>)>,
}

/// What is to be written, and what is there.
pub(super) struct Planned {
    family: Family,
    pub(super) folder: PathBuf,
    pub(super) present: Present,
    pub(super) wanted: Vec<(String, Vec<u8>)>,
    /// The main file, if it is one of ours.
    pub(super) main: Option<(String, Looked)>,
    /// The main file, if it cannot be read.
    pub(super) damaged_main: Option<String>,
    /// Files that are as they came with the session, and from which not all was taken over.
    pub(super) left_out: Vec<String>,
}

/// What came of writing a family.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The files that changed.
    pub changed: Vec<String>,
    /// What the user should know.
    pub notices: Vec<String>,
}

impl Engine {
    /// Brings the chosen families up to date. What cannot be written is said, and written the next time.
    pub(crate) fn refresh_layouts(&self, state: &State, notices: &mut Vec<String>) {
        for family in &self.options.layout.families {
            match self.write_layout(*family, state) {
                Ok(written) => notices.extend(written.notices),
                Err(why) => {
                    notices.push(format!(
                        "the change is recorded, but the files of {family} were not written: {why}"
                    ));
                }
            }
        }
    }

    /// Writes the files of a family for a session. What another program asked for in them is obeyed first.
    ///
    /// # Errors
    /// If the files cannot be read or written.
    pub fn write_layout(&self, family: Family, state: &State) -> Result<Written, Error> {
        self.write_layout_as(family, state, false)
    }

    /// The same, also over what other programs have changed again and again.
    ///
    /// # Errors
    /// If the files cannot be read or written.
    pub fn write_layout_anew(&self, family: Family, state: &State) -> Result<Written, Error> {
        self.write_layout_as(family, state, true)
    }

    fn write_layout_as(&self, family: Family, state: &State, anew: bool) -> Result<Written, Error> {
        let (base, parts) = self.options.layout.folder(family, state).map_err(|why| unfit(family, &why))?;
        let folder = parts.iter().fold(base.clone(), |path, part| path.join(part));
        let fail = |why: std::io::Error| Error::file(&folder, why);
        let fresh = !folder.is_dir();
        let dir = folder::open(&base, &parts).map_err(fail)?;
        // What is below the project must not show in its repository.
        if fresh && !parts.is_empty() && family != Family::UltraCreate {
            files::replace_in(&dir, IGNORE, IGNORED, 0o644).map_err(fail)?;
            if family == Family::AgentForge {
                files::replace_in(&dir, KEEP, b"", 0o644).map_err(fail)?;
            }
        }
        let locked = files::lock(&dir);
        // Whoever waited for the lock may know less by now than the one who had it: the newest state is written.
        let newest = self.store().load(state.session_id).ok().map(|loaded| loaded.state);
        let state = newest.as_ref().filter(|newest| newest.seq > state.seq).unwrap_or(state);
        let mut written = Written::default();
        let mut changed = None;
        // Another program may write the same file in the same moment: then theirs is read, and it is decided anew.
        for _ in 0..ROUNDS {
            let planned = match self.plan_layout(family, state, changed)? {
                Ok(planned) => planned,
                Err(Standing::NotOurs(whose) | Standing::Unfit(whose)) => {
                    written.notices.push(left_alone(family, &whose));
                    return Ok(written);
                }
                Err(_) => return Ok(written),
            };
            if changed.is_none() {
                match self.answer_to(family, state, &planned, anew) {
                    Answer::Write => {}
                    Answer::Wait => return Ok(written),
                    Answer::Obey(command, what) => {
                        // Whoever acts writes these files, and must not wait for us.
                        drop(dir);
                        let acted = self.act(state.session_id, *command)?;
                        written.notices.push(what);
                        written.notices.extend(acted.notices);
                        return Ok(written);
                    }
                    Answer::Stop(why) => {
                        written.notices.push(left_alone(family, &why));
                        return Ok(written);
                    }
                    Answer::PutBack { names, changed: times } => {
                        for name in names {
                            let kept = keep_beside(&dir, &name, self.now()).map_err(fail)?;
                            let path = planned.folder.join(&name);
                            written.notices.push(match planned.left_out.contains(&name) {
                                true => format!(
                                    "{} holds what was not taken over; it is kept beside it as {kept}",
                                    path.display()
                                ),
                                false => format!(
                                    "another program changed {}; its text is kept beside it as {kept} and changes nothing",
                                    path.display()
                                ),
                            });
                        }
                        changed = Some(times);
                        continue;
                    }
                }
            }
            if locked {
                sweep_below(&dir, &planned.wanted);
            }
            if planned.write(&dir, &mut written.changed)? {
                if family == Family::GoTeam {
                    planned.drop_recovery(&dir, state);
                }
                if family == Family::UltraCreate && !written.changed.is_empty() {
                    let before = planned.main.as_ref().and_then(|(_, looked)| looked.status.clone());
                    self.prune_ultra_create(&dir, state, &planned);
                    // A command may want to look at the files.
                    drop(dir);
                    let ran = self.ultra_create_hooks(state, &planned.folder, before.as_deref());
                    written.notices.extend(ran);
                }
                return Ok(written);
            }
        }
        let why = "another program writes them in the same moments; the next change tries again";
        written.notices.push(left_alone(family, why));
        Ok(written)
    }

    /// How the files of a family stand for a session, without a change to anything.
    ///
    /// # Errors
    /// If the files cannot be read.
    pub fn check_layout(&self, family: Family, state: &State) -> Result<Checked, Error> {
        let (base, parts) = self.options.layout.folder(family, state).map_err(|why| unfit(family, &why))?;
        let folder = parts.iter().fold(base, |path, part| path.join(part));
        let planned = match self.plan_layout(family, state, None)? {
            Ok(planned) => planned,
            Err(standing) => return Ok(Checked { family, folder, standing, changes: Vec::new() }),
        };
        if let Answer::Stop(why) = self.answer_to(family, state, &planned, false) {
            return Ok(Checked { family, folder, standing: Standing::LeftAlone(why), changes: Vec::new() });
        }
        let mut changes = Vec::new();
        for (name, bytes) in planned.wanted {
            let there = planned.present.files.get(&name);
            if there != Some(bytes.as_slice()) {
                changes.push((name, there.map(<[u8]>::to_vec), bytes));
            }
        }
        let standing = match (changes.is_empty(), planned.present.files.is_empty()) {
            (true, _) => Standing::Current,
            (false, true) => Standing::Missing,
            (false, false) => Standing::Differs,
        };
        Ok(Checked { family, folder, standing, changes })
    }

    /// Removes the files of a family that are a session's own; answers which. Whatever else is in the folder stays.
    ///
    /// # Errors
    /// If the files cannot be read or removed.
    pub fn remove_layout(&self, family: Family, state: &State) -> Result<Vec<String>, Error> {
        self.remove_shown(family, Path::new(&state.project.path), state.session_id)
    }

    /// `changed` says how often others changed the files, if not as often as the files themselves say.
    fn plan_layout(
        &self,
        family: Family,
        state: &State,
        changed: Option<u32>,
    ) -> Result<Result<Planned, Standing>, Error> {
        let (base, parts) = self.options.layout.folder(family, state).map_err(|why| unfit(family, &why))?;
        let folder = parts.iter().fold(base.clone(), |path, part| path.join(part));
        let mut snapshot = self.layout_snapshot(family, state)?;
        let names = match segno_layouts::file_names(family, &snapshot) {
            Ok(names) => names,
            Err(why) => return Ok(Err(Standing::Unfit(why))),
        };
        // The name that a session has in a family may have come with it from anywhere.
        if let Some(name) = names.iter().find(|name| !is_below(name)) {
            let why = format!("its name in this family is no name of a file ({})", fit(name, limits::NAME));
            return Ok(Err(Standing::Unfit(why)));
        }
        let fail = |why: std::io::Error| Error::file(&folder, why);
        let mut present = Present::new(family, &self.looks);
        if let Some(dir) = folder::open_there(&base, &parts).map_err(fail)? {
            for name in names {
                present.read(&dir, name).map_err(fail)?;
            }
        }
        if let Some(whose) = self.somebody_elses(family, state, &present) {
            return Ok(Err(Standing::NotOurs(whose)));
        }
        let name = segno_layouts::main_file(family, &snapshot);
        let mut main = super::foreign_edits::look_at(family, name.clone(), &present);
        let is_damaged = main.is_none() && present.facts(&name).is_some_and(|facts| !facts.is_readable);
        let damaged_main = is_damaged.then_some(name.clone());
        snapshot.changed = changed.or(main.as_ref().map(|(_, looked)| looked.changed)).unwrap_or(0);
        // What a session before this one left in the same folder says nothing of this one.
        let own = state.session_id.to_string();
        let of_another = main.as_ref().is_some_and(|(_, looked)| looked.session_id != own);
        let nothing = FileSet::default();
        let before = if of_another { &nothing } else { &present.files };
        if family == Family::GoTeam {
            snapshot.then = self.at_checkpoints(state, go_team::checkpoints_to_make(&snapshot, before))?;
        }
        let wanted = match segno_layouts::write(family, &snapshot, before) {
            Ok(files) => files,
            Err(why) => return Ok(Err(Standing::Unfit(why))),
        };
        if !is_damaged && !of_another {
            main = look_bare_at(family, state, (name, main), &present, &wanted, &folder);
        }
        let left_out = present.files.iter().filter(|(name, bytes)| {
            segno_layouts::came(family, state, name, bytes) == Some(Came::Partly)
                && wanted.iter().any(|(wanted, _)| wanted == name)
        });
        let left_out = left_out.map(|(name, _)| name.to_owned()).collect();
        Ok(Ok(Planned { family, folder, present, wanted, main, damaged_main, left_out }))
    }

    /// A folder of one session that has another one's files in it.
    fn somebody_elses(&self, family: Family, state: &State, present: &Present) -> Option<String> {
        if !is_told(family, present) && present.has_one_of(state) {
            // Its main file cannot be read, and the others say that it is ours.
            return None;
        }
        let facts = match family {
            // Without its main file the first one that we write tells: a set of ours may be half written.
            Family::Prp => match present.facts("loop-state.json").or_else(|| present.facts("metrics.json")) {
                None if present.files.is_empty() => return None,
                facts => facts,
            },
            Family::UltraCreate => {
                Some(present.facts(CURRENT).or_else(|| present.facts(&format!("{CURRENT}.gz")))?)
            }
            // A registry is everybody's; one that cannot be read cannot be written without loss.
            Family::GoTeam => {
                let whole: Value = serde_json::from_slice(present.files.get(REGISTRY)?).unwrap_or_default();
                let is_one = whole.get("sessions").is_some_and(Value::is_array);
                return (!is_one).then(|| format!("{REGISTRY} cannot be read as a registry"));
            }
            Family::AgentForge | Family::Ralph | Family::Atari => return None,
        };
        let status = facts.as_ref().and_then(|facts| facts.status.as_deref()?.parse::<Status>().ok());
        let (ours, name) =
            facts.map(|facts| (facts.session_id.clone(), facts.named.clone())).unwrap_or_default();
        if ours.as_deref() == Some(state.session_id.to_string().as_str()) {
            return None;
        }
        let is_half_written = ours.is_none() && name.as_deref() == Some(state.uid.to_string().as_str());
        if is_half_written
            || (name.is_some() && segno_layouts::foreign_name(family, state) == name.as_deref())
        {
            return None;
        }
        let Some(other) = ours else {
            let name = name.as_deref().unwrap_or("?");
            return Some(format!("they are of session {name} of another tool (segno import takes it over)"));
        };
        let known = other.parse().ok().and_then(|id| self.store().load(id).ok());
        match known {
            // One of ours that has ended makes room.
            Some(loaded) if loaded.state.status.is_terminal() => None,
            Some(_) => Some(format!("they show session {other}, which is open")),
            // One that was removed here, or is in another store: it makes room if its files say that it has ended.
            None if status.is_some_and(Status::is_terminal) => None,
            None => Some(format!(
                "they show session {other}, which is not in this store (segno layout remove {other} removes them)"
            )),
        }
    }

    fn layout_snapshot<'a>(&self, family: Family, state: &'a State) -> Result<Snapshot<'a>, Error> {
        let lists: &[List] = match family {
            Family::Prp => &[List::Errors],
            Family::AgentForge => &[List::History, List::Artifacts],
            Family::GoTeam => &[List::Checkpoints, List::Outputs, List::Files],
            Family::UltraCreate => {
                &[List::Tools, List::Decisions, List::Memory, List::Files, List::Errors, List::Checkpoints]
            }
            Family::Ralph | Family::Atari => &[],
        };
        let mut rows = BTreeMap::new();
        for list in lists {
            let newest =
                self.store().page(state.session_id, *list, &Page::newest(self.options.layout.most_items))?;
            let mut bodies: Vec<Value> = newest.into_iter().map(|item| item.body).collect();
            // The newest are kept, and shown in the order they happened.
            bodies.reverse();
            rows.insert(*list, bodies);
        }
        let trigger = serde_json::to_value(self.save_trigger(state)?).unwrap_or_default();
        Ok(Snapshot {
            state,
            lists: rows,
            save_trigger: trigger.as_str().unwrap_or("auto").to_owned(),
            record: match family {
                Family::Prp => self.layout_record(state)?,
                _ => None,
            },
            branch: match family {
                Family::GoTeam if state.branch.is_none() => self.branch_around(state),
                _ => None,
            },
            then: Default::default(),
            changed: 0,
            ultra_create: self.options.layout.ultra_create.config.clone(),
        })
    }

    /// How a session was at some of its checkpoints, given by their numbers and the events that set them.
    fn at_checkpoints(
        &self,
        state: &State,
        wanted: Vec<(u64, u64)>,
    ) -> Result<BTreeMap<u64, go_team::Then>, Error> {
        let numbers: BTreeMap<u64, u64> = wanted.into_iter().map(|(ordinal, seq)| (seq, ordinal)).collect();
        let seqs: BTreeSet<u64> = numbers.keys().copied().collect();
        let mut found = BTreeMap::new();
        let lists = go_team::Then::LISTS;
        segno_store::each_as_of(self.store(), state.session_id, &seqs, &lists, |seq, then, rows| {
            let rows = |list: List| rows.get(&list).map(Vec::as_slice).unwrap_or_default();
            if let Some(ordinal) = numbers.get(&seq) {
                let [outputs, files] = lists.map(rows);
                found.insert(*ordinal, go_team::Then::at(then, outputs, files));
            }
        })?;
        Ok(found)
    }

    /// The branch that a session's project is on. It comes from the project, so it is made fit for the record.
    fn branch_around(&self, state: &State) -> Option<String> {
        let project = std::path::Path::new(&state.project.path);
        let branch = segno_workspace::user::branch_around(project, self.options.layout.home.as_deref())?;
        Some(self.redactor().text(&branch).into_owned())
    }
}

/// The main file, or its entry in a registry, that another program wrote without our member. One that is as it came was
/// written by nobody since.
fn look_bare_at(
    family: Family,
    state: &State,
    (name, main): (String, Option<(String, Looked)>),
    present: &Present,
    wanted: &[(String, Vec<u8>)],
    folder: &Path,
) -> Option<(String, Looked)> {
    let both = |name: &str| {
        let ours = wanted.iter().find(|(wanted, _)| wanted == name).map(|(_, bytes)| bytes.as_slice())?;
        let theirs = present.files.get(name)?;
        segno_layouts::came(family, state, name, theirs).is_none().then_some((theirs, ours))
    };
    let main = main.or_else(|| {
        let (theirs, ours) = both(&name)?;
        let times = kept_beside(folder, &name);
        let looked = segno_layouts::look_bare(family, (&name, theirs), ours, state.session_id, times)?;
        Some((name.clone(), looked))
    });
    let (at, looked) = main?;
    if family == Family::GoTeam && looked.edit == ForeignEdit::None && at == name {
        let id = name.split_once('/').map_or(name.as_str(), |(folder, _)| folder);
        let entry =
            both(REGISTRY).and_then(|(theirs, ours)| segno_layouts::look_bare_entry(theirs, ours, id));
        if let Some(edit) = entry.filter(|edit| *edit != ForeignEdit::None) {
            return Some((REGISTRY.to_owned(), Looked { edit, ..looked }));
        }
    }
    Some((at, looked))
}

/// Whether the main file of a folder with room for one session says whose it is, if it is there.
fn is_told(family: Family, present: &Present) -> bool {
    let main = match family {
        Family::Prp => "loop-state.json",
        Family::UltraCreate => CURRENT,
        _ => return true,
    };
    present.facts(main).is_none_or(|facts| facts.is_readable)
}

impl Planned {
    /// Removes what told how a session stopped that goes on or has ended. What cannot be removed now goes the next time.
    fn drop_recovery(&self, dir: &OwnedFd, state: &State) {
        let folder = self.wanted.iter().find_map(|(name, _)| Some(name.split_once('/')?.0));
        let Some(name) = folder.map(|folder| format!("{folder}/recovery.json")) else { return };
        let own = state.session_id.to_string();
        let is_ours = |bytes: Vec<u8>| Facts::of(Family::GoTeam, &name, &bytes).session_id == Some(own);
        if !self.wanted.iter().any(|(wanted, _)| *wanted == name)
            && read_below(dir, &name).ok().flatten().is_some_and(is_ours)
        {
            let _ = remove_below(dir, &name);
        }
    }

    /// Files other than the main one that somebody else wrote to.
    pub(super) fn touched(&self, state: &State, main: &str) -> Vec<String> {
        let before = self.main.as_ref().and_then(|(_, looked)| looked.status.as_deref());
        let was_halted = before == Some(Status::Halted.as_str());
        let is_touched = |name: &str, bytes: &[u8]| {
            let wanted =
                self.wanted.iter().find(|(wanted, _)| wanted == name).map(|(_, bytes)| bytes.as_slice());
            if wanted == Some(bytes) {
                return false;
            }
            // What we do not write is nobody's business, and what came with the session was changed by nobody since.
            let Some(wanted) = wanted else { return false };
            if segno_layouts::came(self.family, state, name, bytes).is_some() {
                return false;
            }
            if name.ends_with(".log") {
                return segno_layouts::is_log_touched(bytes, wanted);
            }
            self.present.facts(name).is_some_and(|facts| facts.edit != ForeignEdit::None)
                && !(was_halted && is_obeyed(name, bytes, Some(wanted)))
        };
        // A copy of the main file was changed with it.
        let is_own = |name: &str| name == main || name == REGISTRY || name.starts_with("session_");
        let others = self.present.files.iter().filter(|(name, _)| !is_own(name));
        let touched = others.filter(|(name, bytes)| is_touched(name, bytes));
        touched.map(|(name, _)| name.to_owned()).collect()
    }

    /// Writes what is not as it is wanted, each file only if it still is as it was read. False if another program was
    /// quicker: then what was made here is taken back, so that theirs does not stand among files of ours.
    fn write(&self, dir: &OwnedFd, changed: &mut Vec<String>) -> Result<bool, Error> {
        let mut made: Vec<(&str, &[u8])> = Vec::new();
        for (name, bytes) in &self.wanted {
            let known = self.present.files.get(name);
            if known == Some(bytes.as_slice()) {
                continue;
            }
            let fail = |why: std::io::Error| Error::file(&self.folder.join(name), why);
            match write_known(dir, name, bytes, known).map_err(fail)? {
                Replaced::Done if known.is_none() => made.push((name, bytes)),
                Replaced::Done => {}
                Replaced::Theirs => {
                    for (name, bytes) in made {
                        if read_below(dir, name).map_err(fail)?.as_deref() == Some(bytes) {
                            remove_below(dir, name).map_err(fail)?;
                        }
                    }
                    return Ok(false);
                }
            }
            changed.push(name.clone());
        }
        Ok(true)
    }
}

/// Whether a breaker that somebody changed says what ours says by now: they were obeyed.
fn is_obeyed(name: &str, present: &[u8], wanted: Option<&[u8]>) -> bool {
    let said = |bytes: &[u8]| {
        let file: Value = serde_json::from_slice(bytes).unwrap_or_default();
        file.get("state").cloned()
    };
    name == "circuit-breaker.json" && said(present).is_some() && said(present) == wanted.and_then(said)
}

fn left_alone(family: Family, why: &str) -> String {
    format!("the files of {family} were left alone: {why}")
}

fn unfit(family: Family, why: &str) -> Error {
    Error::file(std::path::Path::new(family.as_str()), why)
}
