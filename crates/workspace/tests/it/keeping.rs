//! Names, room, damage, other processes, other machines.

use std::time::Duration;

use segno_workspace::Error;
use segno_workspace::Selection;
use segno_workspace::Workspace;

use crate::support::*;

#[test]
fn dropped_snapshots_give_their_room_back() {
    let home = Home::new();
    let workspace = home.open();
    let noise = |seed: u64| {
        let mut dice = Dice::new(seed);
        (0..200_000).map(|_| dice.below(256) as u8).collect::<Vec<u8>>()
    };
    home.write("f", noise(1));
    workspace.snapshot("one").unwrap();
    home.write("f", noise(2));
    let two = workspace.snapshot("two").unwrap().snapshot;
    let full = workspace.size().unwrap();
    assert!(full > 400_000);
    assert_eq!(
        workspace.collect_garbage(Duration::ZERO).unwrap().after / 100_000,
        full / 100_000,
        "nothing is garbage yet"
    );
    workspace.drop_snapshot("one").unwrap();
    assert!(workspace.size().unwrap() > 400_000, "dropping alone removes nothing");
    let garbage = workspace.collect_garbage(Duration::ZERO).unwrap();
    assert!(garbage.after < 250_000 && garbage.before > 400_000, "{garbage:?}");
    workspace.verify(&two).unwrap();
    // The content of the first is remembered as known, but must be stored again.
    home.write("f", noise(1));
    let again = workspace.snapshot("again").unwrap().snapshot;
    workspace.verify(&again).unwrap();
    // A file that did not change, whose object was collected.
    workspace.drop_snapshot("again").unwrap();
    workspace.drop_snapshot("two").unwrap();
    workspace.collect_garbage(Duration::ZERO).unwrap();
    let last = workspace.snapshot("last").unwrap().snapshot;
    workspace.verify(&last).unwrap();
}

#[test]
fn the_quota_is_kept_and_a_safety_snapshot_may_exceed_it() {
    let home = Home::new();
    let mut dice = Dice::new(3);
    home.write("f", (0..100_000).map(|_| dice.below(256) as u8).collect::<Vec<u8>>());
    let mut options = home.options();
    options.quota = Some(50_000);
    let workspace = Workspace::open(&options).unwrap();
    assert!(matches!(workspace.snapshot("one"), Err(Error::OverQuota { quota: 50_000, .. })));
    assert_eq!(workspace.list().unwrap().len(), 0);
    let safety = workspace.safety_snapshot("safety").unwrap().snapshot;
    workspace.verify(&safety).unwrap();
    assert!(matches!(workspace.snapshot("two"), Err(Error::OverQuota { .. })), "it is full now");
    workspace.drop_snapshot("safety").unwrap();
    workspace.collect_garbage(Duration::ZERO).unwrap();
    home.write("f", "small");
    workspace.snapshot("three").unwrap();
}

#[test]
fn damage_is_found_and_named() {
    let home = Home::new();
    for number in 0..20 {
        home.write(format!("f{number}"), format!("content {number}\n").repeat(50));
    }
    let workspace = home.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    assert_eq!(workspace.verify(&one).unwrap().objects, 24);
    let pack = std::fs::read_dir(home.base().join("shadow/git/objects/pack")).unwrap();
    let pack =
        pack.map(|entry| entry.unwrap().path()).find(|path| path.extension().unwrap() == "pack").unwrap();
    let sound = std::fs::read(&pack).unwrap();
    let mut found = 0;
    let places = sound.len() - 12 - 32;
    for place in (12..12 + places).step_by(places / 40) {
        let mut damaged = sound.clone();
        damaged[place] ^= 0x10;
        std::fs::write(&pack, damaged).unwrap();
        found += usize::from(workspace.verify(&one).is_err());
    }
    // A flipped bit in the padding between two streams of bits may change nothing.
    assert!(found >= 38, "{found} of about 40");
    std::fs::write(&pack, &sound).unwrap();
    workspace.verify(&one).unwrap();
    // A restore from a damaged snapshot does not begin.
    home.write("f3", "mine");
    let safety = workspace.safety_snapshot("safety").unwrap().snapshot;
    let plan = workspace.plan(&one, &Selection::All, &safety).unwrap();
    std::fs::write(&pack, vec![0; sound.len()]).unwrap();
    assert!(workspace.apply(&plan).is_err());
    assert_eq!(home.read("f3"), "mine");
    std::fs::write(&pack, &sound).unwrap();
    assert!(workspace.pending().unwrap().is_none());
    assert_eq!(home.read("f3"), "mine");
}

