//! What several promises set up in the same way.

use segno_testkit::lines::claude;
use segno_testkit::scripted::Step;

use crate::lab::Lab;
use crate::lab::Said;
use crate::lab::program;

/// An agent that is described in the configuration; it still needs its `command`.
pub(crate) const MINE: &str = r#"
[agents.mine]
prompt = "none"
format = "json"
[[agents.mine.rules]]
kind = "tool_started"
when = { "$.type" = "call" }
fields = { call_id = "$.id", tool = "$.tool", input = "$.input" }
[[agents.mine.rules]]
kind = "tool_finished"
when = { "$.type" = "done" }
fields = { call_id = "$.id", output = "$.out" }
[[agents.mine.rules]]
kind = "file_changed"
when = { "$.type" = "file" }
fields = { path = "$.path", change = "$.change", moved_to = "$.to", call_id = "$.id" }
[[agents.mine.rules]]
kind = "result"
when = { "$.type" = "bye" }
"#;

/// Runs a command that has to succeed.
pub(crate) fn ok(lab: &Lab, args: &[&str]) -> Said {
    let said = lab.run(args);
    assert_eq!(said.code, Some(0), "{args:?}: {}", said.stderr);
    said
}

/// Runs git in the project.
pub(crate) fn git(lab: &Lab, args: &[&str]) -> String {
    let output = program("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(args)
        .current_dir(lab.home.work())
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// What a stand-in for Claude Code does when it is resumed: it records what it was told, and is done.
pub(crate) fn records_when_resumed(records: &str) -> Step {
    Step::IfStdin {
        matches: "You are resuming".to_owned(),
        steps: vec![
            Step::Record(records.to_owned()),
            Step::Json(claude::result("${session}", "done")),
            Step::Exit(0),
        ],
    }
}

/// Numbers that look random: small, and the same everywhere.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most.max(1) as u64).unwrap()
    }
}
