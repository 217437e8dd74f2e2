//! What can be done from the page: each action is one of the program's own commands, so that every rule holds. Who asked for it is
//! in the journal, before it is done.

mod going_on;

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use segno_engine::core::SessionId;
use segno_engine::waiting::WaitingKind;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use super::app::App;
use super::keys;
use super::problem::Problem;
use super::routes::Id;
use super::session::has_open_breaker;
use crate::cli::Command;
use crate::command_context::CommandContext;
use crate::commands::answer;
use crate::commands::args;
use crate::commands::args::OneSession;
use crate::commands::attach;
use crate::commands::breaker;
use crate::commands::budget;
use crate::commands::checkpoint;
use crate::commands::lifecycle;
use crate::commands::mark;
use crate::commands::resume;
use crate::commands::undo;
use crate::mcp::confirm;

/// From where things are done, as the journal names it.
pub(super) const BY: &str = "segno serve";
/// The longest text of a member.
const LONGEST: usize = 16 << 10;

type Answer = Result<Json<Value>, Problem>;
type Body<T> = Result<Json<T>, JsonRejection>;

fn read<T>(body: Body<T>) -> Result<T, Problem> {
    body.map(|Json(body)| body).map_err(|why| Problem::bad(why.body_text()))
}

/// Something to do in a session.
struct Deed {
    session: SessionId,
    /// In words, for the journal.
    words: String,
    command: Command,
    /// Whether the command takes a key.
    keyed: bool,
}

impl Deed {
    fn new(session: SessionId, words: impl Into<String>, command: Command) -> Self {
        Self { session, words: words.into(), command, keyed: false }
    }

    fn keyed(self) -> Self {
        Self { keyed: true, ..self }
    }

    async fn done(self, app: &Arc<App>) -> Answer {
        let own = Arc::clone(app);
        app.blocking(move || {
            let project = project_of(&own, self.session)?;
            note_who(&own, self.session, project.clone(), &self.words)?;
            // Its key says it too, and that it happens once.
            let key = if self.keyed { Some(format!("page-{}", &keys::random()?[..16])) } else { None };
            own.perform(self.session, project, &self.command, key).map(Json)
        })
        .await
    }
}

/// The project that a session works on, for the settings that hold there.
fn project_of(app: &App, session: SessionId) -> Result<Option<PathBuf>, Problem> {
    let context = app.surroundings.context()?;
    let ctx = CommandContext::open_to_look(&context)?;
    Ok(Some(PathBuf::from(ctx.engine.load(session)?.state.project.path)))
}

/// Writes down that somebody asked for something here. What is not written down is not done.
fn note_who(app: &App, session: SessionId, project: Option<PathBuf>, words: &str) -> Result<(), Problem> {
    let note = mark::NoteArgs { text: words.to_owned(), action: BY.to_owned() };
    let key = Some(format!("page-{}", &keys::random()?[..16]));
    app.perform(session, project, &Command::Note(note), key).map(drop)
}

fn bounded(name: &str, text: &str) -> Result<(), Problem> {
    match text.len() > LONGEST {
        true => Err(Problem::bad(format!("{name} is too long"))),
        false => Ok(()),
    }
}

