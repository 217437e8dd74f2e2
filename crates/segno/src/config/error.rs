//! What can be wrong with the configuration, each with its place and a hint.

use std::fmt;
use std::path::Path;
use std::path::PathBuf;

use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::files::ReadError;

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSpan {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl SourceSpan {
    /// The place of a byte offset in a text.
    pub fn at(path: &Path, text: &str, offset: usize) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for SourceSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

/// Something that makes the configuration unusable.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ReadError,
    },
    /// A file that was asked for by name does not exist.
    #[error("there is no file {}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// Who asked for it.
        asked_by: &'static str,
    },
    /// A file is not UTF-8.
    #[error("{span}: the file is not UTF-8 text")]
    Encoding {
        /// Where it stops being UTF-8.
        span: SourceSpan,
    },
    /// A file is not TOML.
    #[error("{span}: {message}")]
    Syntax {
        /// Where.
        span: SourceSpan,
        /// What the parser says.
        message: String,
    },
    /// Tables in tables in tables.
    #[error("{span}: tables are nested deeper than {limit} levels")]
    TooDeep {
        /// Where.
        span: SourceSpan,
        /// How deep is allowed.
        limit: usize,
    },
    /// A value has the wrong type or is out of range.
    #[error("{origin}{colon}{key} {problem}", colon = if origin.is_empty() { "" } else { ": " })]
    Invalid {
        /// The file and place, the variable or the flag; empty if it is what was just typed.
        origin: String,
        /// The key.
        key: String,
        /// What is wrong, as the rest of the sentence.
        problem: String,
    },
    /// A key does not exist.
    #[error("there is no setting {key}")]
    UnknownKey {
        /// What was asked for.
        key: String,
        /// What may have been meant.
        suggestion: Option<&'static str>,
    },
    /// A project tries to set what only the user may set.
    #[error("{key} cannot be set in a project: {reason}")]
    UserOnly {
        /// The key.
        key: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no home directory, so there is no place for anything.
    #[error("cannot find your home directory")]
    NoHome,
    /// The project directory is not there.
    #[error("{} is not a directory", path.display())]
    NoProject {
        /// What was asked for.
        path: PathBuf,
    },
    /// A defect: the layers fit the table of keys but not the types.
    #[error("the configuration does not fit its own types: {0}")]
    Types(String),
}

impl Error {
    /// A stable code for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "config_unreadable",
            Self::Missing { .. } => "config_missing",
            Self::Encoding { .. } | Self::Syntax { .. } | Self::TooDeep { .. } => "config_syntax",
            Self::Invalid { .. } => "config_invalid",
            Self::UnknownKey { .. } => "config_unknown_key",
            Self::UserOnly { .. } => "config_user_only",
            Self::Write { .. } => "config_unwritable",
            Self::NoHome => "no_home",
            Self::NoProject { .. } => "no_project",
            Self::Types(_) => "internal",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { source: ReadError::TooLarge(_), .. } => {
                Some("a configuration file holds a few settings; this looks like another file".into())
            }
            Self::Read { .. } | Self::Encoding { .. } | Self::Write { .. } | Self::Types(_) => None,
            Self::Missing { asked_by, .. } => {
                Some(format!("{asked_by} names it; create it or unset {asked_by}"))
            }
            Self::Syntax { .. } | Self::TooDeep { .. } => {
                Some("segno config show --default   (shows how the file is written)".into())
            }
            Self::Invalid { key, .. } => Some(format!(
                "segno config show --default   (explains {})",
                key.split_once('[').map_or(key.as_str(), |(name, _)| name)
            )),
            Self::UnknownKey { suggestion: Some(known), .. } => Some(format!("did you mean {known}?")),
            Self::UnknownKey { suggestion: None, .. } => {
                Some("segno config show   (lists all settings)".into())
            }
            Self::UserOnly { key, .. } => Some(format!("segno config set {key} …   (without --in-project)")),
            Self::NoHome => Some("set HOME to a directory of yours".into()),
            Self::NoProject { .. } => Some("--project and SEGNO_PROJECT take an existing directory".into()),
        }
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<&Error> for CommandError {
    fn from(error: &Error) -> Self {
        let exit = match error {
            Error::NoHome | Error::NoProject { .. } | Error::Write { .. } => ExitCode::Environment,
            Error::Types(_) => ExitCode::Internal,
            _ => ExitCode::Config,
        };
        Self::new(exit, error.code(), error.to_string()).maybe_hint(error.hint())
    }
}
