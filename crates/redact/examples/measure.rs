//! Measures the redactor on labelled files: how many secrets it finds in several wrappings, how many harmless texts
//! it touches, and how fast it is.
//!
//! Arguments: files of JSON lines, or of one JSON array, of `{"label": 0 or 1, "rule": …, "text": …}`; any other file is
//! read as plain text and only timed. `--missed` lists the raw misses, `--flagged` the false flags.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program to be run by hand: it reads files, keeps time and prints"
)]

#[path = "../tests/common/base64.rs"]
mod base64;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use segno_redact::Options;
use segno_redact::Pieces;
use segno_redact::Redactor;
use serde::Deserialize;

#[derive(Deserialize)]
struct Sample {
    label: u8,
    rule: String,
    text: String,
}

fn main() {
    let (flags, files): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    let listing = |name: &str| flags.iter().any(|flag| flag == name);
    let started = Instant::now();
    let redactor = Redactor::new(Options::default());
    println!("new: {:?}", started.elapsed());
    let started = Instant::now();
    black_box(redactor.text("first text"));
    println!("first text: {:?}", started.elapsed());
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else {
            eprintln!("cannot read {file}");
            continue;
        };
        println!("\n{file}");
        match samples(&text) {
            Some(samples) => recall(&redactor, &samples, listing("--missed"), listing("--flagged")),
            None => excerpt(&redactor, &text, listing("--flagged")),
        }
        speed(&redactor, &text);
    }
}

fn samples(text: &str) -> Option<Vec<Sample>> {
    if let Ok(list) = serde_json::from_str(text) {
        return Some(list);
    }
    text.lines().filter(|line| !line.trim().is_empty()).map(|line| serde_json::from_str(line).ok()).collect()
}

type Wrapping = (&'static str, fn(&Redactor, &str) -> bool);

const WRAPPINGS: [Wrapping; 12] = [
    ("raw", |r, text| r.text(text) != text),
    ("plain lines", lines),
    ("grep -n", |r, text| changes(r, &prefixed(text, |n| format!("{n}:")))),
    ("file:line:", |r, text| changes(r, &prefixed(text, |n| format!("src/deploy.sh:{n}:")))),
    ("cat -n", |r, text| changes(r, &prefixed(text, |n| format!("{n:6}\t")))),
    ("diff", |r, text| changes(r, &prefixed(text, |_| "+".to_owned()))),
    ("yaml block", |r, text| changes(r, &format!("data: |\n{}", prefixed(text, |_| "    ".to_owned())))),
    ("json line", |r, text| changes(r, &line(text))),
    ("json in json", |r, text| changes(r, &line(&line(text)))),
    ("ansi", |r, text| changes(r, &coloured(text))),
    ("pieces", pieces),
    ("base64", |r, text| changes(r, &format!("x {} y", base64::base64(text.as_bytes())))),
];

fn changes(redactor: &Redactor, text: &str) -> bool {
    redactor.text(text) != text
}

fn line(text: &str) -> String {
    serde_json::json!({"type": "tool_result", "content": [{"type": "text", "text": text}]}).to_string()
}

/// As a search tool would show it: every longer word in colour from its fourth character on.
fn coloured(text: &str) -> String {
    let mut out = String::new();
    let mut run = 0;
    for c in text.chars() {
        if c.is_alphanumeric() {
            run += 1;
            if run == 4 {
                out.push_str("\u{1b}[01;31m\u{1b}[K");
            }
        } else {
            if run >= 4 {
                out.push_str("\u{1b}[m\u{1b}[K");
            }
            run = 0;
        }
        out.push(c);
    }
    out
}

/// The text in small pieces among other text, given back joined.
fn streamed(redactor: &Redactor, text: &str) -> String {
    let mut pieces = Pieces::new();
    let mut out = String::new();
    let mut rest = text;
    let mut seed = text.len() as u64 + 17;
    while !rest.is_empty() {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let wanted = (seed >> 33) as usize % 9 + 1;
        let cut = rest.char_indices().nth(wanted).map_or(rest.len(), |(at, _)| at);
        pieces.push(&rest[..cut], "", ());
        out.extend(pieces.give(redactor).into_iter().map(|(_, text)| text));
        rest = &rest[cut..];
    }
    out.extend(pieces.finish(redactor).into_iter().map(|(_, text)| text));
    out
}

fn pieces(redactor: &Redactor, text: &str) -> bool {
    streamed(redactor, text) != text
}

/// Line by line, as a plain command prints it.
fn lines(redactor: &Redactor, text: &str) -> bool {
    let mut pieces = Pieces::new();
    let mut out = Vec::new();
    for line in text.lines() {
        pieces.push(line, "\n", ());
        out.extend(pieces.give(redactor).into_iter().map(|(_, text)| text));
    }
    out.extend(pieces.finish(redactor).into_iter().map(|(_, text)| text));
    out.join("\n") != text.lines().collect::<Vec<_>>().join("\n")
}

/// Every line with something before it.
fn prefixed(text: &str, prefix: impl Fn(usize) -> String) -> String {
    let lines: Vec<String> =
        text.lines().enumerate().map(|(n, line)| format!("{}{line}", prefix(n + 1))).collect();
    lines.join("\n")
}

fn recall(redactor: &Redactor, samples: &[Sample], missed: bool, flagged: bool) {
    for (name, found) in WRAPPINGS {
        let mut counts = [(0, 0); 2];
        for sample in samples.iter().filter(|sample| !sample.text.trim().is_empty()) {
            let count = &mut counts[usize::from(sample.label.min(1))];
            count.1 += 1;
            count.0 += usize::from(found(redactor, &sample.text));
        }
        let [(flags, negatives), (hits, positives)] = counts;
        let share = 100.0 * hits as f64 / positives.max(1) as f64;
        println!("  {name:14} recall {share:6.2} % of {positives}, flagged {flags} of {negatives}");
    }
    let mut misses: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.label == 1 && !changes(redactor, &sample.text)) {
        misses.entry(&sample.rule).or_default().push(&sample.text);
    }
    if missed {
        for (rule, texts) in misses {
            println!("  missed {rule} ({})", texts.len());
            for text in texts.iter().take(4) {
                println!("    {:?}", text.chars().take(300).collect::<String>());
            }
        }
    }
    if flagged {
        for sample in samples.iter().filter(|sample| sample.label == 0) {
            let new = redactor.text(&sample.text);
            if new != sample.text {
                println!("  flagged {}: {:?}\n    {:?}", sample.rule, head(&sample.text), head(&new));
            }
        }
    }
}

