//! What was found as a report: Markdown, with pictures as files beside it.

use std::fmt::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use segno_engine::core::insights::Finding;
use segno_engine::core::insights::FindingKind;
use segno_engine::core::insights::Share;
use segno_engine::insights::Found;
use segno_engine::transfer::escape_markdown as escape;

use crate::commands::export::refuse_existing;
use crate::commands::export::write_new;
use crate::error::Outcome;
use crate::output::units;
use crate::serve::picture;
use crate::serve::picture::Picture;

/// How many lines a table of shares has.
const SHARES: usize = 10;

/// Writes the report; answers with the files that were made, the report first.
pub(super) fn write(found: &Found, path: &Path, force: bool) -> Outcome<Vec<PathBuf>> {
    let name =
        path.file_stem().map_or_else(|| "insights".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let pictures = picture::of_insights(&found.insights)?;
    let beside: Vec<(String, &Picture)> =
        pictures.iter().map(|picture| (format!("{name}-{}.svg", picture.name), picture)).collect();
    let mut files = vec![(path.to_owned(), text(found, &beside))];
    files.extend(beside.iter().map(|(name, picture)| (path.with_file_name(name), picture.svg.clone())));
    if !force {
        files.iter().try_for_each(|(path, _)| refuse_existing(path))?;
    }
    // The report comes last: what it shows is there when it is.
    for (path, text) in files.iter().rev() {
        write_new(path, text.as_bytes())?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

/// The report. Writing to a string cannot fail.
fn text(found: &Found, pictures: &[(String, &Picture)]) -> String {
    let mut out = String::from("# Insights\n");
    let insights = &found.insights;
    if let Some(since) = insights.since {
        let _ = writeln!(out, "\nWhat happened since {since}.");
    }
    let _ = writeln!(out, "\n| | |\n|---|---|");
    for (name, value) in facts(found) {
        let _ = writeln!(out, "| {name} | {value} |");
    }
    for (file, picture) in pictures {
        let target: String = file.replace('%', "%25").replace(' ', "%20").replace(['<', '>', '(', ')'], "");
        let _ = writeln!(out, "\n{0}\n\n![{0}]({target})", escape(&picture.title));
    }
    let shares = &insights.shares;
    for (title, shares) in [
        ("Money by project", &shares.projects),
        ("Money by model", &shares.models),
        ("Money by phase", &shares.phases),
        ("Money by how runs ended", &shares.outcomes),
        ("Time in calls by tool", &shares.tools),
    ] {
        table(&mut out, title, shares);
    }
    for kind in FindingKind::ALL {
        let all: Vec<&Finding> = insights.findings.iter().filter(|one| one.kind == kind).collect();
        if !all.is_empty() {
            let _ = writeln!(out, "\n## {}", kind.title());
        }
        all.into_iter().for_each(|one| finding(&mut out, one));
    }
    if insights.findings.is_empty() {
        out.push_str("\nNothing stands out.\n");
    }
    if insights.left_out > 0 {
        let _ = writeln!(out, "\n{} more that are rarer are left out.", insights.left_out);
    }
    for notice in &found.notices {
        let _ = writeln!(out, "\nNot read: {}", escape(notice));
    }
    out
}

fn facts(found: &Found) -> Vec<(&'static str, String)> {
    let numbers = &found.insights.numbers;
    let calls = numbers.calls;
    let checkpoints = numbers.checkpoints;
    let mut facts = vec![
        ("sessions", numbers.sessions.to_string()),
        (
            "runs",
            format!(
                "{}; {} of {} that ended completed",
                numbers.runs, numbers.runs_completed, numbers.runs_ended
            ),
        ),
        (
            "calls",
            format!(
                "{}; {} failed, {} denied, {} in doubt",
                calls.total, calls.failed, calls.denied, calls.in_doubt
            ),
        ),
        ("errors", numbers.errors.to_string()),
        ("iterations", numbers.iterations.to_string()),
        ("tokens", units::count(numbers.tokens)),
        ("money", escape(&units::money(numbers.micros, numbers.unpriced_tokens))),
        ("of it in runs that ended badly", escape(&units::dollars(numbers.micros_of_bad_ends))),
        ("time in runs", time(numbers.time.runs_ms)),
        ("time in calls", time(numbers.time.calls_ms)),
        ("waited for limits", time(numbers.time.limits_ms)),
        ("waited for answers", time(numbers.time.questions_ms)),
        ("resumes", {
            let resumes = numbers.resumes;
            let percent = resumes.percent.map_or_else(String::new, |percent| format!(" ({percent} %)"));
            format!(
                "{}; {} worked, {} came to nothing{percent}, {} say nothing",
                resumes.total, resumes.worked, resumes.failed, resumes.undecided
            )
        }),
        (
            "checkpoints",
            format!(
                "{}; {}.{:02} a session, {} sessions that changed files have none",
                checkpoints.total,
                checkpoints.per_session_hundredths / 100,
                checkpoints.per_session_hundredths % 100,
                checkpoints.without
            ),
        ),
    ];
    if let Some(day) = &found.prices_as_of {
        facts.push(("list prices", format!("of {}, where no agent told what it cost", escape(day))));
    }
    facts
}

fn table(out: &mut String, title: &str, shares: &[Share]) {
    if shares.iter().all(|share| share.micros == 0 && share.ms == 0 && share.tokens == 0) {
        return;
    }
    let _ =
        writeln!(out, "\n## {title}\n\n| | how many | tokens | money | time |\n|---|---:|---:|---:|---:|");
    for share in shares.iter().take(SHARES) {
        let Share { name, count, tokens, micros, ms } = share;
        let money = escape(&units::dollars(*micros));
        let _ = writeln!(
            out,
            "| {} | {count} | {} | {money} | {} |",
            escape(name),
            units::count(*tokens),
            time(*ms)
        );
    }
    if shares.len() > SHARES {
        let _ = writeln!(out, "| and {} more | | | | |", shares.len() - SHARES);
    }
}

fn finding(out: &mut String, one: &Finding) {
    let what = if one.kind == FindingKind::Checkpoint {
        String::new()
    } else {
        format!("**{}**: ", escape(&one.what))
    };
    let _ = writeln!(out, "\n{what}{}\n", escape(&one.words));
    for evidence in &one.evidence {
        let _ = writeln!(out, "- `{}` {}", evidence.look, escape(&evidence.text));
    }
    if let Some(suggestion) = &one.suggestion {
        let _ = writeln!(out, "\n{}", escape(&suggestion.text));
        if let Some(line) = &suggestion.line {
            // Whatever is in it, it cannot end the block: it is one line.
            let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let _ = writeln!(out, "\n    {line}");
        }
    }
}

fn time(ms: u64) -> String {
    units::duration(Duration::from_millis(ms))
}
