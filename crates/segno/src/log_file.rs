//! The log of the program's own decisions, for a report from the field: private, bounded, redacted, and never a reason
//! for a command to fail.
//!
//! `tracing` carries the words; this is the one subscriber. It opens the file when there is something to write, so a
//! command that has nothing to say pays for nothing. What the user did is in the journal, not here.

use std::fmt::Write as _;
use std::fmt::{self};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;

use jiff::Timestamp;
use segno_engine::redact::Redactor;
use tracing::Event;
use tracing::Level;
use tracing::Metadata;
use tracing::Subscriber;
use tracing::field::Field;
use tracing::field::Visit;
use tracing::level_filters::LevelFilter;
use tracing::span::Attributes;
use tracing::span::Id;
use tracing::span::Record;

use crate::config::env::Environment;
use crate::output::sanitize;

/// The variable that says what is logged.
pub const VARIABLE: &str = "SEGNO_LOG";
/// The file grows to this size, then it becomes the old one.
const LARGEST: u64 = 1 << 20;
/// Longest line.
const LINE: usize = 4_096;

/// The redactor of the engine, once there is one.
static REDACTOR: OnceLock<Arc<Redactor>> = OnceLock::new();

/// Where the log is.
pub fn path(state: &Path) -> PathBuf {
    state.join("segno.log")
}

/// Starts the log. Whatever goes wrong, the command goes on without one.
pub fn start(environment: &Environment, state: &Path, verbose: u8) {
    let filter = Filter::read(environment.non_empty(VARIABLE).unwrap_or("warn"));
    let aloud = match verbose {
        0 => LevelFilter::OFF,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    if filter.most().max(aloud) == LevelFilter::OFF {
        return;
    }
    let log = Log { path: path(state), filter, aloud };
    // A library user may have a subscriber of their own; then ours is not needed.
    let _ = tracing::subscriber::set_global_default(log);
}

/// From now on lines pass this redactor, which knows more secrets than the one that everybody has.
pub fn redact_with(redactor: Arc<Redactor>) {
    // The first one stays: it is of the store that the command is about.
    let _ = REDACTOR.set(redactor);
}

/// What is let through: a level, and levels of parts of the program, as in `warn,segno_engine::lease=debug`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Filter {
    level: LevelFilter,
    parts: Vec<(String, LevelFilter)>,
}

impl Filter {
    /// What cannot be understood is left out: a slip in a variable must not stop a command.
    fn read(text: &str) -> Self {
        let mut filter = Self { level: LevelFilter::WARN, parts: Vec::new() };
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.split_once('=') {
                Some((part, level)) => {
                    filter.parts.extend(level.parse().ok().map(|level| (part.to_owned(), level)));
                }
                None => filter.level = word.parse().unwrap_or(filter.level),
            }
        }
        filter
    }

    fn most(&self) -> LevelFilter {
        self.parts.iter().map(|(_, level)| *level).fold(self.level, LevelFilter::max)
    }

    /// The longest name that fits decides.
    fn lets_through(&self, metadata: &Metadata<'_>) -> bool {
        let fits = self.parts.iter().filter(|(part, _)| metadata.target().starts_with(part.as_str()));
        let level = fits.max_by_key(|(part, _)| part.len()).map_or(self.level, |(_, level)| *level);
        *metadata.level() <= level
    }
}

struct Log {
    path: PathBuf,
    filter: Filter,
    aloud: LevelFilter,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && (self.filter.lets_through(metadata) || *metadata.level() <= self.aloud)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.filter.most().max(self.aloud))
    }

    fn event(&self, event: &Event<'_>) {
        let line = line(event);
        if self.filter.lets_through(event.metadata()) {
            // A log that cannot be written is no reason to do anything else.
            let _ = append(&self.path, &line);
        }
        if *event.metadata().level() <= self.aloud {
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }

    // Only events are logged; spans cost nothing and mean nothing here.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// One line: when, how grave, which process, which part, what. Secrets are taken out before anything is cut.
fn line(event: &Event<'_>) -> String {
    let mut words = Words::default();
    event.record(&mut words);
    let text = format!("{}{}", words.message, words.fields);
    let redactor = REDACTOR.get_or_init(|| Arc::new(Redactor::new(segno_engine::redact::Options::default())));
    let text = redactor.text(&text).into_owned();
    let text = segno_engine::core::text::shorten(&sanitize::line(&text), LINE);
    let metadata = event.metadata();
    let level = match *metadata.level() {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    };
    format!("{:.6} {level} [{}] {}: {text}\n", Timestamp::now(), std::process::id(), metadata.target())
}

/// The message and the fields of an event.
#[derive(Default)]
struct Words {
    message: String,
    fields: String,
}

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a String cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

/// Adds a line with one write, so that lines of several processes do not mix. A full file becomes the old one.
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        crate::files::private_directory(directory)?;
    }
    if std::fs::symlink_metadata(path).is_ok_and(|there| there.len() > LARGEST) {
        std::fs::rename(path, path.with_extension("log.1"))?;
    }
    let no_links = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut file =
        OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(no_links).open(path)?;
    file.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_level_and_levels_of_parts() {
        let filter = Filter::read("info, segno_engine::lease=trace,nonsense=what");
        assert_eq!(filter.level, LevelFilter::INFO);
        assert_eq!(filter.parts, [("segno_engine::lease".to_owned(), LevelFilter::TRACE)]);
        assert_eq!(filter.most(), LevelFilter::TRACE);
        assert_eq!(Filter::read("what?").level, LevelFilter::WARN);
        assert_eq!(Filter::read("off").most(), LevelFilter::OFF);
    }

    #[test]
    fn secrets_are_taken_out_and_lines_stay_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segno.log");
        let log = Log { path: path.clone(), filter: Filter::read("info"), aloud: LevelFilter::OFF };
        let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        tracing::subscriber::with_default(log, || {
            tracing::warn!(why = format!("push with {secret} failed\nfor ever\u{1b}[2J"), "no remote");
            tracing::debug!("not let through");
        });
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.contains(" warn [") && text.contains("no remote") && text.contains("push with"),
            "{text}"
        );
        assert!(!text.contains(&secret) && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn the_file_is_private_bounded_and_never_a_link() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/segno.log");
        append(&path, "one\n").unwrap();
        append(&path, "two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, vec![b'x'; usize::try_from(LARGEST).unwrap() + 1]).unwrap();
        append(&path, "new\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
        assert!(path.with_extension("log.1").exists());
        let link = dir.path().join("state/link.log");
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &link).unwrap();
        assert!(append(&link, "x\n").is_err());
        assert!(!dir.path().join("elsewhere").exists());
    }
}
