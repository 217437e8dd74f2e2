//! The agents' own conversations, in a file of their own beside an export: as the agents wrote them, secrets included, and
//! only when somebody asks for them.
//!
//! The file is a line that says what it is, and then for each conversation a line that names it, its bytes and the end of
//! a line. What it says is not believed: a conversation is put in place only if the session speaks of it, only below the
//! agent's own directory, and only where nothing is yet.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Take;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;

use segno_agents::Arrival;
use segno_agents::ConversationFile;
use segno_agents::Keeping;
use segno_agents::KeptFiles;
use segno_core::List;
use segno_core::SessionId;
use segno_core::State;
use segno_core::rows::RunRow;
use serde::Deserialize;
use serde::Serialize;
use serde::de::IgnoredAny;

use super::kept;
use crate::Engine;
use crate::Error;
use crate::files::Access;
use crate::files::Draft;

/// The first line.
const BEGIN: &str = "segno conversations 1";
/// Longest line that names a conversation.
const LINE: u64 = 4 << 10;
/// Most conversations that travel: the newest.
const MOST: usize = 32;
/// Largest conversation that travels.
const BYTES: u64 = 256 << 20;
/// Longest first line of a conversation.
const FIRST: u64 = 16 << 20;
/// Most folders that are looked through for the one of a project.
const FOLDERS: usize = 10_000;

/// One conversation that was to travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The agent.
    pub agent: String,
    /// The agent's own id of it.
    pub conversation: String,
    /// What came of it.
    pub came: Transferred,
}

/// What came of a conversation that was to travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transferred {
    /// It is in this file now.
    There(PathBuf),
    /// It was in this file already, which is as it was.
    Already(PathBuf),
    /// It stays behind, and why.
    Not(String),
}

/// The line before the bytes of a conversation.
#[derive(Serialize, Deserialize)]
struct Head {
    agent: String,
    conversation: String,
    bytes: u64,
}

/// A conversation that a session had.
struct SessionConversation {
    agent: String,
    id: String,
    /// The first run that had it, in which it may have begun.
    run: RunRow,
}

/// Where the conversations are that belong to an export.
pub fn conversations_beside(export: &Path) -> PathBuf {
    let mut name = export.as_os_str().to_owned();
    name.push(".conversation");
    PathBuf::from(name)
}

/// Writes the conversations of a session's agents to a private file, as far as they are files. Answers with what became
/// of each, the newest first, and the size of the file; without any there is no file, and that is an error.
pub fn export_conversations(
    engine: &Engine,
    session: SessionId,
    to: &Path,
) -> Result<(Vec<Carried>, u64), Error> {
    let io = |why: std::io::Error| Error::file(to, why);
    let mut draft = Draft::begin(to, Access::Private).map_err(io)?;
    writeln!(draft.file(), "{BEGIN}").map_err(io)?;
    let mut carried = Vec::new();
    for had in had(engine, session)? {
        let came = match readable(engine, &had) {
            Err(why) => Transferred::Not(why),
            Ok((path, bytes, content)) => {
                let head = Head { agent: had.agent.clone(), conversation: had.id.clone(), bytes };
                let head = serde_json::to_string(&head).map_err(|why| Error::file(to, why))?;
                let file = draft.file();
                writeln!(file, "{head}").map_err(io)?;
                if std::io::copy(&mut content.take(bytes), file).map_err(io)? != bytes {
                    return Err(Error::file(&path, "it changed while it was read"));
                }
                file.write_all(b"\n").map_err(io)?;
                Transferred::There(path)
            }
        };
        carried.push(Carried { agent: had.agent, conversation: had.id, came });
    }
    if !carried.iter().any(|carried| matches!(carried.came, Transferred::There(_))) {
        let why = carried.iter().find_map(|carried| match &carried.came {
            Transferred::Not(why) => Some(why.as_str()),
            Transferred::There(_) | Transferred::Already(_) => None,
        });
        let why = why.unwrap_or("none of its agents had one");
        return Err(Error::NotCarried(why.to_owned()));
    }
    Ok((carried, draft.finish().map_err(io)?))
}

