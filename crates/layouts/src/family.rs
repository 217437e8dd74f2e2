//! Which family a set of files is.

use std::fmt;
use std::str::FromStr;

/// A family of files that another session manager keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `.prp-session/`: the loop of the PRP document.
    Prp,
    /// `.agentforge/sessions/<id>/session.yaml`.
    AgentForge,
    /// `checkpoints/sessions.json` and a folder for each session.
    GoTeam,
    /// `~/.ultra-create/sessions/`.
    UltraCreate,
    /// `.ralph/`; read only.
    Ralph,
    /// A `state.json` with beads; read only.
    Atari,
}

impl Family {
    /// Every family, those that are written first.
    pub const ALL: [Self; 6] =
        [Self::Prp, Self::AgentForge, Self::GoTeam, Self::UltraCreate, Self::Ralph, Self::Atari];

    /// The word for settings and commands.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prp => "prp",
            Self::AgentForge => "agentforge",
            Self::GoTeam => "go-team",
            Self::UltraCreate => "ultra-create",
            Self::Ralph => "ralph",
            Self::Atari => "atari",
        }
    }

    /// What such a set of files is, in words: "this is …".
    pub fn title(self) -> &'static str {
        match self {
            Self::Prp => "a PRP session",
            Self::AgentForge => "an AgentForge session",
            Self::GoTeam => "a go-team registry",
            Self::UltraCreate => "an ultra-create session",
            Self::Ralph => "a Ralph project",
            Self::Atari => "an atari state file",
        }
    }

    /// Whether it is written as well as read.
    pub fn is_written(self) -> bool {
        !matches!(self, Self::Ralph | Self::Atari)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Family {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|family| family.as_str() == text);
        known.ok_or_else(|| {
            let words: Vec<&str> = Self::ALL.iter().map(|family| family.as_str()).collect();
            format!("no such layout: {text} (want {})", words.join(", "))
        })
    }
}

/// The family that files with these names, relative to their folder, are of. Names alone tell: what is in them may be
/// damaged, and is still theirs.
pub fn recognise<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Family> {
    let names: Vec<&str> = names.into_iter().collect();
    let has = |name: &str| names.contains(&name);
    let any = |test: &dyn Fn(&str) -> bool| names.iter().any(|name| test(name));
    const PRP: [&str; 6] = [
        "loop-state.json",
        "circuit-breaker.json",
        "rate-limit.json",
        "dual-gate.json",
        "phase-status.log",
        "qa-state.json",
    ];
    if PRP.iter().any(|name| has(name)) {
        return Some(Family::Prp);
    }
    let base = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
    let in_session = |name: &str| {
        let base = base(name);
        matches!(base.as_str(), "manifest.json" | "recovery.json" | "rollback-history.json")
            || (base.starts_with("cp-") && base.ends_with(".json"))
    };
    if has("sessions.json") || any(&in_session) {
        return Some(Family::GoTeam);
    }
    if any(&|name| base(name) == "session.yaml") {
        return Some(Family::AgentForge);
    }
    let ultra = |name: &str| {
        let name = name.strip_suffix(".gz").unwrap_or(name);
        name == "current-session.json"
            || ((name.starts_with("session_") || name.starts_with("checkpoint_")) && name.ends_with(".json"))
    };
    if any(&ultra) {
        return Some(Family::UltraCreate);
    }
    const RALPH: [&str; 6] = [
        ".ralph_session",
        ".claude_session_id",
        ".circuit_breaker_state",
        ".call_count",
        ".exit_signals",
        "fix_plan.md",
    ];
    if RALPH.iter().any(|name| has(name)) {
        return Some(Family::Ralph);
    }
    if has("state.json") {
        return Some(Family::Atari);
    }
    None
}
