//! Conversations that an agent keeps in a database.

use std::collections::BTreeMap;
use std::path::Path;

use segno_agents::KeptDatabase;
use segno_agents::Lineage;
use segno_store::index::FileNote;
use segno_store::index::ForeignConversation;
use segno_store::index::foreign_conversations;
use segno_store::index::foreign_lines;

use super::AgentImport;
use super::ImportRun;
use super::Progress;
use super::find;
use super::find::Stat;
use super::take::Part;
use super::take::Taker;
use crate::Error;

impl ImportRun<'_> {
    /// Conversations in a database: what has changed since is read anew, and what is known is not recorded again.
    pub(super) fn database(
        &mut self,
        agent: &'static str,
        database: &KeptDatabase,
        path: &Path,
        import: &mut AgentImport,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), Error> {
        let Some(mut stat) = Stat::of(path) else { return Ok(()) };
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        if let Some(log) = Stat::of(Path::new(&log)) {
            (stat.size, stat.modified_ns) = (stat.size + log.size, stat.modified_ns.max(log.modified_ns));
        }
        let name = path.to_string_lossy().into_owned();
        import.files += 1;
        if self.index.file(agent, &name)?.is_some_and(|note| note == stat.note()) {
            import.unchanged += 1;
            return Ok(());
        }
        let all = match foreign_conversations(path, database.rows.conversations) {
            Ok(all) => all,
            Err(why) => {
                import.notices.push(format!("{name} could not be read: {why}"));
                return Ok(());
            }
        };
        let of = all.len();
        let mut children: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for index in 0..all.len() {
            children.entry(root_of(&all, index)).or_default().push(index);
        }
        let size = u64::try_from(stat.size).unwrap_or(0);
        for (done, (id, parts)) in children.iter().enumerate() {
            progress(Progress { agent, done, of, bytes: 0, of_bytes: size });
            let marks: Vec<String> =
                parts.iter().map(|part| format!("{}@{}", all[*part].id, all[*part].changed)).collect();
            let mark = marks.join(",");
            let place = format!("{name}#{id}");
            if self.index.file(agent, &place)?.is_some_and(|note| note.used == mark) {
                continue;
            }
            let cwd = parts.iter().find_map(|part| all[*part].directory.clone());
            let lineage = Lineage { id: Some(id.clone()), cwd, ..Lineage::default() };
            let Some(origin) = self.origin(agent, id, &lineage)? else {
                import.removed += 1;
                continue;
            };
            if origin.session.is_some_and(|session| self.is_driven(session)) {
                continue;
            }
            let mut taker = Taker::new(self.engine, agent, id, origin, import)?;
            let log = find::log_of(agent);
            for part in parts {
                let Some(mut reads) = log.and_then(|log| Part::new(log, 0, &all[*part].id)) else { continue };
                taker.line(&mut reads, 1, all[*part].line.as_bytes())?;
                foreign_lines(path, database.rows.lines, &all[*part].id, |line| {
                    taker.line(&mut reads, 1, line.as_bytes())
                })?;
                taker.finish_part(&reads)?;
            }
            taker.finish()?;
            let session = taker.session();
            let (is_new, is_changed, is_recorded) = (taker.is_new, taker.is_changed, taker.is_recorded);
            import.new_sessions += u64::from(is_new && is_changed);
            import.grown += u64::from(!is_new && is_changed);
            import.recorded += u64::from(is_recorded && session.is_none());
            let note = FileNote { conversation: id.clone(), used: mark, ..FileNote::default() };
            self.index.note_file(agent, &place, &note)?;
            let session = session.map(|session| session.to_string()).unwrap_or_default();
            self.index.note_conversation(agent, id, &session, None)?;
        }
        import.bytes += size;
        progress(Progress { agent, done: of, of, bytes: size, of_bytes: size });
        self.index.note_file(agent, &name, &stat.note())?;
        Ok(())
    }
}

/// The conversation that a conversation of sub-agents belongs to.
fn root_of(all: &[ForeignConversation], index: usize) -> String {
    let mut at = index;
    for _ in 0..20 {
        let parent = all[at].parent.as_ref().and_then(|parent| all.iter().position(|one| one.id == *parent));
        match parent {
            Some(parent) if parent != at => at = parent,
            _ => break,
        }
    }
    all[at].id.clone()
}
