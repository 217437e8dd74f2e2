//! The user's own repository: read as data, moved when asked.

use segno_workspace::Error;

use crate::support::*;

fn commit(home: &Home, text: &str) -> String {
    home.write("f", text);
    home.git(&["add", "f"]);
    home.git(&["commit", "-q", "-m", text]);
    home.git(&["rev-parse", "HEAD"])
}

#[test]
fn where_a_repository_stands_is_read_from_its_files() {
    let home = Home::new();
    let head = || home.open().head().unwrap();
    assert_eq!(head(), None);
    home.git(&["init", "-q", "-b", "main"]);
    let unborn = head().unwrap();
    assert_eq!((unborn.commit, unborn.branch.as_deref()), (None, Some("refs/heads/main")));
    let one = commit(&home, "one");
    assert_eq!(head().unwrap().commit, Some(one.clone()));
    home.git(&["pack-refs", "--all"]);
    assert_eq!(head().unwrap().commit, Some(one.clone()), "from packed refs");
    let two = commit(&home, "two");
    assert_eq!(head().unwrap().commit, Some(two.clone()));
    home.git(&["checkout", "-q", &one]);
    let detached = head().unwrap();
    assert_eq!((detached.commit, detached.branch), (Some(one.clone()), None));
    home.git(&["worktree", "add", "-q", "-b", "side", "../side", &two]);
    let mut options = home.options();
    options.root = home.base().join("side");
    options.shadow = home.base().join("other-shadow");
    let side = segno_workspace::Workspace::open(&options).unwrap();
    let found = side.head().unwrap().unwrap();
    assert_eq!((found.commit.clone(), found.branch.as_deref()), (Some(two), Some("refs/heads/side")));
    assert!(!side.is_dirty(&found).unwrap());
    std::fs::write(home.base().join("side/f"), "changed").unwrap();
    assert!(side.is_dirty(&found).unwrap());
}

#[test]
fn whether_it_is_dirty_is_seen_without_touching_it() {
    for format in ["sha1", "sha256"] {
        let home = Home::new();
        home.git(&["init", "-q", "--object-format", format]);
        home.git(&["config", "core.splitIndex", "true"]);
        commit(&home, "one");
        let dirty = || {
            let index = std::fs::read(home.path(".git/index")).unwrap();
            let workspace = home.open();
            let head = workspace.head().unwrap().unwrap();
            let dirty = workspace.is_dirty(&head).unwrap();
            assert_eq!(std::fs::read(home.path(".git/index")).unwrap(), index);
            dirty
        };
        assert!(!dirty());
        home.write("untracked", "x");
        assert!(!dirty());
        home.write("f", "two");
        assert!(dirty());
        home.git(&["add", "f"]);
        assert!(dirty(), "staged");
        home.git(&["commit", "-q", "-m", "two"]);
        assert!(!dirty());
    }
}

#[test]
fn a_branch_moves_and_its_old_place_is_kept() {
    let home = Home::new();
    home.git(&["init", "-q", "-b", "main"]);
    let one = commit(&home, "one");
    let two = commit(&home, "two");
    let index = std::fs::read(home.path(".git/index")).unwrap();
    let trap = home.path(".git/hooks/reference-transaction");
    std::fs::create_dir_all(trap.parent().unwrap()).unwrap();
    std::fs::write(&trap, format!("#!/bin/sh\n: > {}\n", home.base().join("sprung").display())).unwrap();
    std::fs::set_permissions(&trap, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let workspace = home.open();
    let moved = workspace.move_branch(&two, &one, "rollback/1").unwrap();
    assert_eq!((moved.what.as_str(), moved.kept_as.as_str()), ("refs/heads/main", "refs/segno/rollback/1"));
    assert!(!home.base().join("sprung").exists(), "no hook runs");
    assert_eq!(workspace.head().unwrap().unwrap().commit, Some(one.clone()));
    assert_eq!((home.read("f"), std::fs::read(home.path(".git/index")).unwrap()), ("two".into(), index));
    std::fs::remove_file(trap).unwrap();
    assert_eq!(home.git(&["rev-parse", "refs/segno/rollback/1"]), two);
    assert_eq!(home.git(&["reflog", "-1", "--format=%gs", "main"]), "segno: rollback");

    // It is not where the caller believes it is; it is no commit; the name is taken.
    assert!(matches!(workspace.move_branch(&two, &one, "rollback/2"), Err(Error::Git { .. })));
    assert!(matches!(workspace.move_branch(&one, &"0".repeat(40), "rollback/2"), Err(Error::Repository(_))));
    assert!(matches!(workspace.move_branch(&one, "main", "rollback/2"), Err(Error::Repository(_))));
    assert!(matches!(workspace.move_branch(&one, &two, "rollback/1"), Err(Error::Git { .. })));
    assert_eq!(workspace.head().unwrap().unwrap().commit, Some(one.clone()));
    home.git(&["checkout", "-q", "--detach", "-f"]);
    workspace.move_branch(&one, &two, "rollback/2").unwrap();
    assert_eq!((home.git(&["rev-parse", "HEAD"]), home.git(&["rev-parse", "main"])), (two, one));
}

#[test]
fn commits_are_counted_and_what_is_gone_counts_as_one() {
    let home = Home::new();
    assert_eq!(home.open().commits_between(None, &"a".repeat(40)).unwrap(), 0, "there is no repository");
    home.git(&["init", "-q"]);
    let one = commit(&home, "one");
    commit(&home, "two");
    let three = commit(&home, "three");
    let count = |from: Option<&str>, to: &str| home.open().commits_between(from, to).unwrap();
    assert_eq!(count(None, &three), 3);
    assert_eq!(count(Some(&one), &three), 2);
    assert_eq!(count(Some(&three), &one), 0, "going back is no commit");
    assert_eq!(count(Some(&"a".repeat(40)), &three), 1);
    assert_eq!(count(Some("--all"), &three), 0, "no option is smuggled in");
}

#[test]
fn the_present_tree_has_one_name_and_leaves_nothing() {
    let home = Home::new();
    home.git(&["init", "-q"]);
    home.write("f", "one");
    home.write(".gitignore", "target\n");
    let tree = || home.open().present_tree().unwrap();
    let first = tree();
    home.write("target", "built");
    assert_eq!(tree(), first, "what is ignored does not count");
    home.write("g", "untracked");
    let second = tree();
    assert_ne!(second, first);
    commit(&home, "two");
    home.write("f", "one");
    assert_eq!(tree(), second, "a commit changes no file");
    std::fs::remove_file(home.path("g")).unwrap();
    assert_eq!(tree(), first);
    assert_eq!(home.open().list().unwrap().len(), 0);
}

/// What git ignores is in no commit and in no checkpoint: a branch that has such a file must not write over it.
#[test]
fn a_branch_does_not_write_over_an_ignored_file() {
    let home = Home::new();
    home.git(&["init", "-q", "-b", "main"]);
    home.write(".gitignore", ".env\n");
    home.git(&["add", ".gitignore"]);
    commit(&home, "one");
    home.git(&["checkout", "-q", "-b", "side"]);
    home.write(".env", "theirs");
    home.git(&["add", "-f", ".env"]);
    commit(&home, "two");
    home.git(&["checkout", "-q", "main"]);
    home.write(".env", "PRECIOUS");
    assert!(matches!(home.open().checkout_branch("side"), Err(Error::Repository(_))));
    assert_eq!(std::fs::read_to_string(home.path(".env")).unwrap(), "PRECIOUS");
    assert_eq!(home.open().head().unwrap().unwrap().branch.as_deref(), Some("refs/heads/main"));
}
