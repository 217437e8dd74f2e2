//! The file families of other session managers: taken over by an import, found by `detect`, and kept current beside our own
//! record. What the files say is the crate `segno_layouts`; here they are read and written.

mod after;
mod below;
mod folder;
mod foreign_edits;
mod gather;
mod import;
mod present;
mod record;
mod shown;
mod write;

pub use folder::Options;
pub use folder::UltraCreate;
pub use import::LayoutImport;
pub use import::TakenOver;
pub use import::import;
pub use import::is_agentforge;
pub use import::is_foreign;
pub(crate) use present::Looks;
pub(crate) use record::Records;
pub use segno_layouts::Family;
pub use segno_layouts::prp::Detected;
pub use write::Checked;
pub use write::Standing;
pub use write::Written;

use std::path::Path;
use std::path::PathBuf;

use segno_core::State;
use segno_core::Timestamp;

/// What the PRP document does about the session in the first of these folders that has one.
pub fn detect_prp(folders: &[PathBuf], wanted: Option<&str>, now: Timestamp) -> Option<(PathBuf, Detected)> {
    folders.iter().find_map(|folder| {
        let files = gather::gather(folder, None).ok()?;
        Some((folder.clone(), segno_layouts::prp::detect(&files, wanted, now)?))
    })
}

/// The session in a folder of the PRP family, read and nothing else; none if it cannot be read.
pub fn prp_session(folder: &Path, now: Timestamp) -> Option<State> {
    let files = gather::gather(folder, None).ok()?;
    let read = segno_layouts::read(Family::Prp, &files, now).ok()?;
    read.sessions.into_iter().next().map(|session| session.state)
}

/// Where a session of the PRP family may be: the folder that a variable names, the project's own, and the one of newer
/// versions in the home directory.
pub fn prp_folders(project: &Path, named: Option<&Path>, home: Option<&Path>) -> Vec<PathBuf> {
    let own = project.join(segno_layouts::prp::FOLDER);
    let name = project.file_name().map(Path::new);
    let newer = home.zip(name).map(|(home, name)| home.join(".bp-sessions").join(name));
    named.map(Path::to_owned).into_iter().chain([own]).chain(newer).collect()
}
