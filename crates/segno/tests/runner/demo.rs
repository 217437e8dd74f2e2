//! The demonstration: killed half-way, found, and honest about it.

use crate::common::TestEnv;

#[test]
fn an_agent_is_killed_and_found() {
    let env = TestEnv::new();
    let summary = env.json(&["demo", "--fast"]);
    let id = summary["session_id"].as_str().unwrap();
    let shown = env.json(&["show", id]);
    let state = &shown["state"];
    assert_eq!(state["status"], "completed");
    let calls = &state["calls"];
    assert_eq!((&calls["total"], &calls["completed"]), (&5.into(), &4.into()));
    let doubt: Vec<&str> = calls["in_doubt"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(doubt, ["call-3"]);
    let runs = env.json(&["show", id, "--runs"]);
    let outcomes: Vec<&str> =
        runs["items"].as_array().unwrap().iter().map(|run| run["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["interrupted", "completed"]);
    assert!(shown["last_run"]["prompt"].as_str().unwrap().contains("./migrate --production"), "the brief");
    // What it wrote is there, and none of its processes is.
    let project = std::path::PathBuf::from(state["project"]["path"].as_str().unwrap());
    assert!(project.join("schema.sql").is_file());
    let pid = shown["last_run"]["pid"].as_u64().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie is dead; whoever is its parent now has not looked yet.
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    let told = env.ok(&["demo", "--fast"]).stderr;
    for part in [
        "1. ",
        "2. ",
        "3. ",
        "4. ",
        "interrupted: crash",
        "2 calls done   2 files",
        "1 call in doubt",
        "is completed",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}
