//! Undo takes back what was done and nobody changed since; redo is the same the other way.

use segno_workspace::Applied;
use segno_workspace::Selection;
use segno_workspace::Snapshot;
use segno_workspace::Why;

use crate::support::*;

fn undo(home: &Home, before: &Snapshot, after: &Snapshot, safety: &str) -> Applied {
    let workspace = home.open();
    let safety = workspace.safety_snapshot(safety).unwrap().snapshot;
    let plan = workspace.plan_undo(before, after, &Selection::All, &safety).unwrap();
    workspace.apply(&plan).unwrap()
}

#[test]
fn undo_and_redo_go_back_and_forth() {
    let home = Home::new();
    home.write("a", "1");
    home.write("dir/b", "1");
    let workspace = home.open();
    let mut looks = vec![home.look()];
    let mut snapshots = vec![workspace.snapshot("t0").unwrap().snapshot];
    for turn in 1..=4 {
        home.write("a", format!("{turn}"));
        home.write(format!("made/in/turn-{turn}"), "x");
        match turn {
            2 => home.remove("dir"),
            3 => home.chmod("a", 0o600),
            _ => {}
        }
        looks.push(home.look());
        snapshots.push(workspace.snapshot(&format!("t{turn}")).unwrap().snapshot);
    }
    for turn in (1..=4).rev() {
        let applied = undo(&home, &snapshots[turn - 1], &snapshots[turn], &format!("u{turn}"));
        assert_eq!(applied.kept, []);
        assert_same(&looks[turn - 1], &home.look(), &format!("undo of turn {turn}"));
    }
    for turn in 1..=4 {
        let applied = undo(&home, &snapshots[turn], &snapshots[turn - 1], &format!("r{turn}"));
        assert_eq!(applied.kept, []);
        assert_same(&looks[turn], &home.look(), &format!("redo of turn {turn}"));
    }
}

#[test]
fn what_was_changed_since_is_kept_and_listed() {
    let home = Home::new();
    for path in ["agent", "both", "user", "deleted-by-agent", "both-deleted"] {
        home.write(path, "1\n");
    }
    let workspace = home.open();
    let before = workspace.snapshot("before").unwrap().snapshot;
    for path in ["agent", "both", "made", "made-dir/file", "made-and-removed"] {
        home.write(path, "by the agent\n");
    }
    home.remove("deleted-by-agent");
    home.remove("both-deleted");
    let after = workspace.snapshot("after").unwrap().snapshot;
    home.write("both", "by the user\n");
    home.write("user", "by the user\n");
    home.write("made", "by the user\n");
    home.write("made-dir/note", "by the user\n");
    home.write("both-deleted", "made anew by the user\n");
    home.remove("made-and-removed");
    home.write("unrelated", "by the user\n");

    let applied = undo(&home, &before, &after, "safety");
    let kept: Vec<_> =
        applied.kept.iter().map(|kept| (kept.path.to_str().unwrap(), kept.why.clone())).collect();
    let expected = [
        ("both", Why::ChangedSince),
        ("both-deleted", Why::ChangedSince),
        ("made", Why::ChangedSince),
        ("made-dir", Why::NotEmpty),
    ];
    assert_eq!(kept, expected);
    assert_eq!((home.read("agent"), home.read("deleted-by-agent")), ("1\n".into(), "1\n".into()));
    for path in ["both", "user", "made", "made-dir/note", "unrelated"] {
        assert_eq!(home.read(path), "by the user\n");
    }
    assert_eq!(home.read("both-deleted"), "made anew by the user\n");
    assert!(!home.exists("made-dir/file") && !home.exists("made-and-removed"));
}

#[test]
fn a_file_in_the_way_of_a_directory_stays() {
    let home = Home::new();
    home.write("a/x", "1");
    let workspace = home.open();
    let before = workspace.snapshot("before").unwrap().snapshot;
    home.remove("a");
    let after = workspace.snapshot("after").unwrap().snapshot;
    home.write("a", "a file of the user's");
    let applied = undo(&home, &before, &after, "safety");
    assert_eq!(home.read("a"), "a file of the user's");
    let kept: Vec<_> = applied.kept.iter().map(|kept| kept.path.to_str().unwrap()).collect();
    assert_eq!(kept, ["a", "a/x"]);
}

#[test]
fn chosen_paths_only() {
    let home = Home::new();
    home.write("a", "1");
    home.write("b", "1");
    let workspace = home.open();
    let before = workspace.snapshot("before").unwrap().snapshot;
    home.write("a", "2");
    home.write("b", "2");
    let after = workspace.snapshot("after").unwrap().snapshot;
    let plan = workspace.plan_undo(&before, &after, &Selection::Paths(vec!["b".into()]), &after).unwrap();
    workspace.apply(&plan).unwrap();
    assert_eq!((home.read("a"), home.read("b")), ("2".into(), "1".into()));
}
