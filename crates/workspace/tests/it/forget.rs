//! What is forgotten is in no name either.

use std::time::Duration;

use segno_workspace::Snapshots;

use crate::support::*;

const SECRET: &str = "quiet-Maple-77-harbor";

fn holds(bytes: &[u8]) -> bool {
    bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
}

/// Every file of the shadow directory that holds it, and its objects.
fn places(home: &Home) -> Vec<String> {
    let shadow = home.options().shadow;
    let mut found = Vec::new();
    let mut directories = vec![shadow.clone()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false if holds(&std::fs::read(&path).unwrap()) => found.push(path.display().to_string()),
                false => {}
            }
        }
    }
    let git = shadow.join("git").display().to_string();
    let objects = git_bytes(&["--git-dir", &git, "cat-file", "--batch-all-objects", "--batch"]);
    if holds(&objects) {
        found.push("objects".to_owned());
    }
    found
}

fn git_bytes(arguments: &[&str]) -> Vec<u8> {
    std::process::Command::new(git_program()).args(arguments).output().unwrap().stdout
}

#[test]
fn names_of_files_and_directories_are_forgotten() {
    let home = Home::new();
    let workspace = home.open();
    home.write("other.txt", "stays\n");
    home.write(format!("{SECRET}.txt"), "a name\n");
    home.write(format!("{SECRET}/inner/file.txt"), "the name of a directory\n");
    home.chmod(format!("{SECRET}/inner/file.txt"), 0o600);
    std::fs::create_dir_all(home.path(format!("sub/{SECRET}/empty"))).unwrap();
    make_fifo(&home, &format!("{SECRET}.pipe"));
    workspace.snapshot("one").unwrap();
    assert!(places(&home).len() >= 2, "{:?}", places(&home));
    let shadow = home.options().shadow;
    let snapshots = Snapshots::open(&shadow, &git_program(), Duration::from_secs(10)).unwrap();
    let held = snapshots.holding(&holds).unwrap();
    assert_eq!(held.len(), 1);
    let made = snapshots.without(&held[0].snapshot, "one-without-1", &holds).unwrap();
    snapshots.remove("one").unwrap();
    snapshots.purge().unwrap();
    assert_eq!(places(&home), Vec::<String>::new());
    assert_eq!(made.files, 1);
    let workspace = home.open();
    workspace.verify(&made).unwrap();
    assert_eq!(snapshots.holding(&holds).unwrap(), []);
    // Going back leaves what it does not know of.
    home.write("other.txt", "changed\n");
    home.restore(&made, "safety");
    assert_eq!(home.read("other.txt"), "stays\n");
}

fn make_fifo(home: &Home, name: &str) {
    let made = std::process::Command::new("mkfifo").arg(home.path(name)).status().unwrap();
    assert!(made.success());
}
