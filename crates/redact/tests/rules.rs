//! Every rule finds its examples in every wrapping and leaves its look-alikes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;

use common::Generator;
use common::redactor;
use serde::Deserialize;

#[derive(Deserialize)]
struct Examples {
    yes: Vec<String>,
    #[serde(default)]
    no: Vec<String>,
}

fn examples() -> BTreeMap<String, Examples> {
    toml::from_str(include_str!("examples.toml")).unwrap()
}

fn rule_ids() -> Vec<String> {
    let rules: toml::Value = toml::from_str(include_str!("../rules.toml")).unwrap();
    rules["rule"].as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_rule_has_examples() {
    let examples = examples();
    let ids = rule_ids();
    for id in &ids {
        assert!(examples.get(id).is_some_and(|e| !e.yes.is_empty()), "{id} has no example");
    }
    for id in examples.keys() {
        assert!(ids.contains(id), "{id} is no rule");
    }
}

#[test]
fn secrets_are_replaced_and_named() {
    let redactor = redactor();
    let mut failures = Vec::new();
    for (id, examples) in examples() {
        for (number, template) in examples.yes.iter().enumerate() {
            // Several seeds, so that a rule does not live on one lucky value.
            for seed in 0..8 {
                let (text, secrets) = Generator::new(&format!("{id}{number}{seed}")).expand(template);
                let out = redactor.text(&text);
                if !out.contains(&format!("[redacted:{id}:"))
                    || secrets.iter().any(|secret| out.contains(secret))
                {
                    failures.push(format!("{id}: {text}\n    {out}"));
                    break;
                }
                assert_eq!(redactor.text(&out), out, "{id} is not idempotent");
                assert!(redactor.suspects(&text), "{id} is not suspected");
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn look_alikes_stay() {
    let redactor = redactor();
    let mut failures = Vec::new();
    for (id, examples) in examples() {
        for text in examples.no {
            let out = redactor.text(&text);
            if out != text {
                failures.push(format!("{id}: {text}\n    {out}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// The same secret as a reader of logs, tool results and nested transcripts meets it.
#[test]
fn wrappings_hide_nothing() {
    let redactor = redactor();
    let line = |text: &str| serde_json::json!({"type": "result", "text": text}).to_string();
    let mut failures = Vec::new();
    for (id, examples) in examples() {
        for (number, template) in examples.yes.iter().enumerate() {
            let (text, secrets) = Generator::new(&format!("{id}{number}")).expand(template);
            let wrapped = [
                ("json", line(&text)),
                ("json in json", line(&line(&text))),
                ("json in json in json", line(&line(&line(&text)))),
                ("colour", common::coloured(&text)),
                ("coloured json", line(&common::coloured(&text))),
                ("base64", format!("data {} end", common::base64(text.as_bytes()))),
                ("percent", common::percent(&text)),
            ];
            // Words of other alphabets are not read through these two.
            let read = |name: &str| text.is_ascii() || !matches!(name, "base64" | "percent");
            for (name, wrapped) in wrapped.into_iter().filter(|(name, _)| read(name)) {
                let out = redactor.text(&wrapped);
                let kept = secrets.iter().any(|secret| out.contains(secret.as_str()));
                if !out.contains("[redacted:") || kept {
                    failures.push(format!("{id} in {name}: {wrapped}\n    {out}"));
                }
                if name.contains("json") && serde_json::from_str::<serde_json::Value>(&out).is_err() {
                    failures.push(format!("{id} in {name} is no JSON any more: {out}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn ordinary_text_stays() {
    let redactor = redactor();
    let png = common::base64(&[0x89, b'P', b'N', b'G', 13, 10, 26, 10].repeat(40));
    let mut generator = Generator::new("ordinary");
    for template in [
        "commit {hex:40}\nAuthor: A <a@b.c>",
        "id = {uuid}",
        "integrity sha512-{b64:86}==",
        "checksum = \"{hex:64}\"",
        "\"resolved\": \"https://host/pkg/-/pkg-1.0.0.tgz#{hex:40}\"",
        "index {hex:7}..{hex:7} 100644",
        "sha256:{hex:64}",
        "session_01{alnum:22} toolu_{alnum:24} msg_{alnum:24}",
        "usage: {\"input_tokens\": 12345, \"output_tokens\": 678, \"cache_read_input_tokens\": 91011}",
        "token_count: 12345",
        "let token = parser.next_token();",
        "struct User { password: String, api_key: Option<String> }",
        "api_key = os.environ[\"X\"]",
        "const apiKey = process.env.API_KEY;",
        "password: ${SECRET}",
        "token: {{ token }}",
        "Authorization: Bearer <token>",
        "fn authorization(&self) -> Authorization { Authorization::new(self.key()) }",
        "key = \"value\"; keyboard: qwerty",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{alnum:43} me@host",
        "if password == other.password { return Err(Error::WrongPassword) }",
        "https://host.example/path?page=2&sort=name#section-{hex:12}",
    ] {
        let (text, _) = generator.expand(template);
        assert_eq!(redactor.text(&text), text);
    }
    let picture = format!("![x](data:image/png;base64,{png})");
    assert_eq!(redactor.text(&picture), picture);
}

#[derive(Deserialize)]
struct Fresh {
    secrets: Vec<(String, String)>,
    surroundings: Vec<String>,
    texts: Vec<String>,
}

/// Secrets of many kinds in everyday surroundings. Not all can be known; how many are must not get less.
#[test]
fn fresh_secrets_are_found() {
    let redactor = redactor();
    let fresh: Fresh = toml::from_str(include_str!("fresh.toml")).unwrap();
    let (mut all, mut missed) = (0, Vec::new());
    for (name, template) in &fresh.secrets {
        for (number, surrounding) in fresh.surroundings.iter().enumerate() {
            let (secret, values) = Generator::new(&format!("{name}{template}{number}")).expand(template);
            let text = surrounding.replace("SECRET", "\u{1}").replace("NAME", name).replace('\u{1}', &secret);
            let out = redactor.text(&text);
            all += 1;
            if out.contains(&secret) || values.iter().any(|value| out.contains(value)) {
                missed.push(format!("{text}\n    {out}"));
            }
        }
    }
    assert_eq!(all, 200);
    assert!(missed.len() * 100 <= all * 5, "{} of {all} missed\n{}", missed.len(), missed.join("\n"));
}

/// The same for whole texts, of forms that are met outside of settings too.
#[test]
fn fresh_texts_lose_their_secrets() {
    let redactor = redactor();
    let fresh: Fresh = toml::from_str(include_str!("fresh.toml")).unwrap();
    let mut missed = Vec::new();
    for template in &fresh.texts {
        let (text, values) = Generator::new(template).expand(template);
        let out = redactor.text(&text);
        assert!(!values.is_empty(), "{template}");
        if values.iter().any(|value| out.contains(value)) {
            missed.push(format!("{text}\n    {out}"));
        }
    }
    let all = fresh.texts.len();
    assert_eq!(all, 60);
    assert!(missed.len() * 100 <= all * 5, "{} of {all} missed\n{}", missed.len(), missed.join("\n"));
}

#[derive(Deserialize)]
struct Daily {
    texts: Vec<String>,
}

/// The text without the marks « and », and what stood between them.
fn marked(text: &str) -> (String, Vec<String>) {
    let mut secrets = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('«') {
        let (secret, after) = after.split_once('»').unwrap();
        plain.push_str(before);
        plain.push_str(secret);
        secrets.push(secret.to_owned());
        rest = after;
    }
    plain.push_str(rest);
    (plain, secrets)
}

/// Whether the whole secret, or half of a longer one, still stands there.
fn stands(out: &str, secret: &str) -> bool {
    let middle = secret.floor_char_boundary(secret.len() / 2);
    out.contains(secret)
        || (secret.len() >= 16 && (out.contains(&secret[..middle]) || out.contains(&secret[middle..])))
}

/// What people have in terminals, files, logs and chats.
#[test]
fn daily_texts_lose_their_secrets() {
    let redactor = redactor();
    let daily: Daily = toml::from_str(include_str!("daily.toml")).unwrap();
    let mut missed = Vec::new();
    for template in &daily.texts {
        let (text, _) = Generator::new(template).expand(template);
        let (text, secrets) = marked(&text);
        assert!(!secrets.is_empty(), "{template}");
        let out = redactor.text(&text);
        if secrets.iter().any(|secret| stands(&out, secret)) {
            missed.push(format!("{text}\n    {out}"));
        }
    }
    let all = daily.texts.len();
    assert_eq!(all, 211);
    assert!(missed.len() * 100 <= all * 5, "{} of {all} missed\n{}", missed.len(), missed.join("\n"));
}

#[derive(Deserialize)]
struct Leak {
    text: String,
    /// Nothing for a look-alike.
    secret: String,
}

/// Made-up texts of agents, shells, logs, settings and chats, and look-alikes that have to stay.
#[test]
fn leaks_are_gone_and_look_alikes_stay() {
    check_leaks(include_str!("leaks.jsonl"), (387, 60), 5);
}

/// Texts of somebody who had not seen the rules: 20 of the 220 secrets stayed when they were tried first.
#[test]
fn leaks_that_nobody_tuned_for() {
    check_leaks(include_str!("independent.jsonl"), (220, 60), 10);
}

/// The same by another hand, later: 4 of the 200 secrets stayed when they were tried first, and no rule was made for them. The
/// name of a place for secrets is taken for one of them.
#[test]
fn leaks_of_another_hand() {
    let name = "arn:aws:secretsmanager:eu-central-1:481516234215:secret:prod/billing/db-A1b2C3";
    check_leaks_but(include_str!("independent-2.jsonl"), (200, 40), 2, &[name]);
}

/// Two hundred texts each of twenty kinds of files, outputs and chats, in a dozen languages. Each set was written before
/// its first measurement; rules were made for what stayed.
#[test]
fn twenty_kinds_of_texts_lose_their_secrets() {
    check_leaks(include_str!("kinds-1.jsonl"), (200, 40), 5);
    check_leaks(include_str!("kinds-2.jsonl"), (200, 40), 5);
    check_leaks(include_str!("kinds-3.jsonl"), (200, 40), 5);
}

/// What tools print, people type and files hold while an agent works. Each set was written before its first
/// measurement; rules were made for what stayed.
#[test]
fn transcripts_lose_their_secrets() {
    check_leaks(include_str!("transcripts-1.jsonl"), (212, 40), 5);
    check_leaks(include_str!("transcripts-2.jsonl"), (218, 40), 5);
    check_leaks(include_str!("transcripts-3.jsonl"), (222, 40), 5);
    check_leaks(include_str!("transcripts-4.jsonl"), (224, 40), 5);
}

fn check_leaks(lines: &str, expected: (usize, usize), most_left_in_percent: usize) {
    check_leaks_but(lines, expected, most_left_in_percent, &[]);
}

/// The same where some look-alikes are known to be taken for secrets.
fn check_leaks_but(lines: &str, expected: (usize, usize), most_left_in_percent: usize, known: &[&str]) {
    let redactor = redactor();
    let leaks: Vec<Leak> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (secrets, alike): (Vec<Leak>, Vec<Leak>) =
        leaks.into_iter().partition(|leak| !leak.secret.is_empty());
    assert_eq!((secrets.len(), alike.len()), expected);
    let touched: Vec<&str> =
        alike.iter().map(|leak| leak.text.as_str()).filter(|text| redactor.text(text) != *text).collect();
    assert_eq!(touched, known);
    let left: Vec<&str> = secrets
        .iter()
        .filter(|leak| stands(&redactor.text(&leak.text), &leak.secret))
        .map(|leak| leak.text.as_str())
        .collect();
    assert!(
        left.len() * 100 <= secrets.len() * most_left_in_percent,
        "{} of {} left\n{left:#?}",
        left.len(),
        secrets.len()
    );
}
