//! One session as one file that anybody can read: the templates of the page, with style inside and no script.

use std::io::Write;

use askama::Template;
use segno_engine::Engine;
use segno_engine::board::Course;
use segno_engine::board::Moment;
use segno_engine::board::TimelineWish;
use segno_engine::board::What;
use segno_engine::core::SessionId;
use segno_engine::core::Text;

use super::assets;
use super::chart::Chart;
use super::problem::Problem;
use super::session;
use super::session::CheckpointView;
use super::session::DecisionView;
use super::session::Head;
use super::session::LoopView;
use super::views::MomentView;
use super::views::Moments;
use super::views::Times;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;

/// So many moments are in memory at once.
const AT_ONCE: usize = 400;
/// What was said is whole up to so many bytes; outputs of calls up to fewer.
const SAID: u64 = 256 << 10;
const OUTPUT: u64 = 32 << 10;

#[derive(Template)]
#[template(path = "file_head.html")]
struct FileHead<'a> {
    css: &'a str,
    head: &'a Head,
    made: String,
}

#[derive(Template)]
#[template(path = "moments.html")]
struct Piece {
    moments: Vec<MomentView>,
    base: String,
}

#[derive(Template)]
#[template(path = "file_foot.html")]
struct FileFoot<'a> {
    head: &'a Head,
    view: Option<LoopView>,
    points: Vec<CheckpointView>,
    all: Vec<DecisionView>,
    line: Option<Chart>,
    charts: Vec<Chart>,
}

fn failed(problem: Problem) -> CommandError {
    let error = CommandError::new(ExitCode::Failure, problem.code, problem.message);
    problem.hints.into_iter().fold(error, CommandError::hint)
}

fn put(out: &mut dyn Write, piece: &impl Template) -> Outcome {
    let text =
        piece.render().map_err(|why| CommandError::internal(format!("the page cannot be made: {why}")))?;
    out.write_all(text.as_bytes()).map_err(|why| CommandError::io("cannot write the page", why))
}

/// Writes it.
///
/// # Errors
/// If the session cannot be read, or the file not be written.
pub(crate) fn write(
    engine: &Engine,
    id: SessionId,
    zone: &jiff::tz::TimeZone,
    out: &mut dyn Write,
) -> Outcome {
    let times = Times::new(zone);
    let stand = session::stand(engine, id, &times).map_err(failed)?;
    let state = &stand.state;
    put(out, &FileHead { css: assets::CSS, head: &stand.head, made: times.clock(engine.now()) })?;
    let mut telling = Moments::new(&times, &state.project.path, state.agent.as_deref());
    let mut after = 0;
    while after < state.seq {
        let mut page = engine.timeline(id, TimelineWish::After(after), AT_ONCE)?;
        after = page.until;
        page.moments.iter_mut().for_each(|moment| make_whole(engine, moment));
        put(out, &Piece { moments: telling.all(&page.moments), base: String::new() })?;
    }
    let (points, mut line) = session::checkpoints(&engine.checkpoints(id)?, "", &times);
    // In a file there is nowhere to go to.
    line.iter_mut().flat_map(|line| &mut line.points).for_each(|point| point.href.clear());
    let mut course = Course::default();
    course.read_on(engine, id)?;
    put(
        out,
        &FileFoot {
            head: &stand.head,
            view: stand.looping.as_ref().map(|it| LoopView::of(it, &times)),
            points,
            all: session::decisions(engine, id, &times).map_err(failed)?,
            line: line.filter(|line| line.points.len() > 1),
            charts: session::course_charts(&course, state, &times),
        },
    )
}

/// What was set aside is put back in, as far as somebody would read it. What cannot be read stays as it begins.
fn make_whole(engine: &Engine, moment: &mut Moment) {
    let (text, most) = match &mut moment.what {
        What::Asked { text, .. } | What::Said { text, .. } => (text, SAID),
        What::Called(call) => match &mut call.output {
            Some(text) => (text, OUTPUT),
            None => return,
        },
        What::Event { .. } | What::Damaged { .. } => return,
    };
    if matches!(text, Text::Aside(_))
        && text.bytes() <= most
        && let Ok(whole) = engine.whole(text)
    {
        *text = Text::Whole(whole);
    }
}
