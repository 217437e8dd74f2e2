//! What is forgotten is gone, to the byte, and the record is whole without it.

use std::path::Path;
use std::path::PathBuf;
use std::process::Output;

use crate::common::TestEnv;

/// No rule knows it.
const SECRET: &str = "quiet-Maple-77-harbor";

fn forget(env: &TestEnv, secret: &str, more: &[&str]) -> Output {
    env.feed(&[&["forget"], more].concat(), secret.as_bytes())
}

fn forgotten(env: &TestEnv, secret: &str) {
    let output = forget(env, secret, &["--yes"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => files(&entry.path(), found),
            false => found.push(entry.path()),
        }
    }
}

/// Every object of every snapshot, packed or not, and whether anything reaches it or not.
fn objects(env: &TestEnv) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(env.path("data/segno/snapshots")).into_iter().flatten().flatten() {
        let git = entry.path().join("git");
        let output = env
            .command("git")
            .arg("--git-dir")
            .arg(&git)
            .args(["cat-file", "--batch-all-objects", "--batch"])
            .output()
            .unwrap();
        assert!(output.status.success());
        all.extend(output.stdout);
    }
    all
}

/// Where a secret still is: files byte by byte, objects of snapshots, and long texts unpacked.
fn places(env: &TestEnv, secret: &str) -> Vec<String> {
    let mut all = Vec::new();
    for dir in ["data", "state", "project/.segno"] {
        files(&env.path(dir), &mut all);
    }
    let is_in = |bytes: &[u8]| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
    let mut found: Vec<String> = all
        .into_iter()
        .filter(|path| std::fs::read(path).is_ok_and(|bytes| is_in(&bytes)))
        .map(|path| path.display().to_string())
        .collect();
    if is_in(&objects(env)) {
        found.push("the objects of snapshots".to_owned());
    }
    let store = env.path("data/segno/segno.db");
    let connection = rusqlite::Connection::open(store).unwrap();
    let mut ask = connection.prepare("SELECT content FROM blobs").unwrap();
    let texts = ask.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap();
    if texts.map(|text| zstd::decode_all(&text.unwrap()[..]).unwrap()).any(|text| is_in(&text)) {
        found.push("a long text".to_owned());
    }
    found
}

/// Checkpoints hold files here.
fn world() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("SEGNO_CHECKPOINT_FILES", "true");
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    env
}

/// A session whose agent printed the secret, in a short line and in a long one, and wrote it to a file.
fn slipped(env: &TestEnv) {
    env.write("project/long.txt", &format!("{}{SECRET} end\n", "word ".repeat(4_000)));
    env.write("project/settings.txt", &format!("harbour = {SECRET}\n"));
    env.write("project/other.txt", "as it was\n");
    env.ok(&[
        "run",
        "--",
        "/bin/sh",
        "-c",
        &format!("echo it is {SECRET}; cat long.txt; echo changed > other.txt"),
    ]);
    env.ok(&["note", "--session", "last", &format!("I typed {SECRET} into the wrong window")]);
    std::fs::create_dir_all(env.path("data/segno/backup")).unwrap();
    env.ok(&["backup", env.path("data/segno/backup/one.db").to_str().unwrap()]);
}

promise!(
    /// Nothing that segno keeps holds it afterwards, and the chain of hashes still verifies.
    fn a_secret_is_gone_to_the_byte() {
        let env = world();
        slipped(&env);
        assert!(places(&env, SECRET).len() >= 4, "{:?}", places(&env, SECRET));
        forgotten(&env, SECRET);
        assert_eq!(places(&env, SECRET), [""; 0]);
        env.ok(&["doctor", "--deep"]);
        let log = env.ok(&["log"]).stdout;
        assert!(log.contains("[forgotten]") && log.contains("a secret: "), "{log}");
        // Once more there is nothing to be done.
        let again = forget(&env, SECRET, &["--yes", "--json"]);
        let again: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
        assert_eq!(again["found"]["sessions"], serde_json::json!([]));
    }
);