fn head(text: &str) -> String {
    text.chars().take(220).collect()
}

fn excerpt(redactor: &Redactor, text: &str, flagged: bool) {
    let mut count = 0;
    for line in text.lines() {
        let new = redactor.text(line);
        if new != line {
            count += 1;
            if flagged && let Some(at) = new.find("[redacted:") {
                let from = (0..=at.saturating_sub(80)).rev().find(|&i| new.is_char_boundary(i)).unwrap_or(0);
                println!("  {}", new[from..].chars().take(160).collect::<String>());
            }
        }
    }
    println!("  {count} of {} lines changed", text.lines().count());
}

fn speed(redactor: &Redactor, text: &str) {
    let rounds = (32_000_000 / text.len().max(1)).clamp(1, 200);
    let timed = |work: &dyn Fn()| {
        let started = Instant::now();
        (0..rounds).for_each(|_| work());
        rate(text.len() * rounds, started)
    };
    let redact = |text: &str| {
        black_box(redactor.text(text));
    };
    let suspect = |text: &str| {
        black_box(redactor.suspects(text));
    };
    let lines = timed(&|| text.lines().for_each(redact));
    let suspects = timed(&|| text.lines().for_each(suspect));
    let pages = timed(&|| pages(text).for_each(redact));
    println!("  {lines:.1} MB/s by lines, suspects {suspects:.1} MB/s; {pages:.1} MB/s by pages");
}

/// Parts of some kilobytes, as tools print them.
fn pages(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (page, after) = rest.split_at(rest.floor_char_boundary(16 * 1024));
        rest = after;
        (!page.is_empty()).then_some(page)
    })
}

fn rate(bytes: usize, started: Instant) -> f64 {
    bytes as f64 / 1e6 / started.elapsed().as_secs_f64()
}
