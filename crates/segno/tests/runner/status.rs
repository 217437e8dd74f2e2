//! The status machine as the command line shows it: what is refused, in which words, with what to type next.

use crate::common::TestEnv;

/// A session in a status, also in those that only a driver brings about.
fn session_in(env: &TestEnv, status: &str) -> String {
    let id = env.start(&[status, "--phases", "red,green", "--parallel"]);
    match status {
        "paused" => drop(env.ok(&["pause", &id])),
        "completed" => drop(env.ok(&["complete", &id])),
        "aborted" => drop(env.ok(&["abort", &id])),
        "failed" => drop(env.ok(&["fail", &id])),
        "interrupted" | "halted" => {
            let mut export: serde_json::Value =
                serde_json::from_slice(&env.raw(&["export", &id]).stdout).unwrap();
            env.ok(&["rm", &id, "--yes"]);
            // Without its journal, which knows better, what an export says of the session counts.
            export.as_object_mut().unwrap().remove("events");
            export["session"]["status"] = status.into();
            env.write("other.json", &export.to_string());
            env.ok(&["import", env.path("other.json").to_str().unwrap()]);
        }
        _ => {}
    }
    assert_eq!(env.json(&["show", &id])["session"]["status"], status);
    id
}

#[test]
fn refusals() {
    let env = TestEnv::new();
    let moves: &[&[&str]] = &[&["pause"], &["complete"], &["phase", "green"]];
    let mut all = Vec::new();
    for (status, refused) in [
        ("active", &[&["phase", "red"][..], &["task", "done", "7"], &["breakpoint", "continue"]][..]),
        ("active", &[&["decide", "q", "--choice", "c", "--parent", "7"], &["memory", "cache", "rm", "none"]]),
        (
            "active",
            &[
                &["memory", "cache", "get", "none"],
                &["output", "get", "none"],
                &["checkpoint", "show", "none"],
            ],
        ),
        ("paused", moves),
        ("paused", &[&["attempt"], &["iteration"], &["agent", "switch", "a"], &["breakpoint", "wait", "b"]]),
        ("interrupted", moves),
        ("halted", moves),
        ("halted", &[&["resume"], &["fail"]]),
        ("completed", moves),
        (
            "completed",
            &[
                &["output", "set", "o", "x"],
                &["milestone", "m"],
                &["decide", "q", "--choice", "c"],
                &["at", "x"],
            ],
        ),
        (
            "completed",
            &[
                &["resume"],
                &["abort"],
                &["abandon"],
                &["fail"],
                &["metric", "set", "m", "1"],
                &["checkpoint", "create"],
            ],
        ),
        ("aborted", &[&["resume"], &["task", "add", "t"]]),
        ("failed", &[&["resume"], &["budget", "extend", "1k"]]),
    ] {
        let id = session_in(&env, status);
        let before = env.json(&["show", &id]);
        for args in refused {
            let mut args = args.to_vec();
            args.extend(["--session", &id]);
            let said = env.run(&args);
            assert_ne!(said.code, 0, "{status}: {args:?}\n{}", said.stderr);
            assert_eq!(said.stdout, "", "{args:?}");
            assert!(said.stderr.contains("hint: "), "{args:?}: {}", said.stderr);
            let shown = said.stderr.trim_end().replace('\n', "\n    ");
            all.push(format!(
                "{status}: {}\n    {shown}\n    exit code {}\n",
                env.normalise(&args.join(" ")),
                said.code
            ));

            args.push("--json");
            let output = env.raw(&args);
            assert!(output.stdout.is_empty(), "{args:?}");
            assert_eq!(output.status.code(), Some(said.code));
            let error: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
            let error = &error["error"];
            assert!(error["code"].as_str().unwrap().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
            assert!(said.stderr.contains(&env.normalise(error["message"].as_str().unwrap())), "{error}");
            assert!(error["hint"].is_string(), "{error}");
            assert_eq!(error["exit"], said.code);
        }
        assert_eq!(env.json(&["show", &id]), before, "a refusal changes nothing");
    }
    insta::assert_snapshot!("status_refusals", all.join("\n"));
}

#[test]
fn every_way_out() {
    let env = TestEnv::new();
    let mut all = Vec::new();
    for (status, args) in [
        ("active", &["abandon"][..]),
        ("active", &["fail", "--reason", "the service is gone"]),
        ("paused", &["resume"]),
        ("paused", &["abort", "--reason", "wrong approach"]),
        ("interrupted", &["resume"]),
        ("interrupted", &["fail"]),
        ("halted", &["resume", "--reset-breaker"]),
        ("halted", &["abort"]),
    ] {
        let id = session_in(&env, status);
        let mut args = args.to_vec();
        args.push(&id);
        all.push(env.show(&args));
        all.push(
            env.show(&["state", &id, "--json"]).lines().filter(|line| line.contains("\"status\"")).collect(),
        );
        env.ok(&["rm", &id, "--yes"]);
    }
    insta::assert_snapshot!("status_ways_out", all.join("\n"));
}

/// What happened, happened: facts are taken after the end too.
#[test]
fn facts_after_the_end() {
    let env = TestEnv::new();
    let id = session_in(&env, "completed");
    for args in [
        &["note", "n"][..],
        &["tokens", "5"],
        &["error", "e"],
        &["file", "add", "f", "created"],
        &["memory", "query", "q"],
    ] {
        let mut args = args.to_vec();
        args.extend(["--session", &id]);
        env.ok(&args);
    }
    let after = env.json(&["show", &id]);
    assert_eq!(
        (&after["session"]["status"], &after["session"]["tokens_used"]),
        (&"completed".into(), &5.into())
    );
}

/// Without a name, `resume` means the session that waits for it.
#[test]
fn resume_finds_what_waits() {
    let env = TestEnv::new();
    env.start(&["works", "--parallel"]);
    let waits = env.start(&["waits", "--parallel"]);
    env.ok(&["pause", &waits]);
    assert_eq!(env.json(&["resume"])["session"]["topic"], "waits");
}

#[test]
fn a_key_makes_it_happen_once() {
    let env = TestEnv::new();
    env.start(&["once"]);
    let first = env.json(&["tokens", "100", "--key", "turn-1"]);
    assert_eq!((&first["repeated"], &first["session"]["tokens_used"]), (&false.into(), &100.into()));
    let again = env.json(&["tokens", "100", "--key", "turn-1"]);
    assert_eq!((&again["repeated"], &again["session"]["tokens_used"]), (&true.into(), &100.into()));
    assert_eq!(first["seq"], again["seq"]);
    insta::assert_snapshot!(
        "status_key",
        env.show_all(&[
            &["tokens", "100", "--key", "turn-1"],
            &["tokens", "100", "--key", "turn-2"],
            &["note", "another command under the same name", "--key", "turn-2"],
            &["note", "x", "--key", ""],
            &["new", "x", "--key", "k"],
            &["ls", "--key", "k"],
            &["budget"],
        ])
    );
}
