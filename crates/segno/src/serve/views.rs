//! What a page shows, as plain words: made of what the engine tells, and put into place by the templates.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp as Moment;
use jiff::tz::TimeZone;
use segno_engine::board::CallLine;
use segno_engine::board::DiffLine;
use segno_engine::board::Moment as Happened;
use segno_engine::board::Need;
use segno_engine::board::Row;
use segno_engine::board::What;
use segno_engine::core::Event;
use segno_engine::core::Status;
use segno_engine::core::Text as Content;
use segno_engine::core::Timestamp;
use segno_engine::core::state::Reason;
use segno_engine::core::text::shorten;

use crate::command_context::short;
use crate::output::event_words::Teller;
use crate::output::sanitize;
use crate::output::style::Meaning;
use crate::output::units;

/// So much of a text is shown at once; the rest is folded away.
const LINES: usize = 14;
const CHARS: usize = 1_600;
/// A difference that is longer is folded.
const DIFF: usize = 24;

/// How times are said: in the user's zone, relative to now.
#[derive(Clone, Debug)]
pub(super) struct Times {
    zone: TimeZone,
    now: Moment,
}

impl Times {
    pub(super) fn new(zone: &TimeZone) -> Self {
        Self { zone: zone.clone(), now: Moment::now() }
    }

    /// The time of day, and the day where that is another one.
    pub(super) fn clock(&self, at: Timestamp) -> String {
        self.clock_us(at.as_micros())
    }

