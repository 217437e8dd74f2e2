//! `session-config.json`: what ultra-create is told about its sessions, as far as it means something for their files and for
//! how they are gone on with. A key that is missing has the document's value; one that is not what it should be does too, and
//! that is said.

use segno_core::Timestamp;
use serde_json::Map;
use serde_json::Value;

use crate::fields::Fields;
use crate::files::Damage;
use crate::files::object;

/// The file, and the folders below a home directory where it is looked for.
pub const CONFIG: &str = "session-config.json";
/// See [`CONFIG`].
pub const CONFIG_FOLDERS: [&str; 2] = [".ultra-create/config", ".ultra-create"];

/// What it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where sessions are; none is the usual folder. `~/` is the home directory.
    pub state_dir: Option<String>,
    /// How many sessions that have ended have files.
    pub max_sessions: usize,
    /// For how many days.
    pub prune_days: u32,
    /// Whether each file has a compressed copy.
    pub compression: bool,
    /// What is written of a session.
    pub include: Include,
    /// Whether long texts are cut.
    pub cut_large: bool,
    /// How it is gone on with.
    pub recovery: Recovery,
    /// Which checkpoints have a place in its files.
    pub checkpoints: Checkpoints,
    /// Commands for the shell.
    pub hooks: Hooks,
}

/// What is written of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Include {
    pub conversation_context: bool,
    pub tool_history: bool,
    pub agent_states: bool,
    pub decision_tree: bool,
    pub memory_snapshots: bool,
    pub file_changes: bool,
    pub error_log: bool,
}

/// How a session is gone on with. None where the file says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether that is offered by itself.
    pub auto_resume: Option<bool>,
    /// How long to wait before.
    pub resume_delay_ms: Option<u64>,
    /// How often.
    pub max_resume_attempts: Option<u64>,
}

/// Which checkpoints have a place in the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoints {
    /// Whether those that were made by themselves do.
    pub auto_create: bool,
    /// Of these, which: `phase_complete`, `major_milestone`, `before_risky_operation`.
    pub triggers: Vec<String>,
    /// How many of the newest.
    pub max: usize,
    /// How many when the session is completed.
    pub keep_on_success: usize,
    /// How many when it failed or was given up.
    pub keep_on_failure: usize,
}

/// Commands for the shell, run when something happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// The files were written.
    pub on_serialize: Option<String>,
    /// The session was gone on with.
    pub on_restore: Option<String>,
    /// The session crashed.
    pub on_crash: Option<String>,
}

impl Hooks {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            state_dir: None,
            max_sessions: 10,
            prune_days: 7,
            compression: true,
            include: Include {
                conversation_context: true,
                tool_history: true,
                agent_states: true,
                decision_tree: true,
                memory_snapshots: true,
                file_changes: true,
                error_log: true,
            },
            cut_large: true,
            recovery: Recovery::default(),
            checkpoints: Checkpoints {
                auto_create: true,
                triggers: ["phase_complete", "major_milestone", "before_risky_operation"]
                    .map(ToOwned::to_owned)
                    .into(),
                max: 5,
                keep_on_success: 1,
                keep_on_failure: 3,
            },
            hooks: Hooks::default(),
        }
    }
}

impl Config {
    /// Reads it, with what it says that is not what it should be.
    ///
    /// # Errors
    /// If it is no JSON object.
    pub fn read(bytes: &[u8]) -> Result<(Self, Vec<String>), Damage> {
        let mut config = Self::default();
        let mut fields = Fields::new(CONFIG, object(CONFIG, bytes)?, Timestamp::EPOCH);
        if let Some(mut storage) = fields.object("storage") {
            config.state_dir = storage.text("state_dir").filter(|folder| !folder.is_empty());
            size(&mut storage, "max_sessions", &mut config.max_sessions);
            if let Some(days) = storage.number("auto_prune_days").and_then(|days| u32::try_from(days).ok()) {
                config.prune_days = days;
            }
            set(storage.flag("compression"), &mut config.compression);
            fields.hear(storage);
        }
        if let Some(mut serialization) = fields.object("serialization") {
            if let Some(mut include) = serialization.object("include") {
                let all = &mut config.include;
                for (name, flag) in [
                    ("conversation_context", &mut all.conversation_context),
                    ("tool_history", &mut all.tool_history),
                    ("agent_states", &mut all.agent_states),
                    ("decision_tree", &mut all.decision_tree),
                    ("memory_snapshots", &mut all.memory_snapshots),
                    ("file_changes", &mut all.file_changes),
                    ("error_log", &mut all.error_log),
                ] {
                    set(include.flag(name), flag);
                }
                serialization.hear(include);
            }
            if let Some(mut exclude) = serialization.object("exclude") {
                set(exclude.flag("large_file_contents"), &mut config.cut_large);
                if exclude.flag("sensitive_data") == Some(false) {
                    exclude
                        .warn("serialization.exclude.sensitive_data is false: secrets stay out all the same");
                }
                serialization.hear(exclude);
            }
            fields.hear(serialization);
        }
        if let Some(mut recovery) = fields.object("recovery") {
            config.recovery = Recovery {
                auto_resume: recovery.flag("auto_resume"),
                resume_delay_ms: recovery.number("resume_delay_ms"),
                max_resume_attempts: recovery.number("max_resume_attempts"),
            };
            fields.hear(recovery);
        }
        if let Some(mut checkpoints) = fields.object("checkpoints") {
            let ours = &mut config.checkpoints;
            set(checkpoints.flag("auto_create"), &mut ours.auto_create);
            if checkpoints.has("triggers") {
                ours.triggers = checkpoints.texts("triggers");
            }
            // The document and the file have two names for it.
            size(&mut checkpoints, "max_per_session", &mut ours.max);
            size(&mut checkpoints, "max_checkpoints_per_session", &mut ours.max);
            if let Some(mut retention) = checkpoints.object("retention") {
                size(&mut retention, "keep_on_success", &mut ours.keep_on_success);
                size(&mut retention, "keep_on_failure", &mut ours.keep_on_failure);
                checkpoints.hear(retention);
            }
            fields.hear(checkpoints);
        }
        if let Some(mut hooks) = fields.object("hooks") {
            let mut command = |name: &str| hooks.text(name).filter(|command| !command.trim().is_empty());
            config.hooks = Hooks {
                on_serialize: command("on_serialize"),
                on_restore: command("on_restore"),
                on_crash: command("on_crash"),
            };
            fields.hear(hooks);
        }
        let (_, warnings): (Map<String, Value>, _) = fields.rest();
        Ok((config, warnings))
    }

    /// Whether a checkpoint that was made for this reason has a place in the files. One that somebody asked for always has.
    pub(super) fn shows(&self, reason: &str) -> bool {
        let trigger = match reason {
            "phase_complete" => "phase_complete",
            "milestone" => "major_milestone",
            "risky" => "before_risky_operation",
            "asked" | "imported" => return true,
            // The document's fourth trigger, after so many calls, is no key of the file.
            "tools" => return self.checkpoints.auto_create,
            // It knows no others.
            _ => return false,
        };
        self.checkpoints.auto_create && self.checkpoints.triggers.iter().any(|known| known == trigger)
    }
}

fn set(value: Option<bool>, into: &mut bool) {
    *into = value.unwrap_or(*into);
}

fn size(fields: &mut Fields<'_>, name: &str, into: &mut usize) {
    if let Some(number) = fields.number(name).and_then(|number| usize::try_from(number).ok()) {
        *into = number;
    }
}