promise!(
    /// The session whose texts are forgotten does not become the one that is meant when none is named.
    fn forgetting_texts_changes_no_default() {
        let env = world();
        let latest = || env.json(&["show"])["state"]["session_id"].as_str().unwrap().to_owned();
        env.ok(&["run", "--", "/bin/sh", "-c", "echo one"]);
        let first = latest();
        env.ok(&["run", "--", "/bin/sh", "-c", "echo two"]);
        let second = latest();
        assert_ne!(first, second);
        env.ok(&["forget", "--session", &first, "--yes"]);
        assert_eq!(latest(), second);
        env.ok(&["doctor", "--deep"]);
    }
);

promise!(
    /// Checkpoints lose the files that hold it and nothing else; going back leaves those files as they are.
    fn going_back_works_without_what_was_forgotten() {
        let env = world();
        slipped(&env);
        forgotten(&env, SECRET);
        let checkpoints = env.json(&["checkpoint", "list", "--session", "last"]);
        for checkpoint in checkpoints["items"].as_array().unwrap() {
            env.ok(&["checkpoint", "validate", "--session", "last", checkpoint["id"].as_str().unwrap()]);
        }
        env.write("project/settings.txt", "harbour = elsewhere\n");
        env.ok(&["undo", "--yes"]);
        assert_eq!(std::fs::read_to_string(env.path("project/other.txt")).unwrap(), "as it was\n");
        assert_eq!(
            std::fs::read_to_string(env.path("project/settings.txt")).unwrap(),
            "harbour = elsewhere\n"
        );
    }
);

promise!(
    /// What was forgotten stays forgotten in an export, which another store takes in whole.
    fn an_export_carries_the_seal() {
        let env = world();
        slipped(&env);
        forgotten(&env, SECRET);
        let file = env.path("out.json");
        env.ok(&["export", "-o", file.to_str().unwrap()]);
        let other = format!("sqlite:{}", env.path("other.db").display());
        env.ok(&["--store", &other, "import", file.to_str().unwrap()]);
        env.ok(&["--store", &other, "doctor", "--deep"]);
    }
);

promise!(
    /// Looking changes nothing, and without a yes nothing is done.
    fn nothing_is_forgotten_without_a_yes() {
        let env = world();
        env.ok(&["new", "work"]);
        env.ok(&["note", &format!("it is {SECRET}")]);
        let looked = forget(&env, SECRET, &["--dry-run", "--json"]);
        let looked: serde_json::Value = serde_json::from_slice(&looked.stdout).unwrap();
        assert_eq!(looked["found"]["sessions"][0]["events"], 1);
        let refused = forget(&env, SECRET, &[]);
        assert_eq!(refused.status.code(), Some(14));
        assert!(!places(&env, SECRET).is_empty());
        let short = forget(&env, "abc\n", &["--yes"]);
        assert_eq!(short.status.code(), Some(2));
    }
);

promise!(
    /// A changed byte in an event that a text was taken out of is found, as in any other.
    fn an_event_without_its_text_is_still_guarded() {
        let env = world();
        env.ok(&["new", "work"]);
        env.ok(&["note", &format!("it is {SECRET}")]);
        env.ok(&["note", "and after it"]);
        forgotten(&env, SECRET);
        env.ok(&["doctor", "--deep"]);
        let connection = rusqlite::Connection::open(env.path("data/segno/segno.db")).unwrap();
        let changed = connection
            .execute("UPDATE events SET body = replace(body, 'it is', 'it as') WHERE length(hash) = 64", [])
            .unwrap();
        assert_eq!(changed, 1);
        drop(connection);
        let doctor = env.run(&["doctor", "--deep"]);
        let said = doctor.stdout + &doctor.stderr;
        assert_eq!(doctor.code, 10, "{said}");
        assert!(said.contains("does not fit"), "{said}");
    }
);