    pub(super) fn clock_us(&self, at_us: i64) -> String {
        let Ok(at) = Moment::from_microsecond(at_us) else { return String::new() };
        let (at, today) = (at.to_zoned(self.zone.clone()), self.now.to_zoned(self.zone.clone()).date());
        at.strftime(if at.date() == today { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" }).to_string()
    }

    /// How long ago.
    pub(super) fn ago(&self, at: Timestamp) -> String {
        let micros = self.now.as_microsecond().saturating_sub(at.as_micros());
        units::age(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
    }

    /// How long until then.
    pub(super) fn left(&self, at: Timestamp) -> String {
        let micros = at.as_micros().saturating_sub(self.now.as_microsecond());
        units::duration(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
    }
}

/// Somebody else's text on a line.
pub(super) fn one_line(text: &str) -> String {
    sanitize::line(text).into_owned()
}

/// The same, and not too long.
pub(super) fn brief_line(text: &str, most: usize) -> String {
    shorten(&one_line(text), most)
}

/// A session's status in a word and a class.
pub(super) fn status_words(status: Status, reason: Option<&Reason>, driven: bool) -> (String, &'static str) {
    let class = match status {
        Status::Active if driven => "works",
        Status::Active => "plain",
        Status::Completed => "good",
        Status::Paused => "waits",
        Status::Interrupted | Status::Halted | Status::Failed | Status::Aborted => "bad",
    };
    let word = if driven && status == Status::Active { "running".to_owned() } else { status.to_string() };
    let parts = reason.filter(|_| !driven).map(|reason| {
        let what = Some(reason.what.as_str()).filter(|what| !what.is_empty() && *what != "asked");
        [what, reason.details.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(", ")
    });
    match parts.filter(|parts| !parts.is_empty()) {
        Some(parts) => (format!("{word}: {}", brief_line(&parts, 90)), class),
        None => (word, class),
    }
}

/// One session of a list.
#[derive(Clone, Debug)]
pub(super) struct SessionRow {
    pub(super) id: String,
    pub(super) short: String,
    pub(super) topic: String,
    pub(super) status: String,
    pub(super) class: &'static str,
    pub(super) project: String,
    pub(super) project_name: String,
    pub(super) agent: String,
    pub(super) phase: String,
    pub(super) progress: Option<u8>,
    pub(super) tokens: String,
    pub(super) cost: String,
    pub(super) low: bool,
    pub(super) age: String,
    pub(super) iso: String,
    pub(super) marks: Vec<String>,
    pub(super) pinned: bool,
}

impl SessionRow {
    pub(super) fn of(row: &Row, times: &Times) -> Self {
        let it = &row.summary;
        let (status, class) = status_words(it.status, it.reason.as_ref(), row.driven);
        let step = it.step.zip(it.of).map(|(step, of)| format!("{step}/{of}"));
        let phase =
            [it.phase.as_deref().map(one_line), step].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let mut marks = Vec::new();
        if it.open_questions > 0 {
            marks.push(format!("asks you {}", units::things(it.open_questions, "question")));
        }
        if it.in_doubt > 0 {
            marks.push(format!("{} in doubt", units::things(it.in_doubt, "call")));
        }
        if let Some(until) = it.waiting_until {
            marks.push(format!("waits until {}", times.clock(until)));
        }
        if it.breaker.as_deref().is_some_and(|breaker| breaker != "CLOSED") {
            marks.push(format!(
                "breaker {}",
                it.breaker.as_deref().unwrap_or_default().to_lowercase().replace('_', " ")
            ));
        }
        if it.archived {
            marks.push("archived".to_owned());
        }
        marks.extend(it.tags.iter().map(|tag| format!("#{}", one_line(tag))));
        Self {
            id: it.session_id.to_string(),
            short: short(it.session_id),
            topic: topic(it.topic.as_deref()),
            status,
            class,
            project: one_line(&it.project),
            project_name: project_name(&it.project),
            agent: it.agent.as_deref().map(one_line).unwrap_or_default(),
            phase,
            progress: it.progress.filter(|_| it.status.is_open()),
            tokens: units::about(it.tokens_used, it.tokens_estimated),
            cost: match it.cost_micros == 0 && it.unpriced_tokens == 0 {
                true => String::new(),
                false => units::money(it.cost_micros, it.unpriced_tokens),
            },
            low: it.budget_warning || it.over_budget,
            age: times.ago(it.updated_at),
            iso: it.updated_at.to_string(),
            marks,
            pinned: it.pinned,
        }
    }
}

pub(super) fn topic(topic: Option<&str>) -> String {
    match topic.map(str::trim).filter(|topic| !topic.is_empty()) {
        Some(topic) => brief_line(topic, 200),
        None => "without a topic".to_owned(),
    }
}

pub(super) fn project_name(path: &str) -> String {
    let name = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
    one_line(&name.unwrap_or_else(|| path.to_owned()))
}

/// The heading of a group.
pub(super) fn need_words(need: Need) -> &'static str {
    match need {
        Need::You => "Needs you",
        Need::Works => "Working",
        Need::Waits => "Waiting",
        Need::Over => "Ended",
    }
}

/// A text: its beginning, and what is folded away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) shown: String,
    pub(super) rest: String,
    pub(super) rest_lines: usize,
    /// How much there is beside, which is not here.
    pub(super) elsewhere: Option<String>,
}

impl Body {
    pub(super) fn of(text: &Content) -> Self {
        let excerpt = text.excerpt();
        let elsewhere = (text.bytes() as usize > excerpt.len()).then(|| units::bytes(text.bytes()));
        Self { elsewhere, ..Self::text(excerpt) }
    }

    pub(super) fn text(text: &str) -> Self {
        let clean = sanitize::block(text.trim_matches('\n'));
        let mut at = clean.len();
        if let Some((cut, _)) = clean.match_indices('\n').nth(LINES - 1) {
            at = cut;
        }
        if let Some((cut, _)) = clean.char_indices().nth(CHARS) {
            at = at.min(cut);
        }
        // A few words more are no reason to fold.
        if clean.len() - at < 160 {
            at = clean.len();
        }
        let (shown, rest) = clean.split_at(at);
        let rest = rest.trim_start_matches('\n').to_owned();
        Self { shown: shown.to_owned(), rest_lines: rest.lines().count(), rest, elsewhere: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shown.trim().is_empty() && self.elsewhere.is_none()
    }

    /// All that is here.
    #[cfg(test)]
    fn whole(&self) -> String {
        if self.rest.is_empty() { self.shown.clone() } else { format!("{}\n{}", self.shown, self.rest) }
    }
}

/// A line of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) class: &'static str,
    pub(super) sign: char,
    pub(super) text: String,
}

impl From<&DiffLine> for Changed {
    fn from(line: &DiffLine) -> Self {
        let class = match line.sign {
            '+' => "add",
            '-' => "del",
            '@' => "at",
            _ => "same",
        };
        Self { class, sign: if line.sign == '@' { ' ' } else { line.sign }, text: one_line(&line.text) }
    }
}

/// A difference as git writes it.
pub(super) fn changed_lines(diff: &str, most: usize) -> Vec<Changed> {
    let line = |line: &str| {
        let (class, sign) = match line.chars().next() {
            _ if ["+++", "---", "diff ", "index ", "@@"].iter().any(|head| line.starts_with(head)) => {
                ("at", ' ')
            }
            Some('+') => ("add", '+'),
            Some('-') => ("del", '-'),
            _ => ("same", ' '),
        };
        let text = if class == "at" { line } else { line.get(1..).unwrap_or_default() };
        Changed { class, sign, text: one_line(text) }
    };
    let mut lines: Vec<Changed> = diff.lines().take(most).map(line).collect();
    if diff.lines().nth(most).is_some() {
        let text = "there is more: segno diff shows all of it".to_owned();
        lines.push(Changed { class: "at", sign: ' ', text });
    }
    lines
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallView {
    pub(super) key: String,
    pub(super) tool: String,
    pub(super) subject: String,
    pub(super) state: String,
    pub(super) class: &'static str,
    pub(super) took: String,
    pub(super) size: String,
    pub(super) added: usize,
    pub(super) removed: usize,
    pub(super) diff: Vec<Changed>,
    pub(super) diff_folded: bool,
    pub(super) input: Body,
    pub(super) output: Body,
    pub(super) ledger: &'static str,
    pub(super) evidence: String,
}

impl CallView {
    pub(super) fn of(call: &CallLine) -> Self {
        let (state, class) = match call.state.as_str() {
            "completed" => ("", "plain"),
            "failed" => ("failed", "waits"),
            "denied" => ("denied", "bad"),
            "in_doubt" => ("in doubt", "doubt"),
            "open" => ("runs", "works"),
            other => (other, "plain"),
        };
        let count = |sign: char| call.diff.iter().filter(|line| line.sign == sign).count();
        // What its subject says already is not said again.
        let says_more = call.diff.is_empty() && !call.input.ends_with(&call.subject);
        Self {
            key: call.key.clone(),
            tool: brief_line(&call.tool, 60),
            subject: brief_line(&call.subject, 240),
            state: one_line(state),
            class,
            took: call.took_ms.map(|took| units::duration(Duration::from_millis(took))).unwrap_or_default(),
            size: if call.output_bytes > 0 { units::bytes(call.output_bytes) } else { String::new() },
            added: count('+'),
            removed: count('-'),
            diff: call.diff.iter().map(Changed::from).collect(),
            diff_folded: call.diff.len() > DIFF,
            input: if says_more { Body::text(&call.input) } else { Body::default() },
            output: call.output.as_ref().map(Body::of).unwrap_or_default(),
            ledger: if call.write_ahead { "recorded before it ran" } else { "seen in the agent's output" },
            evidence: call.evidence.as_deref().map(one_line).unwrap_or_default(),
        }
    }

    /// The same with all of its texts.
    pub(super) fn whole(call: &CallLine) -> Self {
        let mut view = Self::of(call);
        let all = |text: &str| Body { shown: sanitize::block(text).into_owned(), ..Body::default() };
        view.input = all(&call.input);
        if let Some(output) = &call.output {
            view.output = Body { elsewhere: Body::of(output).elsewhere, ..all(output.excerpt()) };
        }
        view.diff_folded = false;
        view
    }
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(super) struct MomentView {
    pub(super) seq: u64,
    pub(super) clock: String,
    pub(super) iso: String,
    /// `you`, `brief`, `agent`, `thought`, `call`, `mark` or `bad`.
    pub(super) class: &'static str,
    pub(super) who: String,
    pub(super) body: Body,
    pub(super) call: Option<CallView>,
    pub(super) word: String,
    pub(super) what: String,
    pub(super) note: String,
    pub(super) meaning: &'static str,
}

/// Tells what happened, in order.
pub(super) struct Moments<'a> {
    times: &'a Times,
    teller: Teller,
    agent: String,
}

impl<'a> Moments<'a> {
    pub(super) fn new(times: &'a Times, root: &str, agent: Option<&str>) -> Self {
        Self { times, teller: Teller::new(root), agent: one_line(agent.unwrap_or("agent")) }
    }

    pub(super) fn all(&mut self, moments: &[Happened]) -> Vec<MomentView> {
        moments.iter().map(|moment| self.one(moment)).filter(|view| !view.is_empty()).collect()
    }

    fn one(&mut self, moment: &Happened) -> MomentView {
        let mut view = MomentView {
            seq: moment.seq,
            clock: if moment.at == Timestamp::EPOCH { String::new() } else { self.times.clock(moment.at) },
            iso: moment.at.to_string(),
            class: "mark",
            who: String::new(),
            body: Body::default(),
            call: None,
            word: String::new(),
            what: String::new(),
            note: String::new(),
            meaning: "plain",
        };
        match &moment.what {
            What::Asked { brief, text } => {
                view.class = if *brief { "brief" } else { "you" };
                view.who = if *brief { "segno tells where the work stands" } else { "you" }.to_owned();
                view.body = Body::of(text);
            }
            What::Said { thinking, parent, text } => {
                view.class = if *thinking { "thought" } else { "agent" };
                let thinks = if *thinking { ", thinking" } else { "" };
                let whose = if parent.is_some() { ", a sub-agent" } else { "" };
                view.who = format!("{}{whose}{thinks}", self.agent);
                view.body = Body::of(text);
            }
            What::Called(call) => {
                view.class = "call";
                view.call = Some(CallView::of(call));
            }
            What::Event { it, .. } => self.event(&mut view, moment.at, it),
            What::Damaged { what } => {
                (view.class, view.meaning) = ("bad", "bad");
                (view.word, view.what) = ("damaged".to_owned(), one_line(what));
            }
        }
        view
    }

    fn event(&mut self, view: &mut MomentView, at: Timestamp, event: &Event) {
        if let Event::RunStarted(e) = event {
            self.agent = one_line(&e.agent);
        }
        let line = self.teller.tell(at, event);
        (view.word, view.what) = (one_line(&line.word), brief_line(&line.what, 400));
        view.note = brief_line(&line.note, 300);
        view.meaning = match line.meaning {
            Meaning::Plain | Meaning::Dim | Meaning::Strong => "plain",
            Meaning::Done => "good",
            Meaning::Waiting => "waits",
            Meaning::Lost => "bad",
        };
    }
}

impl MomentView {
    fn is_empty(&self) -> bool {
        matches!(self.class, "you" | "brief" | "agent" | "thought") && self.body.is_empty()
    }

    /// The address of all of it, inside of its session.
    pub(super) fn link(&self) -> String {
        match &self.call {
            Some(call) => format!("calls/{}", encoded(&call.key)),
            None => format!("e/{}", self.seq),
        }
    }
}

/// A text as a part of an address.
pub(super) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let mut out = String::new();
    for byte in text.bytes() {
        match plain(byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The whole of a text for an event's own page.
pub(super) fn whole(text: &str) -> Body {
    Body { shown: sanitize::block(text).into_owned(), ..Body::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_folded_and_nothing_is_lost() {
        let long = (0..100).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let body = Body::text(&long);
        assert_eq!((body.shown.lines().count(), body.rest_lines), (14, 86));
        assert_eq!(body.whole(), long);
        assert_eq!(Body::text("short").rest, "");
        let wide = "é".repeat(5_000);
        assert_eq!(Body::text(&wide).shown.chars().count(), CHARS);
    }

    #[test]
    fn parts_of_addresses_are_encoded() {
        assert_eq!(encoded("run/1:é a"), "run%2F1%3A%C3%A9%20a");
    }

    #[test]
    fn what_an_agent_wrote_stays_on_its_line() {
        assert_eq!(one_line("a\u{202e}b\x1b[31m\nc"), "a<U+202E>b\\e[31m\\nc");
    }
}
