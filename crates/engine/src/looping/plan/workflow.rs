//! Workflows: the phases of a loop, as a file says them. Some are built in; a project has its own in
//! `.segno/workflows/NAME.toml`.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use segno_core::looping::Reads;
use segno_core::looping::check_pattern;
use segno_core::suggest;
use serde::Deserialize;

use super::limits_file::LimitsFile;
use crate::files;
use crate::files::Links;

/// The largest workflow file that is read.
const MOST: u64 = 256 * 1024;
/// Where a project keeps its own.
const PLACE: &str = ".segno/workflows";
/// Those that are built in.
const BUILT_IN: &[(&str, &str)] = &[
    ("simple", include_str!("workflows/simple.toml")),
    ("prp", include_str!("workflows/prp.toml")),
    ("tdflow", include_str!("workflows/tdflow.toml")),
    ("spec", include_str!("workflows/spec.toml")),
    ("go-team", include_str!("workflows/go-team.toml")),
];

/// A workflow as a file says it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowFile {
    /// What it is for, in a sentence.
    #[serde(default)]
    pub description: String,
    /// What is done at limits, and limits of its own.
    #[serde(default)]
    pub limits: LimitsFile,
    /// Its phases, in order.
    #[serde(rename = "phase", default)]
    pub phases: Vec<PhaseFile>,
}

/// One phase as a file says it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseFile {
    /// Its name.
    pub name: String,
    /// What the agent is told in it, besides the work itself.
    pub prompt: String,
    /// The agent, if not the usual one.
    #[serde(default)]
    pub agent: Option<String>,
    /// The model, if not the usual one.
    #[serde(default)]
    pub model: Option<String>,
    /// In which conversation each iteration is.
    #[serde(default)]
    pub context: ContextFile,
    /// What ends it.
    pub gate: GateFile,
    /// The commands that show how the work stands.
    #[serde(default)]
    pub evidence: Vec<EvidenceFile>,
    /// Files that nobody may change in it, as patterns such as `tests/**`.
    #[serde(default)]
    pub protect: Vec<String>,
    /// When the breaker opens.
    #[serde(default)]
    pub thresholds: ThresholdsFile,
    /// The most iterations.
    #[serde(default)]
    pub max_iterations: Option<u64>,
    /// The most seconds.
    #[serde(default)]
    pub max_seconds: Option<u64>,
    /// Commands that run when it begins.
    #[serde(default)]
    pub on_start: Vec<String>,
    /// Commands that run when its gate has passed.
    #[serde(default)]
    pub on_complete: Vec<String>,
    /// Commands that run when the loop stops in it for any other reason.
    #[serde(default)]
    pub on_error: Vec<String>,
    /// Whether a person has to say that it goes on after it.
    #[serde(default)]
    pub breakpoint: bool,
    /// Where rejected work goes back to.
    #[serde(default)]
    pub on_reject: Option<RejectFile>,
    /// Whether it is left out unless somebody asks for it.
    #[serde(default)]
    pub optional: bool,
}

/// In which conversation each iteration is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextFile {
    /// One conversation for all.
    #[default]
    Same,
    /// A new one each time, with a brief.
    Fresh,
    /// The same one until its context is so many per cent full.
    Auto(u8),
}

/// What ends a phase.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateFile {
    /// New tests fail, old ones are as before.
    Red {
        /// How many new ones there have to be.
        #[serde(default = "one")]
        criteria: u64,
    },
    /// The new tests pass so often in a row, and nothing that passed fails.
    Green {
        /// How often.
        #[serde(default = "two")]
        runs: u32,
    },
    /// The tests pass, and the agent is done or had so many iterations.
    Refactor {
        /// How many.
        #[serde(default = "five")]
        iterations: u64,
    },
    /// So many documents are there.
    Document {
        /// How many.
        #[serde(default = "three")]
        docs: u64,
        /// Whether one has to be a decision record.
        #[serde(default = "yes")]
        adr: bool,
    },
    /// No blocking issue, and approved.
    Qa,
    /// Every evidence command exits with 0.
    Until,
    /// The agent says so explicitly.
    Signal,
    /// What evidence commands measure reaches these.
    Metrics(BTreeMap<String, f64>),
}

