use std::os::unix::fs::symlink;

use super::*;

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let temp = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = temp.path().join(".segno").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    temp
}

fn hash(files: &[(&str, &str)]) -> String {
    Content::read(project(files).path()).unwrap().hash()
}

#[test]
fn only_what_can_act_is_read() {
    let temp = project(&[
        ("config.toml", "a"),
        ("workflows/tdd.toml", "b"),
        ("workflows/README", "no"),
        ("prompts/a.md", "c"),
        ("prompts/deep/b.md", "d"),
        ("sessions/x/session.yaml", "no"),
    ]);
    let content = Content::read(temp.path()).unwrap();
    let names: Vec<&str> = content.files().map(|(name, _)| name).collect();
    assert_eq!(names, ["config.toml", "prompts/a.md", "prompts/deep/b.md", "workflows/tdd.toml"]);
}

#[test]
fn names_and_bytes_make_the_hash() {
    let one = hash(&[("config.toml", "a"), ("prompts/x", "b")]);
    assert_eq!(one, hash(&[("prompts/x", "b"), ("config.toml", "a")]));
    assert_ne!(one, hash(&[("config.toml", "a"), ("prompts/y", "b")]));
    assert_ne!(one, hash(&[("config.toml", "ab"), ("prompts/x", "")]));
    assert_ne!(one, hash(&[("config.toml", "a")]));
}

#[test]
fn nothing_is_empty_content() {
    let temp = tempfile::tempdir().unwrap();
    assert_eq!(Content::read(temp.path()).unwrap(), Content::default());
}

#[test]
fn links_are_not_followed() {
    for name in ["config.toml", "workflows", "workflows/x.toml", "prompts/x", "prompts/deep"] {
        let temp = project(&[("keep", "")]);
        let secret = temp.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        let link = temp.path().join(".segno").join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&secret, &link).unwrap();
        let error = Content::read(temp.path()).unwrap_err();
        assert_eq!(error.to_string(), format!(".segno/{name} is a symbolic link"));
    }
}

#[test]
fn the_directory_itself_may_not_be_a_link() {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir(temp.path().join("elsewhere")).unwrap();
    symlink(temp.path().join("elsewhere"), temp.path().join(".segno")).unwrap();
    assert_eq!(Content::read(temp.path()).unwrap_err().to_string(), ".segno is a symbolic link");
    let temp = tempfile::tempdir().unwrap();
    symlink(temp.path().join("dangling"), temp.path().join(".segno")).unwrap();
    assert!(Content::read(temp.path()).is_err());
}

#[test]
fn too_much_is_refused() {
    let temp = project(&[("config.toml", &"#".repeat(MAX_FILE as usize + 1))]);
    assert!(matches!(Content::read(temp.path()), Err(Unsafe::TooLarge { .. })));
    let temp = project(&[("prompts/1/2/3/4/5/6/7/8/9/x", "")]);
    assert!(matches!(Content::read(temp.path()), Err(Unsafe::TooMuch)));
}

#[test]
fn a_pipe_does_not_hang() {
    let temp = project(&[("prompts/x", "")]);
    let pipe = temp.path().join(".segno/prompts/pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    assert!(matches!(Content::read(temp.path()), Err(Unsafe::NotRegular { .. })));
}
