//! Text from agents and projects cannot make a terminal do anything.

use crate::common::TestEnv;

/// Sets the title, fills the clipboard, hides a link, clears the screen with a 7-bit and an 8-bit sequence, asks for
/// an answer, rings, goes back over the line, and turns the direction of writing round.
const HOSTILE: &str = "a\u{1b}]0;title\u{7}b\u{1b}]52;c;ZXZpbA==\u{7}c\u{1b}]8;;http://evil\u{1b}\\d\u{1b}[2Je\u{9b}2Jf\u{1b}P$q\u{1b}\\g\u{8}\rh\u{202e}i\u{2066}j\u{200b}k";

/// Where control characters are refused, the others still get through to the record.
const INVISIBLE: &str = "a\u{202e}b\u{2066}c\u{200b}d\u{feff}";

fn world() -> TestEnv {
    let env = TestEnv::new();
    env.start(&[INVISIBLE, "--intent", HOSTILE]);
    for args in [
        &["note", HOSTILE][..],
        &["error", HOSTILE, "--kind", INVISIBLE],
        &["task", "add", HOSTILE],
        &["decide", HOSTILE, "--choice", HOSTILE, "--because", HOSTILE, "--branch", INVISIBLE],
        &["output", "set", INVISIBLE, HOSTILE],
        &["milestone", INVISIBLE, "--details", HOSTILE],
        &["memory", "query", HOSTILE, "--result", HOSTILE, "--source", INVISIBLE],
        &["memory", "cache", "set", INVISIBLE, &serde_json::json!(HOSTILE).to_string()],
        &["agent", "switch", INVISIBLE],
        &["agent", "state", INVISIBLE, &serde_json::json!({ "x": HOSTILE }).to_string()],
        &["artifact", "add", INVISIBLE, "created"],
        &["file", "add", INVISIBLE, "created"],
        &["at", INVISIBLE],
        &["metric", "set", INVISIBLE, "1"],
        &["phase", INVISIBLE, "--verify", "pass", "--check", INVISIBLE, "--details", HOSTILE],
        &["workflow-state", "set", &serde_json::json!({ "x": HOSTILE }).to_string()],
        &["breakpoint", "wait", INVISIBLE],
    ] {
        let said = env.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        assert_harmless(args, &said.stdout);
        assert_harmless(args, &said.stderr);
    }
    env
}

const LOOKS: &[&[&str]] = &[
    &["show"],
    &["ls"],
    &["ls", "--everywhere"],
    &["log"],
    &["history"],
    &["state"],
    &["phase"],
    &["agent"],
    &["metric"],
    &["breakpoint"],
    &["show", "--history"],
    &["show", "--decisions"],
    &["show", "--files"],
    &["show", "--errors"],
    &["show", "--memory"],
    &["show", "--artifacts"],
    &["show", "--outputs"],
    &["show", "--tasks"],
    &["show", "--checkpoints"],
    &["show", "--milestones"],
    &["show", "--verifications"],
    &["checkpoint", "show", "1"],
    &["cleanup", "--dry-run"],
    &["doctor"],
];

fn assert_harmless(args: &[&str], text: &str) {
    let obeyed = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    assert!(!text.contains(obeyed), "{args:?}: {text:?}");
}

#[test]
fn nothing_gets_through() {
    let env = world();
    for args in LOOKS {
        let said = env.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        assert_harmless(args, &said.stdout);
        assert_harmless(args, &said.stderr);
        let mut json = args.to_vec();
        json.push("--json");
        let said = env.run(&json);
        assert_harmless(&json, &said.stdout);
        assert_harmless(&json, &said.stderr);
    }
    for args in [
        &["workflow-state"][..],
        &["memory", "cache", "get", INVISIBLE],
        &["output", "get", INVISIBLE, "--json"],
    ] {
        let said = env.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        assert_harmless(args, &said.stdout);
    }
    // What is escaped means the same to a program.
    assert_eq!(env.json(&["output", "get", INVISIBLE])["content"], HOSTILE);
    assert_eq!(env.json(&["show"])["session"]["topic"], INVISIBLE);
    assert_eq!(env.json(&["ls"])["sessions"][0]["topic"], INVISIBLE);
    // A pipe gets a stored text as it is.
    assert_eq!(env.raw(&["output", "get", INVISIBLE]).stdout, HOSTILE.as_bytes());
}

/// Errors repeat what was typed.
#[test]
fn errors_are_harmless_too() {
    let env = world();
    for args in [
        &["new", HOSTILE, "--parallel"][..],
        &["show", HOSTILE],
        &[HOSTILE],
        &["ls", "--since", HOSTILE],
        &["ls", HOSTILE],
        &["phase", HOSTILE],
        &["output", "get", HOSTILE],
        &["output", "set", "x", &format!("@{HOSTILE}")],
        &["memory", "cache", "get", HOSTILE],
        &["metric", "set", "x", HOSTILE],
        &["checkpoint", "show", HOSTILE],
        &["import", HOSTILE],
        &["note", "x", "--key", HOSTILE],
        &["--store", HOSTILE, "ls"],
        &["--project", HOSTILE, "ls"],
        &["config", "get", HOSTILE],
        &["backup", &format!("none/{HOSTILE}")],
        &["export", "-o", &format!("none/{HOSTILE}")],
    ] {
        for json in [false, true] {
            let mut args = args.to_vec();
            args.extend(json.then_some("--json"));
            let said = env.run(&args);
            assert_ne!(said.code, 0, "{args:?}");
            assert!(said.code != 70, "{args:?}: {}", said.stderr);
            assert_harmless(&args, &said.stdout);
            assert_harmless(&args, &said.stderr);
        }
    }
}

/// On a terminal there are colours, and still nothing but colours.
#[test]
fn a_terminal_gets_colours_and_nothing_else() {
    let env = world();
    if env.on_terminal("true", "").is_none() {
        println!("skipped: there is no `script` to make a terminal with");
        return;
    }
    let (mut coloured, mut looked) = (0, 0);
    let outputs: &[&[&str]] = &[&["output", "get", INVISIBLE], &["export"], &["export", "--format", "md"]];
    for args in LOOKS.iter().chain(outputs) {
        let words: Vec<String> = args.iter().map(|word| format!("'{word}'")).collect();
        let output = env.on_terminal(&format!("$SEGNO {}", words.join(" ")), "").unwrap();
        let text = String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n");
        assert!(output.status.success(), "{args:?}: {text}");
        let plain = without_colours(&text);
        assert_harmless(args, &plain);
        coloured += usize::from(plain != text);
        looked += 1;
    }
    assert!(coloured * 2 > looked, "only {coloured} of {looked} were coloured");
    let plain = env.on_terminal("NO_COLOR=1 $SEGNO ls", "").unwrap();
    assert!(!plain.stdout.contains(&0x1b));
}

/// Removes sequences that set colours, and only those.
fn without_colours(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        let after = &rest[at + 2..];
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(after.len());
        out.push_str(&rest[..at]);
        if after[end..].starts_with('m') {
            rest = &after[end + 1..];
        } else {
            out.push_str("\u{1b}[");
            rest = after;
        }
    }
    out + rest
}
