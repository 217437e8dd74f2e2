//! The real agents with a work queue: trackers that speak like `br` and like `bd`, and a checklist.

use rstest::rstest;
use serde_json::Value;
use serde_json::json;

use super::Loop;
use super::mind::Act;
use super::mind::Mind;
use super::project::Project;
use super::table::Scenario;
use crate::lab::Said;

/// Items in files, listed as `br` 0.7 lists them: an object with the list in it; the agent closes them.
const BR: &str = r#"#!/bin/sh
cd @ITEMS@ || exit 1
case "$1" in
ready) printf '{"issues":['; sep=
  for f in *; do grep -q '"status":"open"' $f || continue; printf '%s' "$sep"; cat $f; sep=,; done
  printf '],"total":1,"limit":20}\n';;
show) printf '['; cat "$2"; printf ']\n';;
close) sed -i 's/"status":"[a-z_]*"/"status":"closed"/' "$2"; echo "closed $2";;
esac
"#;

/// The same as `bd` lists them: a bare list, over many lines, and a word of its own before it on the other stream.
const BD: &str = r#"#!/bin/sh
cd @ITEMS@ || exit 1
case "$1" in
ready) echo 'warning: the daemon is not running' >&2; printf '[\n'; sep=
  for f in *; do grep -q '"status":"open"' $f || continue; printf '%s' "$sep"; cat $f; sep=",
"; done
  printf '\n]\n';;
show) cat "$2";;
close) sed -i 's/"status":"[a-z_]*"/"status":"closed"/' "$2"; echo "closed $2";;
esac
"#;

impl Loop {
    /// Puts a tracker of this name into the project, with two items and an epic above them.
    fn with_tracker(&self, name: &str) {
        let lab = &self.real.lab;
        let items = self.real.file("items");
        let script = if name == "br" { BR } else { BD };
        let program = self.real.file("tracker").join(name);
        lab.write(&program, &script.replace("@ITEMS@", &items.display().to_string()));
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let item = |id: &str, title: &str, more: &str| {
            let text = format!(
                r#"{{"id":"{id}","title":"{title}","description":"It is about {id}.","status":"open",{more}}}"#
            );
            lab.write(items.join(id), &text);
        };
        item(
            "words-1",
            "Slugs",
            r#""priority":2,"issue_type":"feature","created_at":"2026-01-01T00:00:00Z""#,
        );
        item("words-2", "Notes", r#""priority":1,"issue_type":"task","created_at":"2026-01-02T00:00:00Z""#);
        item(
            "words-9",
            "All of it",
            r#""priority":0,"issue_type":"epic","created_at":"2026-01-03T00:00:00Z""#,
        );
    }

    /// Works off what this lists.
    fn work(&self, list: &str) -> Said {
        let args = ["loop", "--json", "--agent", self.real.agent, "--work", list, "--until", &self.until];
        let said = self.real.lab.run(&args);
        self.describe(&said);
        said
    }

    fn items(&self, result: &Value) -> Vec<(String, String, u64)> {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let items = result["items"].as_array().unwrap().iter();
        items.map(|it| (word(&it["id"]), word(&it["state"]), it["failures"].as_u64().unwrap())).collect()
    }
}

/// Two items by their priority, each in a session and a conversation of its own; the second is not closed until the
/// follow-up asks for it.
#[rstest]
fn a_tracker(#[values("claude", "codex")] agent: &'static str, #[values("br", "bd")] tracker: &'static str) {
    // Codex's shell has a path of its own.
    let close = |id: &str| format!("tracker/{tracker} close {id}");
    let slugs = format!("{}\n{}", Project::Python.red(), Project::Python.green());
    let notes = format!("echo '# Notes' > NOTES.md; {}", close("words-2"));
    let mind = Mind::default()
        .item("words-2", Act { command: &notes, words: "Noted, and closed.", done: true, more: "" })
        .item("words-1", Act { command: &slugs, words: "Done.", done: true, more: "" })
        .asked(
            r"words-1.*still open in the tracker",
            "follow-up",
            Act { command: &close("words-1"), words: "Closed now.", ..Act::default() },
        );
    let Some(the) = Loop::new(agent, Project::Python, mind) else { return };
    the.with_tracker(tracker);
    let list = format!("tracker/{tracker} ready --json");
    let said = the.work(&list);
    let result = the.ended(Scenario::Queue, &said, "completed", "completed");
    let done = |id: &str| (id.to_owned(), "done".to_owned(), 0);
    assert_eq!(the.items(&result), [done("words-2"), done("words-1")], "{result}");
    let sessions = the.real.lab.json(&["ls", "--all"]);
    let parent = &result["session_id"];
    let children = sessions["sessions"].as_array().unwrap().iter().filter(|one| one["parent"] == *parent);
    assert_eq!(children.count(), 2, "{sessions}");
    let follow_ups = the
        .real
        .model
        .requests()
        .iter()
        .filter(|request| request.track.starts_with("follow-up 1 acts"))
        .count();
    assert_eq!(follow_ups, 1, "one follow-up, for the item that was left open");
}

/// A checklist, whose boxes the agent ticks.
#[rstest]
fn a_checklist(#[values("claude", "codex")] agent: &'static str) {
    let tick = |item: &str| format!("echo {item} >> made; sed -i 's/\\[ \\] {item}/[x] {item}/' TODO.md");
    let act = |command| Act { command, words: "Done, and ticked.", done: true, more: "" };
    let (hull, sail) = (tick("hull"), tick("sail"));
    let mind = Mind::default().item("hull", act(&hull)).item("sail", act(&sail));
    let Some(the) = Loop::new(agent, Project::Python, mind) else { return };
    the.real.lab.write(the.real.file("TODO.md"), "# Boat\n\n- [ ] hull\n- [x] keel\n- [ ] sail\n");
    let said = the.work("TODO.md");
    let result = the.ended(Scenario::Checklist, &said, "completed", "completed");
    let done = |id: &str| (id.to_owned(), "done".to_owned(), 0);
    assert_eq!(the.items(&result), [done("hull"), done("sail")], "{result}");
    assert_eq!(std::fs::read_to_string(the.real.file("made")).unwrap(), "hull\nsail\n");
    let text = std::fs::read_to_string(the.real.file("TODO.md")).unwrap();
    assert_eq!(text, "# Boat\n\n- [x] hull\n- [x] keel\n- [x] sail\n");
    assert_eq!(result["iterations"], json!(2));
}
