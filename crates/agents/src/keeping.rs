//! How an agent keeps its conversations, as far as it matters to somebody who takes one to another machine.

use crate::conversation_log::LogLocation;

/// How an agent keeps its conversations.
#[derive(Debug, Clone, Copy)]
pub enum Keeping {
    /// Each in a file of its own, which another machine can be given.
    Files(KeptFiles),
    /// All in one database: none can be taken out as a file.
    Database(KeptDatabase),
}

impl Keeping {
    /// The variable that says where.
    pub fn variable(&self) -> &'static str {
        match self {
            Self::Files(files) => files.location.variable,
            Self::Database(database) => database.variable,
        }
    }
}

/// Conversations in files.
#[derive(Debug, Clone, Copy)]
pub struct KeptFiles {
    /// Where they lie.
    pub location: LogLocation,
    /// How much of a conversation's id the name of its file has, in characters; all of it if nothing is said.
    pub named_by: Option<usize>,
    /// Where the agent looks for a conversation that it has not had here.
    pub target: fn(&Arrival<'_>) -> Option<ConversationFile>,
}

impl KeptFiles {
    /// That part of an id that is in the name of the file.
    pub fn name_of<'a>(&self, id: &'a str) -> &'a str {
        let end = self.named_by.and_then(|most| id.char_indices().nth(most)).map_or(id.len(), |(end, _)| end);
        id.get(..end).unwrap_or(id)
    }

    /// Where a conversation is to be put. Nothing if its id, which comes from outside, could lead elsewhere.
    pub fn target(&self, arrival: &Arrival<'_>) -> Option<ConversationFile> {
        let target = (self.target)(arrival).filter(|_| is_plain(arrival.id))?;
        let sound = target.directories.len() == self.location.depth
            && target.directories.iter().all(|name| is_plain(name));
        (sound && self.location.is_of(&target.file, self.name_of(arrival.id))).then_some(target)
    }
}

/// Whether a name is that of a file and nothing else, and short enough.
fn is_plain(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    !name.is_empty() && name.len() <= LONGEST && name.bytes().all(fits)
}

/// A name may be this long on every file system that matters, with something behind it.
const LONGEST: usize = 200;

/// A conversation that comes from another machine.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Its id.
    pub id: &'a str,
    /// The directory in which the agent will go on.
    pub project: &'a str,
    /// When it began, in RFC 3339 and UTC.
    pub began: &'a str,
}

/// A place below the directory of all conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationFile {
    /// The directories on the way, from the outermost.
    pub directories: Vec<String>,
    /// The name of the file.
    pub file: String,
    /// The file in the outermost directory that says whose project it is. With it the directory may have another name:
    /// the one that has this project counts.
    pub owner: Option<&'static str>,
}

/// Conversations in a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptDatabase {
    /// The variable that names the directory it is below.
    pub variable: &'static str,
    /// That directory in the person's home, when the variable is not set.
    pub home: &'static str,
    /// The file.
    pub file: &'static str,
    /// How what it holds is asked for.
    pub rows: DatabaseRows,
}

/// How the conversations of a database are asked for, in SQL. Nothing else is read of it: it may hold keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseRows {
    /// All conversations: id, that of the conversation whose sub-agent it is, directory, when it was last changed, and the
    /// line that a reader begins with.
    pub conversations: &'static str,
    /// The lines of one conversation in order, by its id; the reader takes them one by one.
    pub lines: &'static str,
}

impl KeptDatabase {
    /// The file, given the variables that the agent is started with.
    pub fn path(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let own = set(self.variable).or_else(|| Some(format!("{}/{}", set("HOME")?, self.home)))?;
        Some(format!("{}/{}", own.trim_end_matches('/'), self.file))
    }
}

/// A name in which only letters and digits are left, and something else for all others.
pub(crate) fn only_letters(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0199a213-7f3e-7c11-9d8a-5b6c7d8e9f00";

    fn target(agent: &str, id: &str, project: &str) -> Option<ConversationFile> {
        let agent = crate::by_name(agent).unwrap();
        match agent.conversation_log().and_then(|log| log.keeping()) {
            Some(Keeping::Files(files)) => {
                files.target(&Arrival { id, project, began: "2026-11-17T08:03:09.123456Z" })
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn targets() {
        let at = |directories: &[&str], file: &str, owner| {
            let directories = directories.iter().map(|name| (*name).to_owned()).collect();
            Some(ConversationFile { directories, file: file.to_owned(), owner })
        };
        assert_eq!(
            target("claude", ID, "/home/ann/my_shop.v2"),
            at(&["-home-ann-my-shop-v2"], &format!("{ID}.jsonl"), None)
        );
        assert_eq!(
            target("codex", ID, "/home/ann"),
            at(&["2026", "11", "17"], &format!("rollout-2026-11-17T08-03-09-{ID}.jsonl"), None)
        );
        assert_eq!(
            target("gemini", ID, "/home/ann/My Shop!"),
            at(&["my-shop", "chats"], "session-2026-11-17T08-03-0199a213.jsonl", Some(".project_root"))
        );
        assert_eq!(target("gemini", ID, "/").unwrap().directories, ["project", "chats"]);
    }

    /// An id comes from a file of somebody else.
    #[test]
    fn no_id_leads_elsewhere() {
        for agent in ["claude", "codex", "gemini"] {
            for id in ["", "..", "../../.bashrc", "a/b", "a\0b", "ü", &"x".repeat(300)] {
                assert_eq!(target(agent, id, "/p"), None, "{agent} {id}");
            }
        }
    }

    /// Claude Code gives longer names an ending that only it knows.
    #[test]
    fn a_long_project_has_no_place() {
        assert_eq!(target("claude", ID, &format!("/{}", "p".repeat(300))), None);
    }
}
