//! What a restore does, and above all what it does not do.

use std::os::unix::fs::symlink;
use std::path::Path;

use segno_workspace::Error;
use segno_workspace::Reason;
use segno_workspace::Selection;
use segno_workspace::Settled;
use segno_workspace::Why;
use std::time::Duration;

use crate::support::*;

fn kept(applied: &segno_workspace::Applied) -> Vec<(&str, &Why)> {
    applied.kept.iter().map(|kept| (kept.path.to_str().unwrap(), &kept.why)).collect()
}

#[test]
fn the_plan_says_what_will_happen() {
    let home = Home::new();
    home.write("same", "s");
    home.write("changed", "1");
    home.write("gone", "g");
    let workspace = home.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    home.write("changed", "2");
    home.remove("gone");
    home.write("new/file", "n");
    let safety = workspace.safety_snapshot("safety").unwrap().snapshot;
    let plan = workspace.plan(&one, &Selection::All, &safety).unwrap();
    assert_eq!(plan.writes().collect::<Vec<_>>(), [Path::new("changed"), Path::new("gone")]);
    assert_eq!(plan.removals().collect::<Vec<_>>(), [Path::new("new"), Path::new("new/file")]);
    assert_eq!(home.read("changed"), "2", "a plan changes nothing");
    let applied = workspace.apply(&plan).unwrap();
    assert_eq!((applied.written.len(), applied.removed.len()), (2, 2));
    assert!(!home.exists("new"));
    let safety = workspace.safety_snapshot("safety-2").unwrap().snapshot;
    assert!(workspace.plan(&one, &Selection::All, &safety).unwrap().is_empty());
}

#[test]
fn only_chosen_paths_are_restored() {
    let home = Home::new();
    for path in ["a/x", "a/y", "ab/z", "b/deep/w"] {
        home.write(path, "1");
    }
    let workspace = home.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    for path in ["a/x", "a/y", "ab/z"] {
        home.write(path, "2");
    }
    home.remove("b");
    home.write("a/new", "n");
    home.write("c/new", "n");
    let safety = workspace.safety_snapshot("safety").unwrap().snapshot;
    let chosen = Selection::Paths(vec!["./a/".into(), "b/deep/w".into()]);
    let applied = workspace.apply(&workspace.plan(&one, &chosen, &safety).unwrap()).unwrap();
    assert_eq!(applied.kept, []);
    assert_eq!((home.read("a/x"), home.read("a/y"), home.read("ab/z")), ("1".into(), "1".into(), "2".into()));
    assert_eq!(home.read("b/deep/w"), "1", "with the directories above it");
    assert!(!home.exists("a/new") && home.exists("c/new"));
}

#[test]
fn what_no_snapshot_holds_is_never_touched() {
    let home = Home::new();
    home.write("was-file", "captured then");
    home.write("was-dir/file", "captured then");
    home.write("big", "small then");
    home.write("gone/file", "x");
    home.write("tree/file", "x");
    let mut options = home.options();
    options.largest_file = 1000;
    let workspace = segno_workspace::Workspace::open(&options).unwrap();
    let one = workspace.snapshot("one").unwrap().snapshot;
    home.write(".gitignore", "was-file\nwas-dir\ntree/*.tmp\n");
    home.write("was-file", "ignored now, and precious");
    home.remove("was-dir");
    home.write("was-dir", "ignored, and another kind");
    home.write("big", "x".repeat(2000));
    home.remove("gone");
    std::process::Command::new("mkfifo").arg(home.path("gone")).status().unwrap();
    home.remove("tree/file");
    home.write("tree/cache.tmp", "ignored");
    let safety = workspace.safety_snapshot("safety").unwrap().snapshot;
    let plan = workspace.plan(&one, &Selection::All, &safety).unwrap();
    let applied = workspace.apply(&plan).unwrap();
    let expected = ["big", "gone", "gone/file", "was-dir", "was-dir/file", "was-file"];
    assert_eq!(kept(&applied).iter().map(|(path, _)| *path).collect::<Vec<_>>(), expected);
    assert_eq!(home.read("was-file"), "ignored now, and precious");
    assert_eq!(home.read("was-dir"), "ignored, and another kind");
    assert_eq!(home.read("big").len(), 2000);
    assert_eq!((home.read("tree/file"), home.read("tree/cache.tmp")), ("x".into(), "ignored".into()));
    assert!(!home.exists(".gitignore"), "captured by the safety snapshot, and not in the target");
}

