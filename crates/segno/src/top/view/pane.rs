//! What is seen of one session.

use ratatui::Frame;
use ratatui::layout::Rect;
use segno_engine::core::State;

use super::list::standing;
use super::parts;
use super::put;
use super::tabs;
use super::talk;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;
use crate::top::look;
use crate::top::state::Part;
use crate::top::state::Row;
use crate::top::state::Rows;
use crate::top::state::Top;

/// The lines above what is shown: the name, where it stands, and the parts.
const HEAD: u16 = 3;

/// Where what is shown stands.
pub(super) fn content(pane: Rect) -> Rect {
    Rect { y: pane.y + HEAD.min(pane.height), height: pane.height.saturating_sub(HEAD), ..pane }
}

pub(super) fn draw(top: &Top, frame: &mut Frame<'_>, area: Rect) {
    let Some(row) = top.row() else { return };
    let width = usize::from(area.width);
    put(top, frame, area, &[name(top, row, width), facts(top, row), tabs(top, width)]);
    let inner = content(area);
    let height = usize::from(inner.height);
    let shown = window(top, usize::from(inner.width), height);
    put(top, frame, inner, &shown);
}

/// The lines that are seen.
fn window(top: &Top, width: usize, height: usize) -> Vec<Text> {
    let lines = lines(top, width, height.saturating_add(top.scroll));
    let from = match top.part {
        // The end of the talk is what somebody looks for.
        Part::Talk => lines.len().saturating_sub(height + top.scroll),
        Part::Checkpoints => (top.chosen + 2).saturating_sub(height),
        _ => top.scroll.min(lines.len().saturating_sub(1)),
    };
    let mut seen: Vec<Text> = lines.into_iter().skip(from).take(height).collect();
    if top.part == Part::Talk
        && top.scroll > 0
        && let Some(last) = seen.last_mut()
    {
        let more = units::things(top.scroll as u64, "line");
        *last = Text::new().painted(Meaning::Dim, format!("… {more} further down; End goes there"));
    }
    seen
}

/// The lines of the part that is shown; of the talk at least so many from its end.
pub(super) fn lines(top: &Top, width: usize, most: usize) -> Vec<Text> {
    let Some(detail) = top.seen() else { return Vec::new() };
    let mut lines: Vec<Text> = detail
        .notices
        .iter()
        .map(|notice| Text::new().painted(Meaning::Lost, format!("! {notice}")))
        .collect();
    if detail.part != top.part {
        // What was asked for has not come yet.
        return lines;
    }
    lines.extend(match (&detail.rows, top.part) {
        (Rows::Talk(entries), _) => talk::lines(top, &detail.state, entries, width, most),
        (Rows::Ledger(rows), _) => parts::ledger(top, &detail.state, rows, width),
        (Rows::Runs(runs), _) => parts::cost(top, &detail.state, runs, width),
        (Rows::Checkpoints(rows), _) => parts::checkpoints(top, rows, width),
        (Rows::Decisions(rows), _) => parts::decisions(top, rows, width),
        (Rows::None, Part::Tests) => parts::tests(&detail.state, width),
        (Rows::None, Part::Limits) => parts::limits(top, &detail.state),
        (Rows::None, _) => parts::phases(top, &detail.state),
    });
    lines
}

fn name(top: &Top, row: &Row, width: usize) -> Text {
    let left = Text::new()
        .painted(Meaning::Dim, crate::command_context::short(row.id()))
        .plain("  ")
        .painted(Meaning::Strong, row.summary.topic.clone().unwrap_or_else(|| row.summary.project.clone()));
    let right = standing(top, row).cut(width * 3 / 5);
    let room = width.saturating_sub(look::width(&right) + 2);
    look::fit(left, room).plain("  ").then(right)
}

/// What is worth knowing at a glance.
fn facts(top: &Top, row: &Row) -> Text {
    let summary = &row.summary;
    let mut facts: Vec<String> = Vec::new();
    let state = top.seen().map(|detail| &detail.state);
    facts.extend(state.and_then(agent).or_else(|| summary.agent.clone()));
    facts.extend(state.and_then(State::phase_label));
    if summary.iteration > 0 {
        facts.push(format!("iteration {}", summary.iteration));
    }
    facts.extend(summary.progress.map(|percent| format!("{percent} %")));
    if summary.tokens_used > 0 {
        facts.push(format!("{} tok", units::about(summary.tokens_used, summary.tokens_estimated)));
    }
    if summary.cost_micros > 0 || summary.unpriced_tokens > 0 {
        facts.push(units::money(summary.cost_micros, summary.unpriced_tokens));
    }
    if summary.in_doubt > 0 {
        facts.push(format!("{} in doubt", units::things(summary.in_doubt, "call")));
    }
    facts.extend(summary.branch.as_ref().map(|branch| format!("branch {branch}")));
    facts.push(summary.project.clone());
    Text::new().painted(Meaning::Dim, facts.join("   "))
}

fn agent(state: &State) -> Option<String> {
    let run = state.run.as_ref()?;
    let version = run.version.as_deref().map_or(String::new(), |version| format!(" {version}"));
    let model = run.model.as_deref().map_or(String::new(), |model| format!(" {model}"));
    Some(format!("{}{version}{model}", run.agent))
}
