use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::symlink;

use super::*;

fn file(text: &str) -> (tempfile::TempDir, Target) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("config.toml");
    fs::write(&path, text).unwrap();
    (temp, Target::User(path))
}

fn after(text: &str, name: &str, value: &str) -> String {
    let (_temp, target) = file(text);
    target.set(key(name).unwrap(), value).unwrap();
    fs::read_to_string(target.path()).unwrap()
}

#[test]
fn comments_stay() {
    let before = "# mine\n[session]\n# why\nbudget = 5 # small\n\n[ui]\ncolor = 'auto'\n";
    insta::assert_snapshot!(after(before, "session.budget", "50k"), @r"
    # mine
    [session]
    # why
    budget = 50000 # small

    [ui]
    color = 'auto'
    ");
}

#[test]
fn sections_are_made_and_found_in_every_form() {
    assert_eq!(after("", "ls.limit", "5"), "[ls]\nlimit = 5\n");
    assert_eq!(after("ls.limit = 1\n", "ls.limit", "5"), "ls.limit = 5\n");
    assert_eq!(after("ls = { limit = 1 }\n", "ls.limit", "5"), "ls = { limit = 5 }\n");
}

#[test]
fn text_is_quoted() {
    let text = after("", "ui.pager", "less \"-R\" \\ x");
    let table: toml::Table = toml::from_str(&text).unwrap();
    assert_eq!(table["ui"]["pager"].as_str(), Some("less \"-R\" \\ x"));
}

#[test]
fn rules_are_written_and_read_back() {
    let text = after("", "redact.rules", "[{ id = 'a', regex = 'x[0-9]' }]");
    let layer =
        crate::config::file::read(Path::new("x"), text.as_bytes(), crate::config::Level::User).unwrap();
    assert_eq!(layer.settings.len(), 1);
    assert!(layer.notices.is_empty(), "{:?}", layer.notices);
}

#[test]
fn unset_removes_only_its_key() {
    let (_temp, target) = file("[ls]\nlimit = 5\n# keep\n[ui]\ncolor = 'auto'\n");
    assert!(target.unset(key("ls.limit").unwrap()).unwrap());
    assert!(!target.unset(key("ls.limit").unwrap()).unwrap());
    assert_eq!(fs::read_to_string(target.path()).unwrap(), "[ls]\n# keep\n[ui]\ncolor = 'auto'\n");
}

#[test]
fn a_broken_file_is_not_touched() {
    let (_temp, target) = file("[ls\n");
    assert!(matches!(target.set(key("ls.limit").unwrap(), "5"), Err(Error::Syntax { .. })));
    assert_eq!(fs::read_to_string(target.path()).unwrap(), "[ls\n");
}

#[test]
fn links_of_the_user_survive_and_links_of_a_project_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let (real, link) = (temp.path().join("real.toml"), temp.path().join("link.toml"));
    fs::write(&real, "").unwrap();
    symlink(&real, &link).unwrap();
    let paths = Paths {
        home: temp.path().into(),
        config: link.clone(),
        config_named: false,
        data: temp.path().into(),
        state: temp.path().into(),
    };
    Target::choose(&paths, None).set(key("ls.limit").unwrap(), "5").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "[ls]\nlimit = 5\n");
    assert!(matches!(
        Target::Project(link).set(key("ls.limit").unwrap(), "6"),
        Err(Error::Read { source: ReadError::NotRegular, .. })
    ));
}

#[test]
fn a_new_file_is_private_and_a_project_cannot_have_everything() {
    let temp = tempfile::tempdir().unwrap();
    let target = Target::User(temp.path().join("deep/segno/config.toml"));
    target.set(key("store.url").unwrap(), "sqlite:/x").unwrap();
    assert_eq!(fs::metadata(target.path()).unwrap().mode() & 0o777, 0o600);
    let target = Target::Project(temp.path().join("p/config.toml"));
    assert!(matches!(
        target.set(key("store.url").unwrap(), "sqlite:/x"),
        Err(Error::UserOnly { key: "store.url", .. })
    ));
    assert!(!target.path().exists());
}

#[test]
fn unknown_keys_come_with_a_suggestion() {
    let error = key("session.bugdet").unwrap_err();
    assert!(matches!(error, Error::UnknownKey { suggestion: Some("session.budget"), .. }));
    let error = key("warn_percent").unwrap_err();
    assert!(matches!(error, Error::UnknownKey { suggestion: Some("session.warn_percent"), .. }));
}

#[test]
fn changes_at_once_are_all_kept() {
    let temp = tempfile::tempdir().unwrap();
    let target = Target::User(temp.path().join("segno/config.toml"));
    let changes = [
        ("ls.limit", "5"),
        ("session.budget", "6"),
        ("view.enabled", "false"),
        ("ui.time", "iso"),
        ("cleanup.days", "7"),
    ];
    std::thread::scope(|scope| {
        for (name, value) in changes {
            let target = &target;
            scope.spawn(move || target.set(key(name).unwrap(), value).unwrap());
        }
    });
    let bytes = fs::read(target.path()).unwrap();
    let layer = crate::config::file::read(target.path(), &bytes, crate::config::Level::User).unwrap();
    assert_eq!(layer.settings.len(), changes.len());
}

#[test]
fn unset_creates_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let target = Target::User(temp.path().join("segno/config.toml"));
    assert!(!target.unset(key("ls.limit").unwrap()).unwrap());
    assert!(!temp.path().join("segno").exists());
}