#[test]
fn what_the_target_could_not_capture_is_not_removed() {
    let home = Home::new();
    home.write("data", "x".repeat(5000));
    home.write("f", "1");
    let mut options = home.options();
    options.largest_file = 1000;
    let one = segno_workspace::Workspace::open(&options).unwrap().snapshot("one").unwrap();
    assert_eq!(one.exceptions[0].reason, Reason::TooLarge);
    // Now the limit is another, so the safety snapshot holds it and the target does not.
    home.write("f", "2");
    let applied = home.restore(&one.snapshot, "safety");
    assert_eq!(kept(&applied), [("data", &Why::LeftOutThen(Reason::TooLarge))]);
    assert_eq!((home.read("data").len(), home.read("f")), (5000, "1".into()));
}

#[test]
fn what_the_target_ignored_is_not_removed() {
    let home = Home::new();
    home.write(".gitignore", "/data/\n*.db\n");
    home.write("sub/.gitignore", "local\n");
    home.write("f", "1");
    for path in ["data/set/big.csv", "x.db", "sub/local", "sub/deep/local"] {
        home.write(path, "precious");
    }
    let workspace = home.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    assert_eq!(one.files, 3);
    // Now nothing ignores them, so the safety snapshot holds them and the target does not.
    home.remove(".gitignore");
    home.write("sub/.gitignore", "# none\n");
    home.write("sub/new", "n");
    let two = workspace.snapshot("two").unwrap().snapshot;
    assert_eq!(two.files, 7);
    let plan = workspace.plan_undo(&one, &two, &Selection::All, &two).unwrap();
    assert_eq!(plan.removals().collect::<Vec<_>>(), [Path::new("sub/new")]);
    let applied = home.restore(&one, "safety");
    for path in ["data/set/big.csv", "x.db", "sub/local", "sub/deep/local"] {
        assert_eq!(home.read(path), "precious");
        assert!(kept(&applied).contains(&(path, &Why::IgnoredThen)), "{path}");
    }
    assert!(!home.exists("sub/new") && home.exists(".gitignore"));
    assert_eq!(workspace.snapshot("three").unwrap().snapshot.tree, one.tree);
}

#[test]
fn directories_are_removed_only_when_empty() {
    let home = Home::new();
    home.write("f", "1");
    home.write(".gitignore", "*.o\n");
    let workspace = home.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    home.write("new/a", "a");
    home.write("new/b.o", "ignored");
    home.git(&["init", "-q", "repository"]);
    home.write("repository/file", "f");
    let applied = home.restore(&one, "safety");
    assert_eq!(kept(&applied), [("new", &Why::NotEmpty), ("repository", &Why::NotEmpty)]);
    assert!(!home.exists("new/a") && home.exists("new/b.o"));
    assert!(!home.exists("repository/file") && home.exists("repository/.git/HEAD"));
}

