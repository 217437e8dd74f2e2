//! One configuration file as a layer: what it sets, what in it means nothing, and what waits for trust.

use std::ops::Range;
use std::path::Path;

use segno_engine::core::suggest;
use toml::Table;
use toml::Value;
use toml_edit::Document;
use toml_edit::Item;
use toml_edit::TableLike;

use super::Config;
use super::DEFAULT;
use super::error::Error;
use super::error::SourceSpan;
use super::layers::Origin;
use super::layers::Setting;
use super::schema::Class;
use super::schema::KEYS;

/// Deeper tables than this have no place in a configuration file.
pub const MAX_DEPTH: usize = 16;

/// Which of the two files a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The user's own.
    User,
    /// The project's, with whether the project is trusted.
    Project {
        /// Whether it is trusted as it is now.
        trusted: bool,
    },
}

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// A key, a file or a variable that means nothing here.
    Ignored,
    /// Something that waits for trust.
    Untrusted,
    /// Something is wrong and the user must look at it.
    Problem,
}

/// Something the user should know, though it does not stop anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub topic: Topic,
    /// What.
    pub message: String,
    /// What to do about it.
    pub hints: Vec<String>,
}

/// What a file sets, with what there is to say about it.
#[derive(Debug, Default)]
pub struct FileLayer {
    /// Its settings.
    pub settings: Vec<Setting>,
    /// Unknown and ignored keys.
    pub notices: Vec<Notice>,
}

/// Reads a file as a layer.
///
/// # Errors
/// If it is not TOML, nested too deeply, or sets a known key to a wrong value.
pub fn read(path: &Path, bytes: &[u8], level: Level) -> Result<FileLayer, Error> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        Error::Encoding { span: SourceSpan::at(path, &valid, valid.len()) }
    })?;
    let (document, mut table) = parse(path, text)?;
    let at = |span: Option<Range<usize>>| SourceSpan::at(path, text, span.map_or(0, |span| span.start));
    let mut layer = FileLayer::default();
    let mut waiting = Vec::new();
    for key in KEYS {
        let (section, name) = key.name.split_once('.').unwrap_or((key.name, ""));
        let Some(found) = table.get_mut(section) else { continue };
        let Value::Table(values) = found else {
            return Err(Error::Invalid {
                origin: at(span_of(&document, &[section])).to_string(),
                key: section.to_owned(),
                problem: format!("is a section; write [{section}] and its settings below"),
            });
        };
        let value =
            if name.is_empty() { Some(Value::Table(values.clone())) } else { values.get(name).cloned() };
        let Some(value) = value else { continue };
        let span = at(span_of(&document, &[section, name]));
        if let Level::Project { trusted } = level {
            let forbidden = key.class == Class::UserOnly;
            if forbidden {
                layer.notices.push(Notice {
                    topic: Topic::Ignored,
                    message: format!("{span}: {} is ignored: {}", key.name, key.class.reason()),
                    hints: vec![format!("segno config set {} …", key.name)],
                });
            } else if key.class.needs_trust() && !trusted {
                waiting.push(key.name);
            }
            if forbidden || (key.class.needs_trust() && !trusted) {
                if name.is_empty() {
                    values.clear();
                }
                values.remove(name);
                continue;
            }
        }
        key.check(&value).map_err(|problem| Error::Invalid {
            origin: span.to_string(),
            key: key.name.to_owned(),
            problem,
        })?;
        let origin = match level {
            Level::User => Origin::User(span),
            Level::Project { .. } => Origin::Project(span),
        };
        layer.settings.push(Setting { key, value, origin });
    }
    if !waiting.is_empty() {
        // One notice for all: it comes with every command until the user decides.
        let are = if waiting.len() == 1 { "is" } else { "are" };
        layer.notices.push(Notice {
            topic: Topic::Untrusted,
            message: format!(
                "{}: {} {are} ignored: this project is not trusted",
                path.display(),
                waiting.join(", ")
            ),
            hints: vec!["segno trust --show, then: segno trust".to_owned()],
        });
    }
    for path in unknown(&table)? {
        let segments: Vec<&str> = path.split('.').collect();
        layer.notices.push(Notice {
            topic: Topic::Ignored,
            message: format!(
                "{}: there is no setting {path}; it is ignored",
                at(span_of(&document, &segments))
            ),
            hints: known_like(&path).map(|known| format!("did you mean {known}?")).into_iter().collect(),
        });
    }
    Ok(layer)
}

