//! What a snapshot holds, what differs, what comes back.

use std::os::unix::fs::PermissionsExt as _;

use segno_workspace::ChangeKind;
use segno_workspace::Error;
use segno_workspace::Selection;
use segno_workspace::Side;
use segno_workspace::Workspace;

use crate::support::*;

#[test]
fn a_tree_comes_back_as_it_was() {
    let home = Home::new();
    home.write("a.txt", "one\n");
    home.write("dir/b.txt", "two\n");
    std::fs::create_dir_all(home.path("empty/inner")).unwrap();
    home.chmod("a.txt", 0o640);
    let before = home.look();
    let workspace = home.open();
    let first = workspace.snapshot("first").unwrap();
    assert_eq!((first.snapshot.files, first.snapshot.bytes, first.snapshot.changed), (2, 8, 2));
    assert_eq!(first.exceptions, []);

    home.write("a.txt", "other");
    home.remove("dir");
    home.remove("empty");
    home.write("new/c", "three");
    home.chmod("a.txt", 0o755);
    let applied = home.restore(&first.snapshot, "safety");
    assert_eq!(applied.kept, []);
    assert_same(&before, &home.look(), "restored");
    workspace.verify(&first.snapshot).unwrap();

    let safety = workspace.get("safety").unwrap();
    home.restore(&safety, "safety-2");
    assert_eq!(home.read("new/c"), "three");
    assert_eq!(home.mode("a.txt"), 0o755);
    assert!(!home.exists("dir") && !home.exists("empty"), "a restore can be taken back");
}

