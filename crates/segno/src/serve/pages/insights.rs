//! What sessions have in common.

use std::sync::Arc;

use askama::Template;
use axum::extract::Extension;
use axum::extract::State;
use segno_engine::core::insights::Finding;
use segno_engine::core::insights::FindingKind;

use super::Shell;
use super::Shown;
use super::render;
use crate::command_context::short;
use crate::commands::insights::numbers;
use crate::serve::api;
use crate::serve::api::Chosen;
use crate::serve::app::App;
use crate::serve::asked::Asked;
use crate::serve::chart::Chart;
use crate::serve::check::Who;
use crate::serve::picture;
use crate::serve::views::one_line;

/// A finding as the page shows it.
struct FindingView {
    what: String,
    words: String,
    /// Where to see it: an address, its name, and what is there.
    places: Vec<(String, String, String)>,
    advice: String,
    line: String,
}

impl From<&Finding> for FindingView {
    fn from(one: &Finding) -> Self {
        let place = |it: &segno_engine::core::insights::Evidence| {
            let session = it.session_id;
            let href = match one.kind {
                FindingKind::Money => format!("/s/{session}/cost"),
                _ => format!("/s/{session}?after={}#e{}", it.seq.saturating_sub(1), it.seq),
            };
            (href, short(session), one_line(&it.text))
        };
        let suggestion = one.suggestion.as_ref();
        Self {
            what: if one.kind == FindingKind::Checkpoint { String::new() } else { one_line(&one.what) },
            words: one_line(&one.words),
            places: one.evidence.iter().map(place).collect(),
            advice: suggestion.map(|it| one_line(&it.text)).unwrap_or_default(),
            line: suggestion.and_then(|it| it.line.as_deref()).map(one_line).unwrap_or_default(),
        }
    }
}

#[derive(Template)]
#[template(path = "insights.html")]
struct InsightsPage {
    shell: Shell,
    wish: Chosen,
    projects: Vec<(String, String)>,
    numbers: Vec<String>,
    notices: Vec<String>,
    groups: Vec<(&'static str, Vec<FindingView>)>,
    charts: Vec<Chart>,
}

/// What holds work up, and what would help.
pub(in crate::serve) async fn insights(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Asked(wish): Asked<Chosen>,
) -> Shown {
    let known =
        app.work(|app, engine| app.on_board(engine, |board| board.projects())).await.unwrap_or_default();
    let wish = Chosen { days: Some(wish.days.unwrap_or(30)), ..wish };
    let found = api::insights_of(&app, &wish).await?;
    let all = &found.insights.findings;
    let of = |kind: FindingKind| -> Vec<FindingView> {
        all.iter().filter(|one| one.kind == kind).map(FindingView::from).collect()
    };
    let groups = FindingKind::ALL.into_iter().map(|kind| (kind.title(), of(kind)));
    render(&InsightsPage {
        shell: Shell::of(&app, &who, "insights"),
        projects: known.into_iter().map(|(path, _)| (path.clone(), one_line(&path))).collect(),
        // Blanks are one on a page.
        numbers: numbers(&found.insights.numbers).iter().map(|line| line.replace("   ", " · ")).collect(),
        notices: found.notices.iter().map(|notice| one_line(notice)).collect(),
        groups: groups.filter(|(_, all)| !all.is_empty()).collect(),
        charts: picture::charts(&found.insights).into_iter().map(|(_, chart)| chart).collect(),
        wish,
    })
}
