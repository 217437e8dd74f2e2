//! The resume panel: where the work stands, and the ways to go on.

use segno_engine::core::State;
use segno_engine::core::event::Unit;
use segno_engine::core::text::shorten;
use segno_engine::resume::OptionOffered;
use segno_engine::resume::Options;
use segno_engine::resume::Recovery;
use segno_engine::run::living_agent;

use crate::command_context::CommandContext;
use crate::command_context::extend_hint;
use crate::command_context::short;
use crate::context::Context;
use crate::error::Outcome;
use crate::output::Text;
use crate::output::phase_words;
use crate::output::style::Meaning;
use crate::output::text::wrap;

/// How wide the panel is inside, where nobody says how wide the terminal is.
const WIDTH: usize = 76;
/// It gets no wider than lines can be read, and no narrower than a word or two; its answers stand below each other there.
const WIDEST: usize = 200;
const NARROWEST: usize = 24;
/// Most lines that one text takes.
const LINES: usize = 3;

/// What somebody answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Go on from there.
    ResumeFrom(Recovery),
    /// Begin a new session, and leave this one as it is.
    New,
    /// Give this one up.
    GiveUp,
    /// Leave everything as it is.
    Nothing,
}

/// A frame of a certain width.
pub(super) struct Panel {
    width: usize,
    pub(super) lines: Vec<Text>,
}

/// The panel, line by line.
pub(super) fn lines(ctx: &CommandContext<'_>, state: &State, options: &Options) -> Vec<Text> {
    let context = ctx.context;
    let mut panel = Panel::new(context);
    let when = context.moment(options.since);
    panel.edge("┌", &format!(" {} {when} ─ {} ", state.status, options.reason), "┐");
    let topic = state.topic.as_deref().unwrap_or("");
    let phase = state.phase_label().map_or(String::new(), |phase| format!("   phase {phase}"));
    let iteration =
        if state.iteration > 0 { format!("   iteration {}", state.iteration) } else { String::new() };
    panel.row("session", &format!("{}   {topic}{phase}{iteration}", short(state.session_id)), Meaning::Plain);
    let mut progress = Vec::new();
    progress.extend(state.progress().map(|percent| format!("{percent} %")));
    progress.extend(phase_words::phases(state, &Default::default()));
    progress.extend(phase_words::metrics_beside(state).into_iter().take(4));
    if !state.outputs.is_empty() {
        progress.push(format!("outputs: {}", state.outputs.keys().cloned().collect::<Vec<_>>().join(", ")));
    }
    if !progress.is_empty() {
        panel.row("progress", &progress.join("   "), Meaning::Plain);
    }
    if let Some(file) = &state.file {
        panel.row("file", file, Meaning::Plain);
    }
    if let Some(branch) = &state.branch {
        panel.row("branch", branch, Meaning::Plain);
    }
    if let Some(agent) = &options.agent {
        let conversation = match &options.conversation {
            Some(id) => format!("conversation {id} can be resumed"),
            None => "no conversation to resume".to_owned(),
        };
        panel.row("agent", &format!("{agent}, {conversation}"), Meaning::Plain);
    }
    if let Some(alive) = living_agent(state) {
        let words = format!("its process (pid {}) still runs, and is stopped first", alive.pid);
        panel.row("", &words, Meaning::Waiting);
    }
    if let Some(last) = &options.last_action {
        panel.row("last", last, Meaning::Dim);
    }
    let used_up = [
        (state.budget.is_exhausted(), "tokens", Unit::Tokens),
        (state.cost.is_exhausted(), "money", Unit::Cost),
    ];
    for (_, what, unit) in used_up.into_iter().filter(|(is, ..)| *is) {
        let first = extend_hint(unit, Some(ctx.engine.ending(state.session_id)));
        panel.row("budget", &format!("of {what} is used up; no agent starts before {first}"), Meaning::Lost);
    }
    for (tool, input) in options.in_doubt.iter().take(5) {
        panel.row("in doubt", &format!("{tool} {input} started, no result recorded"), Meaning::Waiting);
    }
    panel.framed("", "", Meaning::Plain);
    for (number, option) in options.offered.iter().enumerate() {
        let recommended = if option.recommended { "   recommended" } else { "" };
        let loses = format!("{}{recommended}", option.loses);
        let meaning = if option.recommended { Meaning::Strong } else { Meaning::Plain };
        let (label, line) = (format!("[{}] ", number + 1), format!("{:<36} {loses}", option.text));
        if panel.has_room_for(&label, &line) {
            panel.framed(&label, &line, meaning);
        } else {
            // What it costs is what the choice is about: it gets lines of its own.
            panel.framed(&label, &option.text, meaning);
            panel.framed("      ", &loses, meaning);
        }
    }
    let numbers: Vec<String> = (1..=options.offered.len()).map(|number| number.to_string()).collect();
    let resume = format!("[{}] resume", numbers.join("/"));
    let mut keys = vec![resume.as_str(), "[n] new session", "[a] abort this one", "[q] nothing"];
    // A loop is begun with its plan, not from here.
    keys.retain(|key| state.looping.is_none() || *key != "[n] new session");
    panel.keys(&keys);
    panel.lines
}

