//! `segno init` and `segno uninit` from the command line.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::common::TestEnv;

const CLAUDE: &str = "{\n  \"model\": \"opus\" // the good one\n}\n";

fn house() -> TestEnv {
    let env = TestEnv::new();
    env.write("home/.claude/settings.json", CLAUDE);
    env
}

fn settings(env: &TestEnv) -> String {
    fs::read_to_string(env.path("home/.claude/settings.json")).unwrap()
}

#[test]
fn there_and_back() {
    let env = house();
    let shown = env.run(&["init", "--dry-run"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    for line in [
        "-   \"model\": \"opus\" // the good one",
        "+   \"model\": \"opus\", // the good one",
        "hook --watch claude",
    ] {
        assert!(shown.stderr.contains(line), "{}", shown.stderr);
    }
    assert_eq!(settings(&env), CLAUDE, "it was only shown");
    let unasked = env.run(&["init"]);
    assert!(unasked.stderr.contains("nothing was changed: there is nobody to ask"), "{}", unasked.stderr);
    assert_eq!((unasked.code == 0, settings(&env).as_str()), (false, CLAUDE));
    let done = env.run(&["--json", "init", "--yes"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        done.stdout.contains("\"status\": \"installed\"") || done.stdout.contains("\"status\":\"installed\""),
        "{}",
        done.stdout
    );
    assert!(settings(&env).contains("// the good one") && settings(&env).contains("PreToolUse"));
    let again = env.run(&["init", "--yes"]);
    assert!(again.stderr.contains("claude  nothing to do: hooks are there"), "{}", again.stderr);
    let back = env.run(&["uninit", "--yes"]);
    assert_eq!((back.code, settings(&env).as_str()), (0, CLAUDE), "{}", back.stderr);
    let again = env.run(&["uninit", "--yes"]);
    assert!(again.stderr.contains("nothing to do: no hooks are there"), "{}", again.stderr);
}

#[test]
fn one_that_is_left_alone_does_not_stop_the_others() {
    let env = house();
    env.write("home/.gemini/settings.json", "{ broken");
    env.write("home/.codex/hooks.json", "{}\n");
    fs::set_permissions(env.path("home/.codex/hooks.json"), fs::Permissions::from_mode(0o400)).unwrap();
    let said = env.run(&["init", "--yes"]);
    assert_ne!(said.code, 0);
    assert!(said.stderr.contains("it is read-only") && said.stderr.contains("chmod u+w"), "{}", said.stderr);
    assert!(said.stderr.contains("line 1: a name is missing"), "{}", said.stderr);
    assert!(settings(&env).contains("hook --watch claude"));
    assert_eq!(fs::read_to_string(env.path("home/.gemini/settings.json")).unwrap(), "{ broken");
}

#[test]
fn without_agents_it_says_so() {
    let env = TestEnv::new();
    let said = env.run(&["init", "--yes"]);
    assert!(said.code != 0 && said.stderr.contains("no agent was found"), "{}", said.stderr);
    let said = env.run(&["init", "--yes", "claude"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let said = env.run(&["uninit", "--yes", "claude"]);
    assert_eq!((said.code, env.path("home/.claude").exists()), (0, false), "{}", said.stderr);
}
