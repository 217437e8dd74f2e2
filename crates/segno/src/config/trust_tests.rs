use std::os::unix::fs::PermissionsExt as _;

use super::*;

struct Fixture {
    _temp: tempfile::TempDir,
    data: PathBuf,
    root: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(temp.path()).unwrap();
        let (data, root) = (base.join("data"), base.join("project"));
        fs::create_dir_all(root.join(".segno/prompts")).unwrap();
        fs::write(root.join(".segno/config.toml"), "[ui]\npager = 'less'\n").unwrap();
        Self { _temp: temp, data, root }
    }

    fn list(&self) -> Trust {
        Trust::in_directory(&self.data)
    }

    fn trust(&self) {
        let content = Content::read(&self.root).unwrap();
        self.list().trust(&self.root, &content, at(100)).unwrap();
    }

    fn word(&self) -> &'static str {
        self.list().status(&self.root, at(200)).unwrap().status.word()
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn trust_change_and_revoke() {
    let fixture = Fixture::new();
    assert_eq!(fixture.word(), "untrusted");
    fixture.trust();
    assert_eq!(fixture.word(), "trusted");
    fs::write(fixture.root.join(".segno/prompts/new.md"), "x").unwrap();
    let standing = fixture.list().status(&fixture.root, at(200)).unwrap();
    assert!(matches!(standing.status, Status::Changed { since } if since == at(100)));
    fs::remove_file(fixture.root.join(".segno/prompts/new.md")).unwrap();
    assert_eq!(fixture.word(), "trusted");
    assert!(fixture.list().revoke(&fixture.root, at(300)).unwrap());
    assert!(!fixture.list().revoke(&fixture.root, at(300)).unwrap());
    assert_eq!(fixture.word(), "untrusted");
}

#[test]
fn a_planted_link_ends_trust_with_a_reason() {
    let fixture = Fixture::new();
    fixture.trust();
    std::os::unix::fs::symlink("/etc/hostname", fixture.root.join(".segno/prompts/x.md")).unwrap();
    let standing = fixture.list().status(&fixture.root, at(200)).unwrap();
    let Status::Untrusted { reason: Some(reason) } = standing.status else { panic!("{standing:?}") };
    assert_eq!(reason.to_string(), ".segno/prompts/x.md is a symbolic link");
}

#[test]
fn reading_creates_nothing() {
    let fixture = Fixture::new();
    assert_eq!(fixture.word(), "untrusted");
    assert!(fixture.list().list(at(1)).unwrap().is_empty());
    assert!(!fixture.data.exists());
}

#[test]
fn damage_is_put_aside_and_reported() {
    for damage in ["{", "", "[]", r#"{"version":1}"#, "\u{0}\u{0}"] {
        let fixture = Fixture::new();
        fixture.trust();
        fs::write(fixture.data.join("trust.json"), damage).unwrap();
        let error = fixture.list().status(&fixture.root, at(200)).unwrap_err();
        let kept = fixture.data.join("trust.json.corrupt-200");
        assert!(matches!(&error, Error::Damaged { kept: path } if *path == kept), "{error}");
        assert_eq!(fs::read_to_string(kept).unwrap(), damage);
        assert_eq!(fixture.word(), "untrusted");
    }
}

#[test]
fn a_newer_list_is_left_alone() {
    let fixture = Fixture::new();
    fixture.trust();
    let newer = r#"{"version":2,"projects":[]}"#;
    fs::write(fixture.data.join("trust.json"), newer).unwrap();
    assert!(matches!(fixture.list().status(&fixture.root, at(1)), Err(Error::Newer(2))));
    let content = Content::read(&fixture.root).unwrap();
    assert!(fixture.list().trust(&fixture.root, &content, at(1)).is_err());
    assert_eq!(fs::read_to_string(fixture.data.join("trust.json")).unwrap(), newer);
}

#[test]
fn a_list_that_others_can_write_is_not_believed() {
    let fixture = Fixture::new();
    fixture.trust();
    for (path, open, closed) in
        [(fixture.data.join("trust.json"), 0o666, 0o600), (fixture.data.clone(), 0o777, 0o700)]
    {
        fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
        assert!(matches!(fixture.list().status(&fixture.root, at(1)), Err(Error::Exposed { .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(closed)).unwrap();
        assert_eq!(fixture.word(), "trusted");
    }
}

#[test]
fn the_first_change_closes_an_open_directory() {
    let fixture = Fixture::new();
    fs::create_dir(&fixture.data).unwrap();
    fs::set_permissions(&fixture.data, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(fixture.word(), "untrusted");
    fixture.trust();
    assert_eq!(fs::metadata(&fixture.data).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fixture.word(), "trusted");
}

#[test]
fn many_at_once_lose_nothing() {
    let fixture = Fixture::new();
    let content = Content::default();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (list, content) = (fixture.list(), &content);
            scope.spawn(move || list.trust(Path::new(&format!("/p/{n}")), content, at(n)).unwrap());
        }
    });
    assert_eq!(fixture.list().list(at(1)).unwrap().len(), 8);
}