impl Panel {
    /// An empty one, as wide as the terminal.
    pub(super) fn new(context: &Context) -> Self {
        // Two for the frame on the left, one on the right.
        let width =
            context.printer.width().map_or(WIDTH, |width| width.saturating_sub(3).clamp(NARROWEST, WIDEST));
        Self { width, lines: Vec::new() }
    }

    pub(super) fn row(&mut self, label: &str, text: &str, meaning: Meaning) {
        self.framed(&format!("{label:<10}"), &text.replace('\n', " "), meaning);
    }

    pub(super) fn edge(&mut self, left: &str, text: &str, right: &str) {
        let text = shorten(text, self.width);
        let fill = "─".repeat(self.width.saturating_sub(width(&text)));
        self.lines.push(
            Text::new()
                .painted(Meaning::Dim, format!("{left}─"))
                .plain(text)
                .painted(Meaning::Dim, format!("{fill}{right}")),
        );
    }

    /// The last edge, with the answers in it; on lines of their own where it is too short for them.
    pub(super) fn keys(&mut self, keys: &[&str]) {
        let line = format!(" {} ", keys.join("   "));
        if width(&line) <= self.width {
            return self.edge("└", &line, "┘");
        }
        for key in keys {
            self.framed("", key, Meaning::Plain);
        }
        self.edge("└", "", "┘");
    }

    fn room(&self, label: &str) -> usize {
        self.width.saturating_sub(width(label) + 1)
    }

    fn has_room_for(&self, label: &str, text: &str) -> bool {
        width(text) <= self.room(label)
    }

    /// A line inside the frame, and as many more as its text needs, up to [`LINES`].
    pub(super) fn framed(&mut self, label: &str, text: &str, meaning: Meaning) {
        let mut rest = wrap(text, Some(self.room(label)));
        if rest.len() > LINES {
            let last = rest.split_off(LINES - 1).join(" ");
            rest.push(shorten(&last, self.room(label)));
        }
        let blank = " ".repeat(width(label));
        for (number, line) in rest.iter().enumerate() {
            self.line(if number == 0 { label } else { &blank }, line, meaning);
        }
    }

    fn line(&mut self, label: &str, text: &str, meaning: Meaning) {
        let padding = " ".repeat(self.width.saturating_sub(width(label) + width(text)));
        self.lines.push(
            Text::new()
                .painted(Meaning::Dim, "│ ")
                .painted(Meaning::Dim, label)
                .painted(meaning, text)
                .plain(padding)
                .painted(Meaning::Dim, "│"),
        );
    }
}

fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// Shows the panel and asks.
pub(super) fn ask(ctx: &CommandContext<'_>, state: &State, options: &Options) -> Outcome<Answer> {
    let context = ctx.context;
    for line in lines(ctx, state, options) {
        context.printer.talk(line);
    }
    let from = |option: Option<&OptionOffered>| option.map(|option| Answer::ResumeFrom(option.recovery));
    let chosen = |answer: &str| match answer {
        "n" | "new" if state.looping.is_none() => Some(Answer::New),
        "a" | "abort" => Some(Answer::GiveUp),
        "q" | "quit" => Some(Answer::Nothing),
        "" | "r" | "resume" => {
            from(options.offered.iter().find(|option| option.recommended).or(options.offered.first()))
        }
        number => from(number.parse::<usize>().ok().and_then(|n| options.offered.get(n.checked_sub(1)?))),
    };
    crate::ask::choice(context, chosen)
}
