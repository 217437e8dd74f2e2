//! What a run looks like on a terminal: one calm line for each thing that was done.

use std::collections::BTreeMap;
use std::time::Duration;
use std::time::Instant;

use jiff::tz::TimeZone;
use segno_engine::core::Event;
use segno_engine::core::State;
use segno_engine::core::Text as Content;
use segno_engine::core::Timestamp;
use segno_engine::core::call::subject;
use segno_engine::core::event::CallEnd;
use segno_engine::core::event::Channel;
use segno_engine::core::text::shorten;
use segno_engine::run::Report;
use segno_engine::run::Request;
use segno_engine::run::outcome_word;
use serde_json::Value;

use crate::command_context::CommandContext;
use crate::context::Context;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::output::units;

/// A call that takes longer is shown before it has ended.
const LONG: Duration = Duration::from_secs(3);
/// How wide the middle of a line is.
const WIDTH: usize = 48;
/// How many calls are remembered at once.
const CALLS: usize = 1_000;
/// What a line that goes on below leaves free beside it.
const MARGIN: usize = 5;

/// Shows events as they come.
pub struct View<'a> {
    context: &'a Context,
    open: BTreeMap<String, Call>,
    ended: std::collections::VecDeque<String>,
    zone: TimeZone,
    /// Whether checkpoints hold files, which takes a moment.
    keeps_files: bool,
}

struct Call {
    tool: String,
    what: String,
    at: Timestamp,
    since: Instant,
    shown: bool,
}

impl<'a> View<'a> {
    /// An empty one.
    pub fn new(context: &'a Context) -> Self {
        let keeps_files = context.config().is_ok_and(|config| config.checkpoint.files);
        Self { context, open: BTreeMap::new(), ended: Default::default(), zone: context.zone(), keeps_files }
    }

    /// Knows the calls that were open before anything is shown: their ends say neither with what nor since when.
    pub fn know_open_calls(&mut self, state: &State) {
        for (id, call) in state.calls.open.iter().take(CALLS) {
            let what =
                serde_json::from_str(&call.input).map_or_else(|_| call.input.clone(), |it| subject(&it));
            let (tool, at) = (call.tool.clone(), call.at);
            self.open.insert(id.clone(), Call { tool, what, at, since: Instant::now(), shown: false });
        }
    }

    /// Shows one event.
    pub fn show(&mut self, _seq: u64, at: Timestamp, event: &Event) {
        match event {
            Event::ToolStarted(e) => {
                let known = self.open.contains_key(&e.call) || self.ended.contains(&e.call);
                if self.open.len() < CALLS && !known {
                    let call = Call {
                        tool: e.tool.clone(),
                        what: subject(&e.input),
                        at,
                        since: Instant::now(),
                        shown: false,
                    };
                    self.open.insert(e.call.clone(), call);
                }
            }
            Event::ToolEnded(e) => self.ended(at, e),
            Event::Said(e) if e.parent.is_none() => {
                let (word, meaning) = match e.channel {
                    Channel::Text => ("says", Meaning::Plain),
                    Channel::Thinking => ("thinks", Meaning::Dim),
                    Channel::Input => return,
                };
                let first = e.text.excerpt().lines().map(str::trim).find(|line| !line.is_empty());
                let size = units::bytes(e.text.bytes());
                self.line(at, "▸", word, first.unwrap_or(""), "", &size, meaning);
            }
            Event::ErrorRecorded(e) => {
                let first = e.message.excerpt().lines().next().unwrap_or("").to_owned();
                self.line(at, "✗", "error", &first, "", "", Meaning::Lost);
            }
            // Shown when its files are on disk, like a call that has ended.
            Event::CheckpointCreated(e) if self.keeps_files => {
                let (tool, what) = ("checkpoint".to_owned(), e.id.to_string());
                let call = Call { tool, what, at, since: Instant::now(), shown: false };
                self.open.insert(checkpoint_key(e.ordinal), call);
            }
            Event::CheckpointCreated(e) => {
                self.line(at, "●", "checkpoint", e.id.as_str(), "", "", Meaning::Dim);
            }
            Event::CheckpointReady(e) => {
                let files = e.snapshot.as_ref().map(|snapshot| units::things(snapshot.changed, "file"));
                self.checkpointed(at, "●", e.ordinal, &files.unwrap_or_default(), Meaning::Dim);
            }
            Event::CheckpointFailed(e) => {
                self.checkpointed(at, "✗", e.ordinal, "without files", Meaning::Waiting);
            }
            Event::BudgetWarned(e) => {
                let amount = crate::output::event_words::amount;
                let text = format!("{} of {}", amount(e.unit, e.used), amount(e.unit, e.total));
                self.line(at, "!", "budget", &text, "", "", Meaning::Waiting);
            }
            Event::Reported(e) => self.report(at, &e.what, &e.body),
            Event::IterationEnded(e) => {
                self.wrapped(crate::output::loop_words::verdict_meaning(&e.verdict), &e.line);
            }
            Event::LoopParked(e) => {
                self.wrapped(Meaning::Waiting, &format!("parked: {}", e.words));
            }
            Event::SessionInterrupted(_) | Event::SessionPaused(_) | Event::RunAdopted(_) => {}
            _ => {}
        }
    }