#[test]
fn a_lost_or_damaged_cache_costs_only_time() {
    let home = Home::new();
    home.write("a", "1");
    home.write("d/b", "2");
    let workspace = home.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    let cache = home.base().join("shadow/cache");
    let sound = std::fs::read(&cache).unwrap();
    for (round, place) in (0..sound.len()).step_by(7).enumerate().take(20) {
        let mut damaged = sound.clone();
        damaged[place] ^= 1;
        std::fs::write(&cache, &damaged).unwrap();
        assert_eq!(workspace.snapshot(&format!("damaged-{round}")).unwrap().snapshot.tree, one.tree);
    }
    let size = workspace.size().unwrap();
    std::fs::remove_file(&cache).unwrap();
    let again = workspace.snapshot("again").unwrap().snapshot;
    assert_eq!((again.tree, again.changed), (one.tree, 2));
    assert!(workspace.size().unwrap() - size < 2_500, "what is there is not stored again");
}

#[test]
fn many_snapshots_do_not_make_many_packs() {
    let home = Home::new();
    let workspace = home.open();
    for number in 0..120 {
        home.write("f", format!("{number}"));
        workspace.snapshot(&format!("s{number}")).unwrap();
    }
    let packs = std::fs::read_dir(home.base().join("shadow/git/objects/pack")).unwrap().count();
    assert!(packs < 2 * 60, "{packs}");
    let all = workspace.list().unwrap();
    assert_eq!(all.len(), 120);
    for listed in all {
        workspace.verify(&listed.snapshot.unwrap()).unwrap();
    }
}

#[test]
fn a_snapshot_travels_in_one_file() {
    let home = Home::new();
    home.write("a", "1");
    home.chmod("a", 0o750);
    std::fs::create_dir(home.path("hollow")).unwrap();
    let workspace = home.open();
    let one = workspace.snapshot("session/one").unwrap().snapshot;
    let file = home.base().join("one.bundle");
    let size = workspace.export(&one, &file).unwrap();
    assert_eq!(size, std::fs::metadata(&file).unwrap().len());
    assert!(workspace.export(&one, &file).is_err(), "nothing is overwritten");
    let before = home.look();

    let other = Home::new();
    let theirs = other.open();
    let imported = theirs.import(&file, "theirs").unwrap();
    assert_eq!((imported.commit, imported.tree, imported.name.as_str()), (one.commit, one.tree, "theirs"));
    other.restore(&imported, "safety");
    assert_same(&before, &other.look(), "on another machine");

    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert!(Home::new().open().import(&file, "broken").is_err());
}

#[test]
fn a_bundle_that_leads_elsewhere_is_refused() {
    for (mode, name) in
        [("100644", ".git"), ("100644", ".."), ("100644", ".GIT"), ("100644", ".segno"), ("160000", "x")]
    {
        let maker = Home::new();
        maker.write("f", "#!/bin/sh\n");
        let workspace = maker.open();
        let one = workspace.snapshot("one").unwrap().snapshot;
        let git = maker.base().join("shadow/git");
        let say = |arguments: &[&str]| git_in(&git, arguments);
        let blob = say(&["rev-parse", "snapshots/one:files/f"]);
        let inner = make_tree(&git, &[(mode, name, &blob)]);
        let manifest = say(&["rev-parse", "snapshots/one:manifest"]);
        let outer = make_tree(&git, &[("40000", "files", &inner), ("100644", "manifest", &manifest)]);
        let message =
            say(&["log", "-1", "--format=%B", "refs/snapshots/one"]).replace(&one.tree.to_string(), &inner);
        let commit = say(&["commit-tree", &outer, "-m", &message]);
        say(&["update-ref", "refs/snapshots/evil", &commit]);
        let bundle = maker.base().join("evil.bundle");
        say(&["bundle", "create", "-q", bundle.to_str().unwrap(), "refs/snapshots/evil"]);
        let home = Home::new();
        let why = home.open().import(&bundle, "evil").unwrap_err();
        assert!(matches!(why, Error::Damaged { .. }), "{name}: {why}");
        assert_eq!(home.open().list().unwrap().len(), 0);
    }
}

/// Writes a tree object as it is, which git's own commands would refuse to.
fn make_tree(git: &std::path::Path, entries: &[(&str, &str, &str)]) -> String {
    use std::io::Write as _;
    let mut tree = Vec::new();
    for (mode, name, id) in entries {
        tree.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        tree.extend_from_slice(segno_workspace::ObjectId::parse(id).unwrap().as_bytes());
    }
    let mut child = std::process::Command::new("git")
        .args(["hash-object", "-t", "tree", "--literally", "-w", "--stdin"])
        .current_dir(git)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&tree).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

#[test]
fn two_at_once_take_turns() {
    let home = Home::new();
    for number in 0..200 {
        home.write(format!("d{}/f{number}", number % 9), format!("{number}"));
    }
    home.open();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let home = &home;
            scope.spawn(move || {
                for round in 0..6 {
                    home.write(format!("mine-{thread}"), format!("{round}"));
                    home.open().snapshot(&format!("t{thread}-{round}")).unwrap();
                }
            });
        }
    });
    let workspace = home.open();
    let all = workspace.list().unwrap();
    assert_eq!(all.len(), 24);
    for listed in all {
        workspace.verify(&listed.snapshot.unwrap()).unwrap();
    }
    // Who does not want to wait is told.
    let lock = std::fs::File::open(home.base().join("shadow/lock")).unwrap();
    lock.lock().unwrap();
    let mut options = home.options();
    options.patience = std::time::Duration::from_millis(20);
    assert!(matches!(Workspace::open(&options).unwrap().snapshot("late"), Err(Error::Busy)));
}