fn one(session: SessionId) -> OneSession {
    OneSession { id: session.to_string().parse().ok() }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Reason {
    reason: Option<String>,
}

fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

pub(super) async fn pause(State(app): State<Arc<App>>, Id(session): Id, body: Body<Reason>) -> Answer {
    let reason = given(read(body)?.reason);
    bounded("reason", reason.as_deref().unwrap_or_default())?;
    let command = Command::Pause(lifecycle::PauseArgs { session: one(session), reason });
    Deed::new(session, "asked for a pause", command).keyed().done(&app).await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct From {
    from: Option<String>,
    mark: Option<String>,
}

pub(super) async fn resume(State(app): State<Arc<App>>, Id(session): Id, body: Body<From>) -> Answer {
    let From { from, mark } = read(body)?;
    let from = given(from).map(|word| from_word(&word)).transpose()?;
    let own = Arc::clone(&app);
    app.blocking(move || going_on::go_on(&own, session, from, given(mark))).await
}

fn from_word(word: &str) -> Result<resume::From, Problem> {
    <resume::From as clap::ValueEnum>::from_str(word, true)
        .map_err(|_| Problem::bad("from is checkpoint, live or fresh"))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Nothing {}

pub(super) async fn stop(State(app): State<Arc<App>>, Id(session): Id, body: Body<Nothing>) -> Answer {
    read(body)?;
    let timeout = std::time::Duration::from_secs(1);
    let command = Command::Stop(attach::StopArgs { session: one(session), no_wait: true, timeout });
    Deed::new(session, "asked to stop the agent", command).done(&app).await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct More {
    tokens: Option<String>,
    dollars: Option<String>,
}

pub(super) async fn extend(State(app): State<Arc<App>>, Id(session): Id, body: Body<More>) -> Answer {
    let more = read(body)?;
    let (what, words) = match (given(more.tokens), given(more.dollars)) {
        (Some(tokens), None) => {
            let count = args::count(tokens.trim()).map_err(Problem::bad)?;
            (budget::Command::Extend { tokens: count }, format!("asked to allow {count} more tokens"))
        }
        (None, Some(dollars)) => {
            let micros = args::dollars(dollars.trim()).map_err(Problem::bad)?;
            let hold = budget::Hold { advisory: false, warn: None };
            let words = format!("asked to allow {} more", crate::output::units::dollars(micros));
            (budget::Command::Cost { dollars: micros, extend: true, hold }, words)
        }
        _ => return Err(Problem::bad("give tokens or dollars, one of them")),
    };
    let command = Command::Budget(budget::Args { command: Some(what) });
    Deed::new(session, words, command).keyed().done(&app).await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Because {
    because: Option<String>,
}

pub(super) async fn reset_breaker(
    State(app): State<Arc<App>>,
    Id(session): Id,
    body: Body<Because>,
) -> Answer {
    let because = given(read(body)?.because).unwrap_or_else(|| "reset on the page".to_owned());
    bounded("because", &because)?;
    let own = Arc::clone(&app);
    let state = app.work(move |_, engine| Ok(engine.load(session)?.state)).await?;
    if !has_open_breaker(&state) {
        return Err(Problem::new(StatusCode::CONFLICT, "no_breaker", "no breaker is open here"));
    }
    let command = match state.looping.is_some() {
        true => Command::Breaker(breaker::Args {
            command: Some(breaker::Command::Reset { session: one(session), because }),
        }),
        false => Command::Resume(resume::Args {
            session: one(session),
            reset_breaker: true,
            no_run: true,
            yes: true,
            ..Default::default()
        }),
    };
    Deed::new(session, "asked to close the breaker", command).done(&own).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    text: String,
}

pub(super) async fn note(State(app): State<Arc<App>>, Id(session): Id, body: Body<Words>) -> Answer {
    let text = read(body)?.text;
    bounded("text", &text)?;
    if text.trim().is_empty() {
        return Err(Problem::bad("the note is empty"));
    }
    // The note itself says where it comes from.
    let command = Command::Note(mark::NoteArgs { text, action: format!("note ({BY})") });
    let own = Arc::clone(&app);
    app.blocking(move || {
        let project = project_of(&own, session)?;
        let key = Some(format!("page-{}", &keys::random()?[..16]));
        own.perform(session, project, &command, key).map(Json)
    })
    .await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Named {
    name: Option<String>,
}

pub(super) async fn checkpoint(State(app): State<Arc<App>>, Id(session): Id, body: Body<Named>) -> Answer {
    let name = given(read(body)?.name);
    bounded("name", name.as_deref().unwrap_or_default())?;
    let create = checkpoint::Command::Create { name, reason: None };
    let command = Command::Checkpoint(checkpoint::Args::of(create));
    Deed::new(session, "asked for a checkpoint", command).keyed().done(&app).await
}

/// What is shown before it is done; none if just this was shown and is wanted.
fn shown_first(
    plan: &Value,
    question: &str,
    root: Option<&Path>,
    mark: Option<String>,
) -> Result<Option<Json<Value>>, Problem> {
    let now = confirm::mark(plan, question, root.unwrap_or(Path::new("")));
    match mark {
        None => Ok(Some(Json(json!({ "plan": plan, "mark": now, "question": question })))),
        Some(mark) if mark == now => Ok(None),
        Some(_) => {
            let why = "something changed since this was shown; nothing was done";
            Err(Problem::new(StatusCode::CONFLICT, "changed", why).hint("look at it again"))
        }
    }
}

/// Files go back only as they were shown: the mark names the plan and the files that it is about.
async fn go_back(
    app: &Arc<App>,
    session: SessionId,
    mark: Option<String>,
    words: String,
    command: impl Fn(undo::RestoreFlags) -> Command + Send + 'static,
) -> Answer {
    let own = Arc::clone(app);
    app.blocking(move || {
        let project = project_of(&own, session)?;
        let look = undo::RestoreFlags { dry_run: true, yes: false };
        let plan = own.perform(session, project.clone(), &command(look), None)?;
        let question = confirm::files(&plan);
        if let Some(shown) = shown_first(&plan, &question, project.as_deref(), given(mark))? {
            return Ok(shown);
        }
        note_who(&own, session, project.clone(), &words)?;
        let go = undo::RestoreFlags { dry_run: false, yes: true };
        own.perform(session, project, &command(go), None).map(Json)
    })
    .await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Marked {
    mark: Option<String>,
}

pub(super) async fn undo(State(app): State<Arc<App>>, Id(session): Id, body: Body<Marked>) -> Answer {
    let mark = read(body)?.mark;
    let words = "asked to undo the last turn".to_owned();
    go_back(&app, session, mark, words, |flags| {
        Command::Undo(undo::UndoArgs { paths: Vec::new(), turns: 1, to: None, all: false, flags })
    })
    .await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    checkpoint: String,
    #[serde(default)]
    mark: Option<String>,
}

pub(super) async fn restore(State(app): State<Arc<App>>, Id(session): Id, body: Body<Target>) -> Answer {
    let Target { checkpoint: name, mark } = read(body)?;
    bounded("checkpoint", &name)?;
    let words = format!("asked to put files back to {name}");
    go_back(&app, session, mark, words, move |flags| {
        let name = name.clone();
        let restore =
            checkpoint::Command::Restore { name, paths: Vec::new(), files: true, state: false, flags };
        Command::Checkpoint(checkpoint::Args::of(restore))
    })
    .await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Given {
    question: String,
    answer: String,
    #[serde(default)]
    mark: Option<String>,
}

pub(super) async fn answer(State(app): State<Arc<App>>, Id(session): Id, body: Body<Given>) -> Answer {
    let Given { question, answer: said, mark } = read(body)?;
    bounded("answer", &said)?;
    if said.trim().is_empty() {
        return Err(Problem::bad("say something: yes, no, or words"));
    }
    let asked = question.clone();
    let known = app.work(move |_, engine| Ok(engine.waiting_of(session)?)).await?;
    let Some(waiting) = known.iter().find(|waiting| waiting.id == asked) else {
        let why = "this question does not wait any more";
        return Err(Problem::new(StatusCode::CONFLICT, "unknown_question", why));
    };
    if waiting.kind == WaitingKind::Resume {
        let from = from_word(said.trim())?;
        let own = Arc::clone(&app);
        return app.blocking(move || going_on::go_on(&own, session, Some(from), given(mark))).await;
    }
    let command = Command::Answer(answer::Args {
        id: Some(question.clone()),
        answer: vec![said],
        confirmed_through: None,
        through: Some(BY),
    });
    Deed::new(session, format!("asked to answer question {question}"), command).done(&app).await
}
