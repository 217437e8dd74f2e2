//! Checkpoints with files: made by themselves and by hand, compared, undone, redone, restored, rolled back.

use std::path::Path;

use serde_json::Value;

use crate::common::TestEnv;

/// A world in which checkpoints hold files.
pub(crate) fn world() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("SEGNO_CHECKPOINT_FILES", "true");
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    env
}

fn sh(env: &TestEnv, session: Option<&str>, script: &str) -> Value {
    let mut args = vec!["run", "--json"];
    args.extend(session.iter().flat_map(|id| ["--session", id]));
    args.extend(["--", "sh", "-c", script]);
    let output = env.raw(&args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

pub(crate) fn tree(env: &TestEnv) -> Vec<(String, String)> {
    fn walk(root: &Path, dir: &Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if name.starts_with(".segno") || name.starts_with(".git") {
                continue;
            }
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let root = env.path("project");
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    found.sort();
    found
}

#[test]
fn turns_are_undone_and_redone() {
    let env = world();
    env.write("project/a.txt", "one\n");
    let id = env.start(&["shop"]);
    let mut trees = vec![tree(&env)];
    for script in [
        "echo two > a.txt; mkdir -p d; echo x > d/x; chmod +x d/x",
        "true",
        "rm a.txt; ln -s d/x link; echo y > 'odd name'",
    ] {
        sh(&env, Some(&id), script);
        trees.push(tree(&env));
    }
    // The turn that changed nothing is passed over.
    for expected in [&trees[1], &trees[0]] {
        env.ok(&["undo", "--yes"]);
        assert_eq!(&tree(&env), expected);
    }
    assert_eq!(env.run(&["undo", "--yes"]).code, 5);
    env.ok(&["redo", "--yes"]);
    assert_eq!(tree(&env), trees[1]);
    env.ok(&["redo", "--yes"]);
    assert_eq!(tree(&env), trees[3]);
    assert_eq!(env.run(&["redo", "--yes"]).code, 5);
    env.ok(&["undo", "--turns", "2", "--yes"]);
    assert_eq!(tree(&env), trees[0]);
    // Whatever went, there is a way back to it.
    let restored = env.json(&["checkpoint", "restore", "last", "--yes"]);
    assert_eq!(restored["kept"], Value::Array(vec![]));
}

#[test]
fn what_somebody_changed_since_is_left_alone() {
    let env = world();
    env.write("project/a.txt", "one\n");
    env.write("project/b.txt", "one\n");
    sh(&env, None, "echo agent > a.txt; echo agent > b.txt; echo agent > c.txt");
    env.write("project/b.txt", "mine\n");
    env.write("project/mine.txt", "mine\n");
    let shown = env.json(&["undo", "--dry-run"]);
    assert_eq!(shown["kept"][0]["path"], "b.txt");
    assert_eq!(env.read("project/a.txt"), "agent\n", "a look changes nothing");
    let undone = env.json(&["undo", "--yes"]);
    assert_eq!(undone["kept"][0]["path"], "b.txt");
    assert_eq!(env.read("project/a.txt"), "one\n");
    assert_eq!(env.read("project/b.txt"), "mine\n");
    assert_eq!(env.read("project/mine.txt"), "mine\n");
    assert!(!env.path("project/c.txt").exists());
}

#[test]
fn only_some_files() {
    let env = world();
    env.write("project/src/a", "1\n");
    env.write("project/doc/b", "1\n");
    sh(&env, None, "echo 2 > src/a; echo 2 > doc/b");
    env.ok(&["undo", "src", "--yes"]);
    assert_eq!((env.read("project/src/a"), env.read("project/doc/b")), ("1\n".into(), "2\n".into()));
    assert_eq!(env.run(&["undo", "/etc", "--yes"]).code, 2);
}

#[test]
fn checkpoints_are_compared_validated_pinned_and_kept() {
    let env = world();
    env.write("project/a.txt", "one\n");
    env.start(&["shop", "--phases", "red,green"]);
    env.ok(&["checkpoint", "create", "first"]);
    env.write("project/a.txt", "two\nlines\n");
    env.ok(&["metric", "set", "coverage", "80"]);
    env.ok(&["phase", "green"]);
    let compared = env.json(&["checkpoint", "diff", "first", "red"]);
    assert_eq!(compared["files"][0]["path"], "a.txt");
    assert_eq!((&compared["files"][0]["added"], &compared["files"][0]["removed"]), (&2.into(), &1.into()));
    let names: Vec<&str> =
        compared["values"].as_array().unwrap().iter().map(|v| v["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"metric coverage") && names.contains(&"phase"), "{names:?}");
    assert_eq!(env.json(&["checkpoint", "validate"])["whole"], true);
    env.ok(&["checkpoint", "pin", "first"]);
    let shown = env.json(&["checkpoint", "show", "first"]);
    assert_eq!((&shown["checkpoint"]["pinned"], &shown["checkpoint"]["ready"]), (&true.into(), &true.into()));
    let bundle = env.path("first.bundle");
    env.ok(&["checkpoint", "export", "first", bundle.to_str().unwrap()]);
    env.ok(&["checkpoint", "import", bundle.to_str().unwrap(), "--name", "again"]);
    env.ok(&["checkpoint", "restore", "again", "--yes"]);
    assert_eq!(env.read("project/a.txt"), "one\n");
    let collected = env.json(&["checkpoint", "gc"]);
    assert_eq!(collected["dropped"], 0);
    assert_eq!(env.json(&["checkpoint", "validate"])["whole"], true);
}

#[test]
fn the_oldest_go_first_and_pinned_ones_never() {
    let mut env = world();
    env.set("SEGNO_CHECKPOINT_MAX", "2");
    env.start(&["shop"]);
    for number in 1..=4 {
        env.write("project/a.txt", &format!("{number}\n"));
        env.ok(&["checkpoint", "create", &format!("n{number}")]);
        if number == 1 {
            env.ok(&["checkpoint", "pin", "n1"]);
        }
    }
    let ready = |name: &str| env.json(&["checkpoint", "show", name])["checkpoint"]["ready"] == true;
    assert_eq!(["n1", "n2", "n3", "n4"].map(ready), [true, false, false, true]);
    let said = env.run(&["checkpoint", "restore", "n2", "--yes"]);
    assert!(said.code == 5 && said.stderr.contains("more than 2"), "{}", said.stderr);
    assert_eq!(env.json(&["checkpoint", "validate"])["whole"], true, "given up on purpose is not broken");
}

/// What stays of a session that has ended does not depend on a limit while it is open, unless that is smaller.
#[rstest::rstest]
#[case::without_a_limit("0", 2, 1)]
#[case::within_the_limit("100", 2, 1)]
#[case::the_limit_is_smaller("1", 1, 1)]
fn what_stays_when_a_session_has_ended(#[case] most: &str, #[case] done: usize, #[case] given_up: usize) {
    let mut env = world();
    env.set("SEGNO_CHECKPOINT_MAX", most);
    env.set("SEGNO_CHECKPOINT_KEEP_ON_SUCCESS", "2");
    env.set("SEGNO_CHECKPOINT_KEEP_ON_FAILURE", "1");
    for (end, expected) in [("complete", done), ("abort", given_up)] {
        let id = env.start(&["shop"]);
        for number in 1..=4 {
            env.write("project/a.txt", &format!("{end} {number}\n"));
            env.ok(&["checkpoint", "create", &format!("n{number}")]);
        }
        env.ok(&[end, &id]);
        let listed = env.json(&["checkpoint", "list", "--session", &id]);
        let rows = listed["items"].as_array().unwrap_or_else(|| panic!("{listed}"));
        let ready = rows.iter().filter(|row| row["ready"] == true).count();
        assert_eq!(ready, expected, "{end}: {listed}");
    }
}

#[test]
fn a_rollback_takes_plan_and_files_back_and_never_goes_forward() {
    let env = world();
    env.write("project/a.txt", "red\n");
    let id = env.start(&["shop", "--phases", "red,green,blue"]);
    env.ok(&["phase", "green"]);
    env.write("project/a.txt", "green\n");
    env.ok(&["metric", "set", "coverage", "80"]);
    env.ok(&["phase", "blue"]);
    env.write("project/a.txt", "blue\n");
    let gone = env.json(&["rollback", "red", "--yes"]);
    assert_eq!(gone["phase"], "green", "the sign at the end of red stands in green");
    assert_eq!(env.read("project/a.txt"), "red\n");
    let state = env.json(&["state"]);
    assert!(state["metrics"].is_null(), "{}", state["metrics"]);
    let green = env.json(&["checkpoint", "show", "green"]);
    assert_eq!(
        (&green["checkpoint"]["valid"], &green["checkpoint"]["invalidated_by"]),
        (&false.into(), &1.into())
    );
    let said = env.run(&["rollback", "green", "--yes"]);
    assert!(said.code == 5 && said.stderr.contains("invalidated by a rollback"), "{}", said.stderr);
    let history = env.json(&["history", &id]);
    assert!(history["items"].to_string().contains("rolled_back"));
    // What was there before is in the checkpoint that was made for it.
    env.ok(&["checkpoint", "restore", &gone["safety"].to_string(), "--yes"]);
    assert_eq!(env.read("project/a.txt"), "blue\n");
}

#[test]
fn a_branch_of_its_own_and_a_rollback_of_it() {
    let env = world();
    let git = |args: &[&str]| {
        let output = env.command("/usr/bin/git").args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    env.write("project/a.txt", "one\n");
    git(&["init", "-q", "-b", "main"]);
    let commit = |message: &str| {
        git(&["add", "a.txt"]);
        git(&["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", message]);
        git(&["rev-parse", "HEAD"])
    };
    let first = commit("first");
    let id = env.start(&["shop", "--branch", "go-team/{id}"]);
    assert_eq!(git(&["symbolic-ref", "HEAD"]), format!("refs/heads/go-team/{id}"));
    env.ok(&["checkpoint", "create", "before"]);
    env.write("project/a.txt", "two\n");
    let second = commit("second");
    let gone = env.json(&["rollback", "before", "--git", "--yes"]);
    assert_eq!(git(&["rev-parse", "HEAD"]), first);
    assert_eq!(env.read("project/a.txt"), "one\n");
    let kept = git(&["for-each-ref", "--format=%(objectname)", "refs/segno/"]);
    assert_eq!(kept, second, "{gone}");
    assert_eq!(git(&["rev-parse", "main"]), first, "other branches stay");
    assert_ne!(env.run(&["new", "again", "--parallel", "--branch", "main"]).code, 0, "it is there already");
}

#[test]
fn without_git_everything_else_works() {
    let mut env = world();
    env.set("PATH", "/nowhere");
    env.start(&["shop"]);
    // Who asks for a checkpoint relies on it: that it is recorded is not enough.
    let said = env.run(&["checkpoint", "create", "x"]);
    assert!(said.code == 1 && said.stderr.contains("git was not found"), "{}", said.stderr);
    env.ok(&["checkpoint", "validate"]);
    assert_eq!(env.run(&["checkpoint", "validate", "x"]).code, 10);
    env.ok(&["milestone", "everything else works"]);
    assert_eq!(env.json(&["checkpoint", "show", "x"])["checkpoint"]["ready"], false);
    let said = env.run(&["undo", "--yes"]);
    assert!(said.code != 0 && said.stderr.contains("nothing to undo"), "{}", said.stderr);
}

#[test]
fn nothing_is_restored_under_an_agents_hands() {
    let env = world();
    env.write("project/a.txt", "1\n");
    let id = env.start(&["shop"]);
    env.ok(&["checkpoint", "create", "x"]);
    let script = format!("\"$0\" --session {id} undo --yes; echo code $?");
    let said = sh(&env, Some(&id), &script.replace("\"$0\"", crate::common::SEGNO));
    assert!(said["text"].as_str().unwrap().contains("code 7"), "{said}");
}