promise!(
    /// A session's texts go, its shape stays.
    fn the_texts_of_a_session_can_be_forgotten() {
        let env = world();
        env.write("project/other.txt", "as it was\n");
        env.ok(&["run", "--", "/bin/sh", "-c", &format!("echo it is {SECRET}; echo changed > other.txt")]);
        let id = env.json(&["ls", "--all"])["sessions"][0]["session_id"].as_str().unwrap().to_owned();
        env.ok(&["forget", "--session", &id, "--yes"]);
        assert_eq!(places(&env, SECRET), [""; 0]);
        env.ok(&["doctor", "--deep"]);
        assert_eq!(env.json(&["ls", "--all"])["sessions"][0]["status"], "completed");
    }
);

promise!(
    /// While somebody drives a session, nothing is taken out of it.
    fn a_session_that_is_driven_is_left_alone() {
        let env = world();
        env.write(
            "project/wait.sh",
            &format!("echo it is {SECRET}; touch begun; while ! test -e go; do sleep 0.02; done"),
        );
        let mut run =
            env.command(crate::common::SEGNO).args(["run", "--", "/bin/sh", "wait.sh"]).spawn().unwrap();
        let told = || env.run(&["log", "--session", "last"]).stdout.contains(SECRET);
        while !told() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let refused = forget(&env, SECRET, &["--yes"]);
        env.write("project/go", "");
        run.wait().unwrap();
        assert_eq!(refused.status.code(), Some(7), "{}", String::from_utf8_lossy(&refused.stderr));
        assert!(told());
    }
);

promise!(
    /// Killed at any system call, the same command again does the rest; meanwhile every checkpoint has its files.
    fn one_that_was_cut_short_is_finished_by_the_next() {
        let env = world();
        let strace = env.command("/usr/bin/strace").args(["-qq", "-e", "trace=none", "/bin/true"]).output();
        if !strace.is_ok_and(|output| output.status.success()) {
            return;
        }
        env.ok(&["new", "work"]);
        let mut killed = 0;
        for round in 0..12_u32 {
            let secret = format!("quiet-Maple-{round:02}-harbor-{}", round * 7919);
            env.write("project/settings.txt", &format!("harbour = {secret}\n"));
            env.write("project/other.txt", &format!("{round}\n"));
            env.ok(&["note", &format!("it is {secret} {}", "word ".repeat(2_500))]);
            env.ok(&["checkpoint", "create"]);
            env.write("project/settings.txt", "harbour = elsewhere\n");
            let when = 60 + (round * 211) % 1_700;
            let script = format!(
                "printf %s '{secret}' | /usr/bin/strace -f -qq -o /dev/null -e inject=all:signal=KILL:when={when} $SEGNO forget --yes"
            );
            killed += u32::from(env.shell(&script).code != 0);
            let checkpoints = env.json(&["checkpoint", "list"]);
            for checkpoint in checkpoints["items"].as_array().unwrap() {
                env.ok(&["checkpoint", "validate", checkpoint["id"].as_str().unwrap()]);
            }
            forgotten(&env, &secret);
            assert_eq!(places(&env, &secret), [""; 0], "round {round}, killed at {when}");
            env.ok(&["doctor", "--deep"]);
        }
        assert!(killed >= 3, "only {killed} of 12 were killed");
    }
);

promise!(
    /// Who removes the session first has not put the secret out of reach.
    fn a_secret_of_a_removed_session_is_gone_too() {
        let env = world();
        slipped(&env);
        let id = env.json(&["show"])["state"]["session_id"].as_str().unwrap().to_owned();
        env.ok(&["rm", &id, "--yes"]);
        assert!(forget(&env, SECRET, &["--yes"]).status.success());
        assert_eq!(places(&env, SECRET), Vec::<String>::new());
    }
);

