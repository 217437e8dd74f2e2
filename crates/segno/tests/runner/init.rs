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
    assert!(again.stderr.contains("claude  nothing to do: everything is installed"), "{}", again.stderr);
    let back = env.run(&["uninit", "--yes"]);
    assert_eq!((back.code, settings(&env).as_str()), (0, CLAUDE), "{}", back.stderr);
    let again = env.run(&["uninit", "--yes"]);
    assert!(again.stderr.contains("nothing to do: nothing of segno is installed"), "{}", again.stderr);
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

#[test]
fn the_words_of_agents_commands_are_understood() {
    let env = TestEnv::new();
    let id = env.start(&["login form"]);
    assert!(env.ok(&["sessions", "--status", "active"]).stdout.contains("login form"));
    assert!(env.ok(&["session", &id, "--tools"]).code == 0);
    assert!(env.ok(&["session-state"]).stdout.contains("login form"));
    assert!(env.ok(&["session-history"]).code == 0);
    assert!(env.ok(&["session-export", "--format", "md"]).stdout.contains("login form"));
    let before = env.json(&["checkpoint", "--list"])["total"].as_u64().unwrap();
    env.ok(&["checkpoint", "--make"]);
    assert_eq!(env.json(&["checkpoint", "--list", "--make"])["total"], before + 1);
    let newest = env.json(&["show"])["state"]["checkpoint"]["id"].as_str().unwrap().to_owned();
    let by_flag = env.run(&["checkpoint", "--make", "--restore", &newest]);
    let by_word = env.run(&["checkpoint", "restore", &newest]);
    assert_eq!((by_flag.code, by_flag.stderr), (by_word.code, by_word.stderr), "both mean the same");
    assert_ne!(by_word.code, 0, "there are no files here to go back to");
    let both = env.run(&["checkpoint", "--list", "show", "x"]);
    assert!(both.code == 2 && both.stderr.contains("stand alone"), "{}", both.stderr);
    env.ok(&["pause", &id]);
    env.ok(&["wake", "--no-run"]);
    assert_eq!(env.json(&["session", &id])["state"]["status"], "active");
}

#[test]
fn what_is_asked_for_besides_hooks_comes_and_goes() {
    let env = house();
    env.write("home/.claude.json", "{\n  \"numStartups\": 3\n}\n");
    env.write("project/AGENTS.md", "# Rules\n");
    let all = ["init", "claude", "--statusline", "--mcp", "--commands", "--agents-md", "--yes"];
    let done = env.run(&all);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(settings(&env).contains("statusline || true"), "{}", settings(&env));
    assert!(
        env.read("home/.claude.json").contains("\"numStartups\": 3,"),
        "{}",
        env.read("home/.claude.json")
    );
    assert!(done.stderr.contains("+   \"mcpServers\": {"), "what changes is shown: {}", done.stderr);
    assert!(env.path("home/.claude/commands/sessions.md").is_file());
    assert!(env.read("project/AGENTS.md").starts_with("# Rules\n\n<!-- segno init --agents-md: begin -->\n"));
    let again = env.run(&all);
    assert!(again.stderr.contains("claude  nothing to do: everything is installed"), "{}", again.stderr);
    let back = env.run(&["uninit", "--yes"]);
    assert_eq!((back.code, settings(&env).as_str()), (0, CLAUDE), "{}", back.stderr);
    assert_eq!(env.read("home/.claude.json"), "{\n  \"numStartups\": 3\n}\n");
    assert_eq!(env.read("project/AGENTS.md"), "# Rules\n");
    assert!(!env.path("home/.claude/commands").exists());
    let other = env.run(&["init", "codex", "--statusline"]);
    assert!(other.code == 2 && other.stderr.contains("only claude has a status line"), "{}", other.stderr);
}

#[test]
fn a_directory_of_plugins_is_written_and_removed() {
    let env = TestEnv::new();
    let done = env.run(&["init", "--plugin", "plugins", "--yes"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for file in [
        "README.md",
        "claude/.claude-plugin/plugin.json",
        "codex/.codex-plugin/plugin.json",
        "gemini/gemini-extension.json",
        "opencode/segno-watch.js",
    ] {
        assert!(env.path("project/plugins").join(file).is_file(), "{file}");
    }
    assert!(
        !env.path("home/.claude").exists() && !env.path("home/.codex").exists(),
        "no settings are touched"
    );
    env.write("project/plugins/README.md", "mine");
    let back = env.run(&["uninit", "--yes"]);
    assert!(back.stderr.contains("README.md was changed since and stays"), "{}", back.stderr);
    assert_eq!(back.code, 0, "{}", back.stderr);
    assert_eq!(fs::read_dir(env.path("project/plugins")).unwrap().count(), 1);
}
