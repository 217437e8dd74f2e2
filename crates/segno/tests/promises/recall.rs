//! How many secrets of a labelled collection stay out of the record: through a run, the store, and what is read back.
//!
//! `SEGNO_CORPUS=a.jsonl:b.json cargo nextest run -p segno --test promises --run-ignored all recall`, where each file is
//! JSON lines, or one array, of `{"label": 0 or 1, "text": …}`; 1 is a secret. A text counts as gone when it
//! comes back changed, with the tag of a secret in it; whether the tag covers all of the secret, the collections do not
//! tell.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::skip;
use crate::lab::variable;

/// What stands in the place of a secret.
const TAG: &str = "[redacted:";
/// Begins with what no key, token or name has in it: a key that was cut short takes the words after it along.
const MARK: &str = "~~~ (sample) ~~~ ";

/// The texts of a collection that hold a secret.
fn secrets(path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<Value> = match serde_json::from_str(&text) {
        Ok(rows) => rows,
        Err(_) => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
    };
    let secret = |row: &&Value| row["label"] == 1;
    let texts = rows.iter().filter(secret).filter_map(|row| row["text"].as_str());
    texts.filter(|text| !text.trim().is_empty()).map(ToOwned::to_owned).collect()
}

/// A text with something before each of its lines.
fn prefixed(text: &str, prefix: impl Fn(usize) -> String) -> String {
    let lines: Vec<String> =
        text.lines().enumerate().map(|(number, line)| format!("{}{line}", prefix(number + 1))).collect();
    lines.join("\n")
}

type Wrap = fn(&str) -> String;

/// How a text is met as the result of a tool.
const WRAPPINGS: [(&str, Wrap); 6] = [
    ("JSON string", str::to_owned),
    ("diff", |text| prefixed(text, |_| "+".to_owned())),
    ("grep -n", |text| prefixed(text, |number| format!("{number}:"))),
    ("cat -n", |text| prefixed(text, |number| format!("{number:6}\t"))),
    ("YAML", |text| format!("data: |\n{}", prefixed(text, |_| "    ".to_owned()))),
    ("env line", |text| format!("HOME=/root\n{text}\nSHELL=/bin/sh")),
];

/// Printed by a plain command, line by line.
fn by_lines(texts: &[String]) -> usize {
    let lab = Lab::new();
    let mut file = String::new();
    for (number, text) in texts.iter().enumerate() {
        let _ = write!(file, "{MARK}{number}\n{text}\n");
    }
    lab.write("texts", &format!("{file}{MARK}end\n"));
    let said = lab.run(&["run", "--", "cat", &lab.path("texts")]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let back = said_in(&lab, "\n");
    // Empty lines are not recorded.
    let plain =
        |text: &str| text.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("\n");
    gone(texts, &back, |text| plain(text))
}

/// Streamed by an agent that is described by rules.
fn by_pieces(texts: &[String]) -> usize {
    let lab = Lab::new();
    let mut documents = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let whole = format!("{MARK}{number}\n{text}\n");
        let characters: Vec<char> = whole.chars().collect();
        let pieces = characters.chunks(7 + number % 5).map(|piece| piece.iter().collect::<String>());
        documents.extend(pieces.map(|piece| json!({"type": "piece", "text": piece})));
    }
    documents.push(json!({"type": "piece", "text": format!("{MARK}end\n")}));
    documents.push(json!({"type": "result", "text": "done"}));
    super::redaction::rules_agent(&lab, &super::redaction::prints(&documents));
    let said = lab.run(&["run", "--agent", "mine"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    gone(texts, &said_in(&lab, ""), |text| text.trim_end().to_owned())
}

fn said_in(lab: &Lab, joint: &str) -> String {
    let texts: Vec<String> =
        lab.journal(Some("said")).iter().map(|event| text_of(&event["body"]["text"])).collect();
    texts.join(joint)
}

fn text_of(value: &Value) -> String {
    value.as_str().or_else(|| value["excerpt"].as_str()).unwrap_or_default().to_owned()
}

/// How many texts are gone from what stands between their mark and the next. Parts are found by the number in their mark:
/// one that lost its mark counts as not gone, because nobody can tell.
fn gone(texts: &[String], back: &str, plain: impl Fn(&str) -> String) -> usize {
    let parts: BTreeMap<usize, &str> = (back.split(MARK).skip(1))
        .filter_map(|part| {
            let (number, text) = part.split_once('\n')?;
            Some((number.trim().parse().ok()?, text))
        })
        .collect();
    let (mut count, mut untagged) = (0, Vec::new());
    for (number, text) in texts.iter().enumerate() {
        let Some(part) = parts.get(&number) else { continue };
        let changed = plain(part).trim_end() != plain(text).trim_end();
        count += usize::from(changed && part.contains(TAG));
        if changed && !part.contains(TAG) {
            untagged.push(number);
        }
    }
    let lost = texts.len() - parts.len().min(texts.len());
    let few = &untagged[..untagged.len().min(12)];
    // With stderr gone there is nobody to tell.
    let _ =
        writeln!(std::io::stderr(), "{lost} marks lost; {} changed without a tag: {few:?}", untagged.len());
    count
}

/// The result of a tool, whole.
fn by_tools(texts: &[String], wrap: Wrap) -> usize {
    let lab = Lab::new();
    let mut documents = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        documents.push(json!({"type": "call", "id": format!("c{number}"), "tool": "Read", "input": {}}));
        documents.push(json!({"type": "done", "id": format!("c{number}"), "output": wrap(text)}));
    }
    documents.push(json!({"type": "result", "text": "done"}));
    super::redaction::rules_agent(&lab, &super::redaction::prints(&documents));
    let said = lab.run(&["run", "--agent", "mine"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let ended = lab.journal(Some("tool_ended"));
    assert_eq!(ended.len(), texts.len());
    let outputs = ended.iter().map(|event| text_of(&event["body"]["output"]));
    outputs.zip(texts).filter(|(output, text)| output.contains(TAG) && *output != wrap(text)).count()
}

#[test]
#[ignore = "needs a collection of secrets, and takes minutes"]
fn recall_of_a_collection() {
    let Some(paths) = variable("SEGNO_CORPUS") else { return skip("SEGNO_CORPUS names no file") };
    let most = variable("SEGNO_CORPUS_MOST").and_then(|most| most.parse().ok()).unwrap_or(usize::MAX);
    let mut table = String::from("\n");
    for path in paths.split(':') {
        let mut texts = secrets(path);
        // A part of a large collection is spread over all of it.
        let step = texts.len().div_ceil(most.max(1)).max(1);
        texts = texts.into_iter().step_by(step).collect();
        let mut row = |name: &str, count: usize| {
            let share = 100.0 * count as f64 / texts.len() as f64;
            let _ = writeln!(table, "{path:40} {name:14} {share:6.2} % of {} gone", texts.len());
        };
        row("plain command", by_lines(&texts));
        row("pieces", by_pieces(&texts));
        for (name, wrap) in WRAPPINGS {
            row(name, by_tools(&texts, wrap));
        }
    }
    // With stderr gone there is nobody to tell.
    let _ = std::io::stderr().write_all(table.as_bytes());
}