/// A bundle with these trees and this manifest, made as an enemy would.
fn evil_bundle(maker: &Home, files: &str, manifest: &[u8]) -> std::path::PathBuf {
    let workspace = maker.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    let git = maker.base().join("shadow/git");
    let say = |arguments: &[&str]| git_in(&git, arguments);
    let path = maker.base().join("manifest");
    std::fs::write(&path, manifest).unwrap();
    let manifest = say(&["hash-object", "-w", path.to_str().unwrap()]);
    let outer = make_tree(&git, &[("40000", "files", files), ("100644", "manifest", &manifest)]);
    let old = say(&["rev-parse", "snapshots/one:manifest"]);
    let message = say(&["log", "-1", "--format=%B", "refs/snapshots/one"]);
    let message = message.replace(&one.tree.to_string(), files).replace(&old, &manifest);
    let commit = say(&["commit-tree", &outer, "-m", &message]);
    say(&["update-ref", "refs/snapshots/evil", &commit]);
    let bundle = maker.base().join("evil.bundle");
    say(&["bundle", "create", "-q", bundle.to_str().unwrap(), "refs/snapshots/evil"]);
    bundle
}

#[test]
fn a_bundle_sets_no_permissions_that_others_may_not_decide() {
    let maker = Home::new();
    maker.write("f", "#!/bin/sh\n");
    let workspace = maker.open();
    let files = workspace.snapshot("zero").unwrap().snapshot.tree.to_string();
    let bundle =
        evil_bundle(&maker, &files, b"segno manifest 1\0usual f 4777 \0usual d 7777 \0usual x 6755 \0");
    let home = Home::new();
    let imported = home.open().import(&bundle, "evil").unwrap();
    home.open().verify(&imported).unwrap();
    home.restore(&imported, "safety");
    assert_eq!(home.mode("f"), 0o755);
    for bad in [&b"mode d 777 .git/hooks"[..], b"empty - 0 .git/evil", b"empty - 0 ../evil"] {
        let maker = Home::new();
        maker.write("f", "1");
        let files = maker.open().snapshot("zero").unwrap().snapshot.tree.to_string();
        let manifest = [b"segno manifest 1\0", bad, b"\0"].concat();
        let bundle = evil_bundle(&maker, &files, &manifest);
        let home = Home::new();
        std::fs::create_dir_all(home.path(".git/hooks")).unwrap();
        assert!(matches!(home.open().import(&bundle, "evil"), Err(Error::Damaged { .. })));
    }
}

#[test]
fn a_bundle_of_trees_that_hold_each_other_ends_at_once() {
    let maker = Home::new();
    maker.write("f", "1");
    maker.open().snapshot("zero").unwrap();
    let git = maker.base().join("shadow/git");
    let blob = git_in(&git, &["rev-parse", "snapshots/zero:files/f"]);
    let mut tree = make_tree(&git, &[("100644", "f", &blob)]);
    let names: Vec<String> = (0..10).map(|number| format!("d{number}")).collect();
    for _ in 0..20 {
        let entries: Vec<(&str, &str, &str)> =
            names.iter().map(|name| ("40000", name.as_str(), tree.as_str())).collect();
        tree = make_tree(&git, &entries);
    }
    let bundle = evil_bundle(&maker, &tree, b"segno manifest 1\0");
    let why = Home::new().open().import(&bundle, "evil").unwrap_err();
    assert!(why.to_string().contains("more paths"), "{why}");
}

#[test]
fn an_exported_bundle_is_never_anybody_elses_to_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    home.write("a", "1");
    let workspace = home.open();
    let one = workspace.snapshot("one").unwrap().snapshot;
    let file = home.base().join("out/one.bundle");
    std::fs::create_dir(home.base().join("out")).unwrap();
    workspace.export(&one, &file).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(home.base().join("out")).unwrap().count(), 1, "nothing beside it");
}

#[test]
fn an_index_that_stands_for_more_than_a_project_has_is_not_read() {
    let home = Home::new();
    home.write("a", "1");
    home.git(&["init", "-q"]);
    // Each entry of this form adds to the path of the one before.
    let mut index = b"DIRC".to_vec();
    index.extend_from_slice(&4u32.to_be_bytes());
    let count = 60_000u32;
    index.extend_from_slice(&count.to_be_bytes());
    for _ in 0..count {
        index.extend_from_slice(&[0; 62]);
        index.push(0);
        index.extend_from_slice(b"aaaa\0");
    }
    std::fs::write(home.path(".git/index"), index).unwrap();
    let taken = home.open().snapshot("one").unwrap();
    assert_eq!(taken.snapshot.files, 1);
}