#[test]
fn edits_after_the_safety_snapshot_are_kept() {
    let home = Home::new();
    for path in ["changed", "removed", "mode", "replaced", "untouched", "dir/x"] {
        home.write(path, "1");
    }
    let workspace = home.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    for path in ["changed", "removed", "replaced", "untouched", "to-go"] {
        home.write(path, "2");
    }
    home.chmod("mode", 0o600);
    home.remove("dir");
    let safety = workspace.safety_snapshot("safety").unwrap().snapshot;
    let plan = workspace.plan(&one, &Selection::All, &safety).unwrap();
    assert_eq!(plan.kept, []);
    // Between the plan and its execution.
    home.write("changed", "mine");
    home.remove("removed");
    home.write("mode", "mine too");
    home.remove("replaced");
    symlink("/etc/passwd", home.path("replaced")).unwrap();
    home.write("to-go", "keep me");
    home.write("dir", "a file in the way");
    let applied = workspace.apply(&plan).unwrap();
    let paths: Vec<&str> = kept(&applied).iter().map(|(path, _)| *path).collect();
    assert_eq!(paths, ["changed", "dir", "dir/x", "mode", "removed", "replaced", "to-go"]);
    assert_eq!(
        (home.read("changed"), home.read("mode"), home.read("to-go")),
        ("mine".into(), "mine too".into(), "keep me".into())
    );
    assert_eq!((home.read("dir"), home.read("untouched")), ("a file in the way".into(), "1".into()));
    assert!(!home.exists("removed") && home.path("replaced").is_symlink());
    // A plan made now says so beforehand.
    let plan = workspace.plan(&one, &Selection::All, &safety).unwrap();
    assert!(plan.kept.iter().any(|kept| kept.path == Path::new("changed") && kept.why == Why::Edited));
}

#[test]
fn nothing_is_written_through_a_link() {
    let home = Home::new();
    home.write("dir/file", "1");
    home.write("dir/other", "1");
    // What is outside looks exactly like what is in the tree, so only the way to it tells.
    std::fs::create_dir(home.base().join("outside")).unwrap();
    std::fs::write(home.base().join("outside/file"), "2").unwrap();
    std::fs::write(home.base().join("outside/new"), "2").unwrap();
    let workspace = home.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    home.write("dir/file", "2");
    home.remove("dir/other");
    home.write("dir/new", "2");
    let safety = workspace.safety_snapshot("safety").unwrap().snapshot;
    let plan = workspace.plan(&one, &Selection::All, &safety).unwrap();
    std::fs::rename(home.path("dir"), home.path("moved")).unwrap();
    symlink(home.base().join("outside"), home.path("dir")).unwrap();
    let applied = workspace.apply(&plan).unwrap();
    assert_eq!(applied.written.len() + applied.removed.len(), 0, "{applied:?}");
    assert_eq!(applied.kept.len(), 3);
    let outside = |name: &str| std::fs::read_to_string(home.base().join("outside").join(name)).unwrap();
    assert_eq!((outside("file"), outside("new")), ("2".into(), "2".into()));
    assert_eq!(std::fs::read_dir(home.base().join("outside")).unwrap().count(), 2);

    // The same when the link is in the tree that is restored from: it is replaced, not followed.
    let applied = home.restore(&one, "safety-2");
    assert_eq!(applied.kept, []);
    assert_eq!((home.read("dir/file"), outside("file")), ("1".into(), "2".into()));
    assert!(!home.exists("moved") && home.exists("dir/other"));
}

#[test]
fn an_editor_that_saves_while_we_restore_loses_nothing() {
    let home = Home::new();
    home.write("f", "one");
    let workspace = home.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    let mut edited = 0;
    for round in 0..60 {
        home.write("f", format!("captured {round}"));
        let safety = workspace.safety_snapshot(&format!("s{round}")).unwrap().snapshot;
        let plan = workspace.plan(&one, &Selection::All, &safety).unwrap();
        let mine = format!("mine {round}");
        let saved = std::thread::scope(|scope| {
            let editor = scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_micros(round * 150));
                std::fs::write(home.base().join("draft"), &mine).unwrap();
                std::fs::rename(home.base().join("draft"), home.path("f")).unwrap();
            });
            let applied = workspace.apply(&plan).unwrap();
            editor.join().unwrap();
            applied
        });
        edited += saved.kept.len();
        // Before, in between or after: the save is always the last word.
        assert_eq!(home.read("f"), mine);
        assert_eq!(std::fs::read_dir(home.path("")).unwrap().count(), 1, "nothing is left beside it");
    }
    println!("{edited} of 60 saves were seen as edits");
}

