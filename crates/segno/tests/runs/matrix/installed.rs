//! What `segno init` installs besides hooks, in the real agents: commands that a person types, the server of the Model Context
//! Protocol, the status line.

use std::time::Duration;

use rstest::rstest;
use segno_testkit::model::Script;
use segno_testkit::model::Turn;
use segno_testkit::recipe::Patience;

use super::Real;
use crate::lab::program;
use crate::lab::until;
use crate::terminal::ENTER;
use crate::terminal::Terminal;

impl Real {
    /// With what these flags of `segno init` install.
    fn with_init(agent: &'static str, flags: &[&str]) -> Option<Self> {
        let script = Script::new([Turn::text("there it is"), Turn::text("and again")]);
        let real = Self::new(agent, script, Patience::default())?;
        let words: Vec<&str> = ["init", "--yes", agent].iter().chain(flags).copied().collect();
        let said = real.lab.run(&words);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        Some(real)
    }

    fn types(&self, words: &[&str]) {
        let mut command = program(self.agent);
        command.args(words).env_clear().envs(&self.lab.env).current_dir(self.lab.home.work());
        let live = self.lab.start_command(&mut command, None);
        let said = live.finish_within(Duration::from_secs(180));
        self.describe(&said);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }
}

#[rstest]
#[case::claude("claude", &["-p", "/sessions --status active"])]
#[case::gemini("gemini", &["-p", "/sessions --status active"])]
#[case::opencode("opencode", &["run", "--command", "segno-sessions"])]
fn a_command_puts_before_the_model_what_segno_printed(#[case] agent: &'static str, #[case] words: &[&str]) {
    let Some(real) = Real::with_init(agent, &["--commands"]) else { return };
    assert_eq!(real.lab.run(&["new", "mend the old door"]).code, Some(0));
    real.types(words);
    let asked = real.asked();
    let text = &asked.last().unwrap().conversation;
    assert!(text.contains("mend the old door"), "{text}");
    assert!(text.contains("Show it to the person as it is"), "{text}");
}

#[test]
fn codex_is_told_what_to_run() {
    let Some(real) = Real::with_init("codex", &["--commands"]) else { return };
    real.types(&["exec", "--skip-git-repo-check", "$segno sessions --status active"]);
    let asked = real.asked();
    let text = &asked.last().unwrap().conversation;
    assert!(
        text.contains("sessions [--status STATUS]") && text.contains("session-export --format md"),
        "{text}"
    );
}

#[rstest]
#[case::claude("claude", &["-p", "look"])]
#[case::gemini("gemini", &["-p", "look"])]
#[case::opencode("opencode", &["run", "look"])]
fn its_tools_are_offered_to_the_model(#[case] agent: &'static str, #[case] words: &[&str]) {
    let Some(real) = Real::with_init(agent, &["--mcp"]) else { return };
    real.types(words);
    let body = real.asked().last().unwrap().body.to_string();
    let offered = body.contains("budget_check") || body.contains("\"segno\"") || body.contains("mcp__segno");
    assert!(offered, "no tool of ours among {} tools", real.asked().last().unwrap().tools);
    let said = real.lab.run(&["uninit", "--yes"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
}

#[test]
fn codex_knows_the_server_and_takes_the_plugin() {
    let Some(real) = Real::with_init("codex", &["--mcp"]) else { return };
    let codex = |words: &[&str]| {
        let mut command = program("codex");
        command.args(words).env_clear().envs(&real.lab.env).current_dir(real.lab.home.work());
        let said = real.lab.start_command(&mut command, None).finish_within(Duration::from_secs(60));
        assert_eq!(said.code, Some(0), "{words:?}: {}", said.stderr);
        said.text()
    };
    let listed = codex(&["mcp", "list"]);
    let line = listed.lines().find(|line| line.starts_with("segno ")).unwrap_or_else(|| panic!("{listed}"));
    assert!(line.contains(" mcp ") && line.contains("enabled"), "{line}");
    assert_eq!(real.lab.run(&["uninit", "--yes"]).code, Some(0));
    assert!(!codex(&["mcp", "list"]).contains("segno"), "it is gone");
    assert_eq!(real.lab.run(&["init", "--plugin", "plugins", "--yes"]).code, Some(0));
    // The other tests switch plug-ins off, which costs less.
    let on = ["-c", "features.plugins=true"];
    let plugins = real.file("plugins");
    codex(&[&["plugin", "marketplace", "add", plugins.to_str().unwrap()], &on[..]].concat());
    codex(&[&["plugin", "add", "segno@segno"], &on[..]].concat());
    let listed = codex(&[&["plugin", "list"], &on[..]].concat());
    let line =
        listed.lines().find(|line| line.starts_with("segno@segno")).unwrap_or_else(|| panic!("{listed}"));
    assert!(line.contains("installed, enabled"), "{line}");
}

#[test]
fn claude_takes_the_plugin() {
    let script = Script::new([Turn::text("there it is")]);
    let Some(real) = Real::new("claude", script, Patience::default()) else { return };
    assert_eq!(real.lab.run(&["init", "--plugin", "plugins", "--yes"]).code, Some(0));
    assert_eq!(real.lab.run(&["new", "mend the old door"]).code, Some(0));
    let plugin = real.file("plugins/claude");
    real.types(&["--plugin-dir", plugin.to_str().unwrap(), "-p", "/segno:sessions --status active"]);
    let asked = real.asked();
    let text = &asked.last().unwrap().conversation;
    assert!(text.contains("mend the old door") && text.contains("Show it to the person as it is"), "{text}");
    // Its hooks recorded the conversation.
    let state = real.lab.state();
    assert_eq!(
        (&state["run"]["agent"], &state["run"]["outcome"]),
        (&"claude".into(), &"completed".into()),
        "{state:#}"
    );
}

#[test]
fn the_status_line_is_shown() {
    let script = Script::new([Turn::text("there it is")]);
    let prepared = Real::prepared("claude", script, Patience::default(), |recipe| recipe.at_terminal());
    let Some(real) = prepared else { return };
    let said = real.lab.run(&["init", "--yes", "claude", "--statusline"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let terminal = Terminal::open(&real.lab);
    let place = terminal.place();
    terminal.type_keys(&format!("claude{ENTER}"));
    terminal.wait_for(place, "\u{276f}");
    let id = until("the conversation has a session", || {
        let listed = real.lab.json(&["ls", "--all"]);
        listed["sessions"].as_array()?.first()?["session_id"].as_str().map(ToOwned::to_owned)
    });
    terminal.type_keys("hello");
    until("the model is asked", || {
        terminal.type_keys(ENTER);
        std::thread::sleep(Duration::from_millis(300));
        (!real.asked().is_empty()).then_some(())
    });
    // At its start it draws the line before its hooks have told of it; from the first answer on it knows.
    terminal.wait_for(place, &format!("…{}", &id[id.len() - 6..]));
}
