//! Which files of agents were taken in, and how far.

use rusqlite::OptionalExtension as _;

use super::Index;
use crate::Error;

/// What is known of a file that was taken in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileNote {
    /// The conversation that it is of.
    pub conversation: String,
    /// The device that it was on.
    pub device: i64,
    /// Its inode.
    pub inode: i64,
    /// Its size.
    pub size: i64,
    /// When it was last changed, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// How far it was taken in.
    pub offset: u64,
    /// The hash of what stands before that.
    pub hash: Vec<u8>,
    /// What whoever takes it in has to remember of it.
    pub used: String,
}

impl Index {
    /// What is known of a file.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn file(&self, agent: &str, path: &str) -> Result<Option<FileNote>, Error> {
        let read = |row: &rusqlite::Row<'_>| {
            Ok(FileNote {
                conversation: row.get(0)?,
                device: row.get(1)?,
                inode: row.get(2)?,
                size: row.get(3)?,
                modified_ns: row.get(4)?,
                offset: row.get(5)?,
                hash: row.get(6)?,
                used: row.get(7)?,
            })
        };
        let mut ask = self.sql(self.connection.prepare_cached(
            "SELECT conversation, device, inode, size, modified_ns, offset, hash, used FROM files
             WHERE agent = ?1 AND path = ?2",
        ))?;
        self.sql(ask.query_row((agent, path), read).optional())
    }

    /// Notes how far a file was taken in.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn note_file(&self, agent: &str, path: &str, note: &FileNote) -> Result<(), Error> {
        let mut put = self.sql(self.connection.prepare_cached(
            "INSERT OR REPLACE INTO files VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        ))?;
        let FileNote { conversation, device, inode, size, modified_ns, offset, hash, used } = note;
        self.sql(put.execute((
            agent,
            path,
            conversation,
            device,
            inode,
            size,
            modified_ns,
            i64::try_from(*offset).unwrap_or(i64::MAX),
            hash,
            used,
        )))?;
        Ok(())
    }

    /// What was remembered of the files of a conversation.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn files_of(&self, agent: &str, conversation: &str) -> Result<Vec<(String, FileNote)>, Error> {
        let mut ask =
            self.sql(self.connection.prepare_cached(
                "SELECT path FROM files WHERE agent = ?1 AND conversation = ?2 ORDER BY path",
            ))?;
        let paths: rusqlite::Result<Vec<String>> =
            self.sql(ask.query_map((agent, conversation), |row| row.get(0)))?.collect();
        let mut files = Vec::new();
        for path in self.sql(paths)? {
            if let Some(note) = self.file(agent, &path)? {
                files.push((path, note));
            }
        }
        Ok(files)
    }

    /// The session that a conversation was taken into.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn session_of(&self, agent: &str, conversation: &str) -> Result<Option<String>, Error> {
        let mut ask = self
            .sql(self.connection.prepare_cached(
                "SELECT session FROM conversations WHERE agent = ?1 AND conversation = ?2",
            ))?;
        self.sql(ask.query_row((agent, conversation), |row| row.get(0)).optional())
    }

    /// The conversations whose first message has this id, with their sessions, in the order in which they were taken in.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn with_root(&self, agent: &str, root: &str) -> Result<Vec<(String, String)>, Error> {
        let mut ask = self.sql(self.connection.prepare_cached(
            "SELECT conversation, session FROM conversations WHERE agent = ?1 AND root = ?2 ORDER BY rowid",
        ))?;
        let found: rusqlite::Result<Vec<(String, String)>> =
            self.sql(ask.query_map((agent, root), |row| Ok((row.get(0)?, row.get(1)?))))?.collect();
        self.sql(found)
    }

    /// Notes which session a conversation was taken into; an empty one for a conversation that others recorded.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn note_conversation(
        &self,
        agent: &str,
        conversation: &str,
        session: &str,
        root: Option<&str>,
    ) -> Result<(), Error> {
        let put = self.connection.execute(
            "INSERT INTO conversations VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET session = ?3, root = COALESCE(?4, root)",
            (agent, conversation, session, root),
        );
        self.sql(put).map(drop)
    }
}