    /// Says something that matters whole: on a narrow terminal it goes on below, cut between words.
    fn wrapped(&self, meaning: Meaning, words: &str) {
        let printer = &self.context.printer;
        let room = printer.talks_to_terminal().then(|| printer.size().0.saturating_sub(MARGIN));
        for (number, line) in crate::output::text::wrap(words, room).iter().enumerate() {
            let margin = if number == 0 { 2 } else { MARGIN - 1 };
            printer.talk(Text::new().painted(meaning, format!("{:margin$}{line}", "")));
        }
    }

    fn ended(&mut self, at: Timestamp, ended: &segno_engine::core::event::ToolEnded) {
        if self.ended.contains(&ended.call) {
            return;
        }
        self.ended.push_back(ended.call.clone());
        if self.ended.len() > 256 {
            self.ended.pop_front();
        }
        let call = self.open.remove(&ended.call);
        let tool = call.as_ref().map(|call| call.tool.clone()).or_else(|| ended.tool.clone());
        let what = call.as_ref().map_or("", |call| call.what.as_str()).to_owned();
        let took = call
            .map_or(String::new(), |call| units::duration(Duration::from_micros(at.micros_since(call.at))));
        let (meaning, word) = match ended.end {
            CallEnd::Completed => (Meaning::Plain, String::new()),
            CallEnd::Failed => (Meaning::Waiting, failed(ended.output.as_ref())),
            CallEnd::Denied => (Meaning::Lost, "denied".to_owned()),
            CallEnd::InDoubt => (Meaning::Waiting, "in doubt".to_owned()),
        };
        let size = match &ended.output {
            Some(output) if word.is_empty() => units::bytes(output.bytes()),
            _ => word,
        };
        // What went wrong must be seen without colour too.
        let sign = match ended.end {
            CallEnd::Completed => "▸",
            CallEnd::Failed | CallEnd::Denied => "✗",
            CallEnd::InDoubt => "?",
        };
        self.line(at, sign, tool.as_deref().unwrap_or("tool"), &what, &took, &size, meaning);
    }

    fn checkpointed(&mut self, at: Timestamp, sign: &str, ordinal: u64, files: &str, meaning: Meaning) {
        if let Some(call) = self.open.remove(&checkpoint_key(ordinal)) {
            let took = units::duration(Duration::from_micros(at.micros_since(call.at)));
            self.line(call.at, sign, &call.tool, &call.what, &took, files, meaning);
        }
    }

