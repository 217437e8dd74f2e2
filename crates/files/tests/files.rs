//! What is written is there whole, private where it should be, and never through a link.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world should stop")]

use std::fs;
use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use segno_files::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn private_files_and_directories() {
    let temp = tempfile::tempdir().unwrap();
    let directory = temp.path().join("a/b");
    private_directory(&directory).unwrap();
    assert_eq!(mode(&directory), 0o700);
    fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
    private_directory(&directory).unwrap();
    assert_eq!(mode(&directory), 0o700);
    let file = directory.join("f");
    fs::write(&file, "old").unwrap();
    replace(&file, b"new", Access::Private).unwrap();
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("new", 0o600));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
}

#[test]
fn ordinary_files_keep_their_mode() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("f");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    replace(&file, b"new", Access::Ordinary).unwrap();
    assert_eq!(mode(&file), 0o640);
}

#[test]
fn reading_is_bounded() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("f");
    assert!(read_bounded(&file, 3, Links::Refuse).unwrap().is_none());
    fs::write(&file, "abc").unwrap();
    assert_eq!(read_bounded(&file, 3, Links::Refuse).unwrap().unwrap(), b"abc");
    assert!(matches!(read_bounded(&file, 2, Links::Refuse), Err(ReadError::TooLarge(2))));
    assert!(matches!(read_bounded(temp.path(), 2, Links::Refuse), Err(ReadError::NotRegular)));
}

#[test]
fn links_and_pipes_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let (file, link, pipe) = (temp.path().join("f"), temp.path().join("l"), temp.path().join("p"));
    fs::write(&file, "abc").unwrap();
    symlink(&file, &link).unwrap();
    assert!(matches!(read_bounded(&link, 9, Links::Refuse), Err(ReadError::NotRegular)));
    assert_eq!(read_bounded(&link, 9, Links::Follow).unwrap().unwrap(), b"abc");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    assert!(matches!(read_bounded(&pipe, 9, Links::Follow), Err(ReadError::NotRegular)));
}

/// Every file below a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_draft_that_is_given_up_leaves_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("f");
    fs::write(&file, "old").unwrap();
    let mut draft = Draft::begin(&file, Access::Private).unwrap();
    draft.file().write_all(b"half of").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    drop(draft);
    assert_eq!(names(temp.path()), ["f"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
}

#[test]
fn a_link_is_replaced_and_not_followed() {
    let temp = tempfile::tempdir().unwrap();
    let (file, link) = (temp.path().join("f"), temp.path().join("l"));
    fs::write(&file, "old").unwrap();
    symlink(&file, &link).unwrap();
    replace(&link, b"new", Access::Private).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert!(fs::symlink_metadata(&link).unwrap().is_file());
}

#[test]
fn a_taken_name_stays_whose_it_is() {
    let temp = tempfile::tempdir().unwrap();
    let (file, other) = (temp.path().join("f"), temp.path().join("g"));
    fs::write(&file, "mine").unwrap();
    fs::write(&other, "other").unwrap();
    let mut draft = Draft::begin(&file, Access::Private).unwrap();
    draft.file().write_all(b"new").unwrap();
    assert_eq!(draft.finish_new().unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(rename_to_free(&other, &file).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    rename_to_free(&other, &temp.path().join("h")).unwrap();
    assert_eq!(names(temp.path()), ["f", "h"]);
}

#[test]
fn the_longest_name_can_be_written() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("n".repeat(255));
    replace(&file, b"x", Access::Ordinary).unwrap();
    replace_lazily(&file, b"y").unwrap();
    assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"y".to_vec(), 0o600));
}

#[test]
fn what_killed_writers_left_is_swept() {
    let temp = tempfile::tempdir().unwrap();
    let left = format!(".view.{}.tmp", "a".repeat(32));
    for name in [left.as_str(), ".view.mine.tmp", "view"] {
        fs::write(temp.path().join(name), "").unwrap();
    }
    sweep(&open_dir(temp.path()).unwrap(), "view");
    assert_eq!(names(temp.path()), [".view.mine.tmp", "view"]);
}

#[test]
fn only_what_is_known_is_replaced() {
    let temp = tempfile::tempdir().unwrap();
    let dir = open_dir(temp.path()).unwrap();
    let file = temp.path().join("f");
    let replace = |content: &str, known: Option<&str>| {
        replace_known(&dir, "f", content.as_bytes(), 0o600, known.map(str::as_bytes)).unwrap()
    };
    assert_eq!(replace("one", None), Replaced::Done);
    assert_eq!(replace("two", None), Replaced::Theirs, "it was said not to be there");
    assert_eq!(replace("two", Some("one")), Replaced::Done);
    for theirs in ["three", "twofold", "tw", ""] {
        fs::write(&file, theirs).unwrap();
        assert_eq!(replace("ours", Some("two")), Replaced::Theirs);
        assert_eq!(fs::read_to_string(&file).unwrap(), theirs);
    }
    fs::remove_file(&file).unwrap();
    assert_eq!(replace("four", Some("two")), Replaced::Done, "there is nothing of anybody's to lose");
    fs::remove_file(&file).unwrap();
    symlink("elsewhere", &file).unwrap();
    assert_eq!(replace("five", Some("four")), Replaced::Theirs);
    assert_eq!(fs::read_link(&file).unwrap(), Path::new("elsewhere"));
    assert_eq!(names(temp.path()), ["f"]);
}

/// Somebody writes in the same moments as we do. Each of their texts is either in its place or was read before it was replaced.
#[test]
fn what_is_written_in_the_same_moment_is_not_lost() {
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering;
    const ROUNDS: u32 = 500;
    let temp = tempfile::tempdir().unwrap();
    let dir = open_dir(temp.path()).unwrap();
    let (file, draft) = (temp.path().join("f"), temp.path().join("theirs"));
    let seen = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let theirs = scope.spawn(|| {
            for round in 1..=ROUNDS {
                fs::write(&draft, round.to_string()).unwrap();
                fs::rename(&draft, &file).unwrap();
                let begun = std::time::Instant::now();
                while seen.load(Ordering::Acquire) < round {
                    assert!(begun.elapsed().as_secs() < 60, "their text {round} was lost");
                    std::thread::yield_now();
                }
            }
        });
        while !theirs.is_finished() {
            let known = fs::read(&file).ok();
            if let Some(round) = known.as_ref().and_then(|text| std::str::from_utf8(text).ok()?.parse().ok())
            {
                seen.fetch_max(round, Ordering::AcqRel);
            }
            replace_known(&dir, "f", b"ours", 0o600, known.as_deref()).unwrap();
        }
        theirs.join().unwrap();
    });
    assert_eq!(seen.load(Ordering::Acquire), ROUNDS);
    assert_eq!(names(temp.path()), ["f"]);
}