fn one() -> u64 {
    1
}

fn two() -> u32 {
    2
}

fn three() -> u64 {
    3
}

fn five() -> u64 {
    5
}

fn yes() -> bool {
    true
}

/// A command that shows how the work stands.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceFile {
    /// What it is called.
    pub name: String,
    /// What is given to the shell.
    pub command: String,
    /// How long it may take.
    #[serde(default)]
    pub seconds: Option<u64>,
    /// What is read from it: `tests`, `exit` or `metrics`.
    #[serde(default)]
    pub reads: Reads,
    /// The file that it writes its report to, if not its output is read.
    #[serde(default)]
    pub report: Option<String>,
}

/// When the breaker opens; what is not said is as usual for the phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThresholdsFile {
    /// Iterations without progress.
    pub no_progress: Option<u32>,
    /// Iterations with the same error.
    pub same_error: Option<u32>,
    /// Iterations in which nothing but denials happened.
    pub denials: Option<u32>,
    /// Starts that failed.
    pub start_failures: Option<u32>,
    /// Iterations that ended with a question.
    pub questions: Option<u32>,
    /// Identical calls in a row.
    pub identical_calls: Option<u32>,
    /// Rounds of the same few calls.
    pub cycles: Option<u32>,
}

/// Where rejected work goes back to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectFile {
    /// The phase.
    pub to: String,
    /// How often at most.
    #[serde(default = "three_times")]
    pub most: u32,
    /// Whether another model judges than the one that worked.
    #[serde(default)]
    pub other_model: bool,
}

fn three_times() -> u32 {
    3
}

/// A workflow that can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedWorkflow {
    /// Its name.
    pub name: String,
    /// The file it comes from; none for one that is built in.
    pub path: Option<PathBuf>,
    /// What it says, to the letter.
    pub text: String,
    /// What it means.
    pub workflow: WorkflowFile,
}

/// Why a workflow cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkflowError {
    /// There is none of that name.
    #[error("there is no workflow called {name}{}", suggestion(meant.as_deref()))]
    Unknown {
        /// The name.
        name: String,
        /// One that may have been meant.
        meant: Option<String>,
    },
    /// The file cannot be read.
    #[error("{path}: {why}")]
    Unreadable {
        /// Which.
        path: String,
        /// What happened.
        why: String,
    },
    /// The file says something that cannot be.
    #[error("{location}: {why}")]
    Wrong {
        /// The file and the line.
        location: String,
        /// What is wrong.
        why: String,
    },
    /// It would run commands of a project that nobody trusts.
    #[error(
        "{location} runs commands ({command}), and this project is not trusted; nothing of it is left out silently"
    )]
    Untrusted {
        /// The file and the phase.
        location: String,
        /// The first of the commands.
        command: String,
    },
}

fn suggestion(meant: Option<&str>) -> String {
    meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"))
}

impl NamedWorkflow {
    /// The one of a name: a project's own before one that is built in.
    ///
    /// # Errors
    /// If there is none, or it says something that cannot be.
    pub fn find(name: &str, project: &Path) -> Result<Self, WorkflowError> {
        if is_name(name) {
            let path = project.join(PLACE).join(format!("{name}.toml"));
            if std::fs::symlink_metadata(&path).is_ok() {
                return Self::read(name, &path);
            }
        }
        match BUILT_IN.iter().find(|(known, _)| *known == name) {
            Some((name, text)) => Self::parse(name, None, text),
            None => {
                let own = own_names(project);
                let known = BUILT_IN.iter().map(|(name, _)| *name).chain(own.iter().map(String::as_str));
                let meant = suggest::nearest(name, known).map(ToOwned::to_owned);
                Err(WorkflowError::Unknown { name: name.to_owned(), meant })
            }
        }
    }