promise!(
    /// A secret may be the name of a file, of a directory, of a branch, of a checkpoint or of a result, a number, or part
    /// of an address.
    fn a_secret_in_names_is_gone_too() {
        let env = world();
        let git = |args: &[&str]| assert!(env.command("git").args(args).status().unwrap().success());
        git(&["init", "-q"]);
        git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"]);
        git(&["checkout", "-q", "-b", &format!("feature/{SECRET}")]);
        env.write(&format!("project/{SECRET}.txt"), "a file\n");
        env.write(&format!("project/in-{SECRET}/file.txt"), "in a directory\n");
        std::fs::create_dir_all(env.path(&format!("project/empty/{SECRET}"))).unwrap();
        env.ok(&["run", "--", "/bin/sh", "-c", &format!("echo changed > 'in-{SECRET}/file.txt'")]);
        env.ok(&["new", "work"]);
        env.ok(&["checkpoint", "create", &format!("before {SECRET}")]);
        env.ok(&["output", "set", SECRET, "result"]);
        forgotten(&env, SECRET);
        assert_eq!(places(&env, SECRET), [""; 0]);
        assert_eq!(places(&env, &SECRET.to_lowercase()), [""; 0], "as in the id of a checkpoint");
        let checkpoints = env.json(&["checkpoint", "list"]);
        for checkpoint in checkpoints["items"].as_array().unwrap() {
            env.ok(&["checkpoint", "validate", checkpoint["id"].as_str().unwrap()]);
        }
        env.ok(&["doctor", "--deep"]);
        // It goes on, on whichever branch that was.
        env.ok(&["pause"]);
        env.ok(&["resume", "--no-run"]);
        env.ok(&["metric", "set", "pin", "48151623"]);
        forgotten(&env, "48151623");
        assert_eq!(places(&env, "48151623"), [""; 0]);
        env.ok(&["note", "see https://host/?next=a%2fquiet%2fMaple&x=1 and /a/quiet/Maple"]);
        forgotten(&env, "a/quiet/Maple");
        assert_eq!(places(&env, "%2fquiet%2f"), [""; 0]);
    }
);

promise!(
    /// A session is known by where its project is: a directory that is called like the secret gets another name first.
    fn a_project_that_is_called_like_it_is_named() {
        let env = world();
        let place = format!("{SECRET}/shop/.segno/..");
        assert_eq!(env.run_in(&place, &["new", "work"]).code, 0);
        let refused =
            env.shell(&format!("cd '../{SECRET}/shop' && printf %s '{SECRET}' | $SEGNO forget --yes"));
        assert_eq!(refused.code, 5, "{}", refused.stderr);
        assert!(refused.stderr.contains("give that directory another name"), "{}", refused.stderr);
        std::fs::rename(env.path(SECRET), env.path("renamed")).unwrap();
        forgotten(&env, SECRET);
        assert_eq!(places(&env, SECRET), [""; 0]);
        env.ok(&["doctor", "--deep"]);
    }
);

promise!(
    /// With a session's texts go the reasons, messages and names in it.
    fn reasons_messages_and_names_are_texts() {
        let env = world();
        let id = env.start(&["work"]);
        let words = |what: &str| format!("{what} {SECRET}");
        env.ok(&["error", &words("message")]);
        env.ok(&["milestone", &words("milestone")]);
        env.ok(&["output", "set", &words("one"), "v"]);
        env.ok(&["output", "set", &words("two"), "v"]);
        env.ok(&["metric", "set", &words("metric"), "3"]);
        env.ok(&["checkpoint", "create", &words("checkpoint")]);
        env.ok(&["abort", "--reason", &words("reason")]);
        env.ok(&["forget", "--session", &id, "--yes"]);
        assert_eq!(places(&env, SECRET), [""; 0]);
        assert_eq!(places(&env, &SECRET.to_lowercase()), [""; 0]);
        env.ok(&["doctor", "--deep"]);
        let outputs = env.json(&["show", &id, "--outputs"]);
        assert_eq!(outputs["items"].as_array().unwrap().len(), 2, "two results are still two: {outputs}");
        // Once more there is nothing to be done.
        let again = env.json(&["forget", "--session", &id, "--yes"]);
        assert_eq!(again["found"]["sessions"], serde_json::json!([]), "{again}");
    }
);
