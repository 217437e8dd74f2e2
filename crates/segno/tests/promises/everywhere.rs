//! A secret that comes in by any door is in none of our files afterwards, byte by byte.

use std::path::Path;
use std::path::PathBuf;

use crate::common::TestEnv;

/// Known by its form.
const TOKEN: &str = "ghp_Zk8Qw3Lr9Tn2Vb6Xc4Md7Pf1Hs5Jg0YaUeRt";
/// Known by the variable that holds it.
const VALUE: &str = "Tr0ubadour-Kx7-Vellum";
/// Known by the variable of a described agent.
const DESCRIBED: &str = "Ribbed-88-kettle-Moss";

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), found);
        }
    }
}

fn holds(bytes: &[u8], secret: &str) -> bool {
    bytes.windows(secret.len()).any(|part| part.eq_ignore_ascii_case(secret.as_bytes()))
}

/// Where any of the secrets is: in the name of a file, in its bytes, or in a long text that is kept packed.
fn places(env: &TestEnv) -> Vec<String> {
    let mut all = Vec::new();
    for dir in ["data", "state", "config", "cache", "project/.segno"] {
        files(&env.path(dir), &mut all);
    }
    let mut found = Vec::new();
    for path in all {
        let shown = path.strip_prefix(env.path("")).unwrap_or(&path).display().to_string();
        // Snapshots hold the project as it is, and the user wrote the settings.
        if shown.starts_with("data/segno/snapshots/") || shown == "config/segno/config.toml" {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        for secret in [TOKEN, VALUE, DESCRIBED] {
            if holds(shown.as_bytes(), secret) || holds(&bytes, secret) {
                found.push(format!("{shown}: {secret}"));
            }
        }
    }
    let connection = rusqlite::Connection::open(env.path("data/segno/segno.db")).unwrap();
    let mut ask = connection.prepare("SELECT content FROM blobs").unwrap();
    for text in ask.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap() {
        let text = zstd::decode_all(&text.unwrap()[..]).unwrap();
        found.extend(
            [TOKEN, VALUE, DESCRIBED]
                .iter()
                .filter(|secret| holds(&text, secret))
                .map(|secret| format!("a long text: {secret}")),
        );
    }
    found
}

/// What a command says, but for the output of an agent, which is passed on as it is.
fn says_nothing(env: &TestEnv, secret: &str, args: &[&str]) {
    let said = env.run(args);
    let all = format!("{}{}", said.stdout, said.stderr);
    assert!(!holds(all.as_bytes(), secret), "{args:?} said it: {all}");
}

fn through_every_door(env: &TestEnv, secret: &str) {
    let with = |text: &str| text.replace("SECRET", secret);
    let git = |args: &[&str]| assert!(env.command("git").args(args).status().unwrap().success());
    git(&["checkout", "-q", "-b", &with("feature/SECRET")]);
    env.write(&with("project/SECRET.txt"), "a name\n");
    env.write(&with("project/in-SECRET/f.txt"), "a name\n");
    env.write("project/item.json", &with(r#"{"id":"W-SECRET","title":"t SECRET","description":"d SECRET"}"#));
    env.write("project/long.txt", &with(&format!("{} SECRET end\n", "word ".repeat(4_000))));
    let id = env.start(&[&with("topic SECRET"), "--parallel"]);
    for args in [
        &["note", "note SECRET"][..],
        &["note", "keyed", "--key", "key-SECRET"],
        &["intent", "intent SECRET"],
        &["error", "error SECRET"],
        &["milestone", "milestone SECRET"],
        &["task", "add", "task SECRET"],
        &["decide", "which SECRET", "--choice", "SECRET"],
        &["output", "set", "out-SECRET", "value SECRET"],
        &["metric", "set", "metric-SECRET", "3"],
        &["at", "src/SECRET.rs:10"],
        &["artifact", "add", "SECRET.txt"],
        &["file", "add", "SECRET.txt"],
        &["agent", "switch", "agent-SECRET"],
        &["phase", "SECRET"],
        &["breakpoint", "wait", "at SECRET"],
        &["checkpoint", "create", "checkpoint SECRET"],
        &["pause", "--reason", "pause SECRET"],
        &["abort", "--reason", "abort SECRET"],
    ] {
        let args: Vec<String> = args.iter().map(|arg| with(arg)).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).chain(["--session", id.as_str()]).collect();
        says_nothing(env, secret, &args);
    }
    // Errors of every kind name what was wrong.
    for args in [
        &["show", "SECRET"][..],
        &["--store", "sqlite:/nowhere/SECRET/x.db", "ls"],
        &["import", "SECRET.json"],
        &["run", "--json", "--", "/nowhere/SECRET"],
        &["run", "--json", "--agent", "agent-SECRET", "--prompt", "do SECRET"],
        &["config", "set", "SECRET", "1"],
        &["config", "get", "SECRET"],
    ] {
        let args: Vec<String> = args.iter().map(|arg| with(arg)).collect();
        says_nothing(env, secret, &args.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let script = with("echo SECRET; cat long.txt; echo SECRET >&2; echo SECRET > out.log; exit 3");
    env.run(&["run", "--topic", &with("t SECRET"), "--", "/bin/sh", "-c", &script]);
    env.run(&["-vv", "run", "--work-item", "item.json", "--", "/bin/sh", "-c", &script]);
    env.run(&["run", "--agent", "mine", "--prompt", &with("ask SECRET")]);
    says_nothing(env, secret, &["run", "--json", "--", "/bin/sh", "-c", &script]);
    let detached = env.run(&["run", "--detach", "--json", "--", "/bin/sh", "-c", &script]);
    assert_eq!(detached.code, 0, "{}", detached.stderr);
    env.run(&["tail", "-f", "--session", "last"]);
}

promise!(
    /// Prompt, variables, output, error output, names of files and branches, notes, keys, errors: whatever brings a secret,
    /// it is in none of our files when the runs are over, and no command says it.
    fn no_door_lets_a_secret_in() {
        let mut env = TestEnv::new();
        env.set("SEGNO_CHECKPOINT_FILES", "true");
        env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
        env.set("SEGNO_LOG", "trace");
        env.set("DEPLOY_TOKEN", VALUE);
        let git = |args: &[&str]| assert!(env.command("git").args(args).status().unwrap().success());
        git(&["init", "-q"]);
        git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"]);
        env.write(
            "config/segno/config.toml",
            &format!(
                "[agents.mine]\ncommand = [\"/bin/sh\", \"-c\", \"echo mine $MY_PASSWORD; echo $MY_PASSWORD >&2; exit 4\"]\n\
                 env = {{ MY_PASSWORD = \"{DESCRIBED}\" }}\n"
            ),
        );
        for secret in [TOKEN, VALUE] {
            through_every_door(&env, secret);
        }
        // Somebody who does not have the variable looks and settles last.
        env.ok(&["ls", "--all"]);
        assert_eq!(places(&env), [""; 0]);
        let log = env.ok(&["log", "--session", "last"]).stdout;
        assert!(log.contains("[redacted:"), "something was planted: {log}");
    }
);
