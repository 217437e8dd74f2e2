//! Measures the redactor on labelled files: how many secrets it finds in several wrappings, how many harmless texts
//! it touches, and how fast it is.
//!
//! Arguments: files of JSON lines, or of one JSON array, of `{"label": 0 or 1, "rule": …, "text": …}` or of
//! `{"class": …, "text": …, "secret": …}`, where the secret itself has to be gone and an empty one means a look-alike; any
//! other file is read as plain text. A directory is read file by file, as ordinary text in which nothing should be found.
//! `--missed` lists the raw misses, `--flagged` the false flags, `--quick` leaves out the wrappings and the speed.
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
use std::path::Path;
use std::time::Instant;

use segno_redact::Options;
use segno_redact::Pieces;
use segno_redact::Redactor;
use serde::Deserialize;

#[derive(Deserialize)]
struct Sample {
    #[serde(default)]
    label: u8,
    #[serde(alias = "class")]
    rule: String,
    text: String,
    /// What has to be gone; without it any change counts.
    secret: Option<String>,
}

impl Sample {
    fn is_secret(&self) -> bool {
        self.secret.as_ref().map_or(self.label == 1, |secret| !secret.is_empty())
    }

    /// Whether the secret is gone from what the redactor made of the text.
    fn is_gone(&self, new: &str) -> bool {
        let Some(secret) = self.secret.as_deref().filter(|secret| !secret.is_empty()) else {
            return new != self.text;
        };
        let middle = secret.floor_char_boundary(secret.len() / 2);
        let half = secret.len() >= 16 && (new.contains(&secret[..middle]) || new.contains(&secret[middle..]));
        !half && !new.contains(secret)
    }
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
    let quick = listing("--quick");
    for file in files {
        if Path::new(&file).is_dir() {
            println!("\n{file}");
            ordinary(&redactor, Path::new(&file), listing("--flagged"));
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&file) else {
            eprintln!("cannot read {file}");
            continue;
        };
        println!("\n{file}");
        match samples(&text) {
            Some(samples) => {
                let wrappings = if quick { &[] } else { &WRAPPINGS[..] };
                recall(&redactor, &samples, wrappings, listing("--missed"), listing("--flagged"));
            }
            None => excerpt(&redactor, &text, listing("--flagged")),
        }
        if !quick {
            speed(&redactor, &text);
        }
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

fn recall(redactor: &Redactor, samples: &[Sample], wrappings: &[Wrapping], missed: bool, flagged: bool) {
    for (name, found) in wrappings {
        let mut counts = [(0, 0); 2];
        for sample in samples.iter().filter(|sample| !sample.text.trim().is_empty()) {
            let count = &mut counts[usize::from(sample.is_secret())];
            count.1 += 1;
            count.0 += usize::from(found(redactor, &sample.text));
        }
        let [(flags, negatives), (hits, positives)] = counts;
        let share = 100.0 * hits as f64 / positives.max(1) as f64;
        println!("  {name:14} recall {share:6.2} % of {positives}, flagged {flags} of {negatives}");
    }
    let mut misses: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let secrets: Vec<&Sample> = samples.iter().filter(|sample| sample.is_secret()).collect();
    for sample in &secrets {
        if !sample.is_gone(&redactor.text(&sample.text)) {
            misses.entry(&sample.rule).or_default().push(&sample.text);
        }
    }
    let left: usize = misses.values().map(Vec::len).sum();
    let share = 100.0 * (secrets.len() - left) as f64 / secrets.len().max(1) as f64;
    println!("  {share:6.2} % of {} secrets gone, {left} left", secrets.len());
    let (mut alike, mut touched) = (0, 0);
    for sample in samples.iter().filter(|sample| !sample.is_secret()) {
        alike += 1;
        touched += usize::from(changes(redactor, &sample.text));
    }
    println!("  {touched} of {alike} look-alikes touched");
    if missed {
        for (rule, texts) in misses {
            println!("  missed {rule} ({})", texts.len());
            for text in texts.iter().take(12) {
                println!("    {:?}", text.chars().take(300).collect::<String>());
            }
        }
    }
    if flagged {
        for sample in samples.iter().filter(|sample| !sample.is_secret()) {
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

/// How many replacements there are per megabyte of ordinary text.
fn ordinary(redactor: &Redactor, dir: &Path, flagged: bool) {
    let (mut files, mut bytes, mut count) = (0, 0, 0);
    let mut waiting = vec![dir.to_path_buf()];
    while let Some(path) = waiting.pop() {
        let Ok(kind) = path.symlink_metadata() else { continue };
        if kind.is_dir() {
            let list = std::fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(list.map(|entry| entry.path()));
        } else if kind.is_file()
            && kind.len() < 4_000_000
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            files += 1;
            bytes += text.len();
            for page in pages(&text) {
                let new = redactor.text(page);
                for (at, _) in new.match_indices("[redacted:").filter(|_| new != page) {
                    count += 1;
                    if flagged {
                        let from = new.floor_char_boundary(at.saturating_sub(70));
                        let line: String = new[from..].chars().take(130).collect();
                        println!("  {}: {line:?}", path.display());
                    }
                }
            }
        }
    }
    let rate = count as f64 / (bytes as f64 / 1e6).max(1e-6);
    println!("  {count} replacements in {files} files, {:.1} MB: {rate:.2} per MB", bytes as f64 / 1e6);
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
