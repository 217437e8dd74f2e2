//! Going back never destroys, and takes back only what the session did.

use std::path::PathBuf;

use crate::common::TestEnv;
use crate::lab::Lab;
use crate::lab::Said;
use crate::terminal::ENTER;
use crate::terminal::Terminal;

/// A world in which checkpoints hold files.
fn world() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("SEGNO_CHECKPOINT_FILES", "true");
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    env
}

fn lab_file(lab: &Lab, name: &str) -> Option<String> {
    std::fs::read_to_string(lab.home.work().join(name)).ok()
}

fn ok(said: Said) -> Said {
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    said
}

/// The one pack with the objects of a project's snapshots.
fn packs(env: &TestEnv) -> Vec<PathBuf> {
    let is_pack = |path: &PathBuf| path.extension().is_some_and(|end| end == "pack");
    env.files().into_keys().filter(is_pack).collect()
}

promise!(
    /// What an undo is about to take away is kept before anybody is asked, and collecting garbage meanwhile leaves it.
    fn what_a_restore_takes_away_survives_a_collection_beside_it() {
        let lab = Lab::new();
        ok(lab.run(&["new", "shop"]));
        ok(lab.run(&["checkpoint", "create", "empty"]));
        for number in 1..=3 {
            std::fs::write(lab.home.work().join(format!("f{number}")), format!("mine {number}\n")).unwrap();
        }
        let terminal = Terminal::open(&lab);
        terminal.type_keys(&format!("\"$SEGNO\" checkpoint restore empty{ENTER}"));
        terminal.wait_for(0, "[y/N]");
        ok(lab.run(&["checkpoint", "gc"]));
        terminal.type_keys(&format!("y{ENTER}"));
        assert_eq!(terminal.exit_code(), 0);
        assert_eq!(lab_file(&lab, "f1"), None, "it was removed");
        ok(lab.run(&["checkpoint", "gc"]));
        ok(lab.run(&["checkpoint", "restore", "2", "--yes"]));
        for number in 1..=3 {
            assert_eq!(lab_file(&lab, &format!("f{number}")), Some(format!("mine {number}\n")));
        }
    }
);

promise!(
    /// Who answers no has changed nothing, and no checkpoint of it stays behind.
    fn a_no_leaves_no_checkpoint_behind() {
        let lab = Lab::new();
        ok(lab.run(&["run", "--", "sh", "-c", "echo agent > f"]));
        let before = lab.json(&["checkpoint", "list"])["items"].as_array().unwrap().len();
        let terminal = Terminal::open(&lab);
        terminal.type_keys(&format!("\"$SEGNO\" undo{ENTER}"));
        terminal.wait_for(0, "[y/N]");
        terminal.type_keys(&format!("n{ENTER}"));
        assert_eq!(terminal.exit_code(), 14);
        assert!(terminal.since(0).contains("nothing was changed"));
        let rows = lab.json(&["checkpoint", "list"])["items"].as_array().unwrap().clone();
        let ready = rows.iter().filter(|row| row["ready"] == true).count();
        assert_eq!((ready, lab_file(&lab, "f").as_deref()), (before, Some("agent\n")));
        let shown = lab.run(&["show", "last"]).text();
        assert!(shown.contains("cp-02-final   0 actions since"), "{shown}");
    }
);

promise!(
    /// Going back to a checkpoint costs what it would take away: neither what that checkpoint holds, nor what a person did.
    fn a_resume_point_costs_only_what_going_there_takes_away() {
        let lab = Lab::new();
        let failed = lab.run(&["run", "--", "sh", "-c", "echo made > f; echo more > g; exit 3"]);
        assert_eq!(failed.code, Some(20), "{}", failed.stderr);
        for (name, text) in [("mine", "new\n"), ("f", "edited\n")] {
            std::fs::write(lab.home.work().join(name), text).unwrap();
        }
        let offered = lab.json(&["resume", "last", "--options"]);
        let first = &offered["options"]["ways"][0];
        let cost = (&first["actions_lost"], &first["files_lost"], &first["loses"]);
        let nothing = (&serde_json::json!(0), &serde_json::json!(0), &serde_json::json!("loses nothing"));
        assert_eq!(cost, nothing, "{offered}");
        assert_eq!(lab.run(&["resume", "last", "--from", "checkpoint", "--no-run"]).code, Some(0));
        assert_eq!(lab_file(&lab, "mine").as_deref(), Some("new\n"));
        assert_eq!(lab_file(&lab, "f").as_deref(), Some("edited\n"));
    }
);

