//! Does what is asked, one thing after another, in a thread of its own.

use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::time::Duration;

use segno_engine::search::SearchWish;
use segno_engine::workspace::Selection;
use serde_json::Value;

use super::acts;
use super::read::Ask;
use super::state::Act;
use super::state::Doing;
use super::state::Done;
use super::state::Msg;
use super::state::Place;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::mcp::confirm::mark;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::perform::Surroundings;

/// How long somebody waits for what is not indexed yet.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many texts are found at most.
const FOUND: usize = 50;
/// How many lines of something to read are kept.
const LINES: usize = 5_000;

/// Does things until nobody asks any more.
pub(super) fn perform(around: &Surroundings, acts: &Receiver<Act>, tell: &Sender<Msg>, look: &Sender<Ask>) {
    for act in acts {
        let done = done(around, act).unwrap_or_else(|error| Done::Said(Meaning::Lost, words(&error)));
        let _ = tell.send(Msg::Done(done));
        let _ = look.send(Ask::Again);
    }
}

fn done(around: &Surroundings, act: Act) -> Outcome<Done> {
    match act {
        Act::Do(doing) => {
            let Doing { place, command, said } = *doing;
            let document = at(around, &place).perform(&command)?;
            let warning =
                document.get("warnings").and_then(Value::as_array).and_then(|all| all.first()?.as_str());
            Ok(match warning {
                Some(warning) => Done::Said(Meaning::Waiting, format!("{said}; {warning}")),
                None => Done::Said(Meaning::Done, format!("{}  {said}", short(place.session))),
            })
        }
        Act::PreviewUndo(place) => {
            let (plan, mark) = preview(around, &place)?;
            let lines = plan_lines(&plan);
            Ok(Done::Preview { place, lines, mark })
        }
        Act::Undo(place, confirmed) => {
            let (plan, mark) = preview(around, &place)?;
            if mark != confirmed {
                let lines = plan_lines(&plan);
                // Something changed since it was shown: what would be done now is asked about anew.
                return Ok(Done::Preview { place, lines, mark });
            }
            let gone = at(around, &place).perform(&acts::undo(false))?;
            let count = |name: &str| gone.get(name).and_then(Value::as_array).map_or(0, Vec::len);
            let words = format!(
                "undone: {} written, {} removed, {} left as they are; segno redo --session {} takes it back",
                count("written"),
                count("removed"),
                count("kept"),
                short(place.session).trim_start_matches('…'),
            );
            Ok(Done::Said(Meaning::Done, words))
        }
        Act::Diff(place, since, until) => diff(around, &place, &since, until.as_deref()),
        Act::Search(query) => {
            let context = around.context()?;
            let ctx = CommandContext::open_to_list(&context)?;
            let wish = SearchWish { query, project: None, limit: FOUND, patience: Some(PATIENCE) };
            Ok(Done::Found(ctx.engine.search(&wish).map_err(|why| context.fit(why.into()))?))
        }
    }
}

/// As somebody who is in the project of a session and names it.
fn at(around: &Surroundings, place: &Place) -> Surroundings {
    let mut at = around.clone();
    at.global.session = place.session.to_string().parse().ok();
    // A session of a project that is gone can still be paused.
    if place.project.is_dir() {
        at.global.project = Some(place.project.clone());
    }
    at
}

/// Everything a failure says, on a line.
fn words(error: &CommandError) -> String {
    let hint = error.hints().first().map_or(String::new(), |hint| format!("   ({hint})"));
    format!("{error}{hint}")
}

fn preview(around: &Surroundings, place: &Place) -> Outcome<(Value, String)> {
    let plan = at(around, place).perform(&acts::undo(true))?;
    let mark = mark(&plan, "", &place.project);
    Ok((plan, mark))
}

/// All that would be done.
fn plan_lines(plan: &Value) -> Vec<Text> {
    let to = plan.get("to").and_then(Value::as_str).unwrap_or("a checkpoint");
    let list = |name: &str| plan.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let (writes, removes, kept) = (list("writes"), list("removes"), list("kept"));
    let mut lines = vec![Text::from(format!(
        "back to {to}: {} to write, {} to remove, {} left as they are",
        writes.len(),
        removes.len(),
        kept.len()
    ))];
    for (word, meaning, paths) in [("write ", Meaning::Done, &writes), ("remove", Meaning::Lost, &removes)] {
        for path in paths.iter().filter_map(Value::as_str) {
            lines.push(Text::new().plain("  ").painted(meaning, word).plain(format!("  {path}")));
        }
    }
    for one in &kept {
        let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let line =
            Text::new().plain("  ").painted(Meaning::Waiting, "left  ").plain(format!("  {}", text("path")));
        lines.push(line.painted(Meaning::Dim, format!("   {}", text("why"))));
    }
    let warnings = list("warnings");
    lines.extend(
        warnings
            .iter()
            .filter_map(Value::as_str)
            .map(|warning| Text::new().painted(Meaning::Waiting, format!("! {warning}"))),
    );
    lines
}

fn diff(around: &Surroundings, place: &Place, since: &str, until: Option<&str>) -> Outcome<Done> {
    let context = at(around, place).context()?;
    let ctx = CommandContext::open_to_list(&context)?;
    let engine = &ctx.engine;
    let read = || {
        let before = engine.find_checkpoint(place.session, since)?;
        let after = until.map(|name| engine.find_checkpoint(place.session, name)).transpose()?;
        engine.diff_text(place.session, &before, after.as_ref(), &Selection::All)
    };
    let bytes = read().map_err(|why| context.fit(why.into()))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<Text> = text.lines().take(LINES).map(painted).collect();
    if text.lines().count() > LINES {
        lines.push(format!("… more: segno diff --since {since} --session {}", place.session).into());
    }
    if lines.is_empty() {
        lines.push("nothing is different".into());
    }
    let title = format!("{}   {since} → {}", short(place.session), until.unwrap_or("now"));
    Ok(Done::Show { title, lines })
}

fn painted(line: &str) -> Text {
    let meaning = match line.as_bytes().first() {
        Some(b'+') => Meaning::Done,
        Some(b'-') => Meaning::Lost,
        Some(b'@') => Meaning::Dim,
        _ if line.starts_with("diff ") => Meaning::Strong,
        _ => Meaning::Plain,
    };
    Text::new().painted(meaning, line.replace('\t', "    "))
}
