//! Thirty edits in ten turns, by tools and by shell: each turn is taken back and put forward again.

use std::collections::BTreeMap;

use segno_testkit::model::Op;
use segno_testkit::model::Turn;

use super::Real;

const TURNS: usize = 10;

/// Every file of the project with what it holds.
fn tree(real: &Real) -> BTreeMap<String, Vec<u8>> {
    fn walk(dir: &std::path::Path, at: &str, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let name = format!("{at}/{}", entry.file_name().to_str().unwrap());
            if name.starts_with("/.segno") || name.starts_with("/.git") {
                continue;
            }
            if entry.path().is_dir() {
                walk(&entry.path(), &name, found);
            } else {
                found.insert(name, std::fs::read(entry.path()).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(&real.lab.home.work(), "", &mut found);
    found
}

#[test]
fn thirty_edits_back_and_forth() {
    let turns = (0..TURNS).flat_map(|turn| {
        let edits = Turn::ops([
            Op::write(&format!("src/file-{}.txt", turn % 4), &format!("turn {turn}\n")),
            Op::sh(&format!("mkdir -p out && echo {turn} >> out/log.txt")),
            Op::sh(&match turn % 3 {
                0 => format!("touch out/made-{turn}; chmod 750 out/made-{turn}"),
                1 => "rm -f src/file-0.txt".to_owned(),
                _ => format!("mv src/file-{}.txt src/moved-{turn}.txt", turn % 4),
            }),
        ]);
        [edits, Turn::text("done")]
    });
    let Some(real) = Real::with("claude", turns) else { return };
    let made = real.lab.run(&["new", "many edits", "--budget", "1m"]);
    let id = made.text().lines().next().unwrap().to_owned();
    let mut trees = vec![tree(&real)];
    for _ in 0..TURNS {
        let said = real.run(&["--session", &id]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        trees.push(tree(&real));
    }
    assert_eq!(real.lab.state()["calls"]["total"], 3 * TURNS);
    assert!(trees.windows(2).all(|pair| pair[0] != pair[1]), "every turn changed something");
    for expected in trees.iter().rev().skip(1) {
        let undone = real.lab.json(&["undo", "--session", &id, "--yes"]);
        assert_eq!(undone["kept"].as_array().unwrap().len(), 0, "{undone}");
        assert_eq!(&tree(&real), expected);
    }
    assert_ne!(real.lab.run(&["undo", "--session", &id, "--yes"]).code, Some(0), "that was all");
    for expected in trees.iter().skip(1) {
        real.lab.json(&["redo", "--session", &id, "--yes"]);
        assert_eq!(&tree(&real), expected);
    }
    let validated = real.lab.json(&["checkpoint", "validate", "--session", &id]);
    assert_eq!(validated["whole"], true, "{validated}");
}
