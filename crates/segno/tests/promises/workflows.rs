//! Workflow files, and the flags that go with them: what would come to nothing is said before anything begins.

use crate::lab::Lab;
use crate::looping::agent;

fn with_workflow(text: &str) -> Lab {
    let lab = Lab::new();
    lab.write(lab.home.work().join(".segno/workflows/mine.toml"), text);
    lab
}

fn phase(name: &str, rest: &str) -> String {
    format!("[[phase]]\nname = \"{name}\"\nprompt = \"p\"\n{rest}\n")
}

#[test]
fn checking_a_workflow_finds_what_the_loop_refuses() {
    for (rest, words) in [
        ("gate = \"until\"\nmax_iterations = 0", "mine.toml:2: with max_iterations = 0"),
        ("gate = \"until\"\nthresholds = { no_progress = 0 }", "mine.toml:2: no_progress = 0"),
        ("gate = \"until\"\nagent = \"clod\"", "clod"),
    ] {
        let lab = with_workflow(&phase("a", rest));
        let said = lab.run(&["workflow", "check", "mine"]);
        assert_eq!(said.code, Some(13), "{rest}: {}", said.stderr);
        assert!(said.stderr.contains(words), "{rest}: {}", said.stderr);
    }
    let doubtful =
        phase("a", "gate = { green = {} }") + &phase("b", "gate = \"signal\"\non_reject = { to = \"a\" }");
    let said = with_workflow(&doubtful).run(&["workflow", "check", "mine"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.contains("b has on_reject") && said.stderr.contains("a need"), "{}", said.stderr);
}

#[test]
fn flags_that_would_change_nothing_are_refused() {
    let lab = agent("signal=true");
    let until = &["loop", "--no-hooks", "--prompt", "x", "--until", "true"][..];
    let said = lab.run(&[until, &["--optional-phases"]].concat());
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert!(said.stderr.contains("simple has no optional phases"), "{}", said.stderr);
    let said = lab.run(&[until, &["--agent", "claude", "--back"]].concat());
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert!(said.stderr.contains("another agent"), "{}", said.stderr);
    let prp = lab.run(&[until, &["--workflow", "prp", "--optional-phases", "--dry-run"]].concat());
    assert_eq!(prp.code, Some(0), "{}", prp.stderr);
}

#[test]
fn an_agent_is_suggested_once() {
    let lab = agent("signal=true");
    let said = lab.run(&["loop", "--prompt", "x", "--until", "true", "--agent", "clod"]);
    assert_eq!((said.code, said.stderr.matches("claude").count()), (Some(2), 1), "{}", said.stderr);
}

/// The page has an example with every key; it can be used.
#[test]
fn the_example_of_the_page_is_a_workflow() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/workflows.md")).unwrap();
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let lab = with_workflow(example);
    let said = lab.run(&["workflow", "check", "mine"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.contains("mine: well"), "{}", said.stderr);
}