#[test]
fn kinds_change_into_each_other() {
    let home = Home::new();
    home.write("file-to-dir", "f");
    home.write("dir-to-file/a/b", "d");
    symlink("x", home.path("link-to-dir")).unwrap();
    std::fs::create_dir(home.path("hollow-to-file")).unwrap();
    std::fs::create_dir_all(home.path("hollow/deeper")).unwrap();
    home.write("exec", "x");
    home.chmod("exec", 0o755);
    let before = home.look();
    let workspace = home.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    for path in ["file-to-dir", "dir-to-file", "link-to-dir", "hollow-to-file", "hollow"] {
        home.remove(path);
    }
    home.write("file-to-dir/inner/x", "1");
    symlink("elsewhere", home.path("dir-to-file")).unwrap();
    home.write("link-to-dir/y", "2");
    home.write("hollow-to-file", "3");
    home.write("hollow/deeper/now-full", "4");
    home.chmod("exec", 0o644);
    let after = home.look();
    assert_eq!(home.restore(&one, "two").kept, []);
    assert_same(&before, &home.look(), "back");
    assert_eq!(home.restore(&workspace.get("two").unwrap(), "three").kept, []);
    assert_same(&after, &home.look(), "forward");
}

#[test]
fn permissions_of_everything_come_back() {
    let home = Home::new();
    for number in 0..20 {
        home.write(format!("d{number}/f"), "x");
    }
    home.chmod("d3/f", 0o600);
    home.chmod("d4", 0o700);
    let before = home.look();
    let one = home.open().snapshot("one").unwrap().snapshot;
    for number in 0..20 {
        home.chmod(format!("d{number}/f"), 0o666);
        home.chmod(format!("d{number}"), 0o777);
    }
    assert_eq!(home.restore(&one, "two").kept, []);
    assert_same(&before, &home.look(), "restored");
}

#[test]
fn a_second_restore_waits_for_the_first_to_be_settled() {
    let home = Home::new();
    home.write("f", "1");
    let workspace = home.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    assert!(workspace.pending().unwrap().is_none());
    assert!(matches!(workspace.finish_pending(), Err(Error::NothingPending)));
    home.write("f", "2");
    let safety = workspace.safety_snapshot("safety").unwrap().snapshot;
    let plan = workspace.plan(&one, &Selection::All, &safety).unwrap();
    crate::crashes::cut_short(&home, "one");
    let pending = workspace.pending().unwrap().unwrap();
    assert_eq!((pending.target, pending.paths), (one.clone(), 1));
    assert!(matches!(workspace.apply(&plan), Err(Error::Pending)));
    assert!(matches!(workspace.drop_snapshot(&pending.safety.name), Err(Error::Pending)));
    assert!(matches!(workspace.drop_snapshot("one"), Err(Error::Pending)));
    assert!(matches!(workspace.collect_garbage(Duration::ZERO), Err(Error::Pending)));
    workspace.finish_pending().unwrap();
    assert_eq!(home.read("f"), "1");
    assert!(workspace.pending().unwrap().is_none());
    assert_eq!(std::fs::read_dir(home.path("")).unwrap().count(), 1);
}

#[test]
fn a_restore_cut_short_is_settled_by_itself_only_if_nothing_happened_since() {
    let home = Home::new();
    for number in 0..5 {
        home.write(format!("f{number}"), "1");
    }
    let workspace = home.open();
    workspace.snapshot("one").unwrap();
    let set = |text: &str| (0..5).for_each(|number| home.write(format!("f{number}"), text));
    set("2");
    crate::crashes::cut_short(&home, "one");
    assert!(matches!(workspace.settle_pending().unwrap(), Settled::Finished(_)));
    assert_eq!(home.read("f4"), "1");
    // Somebody wrote another file.
    set("3");
    crate::crashes::cut_short(&home, "one");
    home.write("mine", "m");
    let Settled::Waiting(waiting) = workspace.settle_pending().unwrap() else { panic!() };
    assert_eq!(waiting.changed, [std::path::PathBuf::from("mine")]);
    workspace.leave_pending().unwrap();
    assert_eq!(home.read("mine"), "m");
    assert_eq!(workspace.settle_pending().unwrap(), Settled::Nothing);
    let staged = std::fs::read_dir(home.path("")).unwrap().flatten();
    assert!(
        staged.filter(|entry| entry.file_name().to_string_lossy().starts_with(".segno-tmp")).count() == 0
    );
}
