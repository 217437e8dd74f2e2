//! Random edits by an agent and a user, random undo, redo and restore: nothing that was there is ever gone.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::PathBuf;

use proptest::prelude::*;
use segno_workspace::Selection;
use segno_workspace::Snapshot;
use segno_workspace::Workspace;

use crate::support::*;

/// Paths that get in each other's way.
const PATHS: &[&str] = &["a", "a/b", "a/b/c", "a/d", "e", "e/f", "g", "h/i/j"];

#[derive(Clone, Debug)]
enum Edit {
    Write(usize),
    Remove(usize),
    MakeDir(usize),
    Link(usize),
    Mode(usize, u32),
}

#[derive(Clone, Debug)]
enum Act {
    /// The agent's turn: edits, then a snapshot.
    Turn(Vec<Edit>),
    /// The user's edits, between turns.
    User(Vec<Edit>),
    /// Back over so many turns; the user edits meanwhile.
    Undo(usize, Vec<Edit>),
    Redo(usize, Vec<Edit>),
    Restore(usize, Option<usize>, Vec<Edit>),
}

fn edit() -> impl Strategy<Value = Edit> {
    let path = 0..PATHS.len();
    prop_oneof![
        4 => path.clone().prop_map(Edit::Write),
        2 => path.clone().prop_map(Edit::Remove),
        1 => path.clone().prop_map(Edit::MakeDir),
        1 => path.clone().prop_map(Edit::Link),
        1 => (path, prop_oneof![Just(0o600u32), Just(0o644), Just(0o755)]).prop_map(|(path, mode)| Edit::Mode(path, mode)),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let edits = |most| prop::collection::vec(edit(), 0..most);
    prop_oneof![
        3 => edits(6).prop_map(Act::Turn),
        2 => edits(3).prop_map(Act::User),
        2 => (1usize..3, edits(2)).prop_map(|(turns, edits)| Act::Undo(turns, edits)),
        1 => (1usize..3, edits(2)).prop_map(|(turns, edits)| Act::Redo(turns, edits)),
        1 => (0usize..8, prop::option::of(0..PATHS.len()), edits(2)).prop_map(|(to, only, edits)| Act::Restore(to, only, edits)),
    ]
}

struct Story {
    home: Home,
    workspace: Workspace,
    written: usize,
    turns: Vec<Snapshot>,
    looks: BTreeMap<String, BTreeMap<PathBuf, Print>>,
}

impl Story {
    fn edit(&mut self, edits: &[Edit]) {
        for edit in edits {
            let (Edit::Write(path)
            | Edit::Remove(path)
            | Edit::MakeDir(path)
            | Edit::Link(path)
            | Edit::Mode(path, _)) = edit;
            let path = self.home.path(PATHS[*path]);
            if matches!(edit, Edit::Write(_) | Edit::MakeDir(_) | Edit::Link(_)) {
                // Whoever wants to write there clears the way.
                for above in path.ancestors().skip(1).take_while(|above| *above != self.home.path("")) {
                    if above.is_symlink() || above.is_file() {
                        std::fs::remove_file(above).unwrap();
                    }
                }
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            }
            if !matches!(edit, Edit::Mode(..)) && path.symlink_metadata().is_ok() {
                if path.is_dir() && !path.is_symlink() {
                    std::fs::remove_dir_all(&path).unwrap();
                } else {
                    std::fs::remove_file(&path).unwrap();
                }
            }
            self.written += 1;
            match edit {
                Edit::Write(_) => std::fs::write(&path, format!("content {}", self.written)).unwrap(),
                Edit::MakeDir(_) => std::fs::create_dir(&path).unwrap(),
                Edit::Link(_) => std::os::unix::fs::symlink(format!("link {}", self.written), &path).unwrap(),
                Edit::Mode(_, mode) if path.is_file() && !path.is_symlink() => {
                    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(*mode))
                        .unwrap();
                }
                Edit::Mode(..) | Edit::Remove(_) => {}
            }
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        let name = format!("s{}", self.looks.len());
        self.looks.insert(name.clone(), self.home.look());
        self.workspace.snapshot(&name).unwrap().snapshot
    }

    /// Plans, lets the user edit meanwhile, applies, and looks for anything that has gone.
    fn go(&mut self, edits: &[Edit], plan: impl FnOnce(&Workspace, &Snapshot) -> segno_workspace::Plan) {
        let safety = self.snapshot();
        let plan = plan(&self.workspace, &safety);
        self.edit(edits);
        let before = self.home.look();
        let applied = self.workspace.apply(&plan).unwrap();
        let after = self.home.look();
        let safe: BTreeSet<&[u8]> =
            self.looks.values().flat_map(BTreeMap::values).map(|print| print.content.as_slice()).collect();
        let there: BTreeSet<&[u8]> = after.values().map(|print| print.content.as_slice()).collect();
        for (path, print) in &before {
            let content = print.content.as_slice();
            assert!(
                there.contains(content) || safe.contains(content),
                "{} is gone: {print:?}",
                path.display()
            );
            // What no snapshot holds is not only somewhere: it is where it was.
            if !safe.contains(content) {
                assert_eq!(
                    after.get(path).map(|print| &print.content),
                    Some(&print.content),
                    "{}",
                    path.display()
                );
            }
        }
        for kept in &applied.kept {
            assert_eq!(
                before.get(&kept.path),
                after.get(&kept.path),
                "{} was said to be kept",
                kept.path.display()
            );
        }
        assert!(!after.keys().any(|path| path.to_string_lossy().contains("segno-tmp")));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: setting("SEGNO_CASES", 24) as u32, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_ever_gone_from_both_the_tree_and_the_snapshots(acts in prop::collection::vec(act(), 1..14)) {
        let home = Home::new();
        let workspace = home.open();
        let mut story = Story { home, workspace, written: 0, turns: Vec::new(), looks: BTreeMap::new() };
        let first = story.snapshot();
        story.turns.push(first);
        let mut at = 0;
        for act in acts {
            match act {
                Act::Turn(edits) => {
                    let before = story.snapshot();
                    story.edit(&edits);
                    let after = story.snapshot();
                    story.turns.truncate(at + 1);
                    story.turns.extend([before, after]);
                    at = story.turns.len() - 1;
                }
                Act::User(edits) => story.edit(&edits),
                Act::Undo(turns, edits) => {
                    let to = at.saturating_sub(turns);
                    let (before, after) = (story.turns[to].clone(), story.turns[at].clone());
                    story.go(&edits, |workspace, safety| workspace.plan_undo(&before, &after, &Selection::All, safety).unwrap());
                    at = to;
                }
                Act::Redo(turns, edits) => {
                    let to = (at + turns).min(story.turns.len() - 1);
                    let (before, after) = (story.turns[at].clone(), story.turns[to].clone());
                    story.go(&edits, |workspace, safety| workspace.plan_undo(&after, &before, &Selection::All, safety).unwrap());
                    at = to;
                }
                Act::Restore(to, only, edits) => {
                    let target = story.turns[to % story.turns.len()].clone();
                    let selection = only.map_or(Selection::All, |path| Selection::Paths(vec![PATHS[path].into()]));
                    story.go(&edits, |workspace, safety| workspace.plan(&target, &selection, safety).unwrap());
                }
            }
        }
        // And the snapshots really hold what they are believed to hold.
        let names: Vec<String> = story.looks.keys().cloned().collect();
        for name in names {
            let target = story.workspace.get(&name).unwrap();
            let applied = story.home.restore(&target, &format!("last-{name}"));
            prop_assert_eq!(applied.kept, vec![]);
            assert_same(&story.looks[&name], &story.home.look(), &name);
        }
    }
}
