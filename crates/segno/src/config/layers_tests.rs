use std::path::Path;

use super::super::file::Level;
use super::super::file::{self};
use super::super::schema;
use super::*;

fn user(text: &str) -> Vec<Setting> {
    file::read(Path::new("config.toml"), text.as_bytes(), Level::User).unwrap().settings
}

#[test]
fn the_defaults_fit_their_types() {
    let config = Layers::defaults().unwrap().config().unwrap();
    assert_eq!(config.session.budget, 100_000);
    assert_eq!(config.store.busy_timeout_ms, 10_000);
    assert!(config.cleanup.archive && config.view.enabled && config.redact.env && !config.session.hard);
}

#[test]
fn the_defaults_pass_as_a_file_of_a_person() {
    let layer = file::read(Path::new("default.toml"), DEFAULT.as_bytes(), Level::User).unwrap();
    assert!(layer.notices.is_empty(), "{:?}", layer.notices);
    let defaults = Layers::defaults().unwrap();
    let as_read: Vec<_> = layer.settings.iter().map(|setting| (setting.key.name, &setting.value)).collect();
    let known: Vec<_> = defaults.iter().map(|setting| (setting.key.name, &setting.value)).collect();
    assert_eq!(as_read, known);
}

#[test]
fn later_layers_win_and_are_remembered() {
    let mut layers = Layers::defaults().unwrap();
    layers.lay(user("[ls]\nlimit = 5\n"));
    assert_eq!(layers.get("ls.limit").unwrap().origin.to_string(), "config.toml:2");
    let key = schema::find("ls.limit").unwrap();
    layers.lay_text(key, "6", Origin::Variable("SEGNO_LS_LIMIT".into())).unwrap();
    assert_eq!(layers.config().unwrap().ls.limit, 6);
    assert_eq!(layers.get("ls.limit").unwrap().origin.to_string(), "$SEGNO_LS_LIMIT");
    assert_eq!(layers.get("session.budget").unwrap().origin, Origin::Default);
}

#[test]
fn rules_add_up() {
    let mut layers = Layers::defaults().unwrap();
    for id in ["a", "b"] {
        let text = format!("[[redact.rules]]\nid = '{id}'\nregex = 'x'\n");
        layers.lay(user(&text));
    }
    let ids: Vec<String> = layers.config().unwrap().redact.rules.into_iter().map(|rule| rule.id).collect();
    assert_eq!(ids, ["a", "b"]);
}

#[test]
fn the_defaults_are_plain_and_mean_what_they_say() {
    let whole: Table = toml::from_str(DEFAULT).unwrap();
    assert_eq!(plain(DEFAULT), Some(whole));
}

#[test]
fn what_is_not_plain_is_left_to_the_language() {
    let odd = [
        "a = 1_000",
        "a = -1",
        "a = 'x'",
        "a = \"\\n\"",
        "a = [1]",
        "a = [\"x\", 1]",
        "a = [\"x, y\"]",
        "a = [\"x\",]",
        "a = \"",
        "a.b = 1",
        "[a.b]",
        "a = 01",
        "a = 1 # x",
    ];
    for text in odd {
        assert_eq!(plain(text), None, "{text}");
    }
    assert_eq!(plain("a = 1\na = 2"), None, "one that is there twice is an error");
}
