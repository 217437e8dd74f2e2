//! Order among many sessions: `segno tag`, `rename`, `pin`, `unpin`, `archive` and `unarchive`.

use std::collections::BTreeMap;

use clap::Args as ClapArgs;
use segno_engine::Filter;
use segno_engine::core::Command;
use segno_engine::core::Refusal;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::Summary;
use segno_engine::core::event::SessionArranged;
use serde_json::json;

use super::args::SessionRef;
use crate::command_context::CommandContext;
use crate::command_context::title;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::table::Column;
use crate::output::table::Table;

/// Tag a session, or list tags
///
/// A tag is one word by which sessions are found again: `segno ls --tag WORD`. Without a session, lists every tag that is in
/// use; with a session and no tag, the tags that it has. A session that has ended can be tagged too.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno tag 804211 auth urgent\n  segno tag 804211 --remove urgent")]
pub struct TagArgs {
    /// The session: its id, the end of its id, its number in the last list, or `last`
    #[arg(value_name = "ID")]
    pub id: Option<SessionRef>,
    /// Tags to give it
    #[arg(value_name = "TAG")]
    pub tags: Vec<String>,
    /// A tag to take away; may be repeated
    #[arg(long, value_name = "TAG", requires = "id")]
    pub remove: Vec<String>,
}

/// Give a session another topic
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno rename 804211 login form, second try")]
pub struct RenameArgs {
    /// The session: its id, the end of its id, its number in the last list, or `last`
    #[arg(value_name = "ID")]
    pub id: SessionRef,
    /// What it is about
    #[arg(required = true, value_name = "TOPIC")]
    pub topic: Vec<String>,
}

/// Keep sessions at the top of lists
///
/// A pinned session stands first in `segno ls` and is never cleaned up. `segno rm` still removes it.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno pin 804211")]
pub struct PinArgs {
    /// The sessions
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<SessionRef>,
}

/// Let sessions stand in lists like all others
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno unpin 804211")]
pub struct UnpinArgs {
    /// The sessions
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<SessionRef>,
}

/// Leave sessions out of lists
///
/// Nothing of them is removed: `segno ls --archived` shows them, `segno search` finds them, and whatever names one works. No
/// command takes an archived session for the one that is meant. One that is resumed is in the lists again.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno archive 804211 118830")]
pub struct ArchiveArgs {
    /// The sessions
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<SessionRef>,
}

/// Show archived sessions in lists again
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  segno unarchive 804211")]
pub struct UnarchiveArgs {
    /// The sessions
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<SessionRef>,
}

/// Runs `segno tag`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn tag(context: &Context, args: &TagArgs) -> Outcome {
    let Some(named) = &args.id else { return list_tags(context) };
    if args.tags.is_empty() && args.remove.is_empty() {
        let ctx = CommandContext::open_to_look(context)?;
        let state = ctx.load(ctx.named(named)?)?;
        if context.printer.is_json() {
            return context.printer.json(&json!({ "session_id": state.session_id, "tags": state.tags }));
        }
        return match state.tags.is_empty() {
            true => {
                context.printer.talk("no tags");
                Ok(())
            }
            false => context.printer.data(hashed(&state.tags)),
        };
    }
    let bare = |tags: &[String]| tags.iter().map(|tag| tag.trim_start_matches('#').to_owned()).collect();
    let wish = SessionArranged {
        tags_added: bare(&args.tags),
        tags_removed: bare(&args.remove),
        ..SessionArranged::default()
    };
    arrange(context, std::slice::from_ref(named), &wish, |state| {
        let tags = if state.tags.is_empty() { "no tags".to_owned() } else { hashed(&state.tags) };
        title(state).plain("   ").plain(tags)
    })
}

/// Runs `segno rename`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn rename(context: &Context, args: &RenameArgs) -> Outcome {
    let wish = SessionArranged { topic: Some(args.topic.join(" ")), ..SessionArranged::default() };
    arrange(context, std::slice::from_ref(&args.id), &wish, |state| {
        Text::new().plain("renamed ").then(title(state))
    })
}

