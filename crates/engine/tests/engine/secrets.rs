//! Secrets stay out of every file.

use segno_core::Command;
use segno_core::event::OutputKind;
use segno_engine::NewSession;
use segno_engine::transfer;

use crate::common::Room;
use crate::common::files_below;

/// Made here, so that no scanner takes this file for a leak.
fn secrets() -> [String; 5] {
    let body = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
    [
        format!("ghp_{body}"),
        format!("AKIA{}", "Q3EGRIPZ7JD5WXKB"),
        format!("sk-ant-api03-{body}{body}-xY{}AA", "9zW8vU7tS6rQ5pO4nM"),
        format!("glpat-{}", "x7Kq2mV9bN4tR8wL1cZp"),
        format!("xoxb-{}-{}-{}", "123456789012", "1234567890123", "AbCdEfGhIjKlMnOpQrStUvWx"),
    ]
}

#[test]
fn planted_secrets_are_in_no_file() {
    let room = Room::new();
    let [topic, details, output, artifact, decision] = secrets();
    let mut manager = room.manager();
    manager
        .create_from(NewSession { topic: Some(format!("deploy with {topic}")), ..NewSession::default() })
        .unwrap();
    manager.add_history("noted", None, Some(&format!("token: {details}"))).unwrap();
    let long = format!("{}\nexport KEY={output}\n", "a line of a log\n".repeat(2_000));
    manager.record_output("log", OutputKind::Document, &long).unwrap();
    manager.add_artifact(&format!("keys/{artifact}.txt"), "created", None).unwrap();
    manager
        .record_decision(&format!("use {decision}?"), &format!("yes, {decision}"), Some(&decision))
        .unwrap();
    manager
        .act(Command::SetMetric { name: topic.clone(), value: segno_core::event::Metric::Flag(true) })
        .unwrap();
    manager.abort(Some(&details)).unwrap();
    let id = manager.current().unwrap().session_id;
    manager.save().unwrap();
    for (name, format) in [
        ("export.json", transfer::Format::Json),
        ("export.yaml", transfer::Format::Yaml),
        ("export.md", transfer::Format::Markdown),
    ] {
        let mut file = std::fs::File::create(room.path().join(name)).unwrap();
        transfer::export(manager.engine(), id, format, &mut file).unwrap();
    }
    manager.engine().back_up(&room.path().join("copy.db")).unwrap();
    drop(manager);
    let files = files_below(room.path());
    assert!(files.len() >= 7, "database, log, view, three exports and a copy: {files:?}");
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        for secret in secrets() {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds {}…", path.display(), &secret[..8]);
        }
    }
}
