//! Types of arguments that more than one command takes. Each is checked when the command line is parsed.

use std::io::Read as _;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap::ValueEnum;

use crate::error::CommandError;
use crate::error::Outcome;
use crate::files::Links;
use crate::files::{self};
use crate::output::units;

/// How a session is named on the command line: its id, a unique end of it, a number from the last list, or `last`.
///
/// Ids become parts of paths and of other command lines, so nothing but their own characters is let through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRef(String);

impl SessionRef {
    /// The reference as it was typed, without a leading ellipsis.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Ids are shown as …804211, and people copy what they see.
        let text = text.trim_start_matches('…').trim_start_matches("...");
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if text.is_empty() || text.len() > 64 || text.starts_with('-') || !text.chars().all(fits) {
            return Err(
                "a session is named by its id, the end of its id, its number in the last list, or `last`"
                    .into(),
            );
        }
        Ok(Self(text.to_owned()))
    }
}

/// The session a command is about, as its first argument.
#[derive(Args, Clone, Debug, Default)]
pub struct OneSession {
    /// The session: its id, the end of its id, its number in the last list, or `last`
    #[arg(value_name = "ID")]
    pub id: Option<SessionRef>,
}

/// A page of a longer list.
#[derive(Args, Clone, Debug, Default)]
pub struct Page {
    /// Show at most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    /// Show what came after this sequence number
    #[arg(long, value_name = "SEQ")]
    pub after: Option<u64>,
    /// Show long texts in full
    #[arg(long)]
    pub full: bool,
}

/// Text given as it is, on standard input (`-`), or in a file (`@FILE`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextSource {
    /// The text itself.
    Inline(String),
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl FromStr for TextSource {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.strip_prefix('@') {
            _ if text == "-" => Self::Stdin,
            Some(path) if !path.is_empty() => Self::File(path.into()),
            _ => Self::Inline(text.to_owned()),
        })
    }
}

impl TextSource {
    /// Reads the text, at most `limit` bytes of it.
    ///
    /// # Errors
    /// If it cannot be read, is larger, or is not UTF-8.
    pub fn read(&self, limit: u64) -> Outcome<String> {
        let bytes = match self {
            Self::Inline(text) => return Ok(text.clone()),
            Self::Stdin => {
                let mut bytes = Vec::new();
                std::io::stdin()
                    .lock()
                    .take(limit + 1)
                    .read_to_end(&mut bytes)
                    .map_err(|error| CommandError::io("cannot read standard input", error))?;
                if bytes.len() as u64 > limit {
                    return Err(CommandError::failure(
                        "too_large",
                        format!("standard input holds more than {}", units::bytes(limit)),
                    ));
                }
                bytes
            }
            Self::File(path) => {
                let said = path.display();
                files::read_bounded(path, limit, Links::Follow)
                    .map_err(|error| {
                        CommandError::failure("unreadable", format!("cannot read {said}: {error}"))
                    })?
                    .ok_or_else(|| CommandError::failure("unreadable", format!("there is no file {said}")))?
            }
        };
        String::from_utf8(bytes).map_err(|_| CommandError::failure("not_text", "the text is not UTF-8"))
    }
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileChange {
    /// It is new.
    Created,
    /// It was there and is different now.
    Modified,
    /// It is gone.
    Deleted,
}

/// What happened to an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArtifactChange {
    /// It is new.
    Created,
    /// It was there and is different now.
    Modified,
}

/// For clap: an age such as `7d`.
pub fn age(text: &str) -> Result<Duration, String> {
    units::parse_age(text)
}

/// For clap: dollars as millionths.
pub fn dollars(text: &str) -> Result<u64, String> {
    units::parse_dollars(text)
}

/// For clap: a count such as `50k`.
pub fn count(text: &str) -> Result<u64, String> {
    units::parse_count(text)
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
