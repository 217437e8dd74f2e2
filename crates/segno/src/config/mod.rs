//! The configuration: typed, layered, and honest about where each value comes from.
//!
//! | file | what it does |
//! |---|---|
//! | `default.toml` | the defaults and, at the same time, the documentation |
//! | [`schema`] | every key with its type, limits and class |
//! | [`agents`] | the sections `[agents.NAME]` |
//! | [`mod@file`] | one file: what it sets, what means nothing, what waits for trust |
//! | [`layers`] | default < user < project < environment < flags |
//! | [`paths`] | the user's directories and the root of the project |
//! | [`mod@env`] | every variable |
//! | [`set`] | changing a file, keeping its comments |
//! | [`ultra_create`] | what ultra-create's own file says, between the defaults and the user's file |
//! | [`content`], [`trust`] | what a project's files are worth |

use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;
use serde::Serialize;

pub mod agents;
pub mod content;
pub mod env;
pub mod error;
pub mod file;
pub mod layers;
pub mod paths;
pub mod schema;
pub mod set;
pub mod trust;
pub mod ultra_create;

pub use error::Error;
pub use file::Level;
pub use file::Notice;
pub use file::Topic;
pub use layers::Layers;
pub use layers::Origin;
pub use layers::Setting;
pub use paths::Paths;
pub use paths::Project;

use crate::files::Links;
use crate::files::ReadError;
use crate::files::{self};
use crate::output::style::Choice;
use content::Content;
use env::Environment;
use segno_engine::core::CostBudget;
use segno_engine::core::TokenBudget;
use segno_engine::core::budget::Counting;
use segno_engine::core::day::DayCaps;
use trust::Status;
use trust::Trust;

/// The embedded defaults, commented.
pub const DEFAULT: &str = include_str!("default.toml");

/// The largest configuration file.
pub const MAX_SIZE: u64 = 1024 * 1024;

/// The whole configuration. The meaning of each key is in `default.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the sections and keys are explained in default.toml, and only there")]
pub struct Config {
    pub store: Store,
    pub session: Session,
    pub budget: Budget,
    pub view: View,
    pub layout: Layout,
    pub cleanup: Cleanup,
    pub archive: Archive,
    pub ls: Ls,
    pub run: Run,
    pub resume: Resume,
    pub watch: Watch,
    pub memory: Memory,
    pub notify: Notify,
    pub otel: Otel,
    pub checkpoint: Checkpoint,
    pub agents: toml::Table,
    pub redact: Redact,
    pub ui: Ui,
}

/// The section `[watch]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Watch {
    pub brief: String,
}

/// The section `[memory]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Memory {
    pub tools: Vec<String>,
    pub lookups: Vec<String>,
}

/// The section `[store]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Store {
    pub url: String,
    pub busy_timeout_ms: u64,
    /// Warn when the store is larger than so many megabytes; 0 is never.
    pub warn_mb: u64,
}

/// The section `[session]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Session {
    pub budget: u64,
    pub warn_percent: u8,
    pub hard: bool,
    pub workflow: String,
}

/// The section `[budget]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Budget {
    pub count: Counting,
    pub day_tokens: u64,
    pub day_cost: u64,
}

impl Config {
    /// The token budget of a new session: what was asked for is a cap that stops, the default one only warns.
    pub fn token_budget(&self, asked: Option<u64>, advisory: bool) -> TokenBudget {
        TokenBudget {
            total_budget: asked.unwrap_or(self.session.budget),
            tokens_used: 0,
            warn_percent: self.session.warn_percent,
            hard: !advisory && (asked.is_some() || self.session.hard),
            count: self.budget.count,
        }
    }

    /// What all sessions of a project may use in a day; 0 is no cap.
    pub fn day_caps(&self) -> DayCaps {
        let set = |amount: u64| Some(amount).filter(|amount| *amount > 0);
        DayCaps {
            tokens: set(self.budget.day_tokens),
            micros: set(self.budget.day_cost.saturating_mul(1_000_000)),
            count: self.budget.count,
            warn_percent: self.session.warn_percent,
        }
    }