    /// The one in a file.
    ///
    /// # Errors
    /// If it cannot be read, or says something that cannot be.
    pub fn read(name: &str, path: &Path) -> Result<Self, WorkflowError> {
        let unreadable = |why: String| WorkflowError::Unreadable { path: path.display().to_string(), why };
        let read = files::read_bounded(path, MOST, Links::Follow);
        let bytes = read.map_err(|why| unreadable(why.to_string()))?;
        let bytes = bytes.ok_or_else(|| unreadable("there is no such file".to_owned()))?;
        let text = String::from_utf8(bytes).map_err(|why| unreadable(why.to_string()))?;
        Self::parse(name, Some(path), &text)
    }

    /// From what a file says.
    ///
    /// # Errors
    /// If it says something that cannot be.
    pub fn parse(name: &str, path: Option<&Path>, text: &str) -> Result<Self, WorkflowError> {
        let shown = path.map_or_else(|| name.to_owned(), |path| path.display().to_string());
        let workflow: WorkflowFile = toml::from_str(text).map_err(|why| WorkflowError::Wrong {
            location: why
                .span()
                .map_or_else(|| shown.clone(), |span| format!("{shown}:{}", line(text, span.start))),
            why: in_words(why.message()),
        })?;
        check(&workflow, text, &shown)?;
        let path = path.map(Path::to_owned);
        let found = Self { name: name.to_owned(), path, text: text.to_owned(), workflow };
        match found.check_as_plan() {
            Ok(()) => Ok(found),
            Err(why) => Err(WorkflowError::Wrong { location: shown, why: why.to_string() }),
        }
    }

    /// Refuses a project's own workflow that runs commands, unless its user trusts the project.
    ///
    /// # Errors
    /// If it runs commands and is not trusted.
    pub fn check_trust(&self, trusted: bool) -> Result<(), WorkflowError> {
        let Some(path) = self.path.as_ref().filter(|_| !trusted) else { return Ok(()) };
        for phase in &self.workflow.phases {
            if let Some(command) = phase.commands().next() {
                let location = format!("{}: phase {}", path.display(), phase.name);
                return Err(WorkflowError::Untrusted { location, command: command.to_owned() });
            }
        }
        Ok(())
    }

    /// All that can be used in a project, by name; a project's own takes the place of one that is built in. Those that
    /// cannot be read are told with the reason.
    pub fn list(project: &Path) -> Vec<(String, Result<Self, WorkflowError>)> {
        let mut names: Vec<String> = BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect();
        let own = own_names(project).into_iter().filter(|own| BUILT_IN.iter().all(|(name, _)| name != own));
        names.extend(own);
        names.into_iter().map(|name| (name.clone(), Self::find(&name, project))).collect()
    }
}

impl PhaseFile {
    /// Every command that it runs.
    fn commands(&self) -> impl Iterator<Item = &str> {
        let evidence = self.evidence.iter().map(|evidence| evidence.command.as_str());
        let hooks = [&self.on_start, &self.on_complete, &self.on_error];
        evidence.chain(hooks.into_iter().flatten().map(String::as_str))
    }
}

/// A name that is no path.
fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !name.is_empty() && name.len() <= 64 && name.chars().all(fits)
}

fn own_names(project: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(project.join(PLACE)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".toml").map(ToOwned::to_owned))
        .filter(|name| is_name(name))
        .collect();
    names.sort();
    names
}

