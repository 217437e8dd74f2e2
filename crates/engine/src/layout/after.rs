//! What ultra-create's configuration asks for when its files have been written: old ones go, and its commands are run if the
//! user trusts them. Neither can keep anything else from being done.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use segno_core::State;
use segno_core::Status;
use segno_core::Timestamp;
use segno_layouts::Facts;
use segno_layouts::Family;
use segno_layouts::ForeignEdit;
use segno_layouts::MOST_FILE;
use segno_layouts::ultra_create::CURRENT;
use serde_json::Value;

use super::below::remove_below;
use super::gather;
use super::write::Planned;

use crate::Engine;
use crate::files;
use crate::looping::EvidenceCommand;
use crate::looping::run_evidence;

/// How long a command may take, as the registry of its hooks says.
const PATIENCE: Duration = Duration::from_secs(3);

impl Engine {
    /// Removes files of ours that the configuration has no place for any more: checkpoints beyond the newest, compressed
    /// copies that nobody wants, and archives that are too many or too old. Files of others stay.
    pub(super) fn prune_ultra_create(&self, dir: &OwnedFd, state: &State, planned: &Planned) {
        let config = &self.options.layout.ultra_create.config;
        let own = segno_layouts::foreign_name(Family::UltraCreate, state)
            .map_or_else(|| state.uid.to_string(), ToOwned::to_owned);
        let is_wanted = |name: &str| planned.wanted.iter().any(|(wanted, _)| wanted == name);
        let read = |name: &str| files::read_in(dir, name, MOST_FILE).ok().flatten();
        let member = |bytes: &[u8], name: &str| {
            let file: Value = serde_json::from_slice(bytes).ok()?;
            file.get(name)?.as_str().map(ToOwned::to_owned)
        };
        // What cannot be removed now is removed the next time.
        let remove = |name: &str| drop(remove_below(dir, name));
        let names = gather::names(&planned.folder);
        let is_checkpoint = |name: &&String| name.starts_with("checkpoint_") && name.ends_with(".json");
        for name in names.iter().filter(is_checkpoint).filter(|name| !is_wanted(name)) {
            if read(name).and_then(|bytes| member(&bytes, "session_id")).as_deref() == Some(own.as_str()) {
                remove(name);
            }
        }
        if !config.compression {
            let packed = format!("{CURRENT}.gz");
            if names.contains(&packed) {
                remove(&packed);
            }
        }
        if !state.status.is_terminal() {
            return;
        }
        let is_archive = |name: &&String| name.starts_with("session_") && name.ends_with(".json");
        let mut archives: Vec<(Timestamp, &String)> = Vec::new();
        for name in names.iter().filter(is_archive) {
            let Some(bytes) = read(name) else { continue };
            let looked = Facts::of(Family::UltraCreate, name, &bytes).looked();
            let at = member(&bytes, "updated_at").and_then(|at| at.parse().ok());
            if let Some(at) = at.filter(|_| looked.is_some_and(|looked| looked.edit == ForeignEdit::None)) {
                archives.push((at, name));
            }
        }
        archives.sort_unstable_by(|a, b| b.cmp(a));
        let oldest = self.now().plus_seconds(-i64::from(config.prune_days) * 86_400);
        for (index, (at, name)) in archives.into_iter().enumerate() {
            let is_old = index >= config.max_sessions.max(1) || at < oldest;
            if is_old && !is_wanted(name) {
                remove(name);
                remove(&format!("{name}.gz"));
                let gone = name.strip_prefix("session_").and_then(|name| name.strip_suffix(".json"));
                for checkpoint in names.iter().filter(is_checkpoint) {
                    let whose = read(checkpoint).and_then(|bytes| member(&bytes, "session_id"));
                    if whose.is_some() && whose.as_deref() == gone {
                        remove(checkpoint);
                    }
                }
            }
        }
    }

    /// Runs the commands for what has happened since the files were written before; answers with what went wrong.
    pub(super) fn ultra_create_hooks(
        &self,
        state: &State,
        folder: &Path,
        before: Option<&str>,
    ) -> Vec<String> {
        let options = &self.options.layout.ultra_create;
        if !options.hooks_trusted {
            return Vec::new();
        }
        let hooks = &options.config.hooks;
        let stopped = [Status::Interrupted, Status::Paused, Status::Halted].map(Status::as_str);
        let was = |status: Status| before == Some(status.as_str());
        let crashed = state.status == Status::Interrupted && !was(Status::Interrupted);
        let restored =
            state.status == Status::Active && before.is_some_and(|before| stopped.contains(&before));
        let due = [
            ("on_crash", hooks.on_crash.as_ref().filter(|_| crashed)),
            ("on_restore", hooks.on_restore.as_ref().filter(|_| restored)),
            ("on_serialize", hooks.on_serialize.as_ref()),
        ];
        let due = due.into_iter().filter_map(|(name, command)| Some((name, command?)));
        due.filter_map(|(name, command)| self.hook_problem(state, folder, name, command)).collect()
    }

    fn hook_problem(&self, state: &State, folder: &Path, name: &str, command: &str) -> Option<String> {
        let mut environment = self.options.layout.ultra_create.environment.clone();
        let word = segno_layouts::word_of(Family::UltraCreate, state.status).unwrap_or_default();
        environment.extend([
            ("ULTRA_CREATE_EVENT".into(), name.into()),
            ("ULTRA_CREATE_SESSION_ID".into(), state.session_id.to_string().into()),
            ("ULTRA_CREATE_STATUS".into(), word.into()),
            ("ULTRA_CREATE_STATE_FILE".into(), folder.join(CURRENT).into_os_string()),
        ]);
        let wanted = EvidenceCommand {
            command,
            directory: folder,
            environment: &environment,
            timeout: PATIENCE,
            resources: Default::default(),
            adopts: false,
            guard: &[],
        };
        let why = match run_evidence(&wanted, &self.redactor(), &|| false) {
            Ok(shown) if shown.passes() => return None,
            Ok(shown) => shown.words(),
            Err(why) => why.to_string(),
        };
        Some(format!("the command {name} of ultra-create did not succeed: {why}"))
    }
}