    /// The same for money, in millionths of a dollar.
    pub fn cost_budget(&self, asked: Option<u64>, advisory: bool) -> CostBudget {
        CostBudget {
            limit_micros: asked,
            used_micros: 0,
            warn_percent: self.session.warn_percent,
            hard: !advisory && asked.is_some(),
        }
    }
}

/// The section `[view]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct View {
    pub enabled: bool,
    pub max_items: u32,
}

/// The section `[layout]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Layout {
    pub families: Vec<String>,
    pub max_items: u32,
    pub hooks: String,
}

/// The section `[cleanup]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Cleanup {
    pub days: u32,
    pub keep: u32,
    pub auto: String,
    pub archive: bool,
}

/// The section `[archive]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Archive {
    pub native: bool,
}

/// The section `[ls]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Ls {
    pub limit: u32,
}

/// The section `[run]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Run {
    pub agent: String,
    pub prompt_file: String,
    pub prompt: String,
    pub hooks: bool,
    pub silence_seconds: u64,
    pub wall_seconds: u64,
    pub max_turns: u32,
    pub grace_ms: u64,
    pub memory_mb: u64,
    pub cpu_seconds: u64,
    pub processes: u64,
    pub record_mb: u64,
    pub max_line_mb: usize,
    pub view_buffer: usize,
    pub permissions: String,
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    pub ask_seconds: u64,
}

/// The section `[resume]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Resume {
    pub ask: bool,
    pub auto: bool,
    pub attempts: u32,
    pub delay_seconds: u64,
}

/// The section `[notify]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Notify {
    pub terminal: String,
    pub desktop: bool,
    pub webhook: String,
    pub command: String,
}

/// The section `[otel]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Otel {
    pub endpoint: String,
    pub seconds: u64,
}

/// The section `[checkpoint]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Checkpoint {
    pub files: bool,
    pub every_calls: u64,
    pub max: u64,
    pub keep_on_success: u64,
    pub keep_on_failure: u64,
    pub largest_file_mb: u64,
    pub quota_mb: u64,
    pub include_ignored: Vec<String>,
    pub risky: Vec<String>,
    pub on_failure: String,
}

/// The section `[redact]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Redact {
    pub env: bool,
    pub rules: Vec<Rule>,
}

/// A rule of `redact.rules`.
pub use segno_engine::redaction::Rule;

/// The section `[ui]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "explained in default.toml")]
pub struct Ui {
    pub color: Choice,
    pub pager: String,
    pub time: TimeStyle,
}

/// How times are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeStyle {
    /// `3h ago`.
    Relative,
    /// `2026-01-31T12:00:00Z`.
    Iso,
}

/// The configuration with everything that led to it.
#[derive(Debug)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// The values with their origins.
    pub layers: Layers,
    /// What the user should know.
    pub notices: Vec<Notice>,
    /// How the project stands.
    pub trust: Status,
    /// The files of a trusted project exactly as they were judged. `None` unless it is trusted.
    pub content: Option<Content>,
    /// What ultra-create is told about its sessions, where its files are kept current.
    pub session_config: Option<ultra_create::SessionConfig>,
    /// Whether the user trusts the commands in it as they are now.
    pub hooks_trusted: bool,
}