/// The conversations of a session, the newest first.
fn had(engine: &Engine, session: SessionId) -> Result<Vec<SessionConversation>, Error> {
    let mut all: Vec<SessionConversation> = Vec::new();
    // Ids of runs, by which they are sorted, begin with their time.
    for item in engine.items(session, List::Runs)? {
        let run: RunRow = item.row();
        let Some(id) = run.native_id.clone().filter(|id| !id.is_empty() && id != "?") else { continue };
        if !all.iter().any(|had| had.id == id && had.agent == run.agent) {
            all.push(SessionConversation { agent: run.agent.clone(), id, run });
        }
    }
    all.reverse();
    all.truncate(MOST);
    Ok(all)
}

/// A conversation's file, with how many bytes its whole lines have, or why it stays behind.
fn readable(engine: &Engine, had: &SessionConversation) -> Result<(PathBuf, u64, File), String> {
    if let Some(Keeping::Database(_)) = kept::keeping(&had.agent) {
        return Err(format!("{} keeps its conversations in a database, and none as a file", had.agent));
    }
    let path = kept::file(engine, &had.run)
        .ok_or_else(|| format!("the file in which {} keeps it is not there", had.agent))?;
    let mut file = File::open(&path).map_err(|why| why.to_string())?;
    let length = file.metadata().map_err(|why| why.to_string())?.len();
    if length > BYTES {
        return Err(format!("it has more than {} MB", BYTES >> 20));
    }
    // An agent that is at work may be in the middle of a line.
    let whole = whole_lines(&mut file, length).map_err(|why| why.to_string())?;
    match whole {
        0 => Err("its file is empty".to_owned()),
        whole => Ok((path, whole, file)),
    }
}