/// Runs `segno pin`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn pin(context: &Context, args: &PinArgs) -> Outcome {
    let wish = SessionArranged { pinned: Some(true), ..SessionArranged::default() };
    arrange(context, &args.ids, &wish, |state| Text::new().plain("pinned ").then(title(state)))
}

/// Runs `segno unpin`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn unpin(context: &Context, args: &UnpinArgs) -> Outcome {
    let wish = SessionArranged { pinned: Some(false), ..SessionArranged::default() };
    arrange(context, &args.ids, &wish, |state| Text::new().plain("unpinned ").then(title(state)))
}

/// Runs `segno archive`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn archive(context: &Context, args: &ArchiveArgs) -> Outcome {
    let wish = SessionArranged { archived: Some(true), ..SessionArranged::default() };
    arrange(context, &args.ids, &wish, |state| Text::new().plain("archived ").then(title(state)))
}

/// Runs `segno unarchive`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn unarchive(context: &Context, args: &UnarchiveArgs) -> Outcome {
    let wish = SessionArranged { archived: Some(false), ..SessionArranged::default() };
    arrange(context, &args.ids, &wish, |state| Text::new().plain("unarchived ").then(title(state)))
}

/// Does the same to each session that is named. One that is as it should be already is no error among several.
fn arrange(
    context: &Context,
    named: &[SessionRef],
    wish: &SessionArranged,
    said: impl Fn(&State) -> Text,
) -> Outcome {
    let ctx = CommandContext::open(context)?;
    let mut ids: Vec<SessionId> = Vec::new();
    for one in named {
        let id = ctx.named(one)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if let [id] = ids.as_slice() {
        let acted = ctx.act(*id, vec![Command::Arrange(wish.clone())]).map_err(explain)?;
        let line = said(&acted.state);
        return ctx.report(&acted, line);
    }
    let mut sessions = Vec::new();
    for id in ids {
        match ctx.engine.act_all(id, vec![Command::Arrange(wish.clone())], ctx.key()?) {
            Ok(acted) => {
                context.printer.talk(said(&acted.state));
                sessions.push(Summary::from(&acted.state));
            }
            Err(segno_engine::Error::Refused(Refusal::Already(_))) => {
                sessions.push(Summary::from(&ctx.load(id)?));
            }
            Err(other) => return Err(explain(other.into())),
        }
    }
    if context.printer.is_json() {
        context.printer.json(&json!({ "sessions": sessions }))?;
    }
    ctx.finish();
    Ok(())
}

fn explain(error: CommandError) -> CommandError {
    if error.hints().is_empty() {
        error.hint("segno ls --all   shows tags and what is pinned")
    } else {
        error
    }
}

/// Every tag that is in use, and how many sessions have it.
fn list_tags(context: &Context) -> Outcome {
    let ctx = CommandContext::open_to_list(context)?;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for summary in ctx.engine.list(&Filter::default())? {
        for tag in summary.tags {
            *counts.entry(tag).or_default() += 1;
        }
    }
    if context.printer.is_json() {
        let tags: Vec<_> =
            counts.iter().map(|(tag, sessions)| json!({ "tag": tag, "sessions": sessions })).collect();
        return context.printer.json(&json!({ "tags": tags }));
    }
    if counts.is_empty() {
        context.printer.talk("no tags yet");
        context.printer.hint("segno tag ID WORD");
        return Ok(());
    }
    let mut table = Table::new([Column::left("tag"), Column::right("sessions")]);
    for (tag, sessions) in &counts {
        table.row([tag.clone(), sessions.to_string()]);
    }
    context.printer.table(&table)
}

/// Tags as they are shown.
pub(super) fn hashed<'a>(tags: impl IntoIterator<Item = &'a String>) -> String {
    tags.into_iter().map(|tag| format!("#{tag}")).collect::<Vec<_>>().join(" ")
}