/// The known key or section nearest to an unknown one.
pub fn known_like(key: &str) -> Option<&'static str> {
    let names = || KEYS.iter().map(|key| key.name);
    if let Some(name) = suggest::nearest(key, names()) {
        return Some(name);
    }
    if !key.contains('.')
        && let Some(section) = suggest::nearest(key, names().filter_map(|name| Some(name.split_once('.')?.0)))
    {
        return Some(section);
    }
    // Often only the section was forgotten or guessed wrong.
    let last = key.rsplit('.').next().unwrap_or(key);
    names().find(|name| name.rsplit('.').next() == Some(last))
}

fn parse<'a>(path: &Path, text: &'a str) -> Result<(Document<&'a str>, Table), Error> {
    let syntax = |message: &str, span: Option<Range<usize>>| Error::Syntax {
        span: SourceSpan::at(path, text, span.map_or(0, |span| span.start)),
        message: message.trim().replace('\n', ", "),
    };
    let document = Document::parse(text).map_err(|error| syntax(error.message(), error.span()))?;
    if let Some(span) = too_deep(document.as_item(), 0) {
        return Err(Error::TooDeep { span: SourceSpan::at(path, text, span.start), limit: MAX_DEPTH });
    }
    let table = toml::from_str(text).map_err(|error| syntax(error.message(), error.span()))?;
    Ok((document, table))
}

/// The place of the first item that is too deep. The parser has a limit of its own, so this cannot recurse far.
fn too_deep(item: &Item, depth: usize) -> Option<Range<usize>> {
    if depth > MAX_DEPTH {
        return Some(item.span().unwrap_or(0..0));
    }
    if let Some(table) = item.as_table_like() {
        return table.iter().find_map(|(_, item)| too_deep(item, depth + 1));
    }
    if let Some(tables) = item.as_array_of_tables() {
        return tables.iter().flat_map(TableLike::iter).find_map(|(_, item)| too_deep(item, depth + 2));
    }
    item.as_array()?.iter().find_map(|value| too_deep(&Item::Value(value.clone()), depth + 1))
}

/// The place of a key, or of the last part of its path that can be found.
fn span_of(document: &Document<&str>, path: &[&str]) -> Option<Range<usize>> {
    let mut table: &dyn TableLike = document.as_table();
    let mut span = None;
    for name in path {
        let Some((key, item)) = table.get_key_value(name) else { break };
        span = key.span().or(span);
        match item.as_table_like() {
            Some(next) => table = next,
            None => break,
        }
    }
    span
}

/// The keys of a file that nothing reads. The file is laid over the defaults, so that what it leaves out is not
/// missed.
fn unknown(table: &Table) -> Result<Vec<String>, Error> {
    let mut whole: Table = toml::from_str(DEFAULT).map_err(|error| Error::Types(error.to_string()))?;
    for (section, value) in table {
        match (whole.get_mut(section), value) {
            (Some(Value::Table(known)), Value::Table(values)) => known.extend(values.clone()),
            _ => {
                whole.insert(section.clone(), value.clone());
            }
        }
    }
    let mut unknown = Vec::new();
    let config: Result<Config, _> =
        serde_ignored::deserialize(Value::Table(whole), |path| unknown.push(path.to_string()));
    config.map_err(|error: toml::de::Error| Error::Types(error.message().to_owned()))?;
    Ok(unknown)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