    fn report(&self, at: Timestamp, what: &str, body: &Value) {
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
        match what {
            "retry" => {
                let attempt = body.get("attempt").and_then(Value::as_u64).unwrap_or(0);
                self.line(
                    at,
                    "↻",
                    "retry",
                    &format!("attempt {attempt}"),
                    "",
                    &text("error"),
                    Meaning::Waiting,
                );
            }
            "notice" if text("level") == "warning" => {
                self.line(at, "!", "notice", &text("text"), "", "", Meaning::Waiting);
            }
            "limit" => self.line(at, "!", "limit", &text("status"), "", "", Meaning::Waiting),
            "compaction" => self.line(at, "●", "compaction", &text("phase"), "", "", Meaning::Dim),
            "watchdog" | "stopping" => {
                self.line(at, "‖", what, &text("why"), "", &text("did"), Meaning::Waiting)
            }
            "sub_agent_started" => {
                self.line(at, "▸", "sub-agent", &text("description"), "", "started", Meaning::Plain);
            }
            _ => {}
        }
    }

    /// Shows what takes long.
    pub fn tick(&mut self) {
        self.show_calls(LONG);
    }

    /// Shows every call that has not ended.
    pub fn show_open(&mut self) {
        self.show_calls(Duration::ZERO);
    }

