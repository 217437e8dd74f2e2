//! Secrets stay out of every file and every word.

use crate::common::TestEnv;

/// Put together here, so that this file holds nothing that looks like a secret itself.
fn secrets() -> Vec<String> {
    let letters = "aB3dE5gH7jK9mN1pQ2sT4vW6xY8z";
    vec![
        format!("ghp_{letters}{}", "Qw3rTy7u"),
        format!("sk-ant-{}-{letters}{letters}{letters}aB3dE5gH7AA", "api03"),
        format!("AKIA{}", "Z7XQ3MPLTV5NWJ2R"),
        format!("xoxb-{}-{}-{letters}", "123456789012", "1234567890123"),
    ]
}

#[test]
fn in_no_file_and_no_word() {
    let mut env = TestEnv::new();
    let mut planted = secrets();
    // Nothing but its name in the environment says that this is one.
    planted.push("quiet-harbour-lantern-73".to_owned());
    env.set("MY_API_TOKEN", "quiet-harbour-lantern-73");
    planted.push("correct-horse-41".to_owned());
    let mut words = Vec::new();
    let mut run = |args: &[&str]| {
        let output = env.raw(args);
        words.push((format!("{args:?}"), output.stdout));
        words.push((format!("{args:?}"), output.stderr));
    };
    for (index, secret) in planted.iter().enumerate() {
        let text = if secret.starts_with("correct") {
            format!("postgres://admin:{secret}@db.example/x")
        } else {
            format!("it is {secret} today")
        };
        let text = text.as_str();
        run(&["new", text, "--parallel", "--intent", text]);
        for args in [
            &["note", text][..],
            &["note", text, "--json"],
            &["output", "set", text, text],
            &["output", "set", "plain", text],
            &["decide", text, "--choice", text, "--because", text, "--alternative", text, "--branch", text],
            &["error", text, "--kind", text],
            &["task", "add", text],
            &["milestone", text, "--details", text],
            &["breakpoint", "wait", text],
            &["breakpoint"],
            &["breakpoint", "continue", "--details", text],
            &["phase", text, "--verify", "pass", "--check", text, "--details", text],
            &["phase", text],
            &["agent", "switch", text],
            &["agent", "switch", text],
            &["agent", "state", "a", &format!("{{\"password\": \"{secret}\"}}")],
            &["artifact", "add", text, "created"],
            &["file", "add", text, "created"],
            &["at", text],
            &["metric", "set", text, "1"],
            &["memory", "query", text, "--result", text, "--source", text],
            &["memory", "cache", "set", text, &serde_json::json!(text).to_string()],
            &["workflow-state", "set", &format!("{{\"token\": \"{secret}\"}}")],
            &["checkpoint", "create", text, "--reason", text],
            &["intent", text],
            &["pause", "--reason", text],
            &["resume"],
            &["show"],
            &["show", "--history"],
            &["show", "--decisions"],
            &["show", "--outputs"],
            &["output", "get", "plain"],
            &["log"],
            &["log", "--json"],
            &["state", "--json"],
            &["export"],
            &["export", "--format", "md"],
            &["export", "--format", "yaml"],
            &["export", "-o", &format!("out-{index}.json")],
            &["ls"],
            &["ls", "--json"],
            &["abort", "--reason", text],
            &["export", "last", "--format", "md"],
        ] {
            run(args);
        }
    }
    run(&["ls", "--all"]);
    run(&["doctor"]);
    run(&["backup"]);
    run(&["cleanup", "--days", "0", "--yes"]);
    let holds =
        |bytes: &[u8], secret: &str| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
    let files = env.files();
    assert!(files.keys().any(|path| path.ends_with("segno.db-wal")));
    // As it would look in a name made of letters, digits and dashes.
    let dashed = |secret: &String| {
        let dash = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        secret.chars().map(dash).collect::<String>()
    };
    let dashed: Vec<String> = planted.iter().map(dashed).collect();
    for secret in planted.iter().chain(&dashed) {
        for (path, content) in &files {
            assert!(!holds(content, secret), "{} holds {secret}", path.display());
            assert!(!holds(path.as_os_str().as_encoded_bytes(), secret), "{}", path.display());
        }
        for (args, said) in &words {
            assert!(!holds(said, secret), "{args}: {}", String::from_utf8_lossy(said));
        }
    }
    for (args, said) in &words {
        assert!(!String::from_utf8_lossy(said).contains("unexpected"), "{args}");
    }
}

/// Rules of the user's own, and a setting that turns the environment off.
#[test]
fn more_secrets_and_fewer() {
    let mut env = TestEnv::new();
    env.write(
        "config/segno/config.toml",
        "[redact]\nenv = false\n[[redact.rules]]\nid = 'acme'\nkeywords = ['acme_']\nregex = 'acme_[0-9]{4}'\n",
    );
    env.set("MY_API_TOKEN", "quiet-harbour-lantern-73");
    env.start(&["rules"]);
    env.ok(&["note", "acme_1234 and quiet-harbour-lantern-73"]);
    let shown = env.ok(&["history"]).stdout;
    assert!(!shown.contains("acme_1234") && shown.contains("quiet-harbour-lantern-73"), "{shown}");
    env.write("config/segno/config.toml", "[[redact.rules]]\nid = 'broken'\nregex = '('\n");
    let said = env.run(&["note", "x"]);
    assert_eq!(said.code, 13, "{}", said.stderr);
    assert!(said.stderr.contains("redact.rules"), "{}", said.stderr);
}