promise!(
    /// Where there is no agent to follow, that is all there is to say, and nothing of it is recorded.
    fn attach_without_an_agent_leaves_nothing_behind() {
        let lab = Lab::new();
        ok(lab.run(&["new", "no agent"]));
        let before = lab.journal(None).len();
        let said = lab.run(&["attach", "last"]);
        assert_eq!(said.stderr, "error: no agent runs in this session\n");
        assert_eq!(lab.journal(None).len(), before);
    }
);

promise!(
    /// A damaged checkpoint is refused before the first file is touched, and the next command works as ever.
    fn a_damaged_checkpoint_touches_no_file() {
        let env = world();
        for number in 0..30 {
            env.write(&format!("project/f{number}"), &format!("first {number}\n").repeat(200));
        }
        env.start(&["shop"]);
        env.ok(&["checkpoint", "create", "first"]);
        let pack = packs(&env).pop().unwrap();
        let first = std::fs::read(&pack).unwrap();
        for number in 0..30 {
            env.write(&format!("project/f{number}"), &format!("second {number}\n"));
            env.write(&format!("project/g{number}"), "new\n");
        }
        let here: Vec<_> = project(&env);
        let mut refused = 0;
        for place in (12..first.len() - 32).step_by(first.len() / 25) {
            let mut damaged = first.clone();
            damaged[place] ^= 0x10;
            make_writable(&pack);
            std::fs::write(&pack, &damaged).unwrap();
            let said = env.run(&["checkpoint", "restore", "first", "--yes"]);
            std::fs::write(&pack, &first).unwrap();
            if said.code == 0 {
                // A bit between two streams says nothing; then it must be right.
                assert_eq!(env.read("project/f7"), "first 7\n".repeat(200));
                env.ok(&["undo", "--to", &last_safety(&env), "--yes"]);
            } else {
                refused += 1;
            }
            assert_eq!(project(&env), here, "byte {place}: {}", said.stderr);
            env.ok(&["checkpoint", "create"]);
        }
        assert!(refused > 15, "{refused}");
        env.ok(&["checkpoint", "restore", "first", "--yes"]);
        assert_eq!(env.read("project/f7"), "first 7\n".repeat(200));
    }
);

promise!(
    /// A full disk is called that, not damage; what was there is there still.
    fn a_full_disk_under_a_restore_is_no_damage() {
        let lab = Lab::new();
        let Some(disk) = crate::lab::SmallDisk::mount(&lab, "small", "2m") else {
            return crate::lab::skip("nothing can be mounted here");
        };
        let small = lab.path("small");
        let run = |args: &[&str]| {
            let all: Vec<&str> = ["--project", &small].into_iter().chain(args.iter().copied()).collect();
            lab.run(&all)
        };
        let file = std::path::Path::new(&small).join("large");
        // Nothing that a file system could make smaller.
        let noise: Vec<u8> = (0..200_000_u64)
            .flat_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
            .take(1_200_000)
            .collect();
        std::fs::write(&file, &noise).unwrap();
        ok(run(&["new", "shop"]));
        ok(run(&["checkpoint", "create", "large"]));
        std::fs::write(&file, "small\n").unwrap();
        // Where the restore does not take it away.
        let hog = format!("{small}/.segno/filler");
        std::fs::rename(disk.fill(), &hog).unwrap();
        let said = run(&["checkpoint", "restore", "large", "--yes"]);
        assert_ne!(said.code, Some(0), "{}", said.stderr);
        assert!(said.stderr.contains("No space left"), "{}", said.stderr);
        assert!(!said.stderr.contains("damaged"), "{}", said.stderr);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "small\n");
        std::fs::remove_file(hog).unwrap();
        ok(run(&["checkpoint", "restore", "large", "--yes"]));
        assert!(std::fs::read(&file).unwrap() == noise);
    }
);

/// The number of the newest checkpoint that was made before going somewhere.
fn last_safety(env: &TestEnv) -> String {
    let listed = env.json(&["checkpoint", "list", "--limit", "1000"]);
    let rows = listed["items"].as_array().unwrap().clone();
    let aside = rows.iter().filter(|row| row["reason"] == "before_restore");
    aside.map(|row| row["ordinal"].as_u64().unwrap()).max().unwrap().to_string()
}

