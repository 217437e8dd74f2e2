//! The resume panel: where the work stands, and the ways to go on.

use segno_engine::core::State;
use segno_engine::core::text::shorten;
use segno_engine::resume::{Options, Recovery};

use crate::context::Context;
use crate::desk::short;
use crate::error::{CommandError, Outcome};
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::style::Meaning;

/// How wide the panel is inside.
const WIDTH: usize = 76;

/// The panel, line by line.
pub(super) fn lines(context: &Context, state: &State, options: &Options) -> Vec<Text> {
    let when = context.moment(options.since);
    let mut lines = vec![edge("┌", &format!(" {} {when} ─ {} ", state.status, options.reason), "┐")];
    let mut row = |label: &str, text: String, meaning: Meaning| {
        let text = shorten(&text.replace('\n', " "), WIDTH - 12);
        lines.push(framed(&format!("{label:<10}"), &text, meaning));
    };
    let topic = state.topic.as_deref().unwrap_or("");
    let phase = state.phase_label().map_or(String::new(), |phase| format!("   phase {phase}"));
    let iteration =
        if state.iteration > 0 { format!("   iteration {}", state.iteration) } else { String::new() };
    row("session", format!("{}   {topic}{phase}{iteration}", short(state.session_id)), Meaning::Plain);
    let mut progress = Vec::new();
    progress.extend(state.progress().map(|percent| format!("{percent} %")));
    if !state.phases_completed.is_empty() {
        progress.push(format!("done: {}", state.phases_completed.join(", ")));
    }
    progress.extend(
        state.metrics.iter().take(4).map(|(name, value)| format!("{name} {}", serde_json::json!(value))),
    );
    if !state.outputs.is_empty() {
        progress.push(format!("outputs: {}", state.outputs.keys().cloned().collect::<Vec<_>>().join(", ")));
    }
    if !progress.is_empty() {
        row("progress", progress.join("   "), Meaning::Plain);
    }
    if let Some(agent) = &options.agent {
        let conversation = match &options.conversation {
            Some(id) => format!("conversation {} can be resumed", shorten(id, 36)),
            None => "no conversation to resume".to_owned(),
        };
        row("agent", format!("{agent}, {conversation}"), Meaning::Plain);
    }
    if let Some(last) = &options.last_action {
        row("last", last.clone(), Meaning::Dim);
    }
    for (tool, input) in options.in_doubt.iter().take(5) {
        row("in doubt", format!("{tool} {input} started, no result recorded"), Meaning::Waiting);
    }
    lines.push(framed("", "", Meaning::Plain));
    for (number, way) in options.ways.iter().enumerate() {
        let recommended = if way.recommended { "   recommended" } else { "" };
        let text = format!("{:<36} {}{recommended}", way.text, way.loses);
        let meaning = if way.recommended { Meaning::Strong } else { Meaning::Plain };
        lines.push(framed(&format!("[{}] ", number + 1), &shorten(&text, WIDTH - 6), meaning));
    }
    let numbers: Vec<String> = (1..=options.ways.len()).map(|number| number.to_string()).collect();
    lines.push(edge("└", &format!(" [{}] resume   [n] new session   [a] abort ", numbers.join("/")), "┘"));
    lines
}

fn edge(left: &str, text: &str, right: &str) -> Text {
    let text = shorten(text, WIDTH);
    let fill = "─".repeat(WIDTH.saturating_sub(width(&text)));
    Text::new()
        .painted(Meaning::Dim, format!("{left}─"))
        .plain(text)
        .painted(Meaning::Dim, format!("{fill}{right}"))
}

fn framed(label: &str, text: &str, meaning: Meaning) -> Text {
    let padding = " ".repeat(WIDTH.saturating_sub(width(label) + width(text)));
    Text::new()
        .painted(Meaning::Dim, "│ ")
        .painted(Meaning::Dim, label)
        .painted(meaning, text)
        .plain(padding)
        .painted(Meaning::Dim, "│")
}

fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// Shows the panel and asks.
pub(super) fn ask(context: &Context, state: &State, options: &Options) -> Outcome<Recovery> {
    for line in lines(context, state, options) {
        context.printer.talk(line);
    }
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|why| CommandError::io("cannot read the answer", why))?;
    let answer = answer.trim().to_lowercase();
    let cancelled = |why: &str| CommandError::new(ExitCode::Cancelled, "cancelled", why.to_owned());
    match answer.as_str() {
        "n" | "new" => Ok(Recovery::Fresh),
        "a" | "abort" | "q" => Err(cancelled("nothing was done")),
        "" | "r" | "resume" => {
            let way = options.ways.iter().find(|way| way.recommended).or(options.ways.first());
            way.map(|way| way.recovery).ok_or_else(|| cancelled("there is no way to go on"))
        }
        number => number
            .parse::<usize>()
            .ok()
            .and_then(|number| options.ways.get(number.checked_sub(1)?))
            .map(|way| way.recovery)
            .ok_or_else(|| cancelled("that is none of the answers; nothing was done")),
    }
}
