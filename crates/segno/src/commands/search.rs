//! `segno search`: finds words in everything that was recorded.

use std::time::Duration;

use clap::Args as ClapArgs;
use segno_engine::search::Findings;
use segno_engine::search::FoundText;
use segno_engine::search::SearchWish;

use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

/// How long somebody waits for what is not indexed yet.
const PATIENCE: Duration = Duration::from_secs(5);

/// Find words in all sessions
///
/// Looks through prompts, what agents said and thought, calls and their outputs, files, decisions, tasks, notes and errors of
/// all sessions, the best and newest first. Words must all be there; "a phrase" as it is; begin* finds what begins so. If no
/// text has all words, those that have some are shown.
///
/// Filters: path:NAME and tool:NAME of a call; agent:NAME, project:NAME and status:NAME of its session; kind:NAME (prompt, said,
/// thinking, call, output, file, error, note, topic, decision, task, artifact); since:7d or since:2026-01-31.
///
/// The words are kept in an index beside the store, which a search brings up to date first. What it could not index within five
/// seconds is said; the next search goes on with it.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "Examples:\n  segno search drop redis\n  segno search '\"out of memory\" agent:codex since:30d'\n  segno search tool:Bash migrate --here\n  segno search --open drop redis"
)]
pub struct Args {
    /// What to look for
    #[arg(required = true, value_name = "QUERY")]
    pub query: Vec<String>,
    /// Only in sessions of this project
    #[arg(long)]
    pub here: bool,
    /// Open the conversation at the best text, or at the N-th: --open=2
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    pub open: Option<usize>,
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: u32,
}

/// Runs `segno search`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let ctx = CommandContext::open_to_list(context)?;
    let wish = SearchWish {
        query: args.query.join(" "),
        project: args.here.then(|| context.project.root.display().to_string()),
        limit: usize::try_from(args.limit).unwrap_or(20),
        patience: Some(PATIENCE),
    };
    let found = ctx.engine.search(&wish)?;
    if context.printer.is_json() && args.open.is_some() {
        return Err(CommandError::usage("--open is for people; with --json each text says where it is"));
    }
    if context.printer.is_json() {
        return context.printer.json(&found);
    }
    let Some(number) = args.open else { return show(context, &found) };
    match found.hits.get(number.saturating_sub(1)) {
        Some(hit) => {
            context.printer.talk(head(hit));
            super::conversation::show_at(&ctx, hit.session_id, hit.seq)
        }
        None => {
            let found = units::things(found.hits.len() as u64, "text");
            Err(CommandError::failure("not_found", format!("{found} found: there is nothing to open"))
                .hint("segno search WORDS   without --open shows what there is"))
        }
    }
}

fn show(context: &Context, found: &Findings) -> Outcome {
    let printer = &context.printer;
    if found.some_words {
        printer.talk("no text has all of these words; these have some");
    }
    for hit in &found.hits {
        printer.data(head(hit))?;
        printer.data(words(hit))?;
    }
    if found.hits.is_empty() {
        printer.talk(format!("nothing in {}", units::things(found.texts, "text")));
    } else if let Some(best) = found.hits.first() {
        printer.hint(format!("segno log {} --after {}", short(best.session_id), best.seq.saturating_sub(1)));
    }
    if found.not_indexed > 0 {
        let sessions = units::things(found.not_indexed, "session");
        printer.warn(format!("{sessions} not yet indexed: search again, and they are looked through too"));
    }
    Ok(())
}

fn head(hit: &FoundText) -> Text {
    let when = hit.at.to_string();
    let topic = hit.topic.as_deref().unwrap_or("–");
    let tool = hit.tool.as_ref().map_or(String::new(), |tool| format!(" {tool}"));
    Text::default()
        .painted(Meaning::Strong, short(hit.session_id))
        .plain("  ")
        .plain(topic.to_owned())
        .painted(
            Meaning::Dim,
            format!(
                "   {}   {}{tool}   {}",
                hit.agent.as_deref().unwrap_or("–"),
                hit.kind,
                when.get(..16).unwrap_or(&when)
            ),
        )
}

/// The words around it, with what was looked for marked.
fn words(hit: &FoundText) -> Text {
    let mut text = Text::default().plain("    ");
    let mut at = 0;
    for (from, to) in &hit.marks {
        let (Some(before), Some(mark)) = (hit.snippet.get(at..*from), hit.snippet.get(*from..*to)) else {
            continue;
        };
        text = text.plain(before.to_owned()).painted(Meaning::Strong, mark.to_owned());
        at = *to;
    }
    text.plain(hit.snippet.get(at..).unwrap_or_default().to_owned())
}
