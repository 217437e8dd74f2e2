use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::agent::by_name;
use crate::agent::watched;

fn wanted(agent: &str) -> Wanted {
    let watching = by_name(agent).unwrap().watching().unwrap();
    let hooks = match watching.form {
        Form::Hooks(make) => Wanted::hooks(agent, make, &format!("segno {MARK} {agent} || true")),
        Form::Plugin => Wanted::plugin(format!("file:///data/{PLUGIN}")),
    };
    let servers = watching.servers;
    let hooks = hooks.and(Wanted::server(servers.member, (servers.make)("segno")));
    if watching.status_line { hooks.and(Wanted::status_line(&status_line("segno"))) } else { hooks }
}

/// Puts ours in and takes it out in both ways.
fn there_and_back(agent: &str, text: &str) -> String {
    let wanted = wanted(agent);
    let installed = put_in(text, &wanted).unwrap_or_else(|why| panic!("{agent} {text:?}: {why}"));
    assert_eq!(standing(&installed.text, &wanted), Ok(Standing::Complete), "{agent}\n{}", installed.text);
    assert_eq!(
        undo(&installed.text, &installed.ranges).as_deref(),
        Some(text),
        "{agent}\n{}",
        installed.text
    );
    // Nothing but ours was added.
    if let Ok(before) = jsonc::parse(text) {
        let after = jsonc::parse(&installed.text).unwrap();
        let taken = take_out(&installed.text, &wanted, Some(&installed.made)).unwrap();
        let taken = jsonc::parse(&taken).unwrap().value(&taken);
        assert_eq!(taken, before.value(text), "{agent}\n{}", installed.text);
        assert_ne!(after.value(&installed.text), before.value(text));
    }
    installed.text
}

#[test]
fn an_example_looks_as_if_a_person_had_written_it() {
    let text = "{\n  // mine\n  \"model\": \"opus\" // the good one\n}\n";
    let installed = put_in(
        text,
        &Wanted::hooks(
            "claude",
            |line| {
                json!({ "hooks": { "Stop": [
        { "hooks": [{ "type": "command", "command": line }] }
    ] } })
            },
            "segno hook --watch claude",
        ),
    )
    .unwrap();
    assert_eq!(
        installed.text,
        r#"{
  // mine
  "model": "opus", // the good one
  "hooks": {
    "Stop": [
      {
        "hooks": [
          {
            "command": "segno hook --watch claude",
            "type": "command"
          }
        ]
      }
    ]
  }
}
"#
    );
    assert_eq!(installed.made, ["hooks", "hooks.Stop"]);
}

#[test]
fn what_others_changed_meanwhile_stays() {
    let wanted = wanted("claude");
    let text = "{\n  \"a\": 1,\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"bell\"}]}\n    ]\n  }\n}\n";
    let installed = put_in(text, &wanted).unwrap();
    // Another program appended a setting, and a person a hook of their own beside ours.
    let changed = installed.text.replace("\"a\": 1", "\"a\": 2,\n  \"b\": 3");
    let taken = take_out(&changed, &wanted, Some(&installed.made)).unwrap();
    assert_eq!(taken, text.replace("\"a\": 1", "\"a\": 2,\n  \"b\": 3"));
    let mine = "segno hook --watch claude || true\"";
    let at = installed.text.find(mine).unwrap();
    let line_end = at + installed.text[at..].find('}').unwrap() + 1;
    let mut beside = installed.text.clone();
    beside.insert_str(line_end, ", {\"command\": \"theirs\"}");
    let taken = take_out(&beside, &wanted, Some(&installed.made)).unwrap();
    assert!(taken.contains("theirs") && !taken.contains(MARK), "{taken}");
    // Taken out twice is taken out.
    assert_eq!(take_out(&taken, &wanted, Some(&installed.made)).unwrap(), taken);
}

#[test]
fn what_was_empty_before_stays_empty() {
    let wanted = wanted("gemini");
    let text = "{\"hooks\": {\"BeforeTool\": []}, \"x\": 1}";
    let installed = put_in(text, &wanted).unwrap();
    assert!(!installed.made.contains(&"hooks".to_owned()));
    let changed = installed.text.replace("\"x\": 1", "\"x\": 2");
    let taken = take_out(&changed, &wanted, Some(&installed.made)).unwrap();
    assert_eq!(taken, text.replace("\"x\": 1", "\"x\": 2"));
}

#[test]
fn ours_of_another_version_is_known() {
    let wanted = wanted("codex");
    let old = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"/old/segno hook --watch codex\"}]}]}}";
    assert!(
        matches!(standing(old, &wanted), Ok(Standing::Changed(events)) if events.contains(&"Stop".to_owned()))
    );
    assert_eq!(take_out(old, &wanted, None).unwrap(), "{}");
    // Another agent's is not ours.
    let other = old.replace("codex", "codex-next");
    assert_eq!(standing(&other, &wanted), Ok(Standing::Missing));
    assert_eq!(take_out(&other, &wanted, None).unwrap(), other);
}

