//! The banners and panels of the go-team document, as text. Where it prints what it cannot know, ours say what is known.

use std::fmt::Write as _;
use std::time::Duration;

use segno_engine::core::State;
use segno_engine::core::Summary;
use segno_engine::core::event::Metric;
use segno_engine::core::event::Recovery;
use segno_engine::core::text::shorten;
use segno_engine::resume::Options;

use crate::output::units;

const RULE: &str = "═══════════════════════════════════════════";
/// How many sessions that have ended are listed.
const ENDED: usize = 10;

fn framed(title: &str, body: impl IntoIterator<Item = String>) -> Vec<String> {
    let head = [RULE.to_owned(), title.to_owned(), RULE.to_owned(), String::new()];
    head.into_iter().chain(body).chain([RULE.to_owned()]).collect()
}

/// A session that was just made.
pub(super) fn started(state: &State) -> Vec<String> {
    let id = state.session_id;
    framed(
        "GO TEAM SESSION STARTED",
        [
            format!("Session ID: {id}"),
            format!("Topic: {}", topic(state)),
            String::new(),
            "Auto-save: Enabled (after every change)".to_owned(),
            "Recovery: Available via *resume".to_owned(),
            String::new(),
            "If session is interrupted, you can resume".to_owned(),
            format!("with: *resume or *resume:{id}"),
        ],
    )
}

/// How a session that stopped can be gone on with; the numbers are those of the answers.
pub(super) fn recovery(state: &State, options: &Options) -> Vec<String> {
    let mut lines = vec![
        format!("Session: {}", state.session_id),
        format!("Topic: {}", topic(state)),
        format!("Interrupted: {}", options.since),
        format!("Last step: {}", step(state)),
        String::new(),
        "Recovery Options:".to_owned(),
        String::new(),
    ];
    for (index, option) in options.offered.iter().enumerate() {
        let recommended = if option.recommended { " (RECOMMENDED)" } else { "" };
        let (title, about) = match option.recovery {
            Recovery::Checkpoint => (
                "Resume from checkpoint",
                vec![
                    format!("Checkpoint: {}", option.target.as_deref().unwrap_or("–")),
                    format!("Data loss: {}", option.loses.trim_start_matches("loses ")),
                    "Safe and reliable".to_owned(),
                ],
            ),
            Recovery::Live => (
                "Resume from auto-save",
                vec![
                    format!("Saved: {}", state.updated_at),
                    format!("Data loss: {}", option.loses.trim_start_matches("loses ")),
                    if options.in_doubt.is_empty() {
                        "Every recorded event is in it".to_owned()
                    } else {
                        "May have inconsistencies".to_owned()
                    },
                ],
            ),
            Recovery::Fresh => (
                "Start fresh from step 1",
                vec!["The record of this session stays".to_owned(), "Clean slate".to_owned()],
            ),
        };
        lines.push(format!("[{}] {title}{recommended}", index + 1));
        lines.extend(about.into_iter().map(|line| format!("    └─ {line}")));
        lines.push(String::new());
    }
    let numbers: Vec<String> = (1..=options.offered.len()).map(|number| number.to_string()).collect();
    lines.push(format!("Enter choice [{}]:", numbers.join("/")));
    framed("SESSION RECOVERY", lines)
}

/// A session that was gone on with.
pub(super) fn resumed(state: &State) -> Vec<String> {
    let from = state.recovery.as_ref().and_then(|mark| mark.recovery_type).map_or("live", Recovery::as_str);
    let output = |name: &str| {
        let known = state.outputs.contains_key(name);
        if known { "✓" } else { "–" }
    };
    let code = if state.outputs.contains_key("code_files")
        || state.counts.files_created + state.counts.files_modified > 0
    {
        "✓"
    } else {
        "–"
    };
    framed(
        "✓ SESSION RESUMED",
        [
            format!("Session: {}", state.session_id),
            format!("Recovered from: {from}"),
            format!("Current step: {}", step(state)),
            String::new(),
            "State restored:".to_owned(),
            format!("- Topic: {}", topic(state)),
            format!(
                "- Outputs: spec {}, architecture {}, code {code}",
                output("spec"),
                output("architecture")
            ),
            format!("- Metrics: build={}, coverage={}", flag(state, "build_pass"), coverage(state)),
            String::new(),
            format!("Git branch: {}", state.branch.as_deref().unwrap_or("–")),
        ],
    )
}