fn make_writable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// The files of the project with their content, but for the view and the repository.
fn project(env: &TestEnv) -> Vec<(PathBuf, Vec<u8>)> {
    let root = env.path("project");
    let inside = |path: &PathBuf| path.strip_prefix(&root).ok().map(ToOwned::to_owned);
    let files = env.files().into_iter().filter_map(|(path, text)| Some((inside(&path)?, text)));
    files.filter(|(path, _)| !path.starts_with(".segno") && !path.starts_with(".git")).collect()
}

/// Ends an undo when about half of its files are changed.
fn undo_cut_short(env: &TestEnv) {
    for die_at in (40..600).step_by(17) {
        let mut command = env.command(crate::common::SEGNO);
        let said = command
            .env("SEGNO_WORKSPACE_DIE_AT", die_at.to_string())
            .args(["undo", "--yes"])
            .output()
            .unwrap();
        assert!(!said.status.success(), "it was never cut short");
        let changed = (0..30).filter(|number| env.read(&format!("project/f{number}")) == "old\n").count();
        if changed >= 10 {
            assert!(changed < 30);
            return;
        }
        let settled = env.run(&["checkpoint", "pending", "--take-back"]);
        // 5 if it was cut before the first change was noted: then nothing is pending.
        assert!(settled.code == 0 || settled.code == 5, "{}", settled.stderr);
        assert_eq!(env.read("project/f3"), "agent\n");
    }
    panic!("it was never cut short half-way");
}

fn git(env: &TestEnv, args: &[&str]) {
    let output = env
        .command("/usr/bin/git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A repository with thirty files that an agent has changed.
fn thirty_changed() -> TestEnv {
    let env = world();
    for number in 0..30 {
        env.write(&format!("project/f{number}"), "old\n");
    }
    env.write("project/.gitignore", ".segno/\n");
    git(&env, &["init", "-q"]);
    git(&env, &["add", "."]);
    git(&env, &["commit", "-qm", "old"]);
    let id = env.start(&["shop"]);
    env.ok(&["run", "--session", &id, "--", "sh", "-c", "for f in f*; do echo agent > $f; done"]);
    env
}

promise!(
    /// An undo that was cut short is not finished by some later command when somebody has worked on since.
    fn a_restore_cut_short_is_left_alone_when_the_tree_moved_on() {
        let env = thirty_changed();
        undo_cut_short(&env);
        for number in 0..30 {
            env.write(&format!("project/f{number}"), "agent\n");
        }
        git(&env, &["commit", "-qam", "what the agent did is fine"]);
        let said = env.run(&["run", "--session", "last", "--", "true"]);
        assert_eq!(said.code, 0, "{}", said.stderr);
        for number in 0..30 {
            assert_eq!(env.read(&format!("project/f{number}")), "agent\n", "f{number}");
        }
        assert!(said.stderr.contains("cut short"), "{}", said.stderr);
        assert!(said.stderr.contains("segno checkpoint pending"), "{}", said.stderr);
        // Going somewhere is refused until it is decided, and says what to type.
        let said = env.run(&["undo", "--yes"]);
        assert_eq!(said.code, 5, "{}", said.stderr);
        assert!(said.stderr.contains("segno checkpoint pending --leave"), "{}", said.stderr);
        env.ok(&["checkpoint", "pending", "--leave"]);
        assert_eq!(env.read("project/f3"), "agent\n");
        assert_eq!(env.run(&["checkpoint", "pending"]).code, 0);
        env.ok(&["checkpoint", "gc"]);
    }
);

promise!(
    /// Without a commit, too: files that were put back by hand stay as they are.
    fn a_restore_cut_short_and_put_back_by_hand_stays_put_back() {
        let env = thirty_changed();
        undo_cut_short(&env);
        for number in 0..30 {
            env.write(&format!("project/f{number}"), "agent\n");
        }
        env.ok(&["checkpoint", "create"]);
        for number in 0..30 {
            assert_eq!(env.read(&format!("project/f{number}")), "agent\n", "f{number}");
        }
    }
);

promise!(
    /// A tree that nobody has touched since is brought to where it was going.
    fn a_restore_cut_short_is_finished_when_nothing_happened_since() {
        let env = thirty_changed();
        undo_cut_short(&env);
        let said = env.run(&["checkpoint", "create"]);
        assert!(said.code == 0 && said.stderr.contains("finished"), "{}", said.stderr);
        for number in 0..30 {
            assert_eq!(env.read(&format!("project/f{number}")), "old\n", "f{number}");
        }
    }
);