#[test]
fn what_is_broken_or_something_else_is_refused() {
    for agent in &watched() {
        let wanted = wanted(agent);
        assert!(matches!(put_in("{\"a\": }", &wanted), Err(SettingsError::Broken(_))));
        for text in ["[]", "1", "\"x\""] {
            assert!(matches!(put_in(text, &wanted), Err(SettingsError::Unexpected(_))), "{agent} {text}");
        }
    }
    assert_eq!(
        put_in("{\"hooks\": true}", &wanted("claude")),
        Err(SettingsError::Unexpected("`hooks` is no object".to_owned()))
    );
    assert_eq!(
        put_in("{\"hooks\": {\"Stop\": {}}}", &wanted("claude")),
        Err(SettingsError::Unexpected("`hooks.Stop` is no list".to_owned()))
    );
    assert_eq!(
        put_in("{\"plugin\": \"x\"}", &wanted("opencode")),
        Err(SettingsError::Unexpected("`plugin` is no list".to_owned()))
    );
}

/// Settings in the shapes that people have.
fn settings() -> impl Strategy<Value = String> {
    let blank = prop_oneof![
        Just(""),
        Just(" "),
        Just("\n"),
        Just("\n  "),
        Just("\n\t"),
        Just(" /* why */ "),
        Just(" // note\n"),
        Just("\n\n    ")
    ];
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("true".to_owned()),
        Just("\"a // b \\\" \u{e9}\"".to_owned()),
        Just("[]".to_owned()),
        Just("{ }".to_owned()),
        "[a-z{}\\[\\], ]{0,12}".prop_map(|text| Value::from(text).to_string()),
    ];
    let hook = prop_oneof![
        Just("{\"hooks\": [{\"type\": \"command\", \"command\": \"bell\"}]}".to_owned()),
        Just("{\n  \"matcher\": \"Bash\",\n  \"hooks\": [ ],\n}".to_owned()),
    ];
    let list = (prop::collection::vec(hook, 0..3), blank.clone(), any::<bool>()).prop_map(
        |(hooks, blank, comma)| {
            let comma = if comma && !hooks.is_empty() { "," } else { "" };
            format!("[{blank}{}{comma}{blank}]", hooks.join(&format!(",{blank}")))
        },
    );
    let events =
        prop::sample::subsequence(vec!["PreToolUse", "Stop", "SessionStart", "BeforeTool", "Mine"], 0..4);
    let hooks = (events, list.clone(), blank.clone()).prop_map(|(events, list, blank)| {
        let events: Vec<String> = events.iter().map(|event| format!("\"{event}\":{blank}{list}")).collect();
        format!("{{{blank}{}{blank}}}", events.join(&format!("{blank},{blank}")))
    });
    let member = prop_oneof![
        3 => leaf.clone().prop_map(|value| ("a".to_owned(), value)),
        2 => hooks.prop_map(|value| ("hooks".to_owned(), value)),
        1 => Just(("plugin".to_owned(), "[\"x\"]".to_owned())),
        1 => Just(("plugin".to_owned(), "[\n  \"x\", // mine\n  \"y\"\n]".to_owned())),
    ];
    (
        prop::collection::vec((member, blank.clone(), blank.clone()), 0..5),
        blank.clone(),
        any::<(bool, bool, bool)>(),
    )
        .prop_map(|(members, blank, (mark, windows, comma))| {
            let mut seen = std::collections::BTreeSet::new();
            let members: Vec<String> = members
                .into_iter()
                .enumerate()
                .filter(|(_, ((key, _), ..))| key == "a" || seen.insert(key.clone()))
                .map(|(at, ((key, value), before, after))| {
                    let key = if key == "a" { format!("a{at}") } else { key };
                    format!("{before}\"{key}\":{before}{value}{after}")
                })
                .collect();
            let comma = if comma && !members.is_empty() { "," } else { "" };
            let text = format!("{blank}{{{}{comma}{blank}}}{blank}\n", members.join(","));
            let text = if windows { text.replace('\n', "\r\n") } else { text };
            format!("{}{text}", if mark { "\u{feff}" } else { "" })
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_people_have_comes_back(text in settings(), agent in prop::sample::select(watched())) {
        there_and_back(agent, &text);
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,60}") {
        for agent in &watched() {
            let wanted = wanted(agent);
            let _ = put_in(&text, &wanted);
            let _ = take_out(&text, &wanted, None);
            let _ = standing(&text, &wanted);
        }
    }
}

#[test]
fn nothing_becomes_a_whole_file() {
    for text in ["", "\n", "\u{feff}", "  \r\n"] {
        for agent in &watched() {
            let whole = there_and_back(agent, text);
            assert!(whole.starts_with(text) && whole.ends_with('\n'), "{whole:?}");
        }
    }
}
