//! Looking after a store: what is wrong, what can be mended, and mending it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_core::StoreId;
use segno_store::Damage;
use segno_store::Filter;
use segno_store::Garbage;
use segno_store::Standing;
pub use segno_store::sqlite::salvage::Salvaged;
use segno_store::verify;
use segno_store::verify::Problem;
use serde::Serialize;

use crate::Engine;
use crate::Error;
use crate::StoreLocation;
use crate::drift::Drift;
use crate::history::AgentReport;
use crate::left_alone::LeftAlone;
use crate::spool;

/// What the doctor found, and what it did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Diagnosis {
    /// Which store it is.
    pub store_id: Option<StoreId>,
    /// The store that it is a copy of, if that is still there.
    pub copy_of: Option<PathBuf>,
    /// What was checked and what is wrong.
    pub report: verify::Report,
    /// Damage that was found before and set apart.
    pub quarantined: Vec<Damage>,
    /// Facts that wait in the spool.
    pub spooled: u64,
    /// What is kept beside the store, is not its own, and was left alone.
    pub left_alone: Vec<LeftAlone>,
    /// What was captured of runs and that nothing needs any more; removed when it repairs.
    pub stale_captures: Vec<PathBuf>,
    /// Sessions whose driver had died.
    pub settled: Vec<String>,
    /// What was mended.
    pub mended: Vec<String>,
    /// What cannot be mended, with what was saved.
    pub remains: Vec<String>,
    /// Agents of the newest sessions: whether they are newer than tested, and what they said that is not known here.
    pub agents: Vec<Drift>,
    /// How the agents' own histories stand.
    pub histories: Vec<AgentReport>,
    /// Texts that nobody refers to any more and that were removed.
    pub garbage: Garbage,
}

impl Diagnosis {
    /// Whether everything is well now.
    pub fn is_well(&self) -> bool {
        self.remains.is_empty()
    }
}

/// Checks everything; with `repair`, mends what follows from the journal and sets apart what is damaged.
pub fn examine(
    engine: &Engine,
    deep: bool,
    repair: bool,
    progress: impl FnMut(u64, u64),
) -> Result<Diagnosis, Error> {
    let identity = engine.store().identity();
    let mut diagnosis = Diagnosis { store_id: Some(identity.id), ..Diagnosis::default() };
    if let Standing::Copy { of } = identity.standing {
        diagnosis.copy_of = Some(of);
    }
    if let Some(dir) = &engine.options.spool {
        diagnosis.spooled = spool::waiting(dir).len() as u64;
    }
    diagnosis.left_alone = engine.left_alone();
    let foreign = diagnosis.left_alone.iter().filter(|left| left.path.is_file()).count() as u64;
    diagnosis.spooled = diagnosis.spooled.saturating_sub(foreign);
    diagnosis.settled = engine.settle()?.iter().map(ToString::to_string).collect();
    if !engine.is_copy() {
        diagnosis.stale_captures = engine.stale_captures();
    }
    // A repair that does not look at everything would leave something as it is and say that all is well.
    diagnosis.report = verify::verify(engine.store(), deep || repair, progress)?;
    // What was set apart before is known: it is counted, and does not make a store unwell for ever.
    let known: BTreeSet<(String, u64)> = engine
        .store()
        .quarantined()?
        .into_iter()
        .filter_map(|damage| Some((damage.session, damage.seq?)))
        .collect();
    let is_new =
        |problem: &&Problem| problem.seq.is_none_or(|seq| !known.contains(&(problem.session.clone(), seq)));
    let problems: Vec<Problem> = diagnosis.report.problems.iter().filter(is_new).cloned().collect();
    if repair {
        for dir in &diagnosis.stale_captures {
            let _ = std::fs::remove_dir_all(dir);
        }
        mend(engine, problems, &mut diagnosis)?;
        diagnosis.garbage = engine.store().collect_garbage()?;
    } else {
        diagnosis.remains.extend(problems.iter().map(in_words));
    }
    if deep {
        diagnosis.remains.extend(damaged_checkpoints(engine)?);
    }
    diagnosis.remains.extend(diagnosis.report.store.iter().map(|what| format!("the store: {what}")));
    let index = engine.check_index(repair)?;
    match repair {
        true if !index.is_empty() => diagnosis.mended.push("the index for searching is made anew".to_owned()),
        true => {}
        false => {
            diagnosis.remains.extend(index.iter().map(|what| format!("the index for searching: {what}")))
        }
    }
    diagnosis.quarantined = engine.store().quarantined()?;
    if !engine.is_copy() {
        diagnosis.remains.extend(engine.check_transcripts());
        diagnosis.histories = engine.history_report(&[])?;
    }
    diagnosis.agents = engine.drift()?;
    Ok(diagnosis)
}