#[test]
fn the_shadow_directory_is_a_repository_that_git_finds_sound() {
    let home = Home::new();
    for number in 0..300 {
        home.write(format!("d{}/f{number}", number % 7), format!("{number}\n").repeat(number));
    }
    home.write("large", "0123456789abcdef".repeat(800_000));
    home.write(
        "noise",
        (0..200_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect::<Vec<_>>(),
    );
    let workspace = home.open();
    let snapshot = workspace.snapshot("one").unwrap().snapshot;
    let git = |arguments: &[&str]| git_in(&home.base().join("shadow/git"), arguments);
    git(&["fsck", "--full", "--strict"]);
    let pack = std::fs::read_dir(home.base().join("shadow/git/objects/pack")).unwrap();
    let packs: Vec<_> =
        pack.map(|entry| entry.unwrap().path()).filter(|path| path.extension().unwrap() == "idx").collect();
    assert_eq!(packs.len(), 1, "one snapshot is one pack");
    git(&["verify-pack", packs[0].to_str().unwrap()]);
    git(&["index-pack", "--verify", packs[0].with_extension("pack").to_str().unwrap()]);
    assert_eq!(git(&["rev-parse", "refs/snapshots/one"]), snapshot.commit.to_string());
    assert_eq!(git(&["rev-parse", "refs/snapshots/one:files"]), snapshot.tree.to_string());
    // Nobody else may read what is in there.
    let mode = std::fs::metadata(home.base().join("shadow")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_second_snapshot_reads_and_writes_only_what_changed() {
    let home = Home::new();
    for number in 0..50 {
        home.write(format!("d{}/f{number}", number % 5), format!("{number}\n"));
    }
    let workspace = home.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    let size = workspace.size().unwrap();
    home.write("d3/f3", "changed");
    home.write("d3/new", "new");
    home.remove("d4/f4");
    let two = workspace.snapshot("two").unwrap().snapshot;
    assert_eq!((two.files, two.changed), (50, 3));
    assert!(workspace.size().unwrap() - size < 4_000, "{}", workspace.size().unwrap() - size);
    let three = workspace.snapshot("three").unwrap().snapshot;
    assert_eq!((three.tree, three.changed), (two.tree, 0));
    assert_ne!(one.tree, two.tree);
    let changes = workspace.diff(&one, Side::Snapshot(&two), true).unwrap();
    let short: Vec<_> = changes.iter().map(|change| (change.path.to_str().unwrap(), change.kind)).collect();
    let expected =
        [("d3/f3", ChangeKind::Modified), ("d3/new", ChangeKind::Added), ("d4/f4", ChangeKind::Deleted)];
    assert_eq!(short, expected);
    assert_eq!(changes[0].lines.unwrap().removed, 1);
    assert_eq!((changes[0].size_before, changes[0].size_after), (Some(2), Some(7)));
}

#[test]
fn a_change_with_the_same_size_and_time_is_seen() {
    let home = Home::new();
    let workspace = home.open();
    let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let write = |text: &str| {
        home.write("f", text);
        std::fs::File::options().write(true).open(home.path("f")).unwrap().set_modified(time).unwrap();
    };
    let mut trees = std::collections::HashSet::new();
    for round in 0..30 {
        write(&format!("{round:04}"));
        trees.insert(workspace.snapshot(&format!("s{round}")).unwrap().snapshot.tree);
    }
    assert_eq!(trees.len(), 30);
}

#[test]
fn the_present_tree_can_be_compared_and_leaves_nothing_behind() {
    let home = Home::new();
    home.write("a", "1\n2\n3\n");
    home.write("b", "x");
    let workspace = home.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    assert_eq!(workspace.diff(&one, Side::Present, false).unwrap(), []);
    home.write("a", "1\n2\n4\n");
    home.chmod("b", 0o600);
    std::fs::create_dir(home.path("hollow")).unwrap();
    let size = workspace.size().unwrap();
    let changes = workspace.diff(&one, Side::Present, true).unwrap();
    let short: Vec<_> =
        changes.iter().map(|change| (change.path.to_str().unwrap(), change.kind, change.directory)).collect();
    let expected = [
        ("a", ChangeKind::Modified, false),
        ("b", ChangeKind::ModeChanged, false),
        ("hollow", ChangeKind::Added, true),
    ];
    assert_eq!(short, expected);
    let text = String::from_utf8(workspace.diff_text(&one, Side::Present, &Selection::All).unwrap()).unwrap();
    assert!(text.contains("-3\n+4\n") && text.contains("--- a/a"), "{text}");
    let none = workspace.diff_text(&one, Side::Present, &Selection::Paths(vec!["b".into()])).unwrap();
    assert_eq!(none, b"");
    assert_eq!(workspace.size().unwrap(), size);
    let left: Vec<_> =
        std::fs::read_dir(home.base().join("shadow")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("tmp")), "{left:?}");
}

#[test]
fn trees_that_are_no_project_are_refused() {
    let home = Home::new();
    let wide = |root: &std::path::Path, user: &std::path::Path| {
        let mut options = home.options();
        options.root = root.to_owned();
        options.home = Some(user.to_owned());
        Workspace::open(&options)
    };
    let project = home.path("");
    assert!(matches!(wide("/".as_ref(), &project), Err(Error::TooWide { .. })));
    assert!(matches!(wide(&project, &project), Err(Error::TooWide { .. })));
    assert!(matches!(wide(&project, &project.join("inner")), Err(Error::TooWide { .. })));
    std::os::unix::fs::symlink(&project, home.base().join("alias")).unwrap();
    assert!(
        matches!(wide(&home.base().join("alias"), &project), Err(Error::TooWide { .. })),
        "by another name"
    );
    assert!(wide(&project, &home.base().join("elsewhere")).is_ok());
    assert!(matches!(wide(&home.base().join("missing"), &project), Err(Error::Io { .. })));
}

#[test]
fn a_missing_or_old_git_is_said_clearly() {
    let home = Home::new();
    let with = |program: &std::path::Path| {
        let mut options = home.options();
        options.git = program.to_owned();
        Workspace::open(&options).map(drop)
    };
    assert!(matches!(with("/nowhere/git".as_ref()), Err(Error::NoGit(_))));
    let old = home.base().join("git");
    std::fs::write(&old, "#!/bin/sh\necho git version 2.20.1\n").unwrap();
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o755)).unwrap();
    let why = with(&old).unwrap_err();
    assert_eq!(why.to_string(), "git 2.20.1 is too old: snapshots need git 2.32 or newer");
}

#[test]
fn names_are_checked_and_not_given_twice() {
    let home = Home::new();
    let workspace = home.open();
    for bad in ["", "../x", "a b", "x.lock", "-x"] {
        assert!(matches!(workspace.snapshot(bad), Err(Error::BadName(_))), "{bad}");
    }
    workspace.snapshot("session/cp-01").unwrap();
    for taken in ["session/cp-01", "session", "session/cp-01/more"] {
        assert!(matches!(workspace.snapshot(taken), Err(Error::NameTaken(_))), "{taken}");
    }
    assert!(matches!(workspace.get("session"), Err(Error::NotFound(_))));
    assert!(workspace.drop_snapshot("session/cp-01").unwrap());
    assert!(!workspace.drop_snapshot("session/cp-01").unwrap());
    workspace.snapshot("session").unwrap();
}

#[test]
fn the_shadow_directory_may_lie_in_the_tree_and_is_not_part_of_it() {
    let home = Home::new();
    home.write("f", "1");
    home.write("data/segno.db", "private");
    let mut options = home.options();
    options.shadow = home.path("data/shadow");
    options.never = vec![home.path("data/segno.db")];
    let workspace = Workspace::open(&options).unwrap();
    let one = workspace.snapshot("one").unwrap().snapshot;
    let two = workspace.snapshot("two").unwrap().snapshot;
    assert_eq!((one.files, one.tree), (1, two.tree));
}