    fn show_calls(&mut self, after: Duration) {
        let due: Vec<(Timestamp, String, String)> = self
            .open
            .values_mut()
            .filter(|call| !call.shown && call.since.elapsed() >= after)
            .map(|call| {
                call.shown = true;
                (call.at, call.tool.clone(), call.what.clone())
            })
            .collect();
        for (at, tool, what) in due {
            self.line(at, "…", &tool, &what, "", "running", Meaning::Dim);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the columns of one line")]
    fn line(
        &self,
        at: Timestamp,
        sign: &str,
        word: &str,
        what: &str,
        took: &str,
        size: &str,
        meaning: Meaning,
    ) {
        let columns = Columns::of(self.context.printer.width(), size);
        let what = shorten(&what.replace(['\n', '\t'], " "), columns.what);
        let padding = " "
            .repeat((columns.what + 1).saturating_sub(unicode_width::UnicodeWidthStr::width(what.as_str())));
        let clock = if columns.clock { format!("{}  ", clock(at, &self.zone)) } else { String::new() };
        let text = Text::new()
            .painted(Meaning::Dim, format!("  {clock}"))
            .painted(meaning, format!("{sign} {:<10} ", shorten(word, 24)))
            .plain(what)
            .plain(padding)
            .painted(Meaning::Dim, format!("{took:>8}  {:>9}", shorten(size, 40)));
        self.context.printer.talk(match self.context.printer.width() {
            Some(width) => text.cut(width),
            None => text,
        });
    }
}

/// How a line is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Columns {
    /// Whether there is room for the time.
    clock: bool,
    /// How wide the middle is.
    what: usize,
}

impl Columns {
    /// All the room that a terminal has goes to what was done; a long word at the end takes some of it.
    fn of(width: Option<usize>, size: &str) -> Self {
        let Some(width) = width else { return Self { clock: true, what: WIDTH } };
        let longer = unicode_width::UnicodeWidthStr::width(size).min(40).saturating_sub(9);
        let clock = width >= 66;
        let rest = if clock { 45 } else { 35 };
        Self { clock, what: width.saturating_sub(rest + longer).clamp(10, 110) }
    }
}

/// Under which name the making of a checkpoint is remembered among the calls.
fn checkpoint_key(ordinal: u64) -> String {
    format!("checkpoint {ordinal}")
}

fn clock(at: Timestamp, zone: &TimeZone) -> String {
    jiff::Timestamp::from_microsecond(at.as_micros()).map_or_else(
        |_| "--:--:--".to_owned(),
        |at| at.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string(),
    )
}

/// That a call failed, and how.
fn failed(output: Option<&Content>) -> String {
    let first = output.and_then(|text| {
        text.excerpt().lines().map(str::trim).find(|line| !line.is_empty()).map(ToOwned::to_owned)
    });
    first.map_or_else(|| "failed".to_owned(), |line| format!("failed: {}", shorten(&line, 32)))
}

/// The first lines of a run: what it is, and what to do if it stops.
pub(super) fn banner(ctx: &CommandContext<'_>, state: &State, request: &Request) {
    let context = ctx.context;
    context.printer.talk(headline(state, request, context.printer.width()));
    let text = format!(
        "  recorded as it happens; if it stops: segno resume {}",
        ctx.engine.ending(state.session_id)
    );
    context.printer.talk(Text::new().painted(Meaning::Dim, text));
}

/// What the run is, on one line: the topic gives way on a narrow terminal.
fn headline(state: &State, request: &Request, width: Option<usize>) -> Text {
    use unicode_width::UnicodeWidthStr as _;
    const LEAST: usize = 10;
    let version = request.version.as_deref().map_or(String::new(), |version| format!(" {version}"));
    let agent = format!("   {}{version}", request.agent.name());
    let text = Text::new()
        .painted(Meaning::Strong, "segno")
        .plain("  session ")
        .painted(Meaning::Dim, crate::command_context::short(state.session_id));
    let topic =
        Text::new().plain(state.topic.as_ref().map_or_else(String::new, |topic| format!("  {topic}")));
    let taken = text.to_line().width() + agent.width();
    let topic = match width {
        Some(width) => topic.cut(width.saturating_sub(taken).max(LEAST)),
        None => topic,
    };
    text.then(topic).painted(Meaning::Dim, agent)
}

/// The last lines of a run.
pub(super) fn summary(ctx: &CommandContext<'_>, report: &Report) {
    let context = ctx.context;
    use segno_engine::agents::OutcomeKind;
    let outcome = &report.outcome;
    let meaning = match outcome.outcome {
        OutcomeKind::Completed => Meaning::Done,
        OutcomeKind::Failed | OutcomeKind::Interrupted | OutcomeKind::AgentMissing => Meaning::Lost,
        _ => Meaning::Waiting,
    };
    let mut parts = vec![format!("in {}", units::duration(report.took))];
    if outcome.turns > 0 {
        parts.push(units::things(outcome.turns, "turn"));
    }
    if outcome.tool_calls > 0 {
        parts.push(units::things(outcome.tool_calls, "call"));
    }
    let total = outcome.tokens.total();
    if total > 0 {
        let cached = outcome.tokens.cache_read;
        let about = if outcome.tokens_exact { "" } else { "about " };
        let cached = if cached > 0 { format!(" ({} cached)", units::count(cached)) } else { String::new() };
        parts.push(format!("{about}{}{cached}", units::tokens(total)));
    }
    if let Some(cost) = outcome.cost_usd.filter(|cost| *cost > 0.0) {
        parts.push(units::dollars((cost * 1e6).round() as u64));
    }
    if !outcome.denials.is_empty() {
        parts.push(format!("{} denied", outcome.denials.len()));
    }
    if report.swept > 0 {
        parts.push(format!("{} left behind, ended", units::things(report.swept, "process")));
    }
    let word = outcome_word(outcome.outcome).replace('_', " ");
    let text = Text::new().plain("  ").painted(meaning, word).plain("   ").plain(parts.join("   "));
    context.printer.talk(text);
    let state = &report.state;
    if !state.metrics.is_empty() {
        let metrics = format!("  metrics   {}", crate::commands::show::metrics(state));
        context.printer.talk(Text::new().painted(Meaning::Dim, metrics));
    }
    if outcome.outcome == OutcomeKind::Completed {
        context.printer.hint(format!(
            "segno show {0}   segno log {0}   segno undo --session {0}",
            ctx.engine.ending(state.session_id)
        ));
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::no_terminal(None, "14 B", true, 48)]
    #[case::narrow(Some(60), "14 B", false, 25)]
    #[case::usual(Some(80), "14 B", true, 35)]
    #[case::with_a_word(Some(80), "failed: no such file", true, 24)]
    #[case::wide(Some(120), "14 B", true, 75)]
    #[case::very_wide(Some(200), "14 B", true, 110)]
    #[case::hardly_any(Some(20), "14 B", false, 10)]
    fn lines_use_the_room_there_is(
        #[case] width: Option<usize>,
        #[case] size: &str,
        #[case] clock: bool,
        #[case] what: usize,
    ) {
        assert_eq!(Columns::of(width, size), Columns { clock, what });
    }
}
