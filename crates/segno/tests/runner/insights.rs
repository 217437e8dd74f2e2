//! `segno insights`, as somebody types it.

use serde_json::Value;

use crate::common::TestEnv;

fn kinds(found: &Value) -> Vec<&str> {
    found["findings"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect()
}

/// A project with an error that comes again, and a file that is edited again and again.
fn project() -> (TestEnv, String) {
    let env = TestEnv::new();
    let id = env.start(&["login"]);
    for round in 0..5 {
        env.ok(&["error", "cannot open <b>/tmp/a.rs</b>", "--kind", "tool"]);
        env.ok(&["file", "add", "src/a|b.rs", if round == 0 { "created" } else { "modified" }]);
    }
    (env, id)
}

#[test]
fn what_stands_out_is_said_with_where_to_look_and_what_helps() {
    let (env, id) = project();
    let said = env.ok(&["insights"]);
    for words in [
        "1 session   0 runs",
        "Errors that come again\n",
        "5 times in 1 session",
        "segno log tail_1 --after 1 --limit 5   cannot open",
        "→ Tell agents what to do about it.",
        "Sessions without checkpoints\n",
    ] {
        assert!(said.stdout.contains(words), "{words}: {}", said.stdout);
    }
    let found = env.json(&["insights"]);
    assert_eq!(kinds(&found), ["error", "checkpoint"], "{found:#}");
    let evidence = &found["findings"][0]["evidence"][0];
    assert_eq!((&evidence["session_id"], evidence["seq"].as_u64()), (&id.as_str().into(), Some(2)));
    assert_eq!(evidence["look"], format!("segno log {id} --after 1 --limit 5"));
    // The command shows what it says.
    let look: Vec<&str> = evidence["look"].as_str().unwrap().split(' ').skip(1).collect();
    assert!(env.ok(&look).stdout.contains("cannot open"), "{look:?}");
    assert_eq!(env.json(&["insights", &id])["findings"], found["findings"]);
    assert_eq!(env.json(&["--session", "last", "insights"])["findings"], found["findings"]);
    let lately = env.json(&["insights", "--since", "0s"]);
    assert_eq!((kinds(&lately).len(), lately["numbers"]["errors"].as_u64()), (0, Some(0)));
    let elsewhere = env.run_in("elsewhere", &["insights"]);
    assert!(elsewhere.stderr.contains("segno insights --everywhere"), "{}", elsewhere.stderr);
    let everywhere = env.run_in("elsewhere", &["insights", "--everywhere"]);
    assert!(everywhere.stdout.contains("5 times in 1 session"), "{}", everywhere.stdout);
}

#[test]
fn a_report_is_written_with_its_pictures_and_overwrites_nothing() {
    let (env, id) = project();
    let written = env.json(&["insights", "--markdown", "my report.md"]);
    let names: Vec<String> = written["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file.as_str().unwrap().rsplit('/').next().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["my report.md", "my report-trouble.svg"]);
    let report = env.read("project/my report.md");
    for words in [
        "# Insights\n",
        "| errors | 5 |\n",
        "![What went wrong](my%20report-trouble.svg)\n",
        "## Errors that come again\n",
        &format!("- `segno log {id} --after 1 --limit 5` cannot open \\<b\\>"),
        "\n    - This error comes up here:",
    ] {
        assert!(report.contains(words), "{words}: {report}");
    }
    assert!(env.read("project/my report-trouble.svg").contains("<rect class=\"bad\""));
    let again = env.run(&["insights", "--markdown", "my report.md"]);
    assert_eq!(again.code, 5, "{}", again.stderr);
    assert!(again.stderr.contains("exists already; nothing was written"), "{}", again.stderr);
    env.ok(&["insights", "--markdown", "my report.md", "--force"]);
    assert_eq!(env.read("project/my report.md"), report, "the same record gives the same report");
}