/// How many bytes the whole lines of a file have. It is at its beginning afterwards.
fn whole_lines(file: &mut File, length: u64) -> std::io::Result<u64> {
    const BLOCK: u64 = 64 << 10;
    let mut end = length;
    while end > 0 {
        let begin = end.saturating_sub(BLOCK);
        let mut block = Vec::new();
        file.seek(SeekFrom::Start(begin))?;
        Read::take(&*file, end - begin).read_to_end(&mut block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            file.rewind()?;
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

/// Puts the conversations of an imported session where its agents look for them. Answers with what became of each.
///
/// # Errors
/// If the file is none, or ends too early. What came before stays.
pub fn import_conversations(engine: &Engine, state: &State, from: &Path) -> Result<Vec<Carried>, Error> {
    let io = |why: std::io::Error| Error::file(from, why);
    let bad = |why: &str| Error::NotImportable(format!("{}: {why}", from.display()));
    let known: BTreeMap<(String, String), SessionConversation> = had(engine, state.session_id)?
        .into_iter()
        .map(|had| ((had.agent.clone(), had.id.clone()), had))
        .collect();
    let mut file = BufReader::new(File::open(from).map_err(io)?);
    if line(&mut file).map_err(io)?.as_deref() != Some(BEGIN) {
        return Err(bad("it holds no conversations"));
    }
    let mut carried = Vec::new();
    while let Some(line) = line(&mut file).map_err(io)? {
        let head: Head = serde_json::from_str(&line).map_err(|_| bad("a conversation has no name"))?;
        if carried.len() >= MOST || head.bytes > BYTES {
            return Err(bad("it holds more than it may"));
        }
        let mut content = file.by_ref().take(head.bytes);
        let came = match known.get(&(head.agent.clone(), head.conversation.clone())) {
            None => Transferred::Not("the session does not speak of it".to_owned()),
            Some(had) => arrive(engine, state, had, &mut content).unwrap_or_else(Transferred::Not),
        };
        // What was not taken is passed over.
        std::io::copy(&mut content, &mut std::io::sink()).map_err(io)?;
        let mut end = [0];
        if content.limit() > 0 || file.read(&mut end).map_err(io)? != 1 || end != *b"\n" {
            return Err(bad("it ends too early"));
        }
        carried.push(Carried { agent: head.agent, conversation: head.conversation, came });
    }
    Ok(carried)
}

/// The next line, without its end; nothing at the end of the file.
fn line(file: &mut impl BufRead) -> std::io::Result<Option<String>> {
    let mut line = String::new();
    match file.by_ref().take(LINE).read_line(&mut line)? {
        0 => Ok(None),
        _ => Ok(Some(line.trim_end_matches('\n').to_owned())),
    }
}

fn arrive(
    engine: &Engine,
    state: &State,
    had: &SessionConversation,
    content: &mut Take<impl BufRead>,
) -> Result<Transferred, String> {
    let files = match kept::keeping(&had.agent) {
        Some(Keeping::Files(files)) => files,
        Some(Keeping::Database(_)) => {
            return Err(format!("{} keeps its conversations in a database", had.agent));
        }
        None => return Err(format!("nobody knows where {} keeps its conversations", had.agent)),
    };
    let mut first = Vec::new();
    content.by_ref().take(FIRST).read_until(b'\n', &mut first).map_err(|why| why.to_string())?;
    if serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(&first).is_err() {
        return Err("it does not read like a conversation".to_owned());
    }
    let root = kept::root(engine, &files).ok_or("there is no home directory")?;
    if let Some(path) = kept::below(&files, &root, &had.id) {
        return Ok(Transferred::Already(path));
    }
    let began = had.run.started_at.unwrap_or_else(|| engine.now());
    let arrival = Arrival { id: &had.id, project: &state.project.path, began: &began.to_string() };
    put(&files, &root, &arrival, &first, content)
}

/// Makes the file. Directories on the way that are links are refused: they could lead out of the agent's own.
fn put(
    files: &KeptFiles,
    root: &Path,
    arrival: &Arrival<'_>,
    first: &[u8],
    rest: &mut Take<impl BufRead>,
) -> Result<Transferred, String> {
    let why = |why: &dyn std::fmt::Display| format!("{}: {why}", root.display());
    let target = files.target(arrival).ok_or("its name, or that of this project, makes no name of a file")?;
    crate::files::make_directory(root).map_err(|error| why(&error))?;
    let mut dir = crate::files::open_dir(root).map_err(|error| why(&error))?;
    let mut path = root.to_owned();
    let target = owned(target, root, &dir, arrival.project)?;
    for name in &target.directories {
        dir = crate::files::dir_in(&dir, name, 0o700).map_err(|error| why(&error))?;
        path.push(name);
    }
    path.push(&target.file);
    let mut draft =
        Draft::begin_in(dir, target.file.as_ref(), Access::Private).map_err(|error| why(&error))?;
    draft.file().write_all(first).map_err(|error| why(&error))?;
    std::io::copy(rest, draft.file()).map_err(|error| why(&error))?;
    if rest.limit() > 0 {
        return Err("it ends too early".to_owned());
    }
    match draft.finish_new() {
        Ok(_) => Ok(Transferred::There(path)),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(Transferred::Already(path)),
        Err(error) => Err(why(&error)),
    }
}

/// The folder of a project, where a file in it says whose it is: the one that is there, or a new one with that file.
fn owned(
    mut target: ConversationFile,
    root: &Path,
    dir: &OwnedFd,
    project: &str,
) -> Result<ConversationFile, String> {
    let (Some(marker), Some(wish)) = (target.owner, target.directories.first().cloned()) else {
        return Ok(target);
    };
    let says = |name: &str| {
        let folder = crate::files::dir_below(dir, &[name]).ok().flatten()?;
        let owner = crate::files::read_in(&folder, marker, LINE).ok().flatten()?;
        String::from_utf8(owner).ok()
    };
    let entries = std::fs::read_dir(root).map_err(|why| why.to_string())?;
    let names: Vec<String> =
        entries.flatten().take(FOLDERS).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    if let Some(theirs) = names.iter().find(|name| says(name).is_some_and(|owner| owner.trim() == project)) {
        target.directories[0].clone_from(theirs);
        return Ok(target);
    }
    let free = (0..FOLDERS)
        .map(|number| if number == 0 { wish.clone() } else { format!("{wish}-{number}") })
        .find(|name| !names.contains(name));
    let free = free.ok_or("there is no name left for this project")?;
    let folder = crate::files::dir_in(dir, &free, 0o700).map_err(|why| why.to_string())?;
    let mut draft =
        Draft::begin_in(folder, marker.as_ref(), Access::Private).map_err(|why| why.to_string())?;
    draft.file().write_all(project.as_bytes()).map_err(|why| why.to_string())?;
    draft.finish_new().map_err(|why| why.to_string())?;
    target.directories[0] = free;
    Ok(target)
}
