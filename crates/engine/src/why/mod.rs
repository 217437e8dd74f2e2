//! Who wrote each line of a file: which session, prompt and call, and between which checkpoints.
//!
//! What is recorded is replayed in the order of time: contents of snapshots, what calls say that they wrote, and what
//! sessions were told and shown in between. [`segno_core::origin`] has the rules; a line is credited to a call only if it was
//! not there before and is known to have been written by it.

mod commit;
mod names;
mod story;
mod timeline;
mod trace;

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_core::Timestamp;
use segno_core::TokenUse;
use segno_core::origin::Origin;
use segno_core::text::shorten;
use segno_store::Filter;
use segno_workspace::Workspace;
use serde::Serialize;

pub use self::commit::CommitOrigins;
pub use self::commit::CommittedFile;
use self::story::Story;
pub use self::trace::TraceContributor;
pub use self::trace::TraceConversation;
pub use self::trace::TraceCounts;
pub use self::trace::TraceFile;
pub use self::trace::TraceMetadata;
pub use self::trace::TraceRange;
pub use self::trace::TraceRecord;
pub use self::trace::TraceRevision;
pub use self::trace::TraceTool;
use crate::Engine;
use crate::Error;

/// How much of a prompt or a command is shown.
const SHORT: usize = 160;

/// The call that wrote a line, or that may have to do with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Writer {
    /// The session.
    pub session_id: SessionId,
    /// What that is about.
    pub topic: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// The run.
    pub run: Option<String>,
    /// The first line of the prompt that was being worked on.
    pub prompt: Option<String>,
    /// The event of that prompt.
    pub prompt_seq: Option<u64>,
    /// The agent's own id of the call.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// What the call was about.
    pub subject: String,
    /// The event that began the call.
    pub seq: u64,
    /// When it was done.
    pub at: Timestamp,
    /// The last checkpoint before the call, and the first after it.
    pub checkpoint_before: Option<u64>,
    /// The first checkpoint after it.
    pub checkpoint_after: Option<u64>,
    /// What was used from that prompt to the next.
    pub turn_tokens: TokenUse,
    /// What that cost, in millionths of a dollar, if anybody said.
    pub turn_micros: Option<u64>,
}

/// A content in which a line was first seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// The session that made the checkpoint; none for the file as it is now.
    pub session_id: Option<SessionId>,
    /// The number of the checkpoint.
    pub checkpoint: Option<u64>,
    /// When.
    pub at: Option<Timestamp>,
}

/// A line and where it came from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LineOrigin {
    /// Its number, from 1.
    pub line: usize,
    /// What it says.
    pub text: String,
    /// The call that wrote it: its place among the writers.
    pub writer: Option<usize>,
    /// Why it is credited to no call.
    pub doubt: Option<&'static str>,
    /// The call that may have to do with it: its place among the writers.
    pub near: Option<usize>,
    /// The content in which it was first seen: its place among those.
    pub seen: Option<usize>,
}

/// Where the lines of a file came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FileOrigins {
    /// The file, from the top of the project.
    pub path: PathBuf,
    /// What it was called before, the newest name first.
    pub earlier_names: Vec<PathBuf>,
    /// Its lines.
    pub lines: Vec<LineOrigin>,
    /// The calls that lines name.
    pub writers: Vec<Writer>,
    /// The contents that lines name.
    pub contents: Vec<Seen>,
    /// How many sessions were read, and how many contents of the file were found in checkpoints.
    pub sessions: usize,
    /// How many checkpoints hold the file or say that it was not there.
    pub checkpoints: usize,
    /// What could not be read.
    pub notices: Vec<String>,
}

/// Everything that is known of a project's past.
pub(crate) struct Past {
    root: PathBuf,
    stories: Vec<Story>,
    workspace: Option<Workspace>,
    notices: Vec<String>,
}

impl Engine {
    /// Where the lines of a file came from. The path is from the top of the project, or of the file system.
    ///
    /// # Errors
    /// If there is no such file, or the record cannot be read.
    pub fn why(&self, root: &Path, path: &Path) -> Result<FileOrigins, Error> {
        let past = self.past(root)?;
        let inside = past.inside(path)?;
        let absolute = past.root.join(&inside);
        let bytes = std::fs::read(&absolute).map_err(|why| Error::file(&absolute, why))?;
        let Ok(content) = String::from_utf8(bytes) else {
            return Err(Error::NoTree(format!("{} is not a text", inside.display())));
        };
        self.origins(&past, &inside, Some(&content), None)
    }

    /// What is known of a project: read once, asked for many files.
    pub(crate) fn past(&self, root: &Path) -> Result<Past, Error> {
        let root = root.canonicalize().map_err(|why| Error::file(root, why))?;
        let mut known: HashMap<String, bool> = HashMap::new();
        let mut stories = Vec::new();
        let mut notices = Vec::new();
        for summary in self.listing(&Filter::default())?.sessions {
            let is_near = *known.entry(summary.project.clone()).or_insert_with(|| {
                let project = Path::new(&summary.project);
                let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
                project.starts_with(&root) || root.starts_with(&project)
            });
            if !is_near {
                continue;
            }
            match self.story(&summary) {
                Ok(story) => stories.push(story),
                Err(why) => notices.push(format!("session {} cannot be read: {why}", summary.session_id)),
            }
        }
        let mut workspace = None;
        // All sessions of a project share where its snapshots are.
        for story in stories.iter().filter(|story| story.project == root && !story.checkpoints.is_empty()) {
            match self.load(story.session).and_then(|loaded| self.workspace(&loaded.state)) {
                Ok(found) => {
                    workspace = Some(found);
                    break;
                }
                Err(why) => notices.push(why.to_string()),
            }
        }
        Ok(Past { root, stories, workspace, notices })
    }

