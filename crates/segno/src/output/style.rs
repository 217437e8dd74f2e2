//! Colours by meaning, and symbols with a plain form.
//!
//! Nothing depends on colour: wherever a colour or a symbol is used, a word stands beside it.

use anstyle::AnsiColor;
use anstyle::Style;
use serde::Deserialize;
use serde::Serialize;

use crate::config::env::Environment;

/// What a piece of text means, which is what decides its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Meaning {
    /// Ordinary text.
    #[default]
    Plain,
    /// Done, healthy: green.
    Done,
    /// Waiting or in doubt: yellow.
    Waiting,
    /// Lost, refused, failed: red.
    Lost,
    /// Ids, times and everything that stands back: dim.
    Dim,
    /// What the eye should find first: bold.
    Strong,
}

impl Meaning {
    const fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Done => AnsiColor::Green.on_default(),
            Self::Waiting => AnsiColor::Yellow.on_default(),
            Self::Lost => AnsiColor::Red.on_default(),
            Self::Dim => Style::new().dimmed(),
            Self::Strong => Style::new().bold(),
        }
    }
}

/// When to use colour: the value of `ui.color`, `--color` and `SEGNO_COLOR`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Choice {
    /// Whether to use colour on a stream. An explicit choice wins over `NO_COLOR` and `CLICOLOR_FORCE`, as both
    /// conventions ask.
    pub fn decide(self, environment: &Environment, is_terminal: bool) -> bool {
        let set = |name: &str| environment.get(name).is_some_and(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if set("NO_COLOR") => false,
            Self::Auto if set("CLICOLOR_FORCE") && environment.get("CLICOLOR_FORCE") != Some("0") => true,
            Self::Auto if environment.get("CLICOLOR") == Some("0") => false,
            Self::Auto => is_terminal && environment.get("TERM") != Some("dumb"),
        }
    }
}

/// A symbol that says at a glance what a word beside it says in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// Being worked on.
    Running,
    /// Stopped on purpose.
    Paused,
    /// Interrupted, failed, refused.
    Lost,
    /// Finished.
    Done,
    /// One step of something longer.
    Step,
    /// No value.
    Nothing,
    /// Something was left out.
    Ellipsis,
    /// A piece of a bar in a chart.
    Bar,
}

impl Symbol {
    const fn pair(self) -> (&'static str, &'static str) {
        match self {
            Self::Running => ("●", "*"),
            Self::Paused => ("‖", "="),
            Self::Lost => ("✗", "x"),
            Self::Done => ("✓", "+"),
            Self::Step => ("▸", ">"),
            Self::Nothing => ("–", "-"),
            Self::Ellipsis => ("…", "..."),
            Self::Bar => ("▇", "#"),
        }
    }
}

/// What one stream can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    colour: bool,
    unicode: bool,
}

impl Palette {
    /// A palette with the two abilities given.
    pub const fn new(colour: bool, unicode: bool) -> Self {
        Self { colour, unicode }
    }

    /// No colour, Unicode symbols: what tests and pipes see.
    pub const fn plain() -> Self {
        Self::new(false, true)
    }

    /// The palette of a stream.
    pub fn of(choice: Choice, environment: &Environment, is_terminal: bool) -> Self {
        Self::new(choice.decide(environment, is_terminal), speaks_unicode(environment))
    }

    /// Whether colour is used.
    pub const fn colour(self) -> bool {
        self.colour
    }

    /// Whether more than ASCII can be shown.
    pub const fn unicode(self) -> bool {
        self.unicode
    }

    /// The symbol in a form the stream can show.
    pub const fn symbol(self, symbol: Symbol) -> &'static str {
        let (unicode, plain) = symbol.pair();
        if self.unicode { unicode } else { plain }
    }

    /// The strings that start and end a meaning; both empty without colour.
    pub fn marks(self, meaning: Meaning) -> (String, String) {
        let style = meaning.style();
        if self.colour && meaning != Meaning::Plain {
            (style.render().to_string(), style.render_reset().to_string())
        } else {
            (String::new(), String::new())
        }
    }
}

/// Whether the locale uses UTF-8, by the precedence every libc uses. No locale at all is taken as able: containers
/// and services usually have none, and the terminals that read their output speak UTF-8.
fn speaks_unicode(environment: &Environment) -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| environment.get(name).filter(|value| !value.is_empty()))
        .is_none_or(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        })
}

#[cfg(test)]
#[path = "style_tests.rs"]
mod tests;
