//! What sessions cost.

use std::sync::Arc;

use askama::Template;
use axum::extract::Extension;
use axum::extract::State;
use segno_engine::core::SessionId;

use super::Shell;
use super::Shown;
use super::render;
use crate::output::units;
use crate::serve::api;
use crate::serve::api::Sums;
use crate::serve::app::App;
use crate::serve::asked::Asked;
use crate::serve::chart;
use crate::serve::chart::Chart;
use crate::serve::check::Who;
use crate::serve::views;

/// A line of costs.
pub(super) struct CostLine {
    pub(super) name: String,
    pub(super) link: String,
    pub(super) runs: u64,
    pub(super) input: String,
    pub(super) output: String,
    pub(super) cached: String,
    pub(super) cost: String,
    pub(super) share: String,
}

pub(super) fn cost_lines(costs: &segno_engine::cost::Costs) -> Vec<CostLine> {
    let most = costs.lines.iter().map(|line| line.sum.micros).max().unwrap_or(0).max(1);
    let line = |line: &segno_engine::cost::Line| {
        let sum = &line.sum;
        let count =
            |count: u64| if count == 0 { "–".to_owned() } else { units::about(count, sum.estimated) };
        let about = if sum.by_list_price_micros > 0 { "~" } else { "" };
        let id: Option<SessionId> = line.name.parse().ok();
        #[expect(clippy::cast_precision_loss, reason = "a bar")]
        let share = 100.0 * sum.micros as f64 / most as f64;
        CostLine {
            name: id.map_or_else(|| views::one_line(&line.name), crate::command_context::short),
            link: id.map(|id| format!("/s/{id}")).unwrap_or_default(),
            runs: sum.runs,
            input: count(sum.tokens.input.saturating_add(sum.tokens.other)),
            output: count(sum.tokens.output),
            cached: count(sum.tokens.cache_read.saturating_add(sum.tokens.cache_write)),
            cost: format!("{about}{}", units::money(sum.micros, sum.unpriced_tokens)),
            share: format!("{share:.1}"),
        }
    };
    costs.lines.iter().map(line).collect()
}

#[derive(Template)]
#[template(path = "cost.html")]
struct CostPage {
    shell: Shell,
    sums: Sums,
    chart: Option<Chart>,
    lines: Vec<CostLine>,
    total: String,
    sessions: u64,
    list_prices: String,
    unpriced: String,
    bys: Vec<(&'static str, &'static str)>,
    projects: Vec<(String, String)>,
    by_word: &'static str,
}

/// What everything cost.
pub(in crate::serve) async fn cost(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Asked(sums): Asked<Sums>,
) -> Shown {
    let by = sums.by()?;
    let known =
        app.work(|app, engine| app.on_board(engine, |board| board.projects())).await.unwrap_or_default();
    let asked = Sums { days: Some(sums.days.unwrap_or(30)), ..sums.clone() };
    let costs = api::costs_of(&app, &asked, by).await?;
    let days = match by == segno_engine::cost::By::Day {
        true => None,
        false => Some(api::costs_of(&app, &asked, segno_engine::cost::By::Day).await?),
    };
    let by_day = days.as_ref().unwrap_or(&costs);
    let columns: Vec<chart::Column> = by_day
        .lines
        .iter()
        .map(|line| {
            let (priced, listed) = (
                line.sum.micros - line.sum.by_list_price_micros.min(line.sum.micros),
                line.sum.by_list_price_micros.min(line.sum.micros),
            );
            let parts = vec![
                (priced, "plain", format!("{} as agents say", units::dollars(priced))),
                (listed, "listed", format!("{} by list prices", units::dollars(listed))),
            ];
            chart::Column { name: line.name.get(5..).unwrap_or(&line.name).to_owned(), parts }
        })
        .collect();
    let words = format!(
        "{} in {}.",
        units::dollars(costs.total.micros),
        units::things(by_day.lines.len() as u64, "day")
    );
    let heads = ["day", "as agents say", "by list prices"];
    let chart = chart::bars("Cost by day", words, &heads, &columns, units::dollars);
    let bys = [
        ("day", "day"),
        ("project", "project"),
        ("agent", "agent"),
        ("model", "model"),
        ("session", "session"),
    ];
    let by_word = bys.iter().find(|(word, _)| *word == sums.by).map_or("day", |(word, _)| word);
    let total = &costs.total;
    render(&CostPage {
        shell: Shell::of(&app, &who, "cost"),
        chart: chart.filter(|_| total.micros > 0),
        lines: cost_lines(&costs),
        total: units::money(total.micros, total.unpriced_tokens),
        sessions: costs.sessions,
        list_prices: match (&costs.prices_as_of, total.by_list_price_micros) {
            (Some(day), 1..) => format!(
                "{} of it by list prices of {day}: the agent did not say",
                units::dollars(total.by_list_price_micros)
            ),
            _ => String::new(),
        },
        unpriced: match total.unpriced_tokens {
            0 => String::new(),
            tokens => format!("{} have no known price and are not in the sum", units::tokens(tokens)),
        },
        bys: bys.to_vec(),
        projects: known.into_iter().map(|(path, _)| (path.clone(), views::one_line(&path))).collect(),
        by_word,
        sums: asked,
    })
}