/// Reads all layers. `flags` are keys set on the command line, with the name of the flag.
///
/// # Errors
/// The first thing that makes the configuration unusable.
pub fn load(
    paths: &Paths,
    project: &Project,
    environment: &Environment,
    flags: &[(&'static str, &'static str, String)],
    now: Timestamp,
) -> Result<Loaded, Error> {
    let mut layers = Layers::defaults()?;
    let mut notices = Vec::new();

    match read_file(&paths.config, Links::Follow)? {
        Some(bytes) => {
            let layer = file::read(&paths.config, &bytes, Level::User)?;
            layers.lay(layer.settings);
            notices.extend(layer.notices);
        }
        None if paths.config_named => {
            return Err(Error::Missing { path: paths.config.clone(), asked_by: env::CONFIG });
        }
        None => {}
    }

    let Judged { trust, content, file } = judge(paths, project, now, &mut notices)?;
    if let Some(bytes) = file {
        let level = Level::Project { trusted: trust.is_trusted() };
        let layer = file::read(&project.config(), &bytes, level)?;
        layers.lay(layer.settings);
        notices.extend(layer.notices);
    }

    for (key, name, value) in environment.settings() {
        layers.lay_text(key, value, Origin::Variable(name))?;
    }
    notices.extend(environment.slips().into_iter().map(|(name, meant)| Notice {
        topic: Topic::Ignored,
        message: format!("the variable {name} means nothing; it is ignored"),
        hints: vec![format!("did you mean {meant}?")],
    }));
    for (key, flag, value) in flags {
        let key = schema::find(key).ok_or_else(|| Error::Types(format!("there is no key {key}")))?;
        layers.lay_text(key, value, Origin::Flag(flag))?;
    }
    let keeps = layers.get("layout.families").and_then(|setting| setting.value.as_array());
    let keeps = keeps.is_some_and(|all| all.iter().any(|family| family.as_str() == Some("ultra-create")));
    let home = environment.non_empty("HOME").filter(|_| keeps).map(Path::new);
    let session_config = home.and_then(|home| ultra_create::find(home, &mut notices));
    if let Some(found) = &session_config {
        ultra_create::lay(&mut layers, found);
    }
    let config = layers.config()?;
    let hooks_trusted = session_config
        .as_ref()
        .is_some_and(|found| ultra_create::trusts(found, &config.layout.hooks, &mut notices));
    Ok(Loaded { config, layers, notices, trust, content, session_config, hooks_trusted })
}

/// What is known about a project before its settings are read.
struct Judged {
    trust: Status,
    content: Option<Content>,
    file: Option<Vec<u8>>,
}

/// How the project stands, its trusted content, and the bytes of its configuration file. A trusted file is taken from
/// the content that was judged; reading it again could give another one.
fn judge(
    paths: &Paths,
    project: &Project,
    now: Timestamp,
    notices: &mut Vec<Notice>,
) -> Result<Judged, Error> {
    let standing = Trust::in_directory(&paths.data).status(&project.root, now).unwrap_or_else(|error| {
        notices.push(Notice {
            topic: Topic::Problem,
            message: error.to_string(),
            hints: error.hint().into_iter().collect(),
        });
        trust::Standing { status: Status::Untrusted { reason: None }, content: None }
    });
    match &standing.status {
        Status::Trusted { .. } => {
            let file = standing.content.as_ref().and_then(|content| content.get(paths::CONFIG_FILE));
            let file = file.map(<[u8]>::to_vec);
            return Ok(Judged { trust: standing.status, content: standing.content, file });
        }
        Status::Changed { since } => notices.push(Notice {
            topic: Topic::Untrusted,
            message: format!("the files in .segno have changed since you trusted them ({since:.0})"),
            hints: vec!["segno trust --show, then: segno trust".to_owned()],
        }),
        Status::Untrusted { reason: Some(reason) } => notices.push(Notice {
            topic: Topic::Untrusted,
            message: format!("this project is not trusted any more: {reason}"),
            hints: vec!["segno trust --show".to_owned()],
        }),
        Status::Untrusted { reason: None } => {}
    }
    let directory = project.directory();
    let is_link = std::fs::symlink_metadata(&directory).is_ok_and(|metadata| metadata.is_symlink());
    let file = if is_link {
        Err(Error::Read { path: directory, source: ReadError::NotRegular })
    } else {
        read_file(&project.config(), Links::Refuse)
    };
    let file = match file {
        // A link could lead anywhere; the project's file is then treated as absent, which is said.
        Err(Error::Read { path, source: ReadError::NotRegular }) => {
            notices.push(Notice {
                topic: Topic::Problem,
                message: format!("{} is ignored: it is a link, or not a file", path.display()),
                hints: Vec::new(),
            });
            None
        }
        other => other?,
    };
    Ok(Judged { trust: standing.status, content: None, file })
}

fn read_file(path: &Path, links: Links) -> Result<Option<Vec<u8>>, Error> {
    files::read_bounded(path, MAX_SIZE, links).map_err(|source| Error::Read { path: path.to_owned(), source })
}
