use std::os::unix::fs::symlink;

use super::*;

/// A home with directories in it; the temporary directory is canonical, as the search answers canonical paths.
fn home(directories: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let home = fs::canonicalize(temp.path()).unwrap().join("home");
    for directory in directories {
        fs::create_dir_all(home.join(directory)).unwrap();
    }
    (temp, home)
}

fn search(home: &Path, start: &str) -> (PathBuf, Marker) {
    let found = Project::search(&home.join(start), home).unwrap();
    (found.root.strip_prefix(home).unwrap_or(&found.root).to_owned(), found.marker)
}

#[test]
fn nearest_segno_wins_over_a_nearer_git() {
    let (_temp, home) = home(&["a/.segno", "a/b/.git", "a/b/c"]);
    assert_eq!(search(&home, "a/b/c"), ("a".into(), Marker::Segno));
}

#[test]
fn git_may_be_a_file() {
    let (_temp, home) = home(&["a/b"]);
    fs::write(home.join("a/.git"), "gitdir: x").unwrap();
    assert_eq!(search(&home, "a/b"), ("a".into(), Marker::Git));
}

#[test]
fn home_is_no_project_for_what_is_below_it() {
    let (_temp, home) = home(&[".git", "a/b"]);
    assert_eq!(search(&home, "a/b"), ("a/b".into(), Marker::CurrentDirectory));
    fs::create_dir(home.join(".segno")).unwrap();
    assert_eq!(search(&home, "a/b"), ("a/b".into(), Marker::CurrentDirectory));
    assert_eq!(search(&home, ""), ("".into(), Marker::Segno));
}

#[test]
fn a_link_is_no_marker() {
    let (_temp, home) = home(&["elsewhere", "a/b"]);
    symlink(home.join("elsewhere"), home.join("a/.segno")).unwrap();
    assert_eq!(search(&home, "a/b"), ("a/b".into(), Marker::CurrentDirectory));
}

#[test]
fn the_search_stops_at_directories_of_others() {
    if !rustix::process::geteuid().is_root() {
        return; // Only root can give a directory away.
    }
    let (_temp, home) = home(&["a/.segno", "a/b/c/d"]);
    std::os::unix::fs::chown(home.join("a/b"), Some(12345), None).unwrap();
    assert_eq!(search(&home, "a/b/c/d"), ("a/b/c/d".into(), Marker::CurrentDirectory));
    std::os::unix::fs::chown(home.join("a/b"), Some(0), None).unwrap();
    std::os::unix::fs::chown(home.join("a/.segno"), Some(12345), None).unwrap();
    assert_eq!(search(&home, "a/b/c/d"), ("a/b/c/d".into(), Marker::CurrentDirectory));
}

#[test]
fn a_named_project_must_exist() {
    let (_temp, home) = home(&["a"]);
    assert_eq!(Project::named(&home.join("a")).unwrap().root, home.join("a"));
    assert!(matches!(Project::named(&home.join("b")), Err(Error::NoProject { .. })));
}
