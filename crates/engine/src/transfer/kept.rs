//! Whether the conversation of a run is on this machine, and where.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use segno_agents::Keeping;
use segno_agents::KeptDatabase;
use segno_agents::KeptFiles;
use segno_core::rows::RunRow;
use serde_json::Value;

use crate::Engine;
use crate::run::log_find::find;

/// How much of a file is read to see whose it is.
const BEGINNING: u64 = 64 << 10;
/// How much of a database is looked through.
const DATABASE: u64 = 4 << 30;

/// How an agent keeps its conversations.
pub(super) fn keeping(agent: &str) -> Option<Keeping> {
    segno_agents::by_name(agent)?.conversation_log()?.keeping()
}

/// The directory below which an agent that is started from here keeps its conversations.
pub(super) fn root(engine: &Engine, files: &KeptFiles) -> Option<PathBuf> {
    let ours = |name: &str| engine.options.variables.get(name).cloned();
    files.location.root(&ours).map(PathBuf::from).filter(|root| root.is_absolute())
}

/// The file of a conversation below a directory.
pub(super) fn below(files: &KeptFiles, root: &Path, id: &str) -> Option<PathBuf> {
    let path = find(&files.location, root, files.name_of(id))?;
    // A name that has only a part of the id is not enough.
    (files.named_by.is_none() || begins_with(&path, id)).then_some(path)
}

/// The file of a run's conversation: where the agent looked then, or where one that is started from here would.
pub(super) fn file(engine: &Engine, run: &RunRow) -> Option<PathBuf> {
    let Some(Keeping::Files(files)) = keeping(&run.agent) else { return None };
    let id = run.native_id.as_deref()?;
    let theirs = files.location.root(&|name| variable(run, name)).map(PathBuf::from);
    let theirs = theirs.filter(|root| root.is_absolute());
    let ours = root(engine, &files);
    theirs.into_iter().chain(ours).find_map(|root| below(&files, &root, id))
}

/// Whether an agent that is started from here finds the conversation of a run that was elsewhere.
pub(crate) fn is_here(engine: &Engine, agent: &str, id: &str) -> bool {
    match keeping(agent) {
        Some(Keeping::Files(files)) => {
            root(engine, &files).is_some_and(|root| below(&files, &root, id).is_some())
        }
        Some(Keeping::Database(database)) => holds(engine, &database, id),
        None => false,
    }
}

fn variable(run: &RunRow, name: &str) -> Option<String> {
    run.environment.get(name).and_then(Value::as_str).map(ToOwned::to_owned)
}

fn begins_with(path: &Path, id: &str) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut bytes));
    read.is_ok() && memchr::memmem::find(&bytes, id.as_bytes()).is_some()
}

/// Whether a database, or its log, has a conversation: its id is in there as it is.
fn holds(engine: &Engine, database: &KeptDatabase, id: &str) -> bool {
    let ours = |name: &str| engine.options.variables.get(name).cloned();
    let Some(path) = database.path(&ours) else { return false };
    ["", "-wal"].iter().any(|end| is_in(Path::new(&format!("{path}{end}")), id.as_bytes()))
}

fn is_in(path: &Path, wanted: &[u8]) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let mut file = file.take(DATABASE);
    let mut window: Vec<u8> = Vec::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block) {
            Ok(0) | Err(_) => return false,
            Ok(read) => window.extend_from_slice(&block[..read]),
        }
        if memchr::memmem::find(&window, wanted).is_some() {
            return true;
        }
        // It may lie across two blocks.
        window.drain(..window.len().saturating_sub(wanted.len()));
    }
}