/// A session that is done.
pub(super) fn completed(state: &State) -> Vec<String> {
    let end = state.completed_at.unwrap_or(state.updated_at);
    let micros = u64::try_from(end.as_micros() - state.created_at.as_micros()).unwrap_or(0);
    let said = |name: &str, yes: &'static str, no: &'static str| match state.metrics.get(name) {
        Some(Metric::Flag(true)) => yes,
        Some(Metric::Flag(false)) => no,
        // Nobody said so, which is not a pass.
        _ => "–",
    };
    framed(
        "✓ SESSION COMPLETED",
        [
            format!("Session: {}", state.session_id),
            format!("Topic: {}", topic(state)),
            format!("Duration: {}", units::duration(Duration::from_micros(micros))),
            String::new(),
            "Final metrics:".to_owned(),
            format!("- Build: {}", said("build_pass", "PASS", "FAIL")),
            format!("- Coverage: {}", coverage(state)),
            format!("- Lint: {}", said("lint_clean", "CLEAN", "NOT CLEAN")),
            format!("- Security: {}", said("security_pass", "PASSED", "FAILED")),
            String::new(),
            "Session data retained for reference.".to_owned(),
            format!("Use *session-info:{} to view details.", state.session_id),
        ],
    )
}

fn topic(state: &State) -> &str {
    state.topic.as_deref().unwrap_or("–")
}

fn step(state: &State) -> String {
    let phase = state.phase.as_deref().unwrap_or("–");
    state.step.map_or_else(|| phase.to_owned(), |step| format!("{step} - {phase}"))
}

fn flag(state: &State, name: &str) -> &'static str {
    match state.metrics.get(name) {
        Some(Metric::Flag(true)) => "true",
        Some(Metric::Flag(false)) => "false",
        _ => "–",
    }
}

fn coverage(state: &State) -> String {
    match state.metrics.get("test_coverage") {
        Some(Metric::Number(percent)) => format!("{percent}%"),
        _ => "–".to_owned(),
    }
}

/// The sessions of a project: those that can be resumed, and the newest of those that have ended. `endings` are the names
/// to type, of both, in that order.
pub(super) fn sessions(open: &[Summary], ended: &[Summary], endings: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    if open.is_empty() {
        lines.push("No session can be resumed.".to_owned());
    } else {
        lines.push(format!("Found {} session(s) that can be resumed:", open.len()));
        lines.push(String::new());
        lines.extend(table(open, endings, 1));
    }
    let shown = &ended[..ended.len().min(ENDED)];
    if !shown.is_empty() {
        lines.push(String::new());
        lines.push(match ended.len() - shown.len() {
            0 => format!("{} session(s) that have ended:", ended.len()),
            more => {
                format!("The newest {} session(s) that have ended, of {}:", shown.len(), shown.len() + more)
            }
        });
        lines.push(String::new());
        lines.extend(table(shown, &endings[open.len()..], open.len() + 1));
    }
    lines.push(String::new());
    lines.push("Commands:".to_owned());
    if let Some(id) = endings.first().filter(|_| !open.is_empty()) {
        lines.push(format!("- *resume         → Resume most recent ({id})"));
        lines.push("- *resume:1       → Resume session #1".to_owned());
        lines.push(format!("- *resume:{id:<7} → Resume by ID"));
    }
    lines.push("- *new            → Start new session (ignore above)".to_owned());
    lines.push(String::new());
    let title = if open.is_empty() { "SESSIONS" } else { "RESUMABLE SESSIONS FOUND" };
    framed(title, lines)
}

fn table(sessions: &[Summary], endings: &[String], first: usize) -> Vec<String> {
    const WIDTHS: [usize; 5] = [4, 18, 21, 8, 13];
    let border = |left: char, middle: char, right: char| {
        let mut line = String::from(left);
        for (index, width) in WIDTHS.iter().enumerate() {
            line.push_str(&"─".repeat(*width));
            line.push(if index + 1 < WIDTHS.len() { middle } else { right });
        }
        line
    };
    let row = |cells: [String; 5]| {
        let mut line = String::from("│");
        for (cell, width) in cells.iter().zip(WIDTHS) {
            let cell = shorten(cell, width - 2);
            let blanks = (width - 1).saturating_sub(unicode_width::UnicodeWidthStr::width(cell.as_str()));
            // Writing to a String cannot fail.
            let _ = write!(line, " {cell}{}│", " ".repeat(blanks));
        }
        line
    };
    let step = |summary: &Summary| match (summary.step, summary.of) {
        (Some(step), Some(of)) => format!("{step}/{of}"),
        (Some(step), None) => step.to_string(),
        _ => "–".to_owned(),
    };
    let mut lines = vec![
        border('┌', '┬', '┐'),
        row(["#", "Session ID", "Topic", "Step", "Status"].map(ToOwned::to_owned)),
        border('├', '┼', '┤'),
    ];
    for (index, (summary, ending)) in sessions.iter().zip(endings).enumerate() {
        lines.push(row([
            (index + first).to_string(),
            ending.clone(),
            summary.topic.clone().unwrap_or_default(),
            step(summary),
            summary.status.to_string(),
        ]));
    }
    lines.push(border('└', '┴', '┘'));
    lines
}
