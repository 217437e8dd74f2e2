//! Pictures as files of their own, for documents: the same as on the page, with their colours inside.

use askama::Template;
use segno_engine::core::insights::Insights;
use segno_engine::core::insights::Share;
use segno_engine::core::text::shorten;

use super::chart;
use super::chart::Chart;
use super::chart::Column;
use super::views;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::units;

/// Most bars beside each other that are still told apart.
const BARS: usize = 60;
/// Most bars with a name each.
const NAMED: usize = 10;
/// How long a name below a bar may be.
const NAME: usize = 12;

#[derive(Template)]
#[template(path = "picture.svg")]
struct File<'a> {
    c: &'a Chart,
}

/// A picture of what was found in sessions.
pub(crate) struct Picture {
    /// What it shows, in a word: a part of its file's name.
    pub(crate) name: &'static str,
    /// What it shows.
    pub(crate) title: String,
    /// It, as SVG.
    pub(crate) svg: String,
}

/// The pictures of what was found, as files.
///
/// # Errors
/// If a picture cannot be drawn.
pub(crate) fn of_insights(found: &Insights) -> Outcome<Vec<Picture>> {
    charts(found).into_iter().map(|(name, chart)| draw(name, &chart)).collect()
}

/// The pictures of what was found; those that would be empty are left out.
pub(super) fn charts(found: &Insights) -> Vec<(&'static str, Chart)> {
    let column = |name: &str, value: u64, class: &'static str, said: String| Column {
        name: shorten(&views::one_line(name), NAME),
        parts: vec![(value, class, said)],
    };
    let shares = &found.shares;
    let days: Vec<&Share> = shares.days.iter().filter(|day| day.micros > 0).collect();
    let days: Vec<Column> = days
        .iter()
        .skip(days.len().saturating_sub(BARS))
        .map(|day| {
            column(day.name.get(5..).unwrap_or(&day.name), day.micros, "plain", units::dollars(day.micros))
        })
        .collect();
    let tools: Vec<&Share> = shares.tools.iter().filter(|tool| tool.ms > 0).take(NAMED).collect();
    let unit = unit(tools.iter().map(|tool| tool.ms).max().unwrap_or(0));
    let tools: Vec<Column> =
        tools.iter().map(|tool| column(&tool.name, tool.ms / unit, "plain", time(tool.ms))).collect();
    let calls = found.numbers.calls;
    let trouble = [
        ("errors", found.numbers.errors),
        ("failed calls", calls.failed),
        ("denied calls", calls.denied),
        ("in doubt", calls.in_doubt),
        ("bad ends", found.numbers.runs_bad),
        ("bad resumes", found.numbers.resumes.failed),
    ];
    let has_trouble = trouble.iter().any(|(_, count)| *count > 0);
    let trouble: Vec<Column> =
        trouble.into_iter().map(|(name, count)| column(name, count, "bad", count.to_string())).collect();
    let charts = [
        (
            "cost",
            chart::bars("Cost by day", units::dollars(found.numbers.micros), &[], &days, units::dollars),
        ),
        (
            "time",
            chart::bars("Time in calls by tool", time(found.numbers.time.calls_ms), &[], &tools, |units| {
                time(units * unit)
            }),
        ),
        (
            "trouble",
            chart::bars("What went wrong", String::new(), &[], &trouble, |count| count.to_string())
                .filter(|_| has_trouble),
        ),
    ];
    charts.into_iter().filter_map(|(name, chart)| Some((name, chart?))).collect()
}

fn draw(name: &'static str, chart: &Chart) -> Outcome<Picture> {
    let svg = File { c: chart }
        .render()
        .map_err(|why| CommandError::failure("unwritable", format!("a picture cannot be drawn: {why}")))?;
    Ok(Picture { name, title: chart.title.clone(), svg })
}

/// A tenth of what an axis of times is counted in: seconds, minutes or hours, in milliseconds.
fn unit(most: u64) -> u64 {
    match most {
        0..120_000 => 100,
        120_000..7_200_000 => 6_000,
        _ => 360_000,
    }
}

fn time(ms: u64) -> String {
    units::duration(std::time::Duration::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use segno_engine::core::insights::Numbers;
    use segno_engine::core::insights::Shares;

    use super::*;

    #[test]
    fn pictures_stand_alone_and_what_is_in_them_is_inert() {
        assert!(of_insights(&Insights::default()).unwrap().is_empty());
        let share = |name: &str, micros: u64, ms: u64| Share {
            name: name.to_owned(),
            micros,
            ms,
            ..Share::default()
        };
        let shares = Shares {
            days: vec![share("2026-01-02", 5, 0), share("2026-01-03", 0, 0)],
            tools: vec![share("<b onload=x>&", 0, 1_500)],
            ..Shares::default()
        };
        let numbers = Numbers { errors: 3, ..Numbers::default() };
        let found = Insights { shares, numbers, ..Insights::default() };
        let pictures = of_insights(&found).unwrap();
        assert_eq!(
            pictures.iter().map(|picture| picture.name).collect::<Vec<_>>(),
            ["cost", "time", "trouble"]
        );
        for picture in &pictures {
            assert!(picture.svg.starts_with("<svg xmlns=") && picture.svg.trim_end().ends_with("</svg>"));
            assert!(!picture.svg.contains("<b") && !picture.svg.contains("href"), "{}", picture.svg);
        }
        assert!(
            pictures[1].svg.contains("1.5 s") && pictures[1].svg.contains(">2.0 s<"),
            "{}",
            pictures[1].svg
        );
        assert_eq!([90_000, 600_000, 9_000_000].map(unit), [100, 6_000, 360_000]);
        assert_eq!(pictures[0].svg.matches("<rect").count(), 1, "a day without a cost has no bar");
    }
}
