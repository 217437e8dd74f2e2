//! What an agent's words give away: that it asks, and that something went wrong. They feed the circuit breaker; they
//! never decide that work is complete.

use crate::text;

/// Words of a question. They count in a sentence that ends with a question mark.
const ASKING: &[&[&str]] = &[
    &["should", "i"],
    &["would", "you"],
    &["do", "you", "want"],
    &["which", "approach"],
    &["which", "option"],
    &["how", "should"],
    &["what", "should"],
    &["shall", "i"],
    &["do", "you", "prefer"],
    &["can", "you", "clarify"],
    &["could", "you"],
    &["what", "do", "you", "think"],
];

/// Words that ask in any sentence.
const WAITING: &[&[&str]] = &[
    &["please", "confirm"],
    &["need", "clarification"],
    &["your", "preference"],
    &["can", "you", "clarify"],
    &["let", "me", "know", "which"],
    &["let", "me", "know", "whether"],
    &["let", "me", "know", "if", "you"],
];

/// Two words with anything between them: `waiting for your response`.
const WAITING_FOR: &[(&str, &str)] = &[("awaiting", "input"), ("waiting", "response")];

/// How much of the end is looked at.
const LAST_PARAGRAPHS: usize = 3;

/// Whether the agent ends with a question to somebody. Only its last paragraphs count, without status blocks, code,
/// quotations and quoted lines.
pub fn asks_question(text: &str) -> bool {
    let spoken = spoken(&text::plain(text));
    let paragraphs: Vec<&str> =
        spoken.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()).collect();
    let last = paragraphs.len().saturating_sub(LAST_PARAGRAPHS);
    paragraphs.get(last..).unwrap_or_default().iter().any(|paragraph| sentences(paragraph).any(|s| asks(&s)))
}

/// The text without what the agent does not say itself.
fn spoken(text: &str) -> String {
    let (mut spoken, mut fence, mut block) = (String::new(), None, false);
    for line in text.lines() {
        let start = line.trim_start();
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark)) {
            match fence {
                Some(open) if open == mark => fence = None,
                Some(_) => {}
                None => fence = Some(mark),
            }
            continue;
        }
        if start.starts_with("---") && start.trim_end().ends_with("STATUS---") {
            block = !start.starts_with("---END_");
            continue;
        }
        if fence.is_some() || block || start.starts_with('>') {
            continue;
        }
        spoken.push_str(&without_quotations(line));
        spoken.push('\n');
    }
    spoken
}

/// A line without inline code and quotations. Where one is not closed, the rest of the line stays.
fn without_quotations(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['`', '"', '“']) {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        let mut chars = from.chars();
        let close = match chars.next() {
            Some('“') => '”',
            Some(open) => open,
            None => break,
        };
        let inside = chars.as_str();
        match inside.find(close) {
            Some(end) => {
                kept.push(' ');
                rest = inside.get(end + close.len_utf8()..).unwrap_or("");
            }
            None => {
                kept.push(' ');
                rest = inside;
            }
        }
    }
    kept.push_str(rest);
    kept
}

/// Sentences with the mark at their end.
fn sentences(paragraph: &str) -> impl Iterator<Item = String> {
    let mut all = Vec::new();
    let mut sentence = String::new();
    let mut chars = paragraph.chars().peekable();
    while let Some(c) = chars.next() {
        sentence.push(if c == '\n' { ' ' } else { c });
        let ends = matches!(c, '?' | '!')
            || (c == '.' && chars.peek().is_none_or(|next| next.is_whitespace()))
            // Items of a list do not run into one another.
            || (c == '\n' && chars.peek().is_some_and(|next| "-*•0123456789".contains(*next)));
        if ends {
            all.push(std::mem::take(&mut sentence));
        }
    }
    all.push(sentence);
    all.into_iter()
}

fn asks(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’')
        .filter(|word| !word.is_empty())
        .collect();
    let has = |phrases: &[&[&str]]| {
        phrases.iter().any(|phrase| words.windows(phrase.len()).any(|words| words == *phrase))
    };
    let is_question = sentence.trim_end().ends_with('?');
    let waits = WAITING_FOR.iter().any(|(first, second)| {
        let at = words.iter().position(|word| word == first);
        at.is_some_and(|at| words.get(at..).unwrap_or_default().contains(second))
    });
    (is_question && has(ASKING)) || has(WAITING) || waits
}

/// The most lines that [`error_lines`] gives.
pub const MOST_ERRORS: usize = 100;

/// Lines that tell of an error, without the members of JSON objects that only have the word in their name: at most
/// [`MOST_ERRORS`], the first ones.
pub fn error_lines(text: &str) -> Vec<String> {
    let text = text::plain(text);
    let lines = text.lines().map(str::trim).filter(|line| is_error(line));
    lines.take(MOST_ERRORS).map(|line| line.chars().take(500).collect()).collect()
}

/// What stands before what a test found and what it wanted, and before the tests that fail.
const FAILING: &[&str] = &[
    "left:",
    "right:",
    "E  ",
    "FAILED ",
    "FAIL: ",
    "ERROR: ",
    "--- FAIL",
    "not ok ",
    "Expected:",
    "Received:",
    "✕ ",
    "× ",
    "- Expected",
    "+ Received",
];

/// Lines of a command that failed which tell what is wrong: errors, tests that fail, what they found and what they wanted.
/// Each once, in a fixed order, since runners do not keep to one.
pub fn failure_lines(text: &str) -> Vec<String> {
    let text = text::plain(text);
    let tells = |line: &&str| is_error(line) || FAILING.iter().any(|start| line.starts_with(start));
    let mut lines: Vec<String> =
        text.lines().map(str::trim).filter(tells).map(|line| line.chars().take(500).collect()).collect();
    lines.sort();
    lines.dedup();
    lines.truncate(MOST_ERRORS);
    lines
}

fn is_error(line: &str) -> bool {
    // `"is_error": false` says that all is well.
    if line.starts_with(['{', '[', '"']) && line.contains("\":") {
        return false;
    }
    let starts = ["Error:", "ERROR:", "error:", "error[", "Fatal:", "FATAL:", "fatal:", "FATAL ", "panic: "];
    let contains = ["]: error", "Link: error", "Error occurred", "failed with error", "Fatal error"];
    // Newer ones have a number between the name and the verb.
    let panics = line.starts_with("thread '") && line.contains(" panicked at ");
    panics
        || starts.iter().any(|start| line.starts_with(start))
        || contains.iter().any(|part| line.contains(part))
        || is_exception(line)
}

/// `ValueError: no`, `java.lang.NullPointerException: null`, `Unhandled exception`.
fn is_exception(line: &str) -> bool {
    let lower = line.to_lowercase();
    if ["unhandled exception", "uncaught exception"].iter().any(|words| lower.contains(words)) {
        return true;
    }
    let name = line.split([':', ' ']).next().unwrap_or("");
    let named = name.ends_with("Error") || name.ends_with("Exception");
    let class =
        name.rsplit('.').next().is_some_and(|class| class.starts_with(|c: char| c.is_ascii_uppercase()));
    named && class && line.get(name.len()..).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}