/// What a file may not say, though each part of it is well formed.
fn check(workflow: &WorkflowFile, text: &str, shown: &str) -> Result<(), WorkflowError> {
    let at = |name: &str| format!("{shown}:{}", line_of_phase(text, name));
    let wrong = |location: String, why: String| Err(WorkflowError::Wrong { location, why });
    if let Err(why) = workflow.limits.check() {
        return wrong(shown.to_owned(), why);
    }
    if workflow.phases.is_empty() {
        return wrong(shown.to_owned(), "there is no [[phase]]".to_owned());
    }
    if workflow.phases.iter().all(|phase| phase.optional) {
        return wrong(shown.to_owned(), "every phase is optional, so nothing would be done".to_owned());
    }
    for (index, phase) in workflow.phases.iter().enumerate() {
        let location = || at(&phase.name);
        if phase.name.trim().is_empty() || phase.name.chars().count() > 80 {
            return wrong(location(), "the name of a phase has 1 to 80 characters".to_owned());
        }
        if workflow.phases[..index].iter().any(|before| before.name == phase.name) {
            return wrong(location(), format!("there are two phases called {}", phase.name));
        }
        if matches!(phase.context, ContextFile::Auto(percent) if percent == 0 || percent > 100) {
            return wrong(location(), "context = { auto = N } needs 1 to 100 per cent".to_owned());
        }
        if let Some(reject) = &phase.on_reject {
            let names: Vec<&str> = workflow.phases[..index].iter().map(|phase| phase.name.as_str()).collect();
            if !names.contains(&reject.to.as_str()) {
                let meant = suggestion(suggest::nearest(&reject.to, names));
                return wrong(
                    location(),
                    format!("on_reject.to: no phase before it is called {}{meant}", reject.to),
                );
            }
        }
        if let Some(why) = phase.protect.iter().find_map(|pattern| check_pattern(pattern).err()) {
            return wrong(location(), why.to_string());
        }
        if phase.commands().any(|command| command.trim().is_empty()) {
            return wrong(location(), "a command is empty".to_owned());
        }
        if matches!(&phase.gate, GateFile::Metrics(metrics) if metrics.is_empty()) {
            return wrong(
                location(),
                "gate = { metrics = { … } } names no metric, and would always pass".to_owned(),
            );
        }
        if matches!(phase.gate, GateFile::Green { runs: 0 }) {
            return wrong(location(), "gate = { green = { runs = N } } needs at least 1".to_owned());
        }
        if let Some(why) = ends_at_once(phase) {
            return wrong(location(), why);
        }
    }
    Ok(())
}

/// What would end the loop before it could do anything, or keep it from ever ending.
fn ends_at_once(phase: &PhaseFile) -> Option<String> {
    let caps = [("max_iterations", phase.max_iterations), ("max_seconds", phase.max_seconds)];
    if let Some((name, _)) = caps.into_iter().find(|(_, most)| *most == Some(0)) {
        return Some(format!("with {name} = 0 the loop would stop before it does anything"));
    }
    let rules = &phase.thresholds;
    let always = [("no_progress", rules.no_progress), ("start_failures", rules.start_failures)];
    let never = always.into_iter().find(|(_, most)| *most == Some(0));
    never.map(|(name, _)| format!("{name} = 0: a loop that gets nowhere has to stop at some time"))
}

fn line(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// The line in which a phase is named, or the first.
fn line_of_phase(text: &str, name: &str) -> usize {
    let named = |line: &str| {
        let value = line.trim().strip_prefix("name").and_then(|rest| rest.trim_start().strip_prefix('='));
        value.is_some_and(|value| value.trim().trim_matches(['"', '\'']) == name)
    };
    text.lines().enumerate().filter(|(_, line)| named(line)).last().map_or(1, |(index, _)| index + 1)
}

/// The parser's words, with what may have been meant.
fn in_words(message: &str) -> String {
    let message = message.trim();
    let quoted =
        |text: &str| -> Vec<String> { text.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect() };
    let unknown = ["unknown field", "unknown variant"].iter().any(|begin| message.starts_with(begin));
    if !unknown {
        return message.to_owned();
    }
    let names = quoted(message);
    let Some((word, known)) = names.split_first() else { return message.to_owned() };
    let known_words = known.iter().map(String::as_str);
    match suggest::nearest(word, known_words) {
        Some(meant) => format!("{word} is not known here; did you mean {meant}?"),
        None => format!("{word} is not known here; known are {}", known.join(", ")),
    }
}

#[cfg(test)]
#[path = "workflow_tests.rs"]
mod tests;
