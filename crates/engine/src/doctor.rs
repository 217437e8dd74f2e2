//! Looking after a store: what is wrong, what can be mended, and mending it.

use std::path::Path;
use std::path::PathBuf;

use segno_core::StoreId;
use segno_store::Damage;
use segno_store::Garbage;
use segno_store::Standing;
use segno_store::sqlite::salvage;
use segno_store::verify;
use serde::Serialize;

use crate::Engine;
use crate::Error;
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
    /// Sessions whose driver had died.
    pub settled: Vec<String>,
    /// What was mended.
    pub mended: Vec<String>,
    /// What cannot be mended, with what was saved.
    pub remains: Vec<String>,
    /// Texts that nobody refers to any more and that were removed.
    pub garbage: Garbage,
}

impl Diagnosis {
    /// Whether everything is well now.
    pub fn is_well(&self) -> bool {
        self.remains.is_empty() && (self.report.is_clean() || !self.mended.is_empty())
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
    diagnosis.report = verify::verify(engine.store(), deep, progress)?;
    if repair {
        mend(engine, &mut diagnosis)?;
        diagnosis.garbage = engine.store().collect_garbage()?;
    } else {
        for problem in &diagnosis.report.problems {
            let place = problem.seq.map_or(String::new(), |seq| format!(" event {seq}"));
            diagnosis.remains.push(format!("session {}{place}: {}", problem.session, problem.what));
        }
    }
    diagnosis.remains.extend(diagnosis.report.store.iter().map(|what| format!("the store: {what}")));
    diagnosis.quarantined = engine.store().quarantined()?;
    Ok(diagnosis)
}

fn mend(engine: &Engine, diagnosis: &mut Diagnosis) -> Result<(), Error> {
    let mut rebuilt = std::collections::BTreeSet::new();
    for problem in diagnosis.report.problems.clone() {
        let Ok(id) = problem.session.parse() else {
            diagnosis.remains.push(format!("session {}: {}", problem.session, problem.what));
            continue;
        };
        match problem.seq {
            Some(seq) if !problem.derived => {
                engine.store().quarantine(id, seq, &problem.what)?;
                diagnosis.remains.push(format!(
                    "session {id} event {seq}: {}; its bytes are kept in quarantine, every other event is whole",
                    problem.what
                ));
            }
            _ => {
                if rebuilt.insert(id) {
                    match engine.store().rebuild(id) {
                        Ok(_) => diagnosis
                            .mended
                            .push(format!("session {id}: {}; folded anew from the journal", problem.what)),
                        Err(why) => diagnosis.remains.push(format!("session {id}: {why}")),
                    }
                }
            }
        }
    }
    Ok(())
}

/// Moves a damaged SQLite store aside and puts what could be saved in its place.
pub fn salvage_store(path: &Path, stamp: &str) -> Result<salvage::Salvaged, Error> {
    Ok(salvage::salvage(path, stamp)?)
}