    /// The writer that a number of a call stands for.
    fn writer(&self, past: &Past, session: usize, call: usize) -> Option<Writer> {
        let story = past.stories.get(session)?;
        let call = story.calls.get(call)?;
        let first_line = |text: &str| {
            text.lines().find(|line| !line.trim().is_empty()).map(|line| shorten(line.trim(), SHORT))
        };
        let prompt = story.prompt(call.start.seq);
        let ordinal = |fits: &dyn Fn(u64) -> bool, newest: bool| {
            let all = story.checkpoints.iter().filter(|(_, (set, ready))| ready.is_some() && fits(set.seq));
            let all = all.map(|(ordinal, _)| *ordinal);
            if newest { all.max() } else { all.min() }
        };
        let end = call.done().seq;
        let (tokens, micros) = story.turn(call.start.seq, call.run.as_deref());
        let agent = story.runs.iter().rev().find(|(_, run, _)| call.run.as_ref() == Some(run));
        Some(Writer {
            session_id: story.session,
            topic: story.summary.topic.clone(),
            agent: agent.map(|(.., agent)| agent.clone()).or_else(|| story.summary.agent.clone()),
            run: call.run.clone(),
            prompt: prompt.and_then(|(_, text)| first_line(text.excerpt())),
            prompt_seq: prompt.map(|(point, _)| point.seq),
            call: call.id.clone(),
            tool: call.tool.clone(),
            subject: shorten(&segno_core::call::subject(&call.input), SHORT),
            seq: call.start.seq,
            at: call.done().at,
            checkpoint_before: ordinal(&|seq| seq < call.start.seq, true),
            checkpoint_after: ordinal(&|seq| seq > end, false),
            turn_tokens: tokens,
            turn_micros: Some(micros).filter(|micros| *micros > 0),
        })
    }

    /// Replays a file up to a moment; `content` is what it is then, none if that is not known.
    fn origins(
        &self,
        past: &Past,
        path: &Path,
        content: Option<&str>,
        until: Option<Timestamp>,
    ) -> Result<FileOrigins, Error> {
        let replayed = timeline::replay(self, past, path, content, until)?;
        let mut found = FileOrigins {
            path: path.to_owned(),
            earlier_names: replayed.names,
            sessions: past.stories.len(),
            checkpoints: replayed.checkpoints,
            notices: past.notices.clone(),
            ..FileOrigins::default()
        };
        let mut writers: BTreeMap<usize, usize> = BTreeMap::new();
        let mut contents: BTreeMap<usize, usize> = BTreeMap::new();
        for (at, (text, origin)) in replayed.lines.into_iter().enumerate() {
            let mut line =
                LineOrigin { line: at + 1, text, writer: None, doubt: None, near: None, seen: None };
            let mut writer = |number: usize| -> Option<usize> {
                if let Some(known) = writers.get(&number) {
                    return Some(*known);
                }
                let (session, call) = replayed.calls.get(number).copied()?;
                found.writers.push(self.writer(past, session, call)?);
                writers.insert(number, found.writers.len() - 1);
                Some(found.writers.len() - 1)
            };
            match origin {
                Origin::Call(call) => line.writer = writer(call),
                Origin::Other { doubt, near, seen } => {
                    line.doubt = Some(doubt.as_str());
                    line.near = near.and_then(writer);
                    line.seen = seen.and_then(|number| {
                        if let Some(known) = contents.get(&number) {
                            return Some(*known);
                        }
                        let seen = replayed.seen.get(number)?;
                        let checkpoint = seen.checkpoint;
                        let session = checkpoint.and_then(|(story, _)| past.stories.get(story));
                        found.contents.push(Seen {
                            session_id: session.map(|story| story.session),
                            checkpoint: checkpoint.map(|(_, ordinal)| ordinal),
                            at: checkpoint.map(|_| seen.from),
                        });
                        contents.insert(number, found.contents.len() - 1);
                        Some(found.contents.len() - 1)
                    });
                }
            }
            found.lines.push(line);
        }
        Ok(found)
    }
}

impl Past {
    /// A path from the top of the project.
    fn inside(&self, path: &Path) -> Result<PathBuf, Error> {
        let path = self.root.join(path);
        let real = path.parent().and_then(|above| above.canonicalize().ok());
        let path = match (real, path.file_name()) {
            (Some(above), Some(name)) => above.join(name),
            _ => path,
        };
        match path.strip_prefix(&self.root) {
            Ok(inside) => Ok(inside.to_owned()),
            Err(_) => Err(Error::NoTree(format!(
                "{} is not in the project {}",
                path.display(),
                self.root.display()
            ))),
        }
    }
}