/// Checkpoints whose files are not all there any more. Nothing can mend them; who knows of it in time makes another.
fn damaged_checkpoints(engine: &Engine) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for summary in engine.list(&Filter::default())? {
        let id = summary.session_id;
        // What is wrong with the session itself is said elsewhere, and a project may be gone or have no snapshots.
        let Ok(checkpoints) = engine.checkpoints(id) else { continue };
        let Ok(loaded) = engine.store().load(id) else { continue };
        let mut workspace = None;
        for checkpoint in checkpoints.iter().filter(|one| one.ready && one.snapshot.is_some()) {
            if workspace.is_none() {
                workspace = engine.workspace(&loaded.state).ok();
            }
            let Some(workspace) = &workspace else { break };
            let whole = engine.snapshot_of(workspace, checkpoint).and_then(|it| Ok(workspace.verify(&it)?));
            if let Err(why) = whole {
                found.push(format!(
                    "session {id} checkpoint {}: its files are not whole: {why}",
                    checkpoint.id
                ));
            }
        }
    }
    Ok(found)
}

fn in_words(problem: &Problem) -> String {
    let event = problem.seq.map_or(String::new(), |seq| format!(" event {seq}"));
    format!("session {}{event}: {}", problem.session, problem.what)
}

fn mend(engine: &Engine, problems: Vec<Problem>, diagnosis: &mut Diagnosis) -> Result<(), Error> {
    let mut rebuilt = BTreeSet::new();
    for problem in problems {
        let Ok(id) = problem.session.parse() else {
            diagnosis.remains.push(in_words(&problem));
            continue;
        };
        match problem.seq {
            Some(seq) if !problem.derived => {
                engine.store().quarantine(id, seq, &problem.what)?;
                diagnosis.remains.push(format!(
                    "{}; its bytes are kept in quarantine, every other event is whole",
                    in_words(&problem)
                ));
            }
            _ => {
                if rebuilt.insert(id) {
                    mend_session(engine, id, &problem, diagnosis)?;
                }
            }
        }
    }
    Ok(())
}

/// Folds a session anew, and looks whether that was enough.
fn mend_session(
    engine: &Engine,
    id: SessionId,
    problem: &Problem,
    diagnosis: &mut Diagnosis,
) -> Result<(), Error> {
    if let Err(why) = engine.store().rebuild(id) {
        diagnosis.remains.push(format!("session {id}: {why}"));
        return Ok(());
    }
    let left: Vec<Problem> =
        verify::verify_one(engine.store(), id)?.into_iter().filter(|problem| problem.derived).collect();
    if left.is_empty() {
        diagnosis.mended.push(format!("session {id}: {}; folded anew from the journal", problem.what));
    }
    for problem in left {
        // A text that is gone for good: named now, and known from here on.
        if let Some(seq) = problem.seq {
            engine.store().quarantine(id, seq, &problem.what)?;
        }
        diagnosis.remains.push(in_words(&problem));
    }
    Ok(())
}

/// Moves a damaged store aside and puts what could be saved in its place.
pub fn salvage_store(store: &StoreLocation, stamp: &str) -> Result<Salvaged, Error> {
    let saved = store.salvage(stamp).inspect_err(|why| {
        tracing::error!(%store, %why, "a repair was given up; nothing was changed");
    })?;
    let (whole, partly, lost) = (saved.whole.len(), saved.partly.len(), saved.lost.len());
    tracing::warn!(%store, whole, partly, lost, "a damaged store was replaced by what was saved");
    Ok(saved)
}
