//! Where the real agents are.
//!
//! `scripts/agents.sh` installs them in pinned versions; this finds them again. It never looks at `PATH`: a test that
//! runs whatever version happens to be there proves little.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use thiserror::Error;

/// An agent in the version that tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin {
    /// Its name, which is that of its program.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The npm package it comes in.
    pub package: &'static str,
    /// Whether a plain run of the script installs it.
    pub is_default: bool,
}

/// Why a real agent is not there.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct Missing {
    /// What a person can do about it is said too.
    pub why: String,
}

/// The variable that makes a missing agent a failure instead of a skipped test.
pub const REQUIRE: &str = "SEGNO_REQUIRE_AGENTS";

/// All pinned agents, from the same list that the script reads.
pub fn pins() -> Vec<Pin> {
    let words = |line: &'static str| {
        let mut words = line.split_whitespace();
        Some(Pin {
            name: words.next().filter(|name| !name.starts_with('#'))?,
            version: words.next()?,
            package: words.next()?,
            is_default: words.next()? == "default",
        })
    };
    include_str!("../agents.txt").lines().filter_map(words).collect()
}

/// The directory that holds the agents, by the caller's environment.
pub fn directory(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let given = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = given("SEGNO_CACHE")
        .or_else(|| given("XDG_CACHE_HOME").map(|cache| cache.join("segno")))
        .or_else(|| given("HOME").map(|home| home.join(".cache/segno")));
    cache.map(|cache| cache.join("agents"))
}

/// The program of the pinned version of an agent.
///
/// # Errors
/// It is not installed, or not known at all.
pub fn find(name: &str, env: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, Missing> {
    let missing = |why: String| Missing { why };
    let pin = pins().into_iter().find(|pin| pin.name == name);
    let pin = pin.ok_or_else(|| missing(format!("no version of {name} is pinned")))?;
    let directory = directory(env)
        .ok_or_else(|| missing("SEGNO_CACHE, XDG_CACHE_HOME and HOME are all unset".to_owned()))?;
    let program = directory.join(format!("{name}-{}", pin.version)).join("bin").join(name);
    if program.is_file() {
        return Ok(program);
    }
    let script =
        if pin.is_default { "scripts/agents.sh".to_owned() } else { format!("scripts/agents.sh {name}") };
    Err(missing(format!(
        "{name} {} is not installed at {}; {script} installs it",
        pin.version,
        program.display()
    )))
}

/// The program of an agent for a test that cannot do without; None, with the reason on stderr, when the test shall be
/// skipped.
///
/// # Panics
/// The agent is missing although [`REQUIRE`] is set to `1`.
pub fn find_or_skip(name: &str) -> Option<PathBuf> {
    match find(name, |variable| std::env::var_os(variable)) {
        Ok(program) => Some(program),
        Err(missing) => {
            skip(&missing.to_string());
            None
        }
    }
}

/// Says why a test is skipped.
///
/// # Panics
/// What it needs is asked for: [`REQUIRE`] is set to `1`.
pub fn skip(why: &str) {
    let required = std::env::var_os(REQUIRE).is_some_and(|value| value == "1");
    assert!(!required, "{why} ({REQUIRE}=1 asks for it)");
    // With stderr gone there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
    }

    #[test]
    fn the_list() {
        let names: Vec<&str> = pins().iter().map(|pin| pin.name).collect();
        assert_eq!(names, ["claude", "codex", "gemini", "opencode"]);
        assert!(pins().iter().all(|pin| pin.is_default));
    }

    #[test]
    fn directories() {
        let all = [("SEGNO_CACHE", "/s"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        for (skip, expected) in [(0, "/s/agents"), (1, "/x/segno/agents"), (2, "/h/.cache/segno/agents")] {
            assert_eq!(directory(env(&all[skip..])), Some(PathBuf::from(expected)));
        }
        assert_eq!(directory(env(&[("SEGNO_CACHE", "")])), None);
    }

    #[test]
    fn missing_agents_say_why() {
        let cache = tempfile::tempdir().unwrap();
        let root = cache.path().to_str().unwrap();
        let missing = find("claude", env(&[("SEGNO_CACHE", root)])).unwrap_err();
        assert!(
            missing.why.contains("is not installed") && missing.why.contains("scripts/agents.sh"),
            "{missing}"
        );
        assert!(find("nobody", env(&[])).unwrap_err().why.contains("pinned"));
        let claude = pins()[0];
        let bin = cache.path().join(format!("agents/claude-{}/bin", claude.version));
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("claude"), "").unwrap();
        assert_eq!(find("claude", env(&[("SEGNO_CACHE", root)])), Ok(bin.join("claude")));
    }
}
