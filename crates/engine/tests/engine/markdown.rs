//! The report for people.

use segno_core::Command;
use segno_engine::NewSession;
use segno_engine::transfer::Format;
use segno_engine::transfer::export;

use crate::common::Room;
use crate::view::full_session;

#[test]
fn a_full_report() {
    let room = Room::new();
    let manager = full_session(&room);
    let mut out = Vec::new();
    export(manager.engine(), manager.current().unwrap().session_id, Format::Markdown, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap().replace(&room.project().display().to_string(), "PROJECT");
    insta::assert_snapshot!("full_report", text);
}

#[test]
fn hostile_text_stays_text() {
    let hostile = [
        "# heading",
        "| a | b |\n|---|---|",
        "<script>alert(1)</script>",
        "[click](javascript:alert)",
        "![x](https://evil.example/pixel.png)",
        "https://evil.example/",
        "~~~\ncode",
        "```sh\nrm -rf\n```",
        "**bold** _it_ $math$ @user",
        "1. one",
        "- item",
        "+ item",
        "===",
        "---",
        "&lt;b&gt; &#60;",
        "\u{1b}[31mred\u{7}",
        "\u{202e}txet",
        "a\\|b",
    ];
    let room = Room::new();
    let engine = room.quiet();
    for text in hostile {
        let line = text.replace(['\n', '\u{1b}', '\u{7}'], " ");
        let new = NewSession { topic: Some(line.clone()), intent: Some(text.into()), ..room.new_session() };
        let id = engine.create(new).unwrap().state.session_id;
        engine.act(id, Command::AddTask { text: text.into() }).unwrap();
        engine.act(id, crate::common::note(text)).unwrap();
        let mut out = Vec::new();
        export(&engine, id, Format::Markdown, &mut out).unwrap();
        let report = String::from_utf8(out).unwrap();
        assert_harmless(&report, text);
    }
}

fn assert_harmless(report: &str, hostile: &str) {
    assert!(!report.chars().any(|c| c.is_control() && c != '\n'), "{hostile:?}\n{report}");
    assert!(!report.contains('\u{202e}'), "{report}");
    for line in report.lines() {
        // What is left when escaped characters are taken away is ours.
        let mut bare = String::new();
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            if c == '\\' {
                assert!(chars.next().is_some_and(|c| c.is_ascii_punctuation()), "{line}");
            } else {
                bare.push(c);
            }
        }
        for mark in ['<', '>', '`', '*', '_', '[', ']', '~', '&', '!', '$', '@', '\\'] {
            assert!(!bare.contains(mark), "{mark} of {hostile:?} in {line:?}");
        }
        assert!(!bare.contains("://"), "{line}");
        let heading = line.starts_with("# ") || line.starts_with("## ");
        assert!(bare.starts_with('#') == heading, "{line}");
        assert!(!line.starts_with(['-', '+', '=']), "{line}");
        assert!(!bare.starts_with(|c: char| c.is_ascii_digit()) || !bare.contains("1."), "{line}");
    }
    // Tables keep their columns.
    let rows = report.lines().filter(|line| line.starts_with("| 2026-"));
    for row in rows {
        let borders = row.replace("\\\\", "").replace("\\|", "").matches('|').count();
        assert_eq!(borders, 5, "{row}");
    }
}
