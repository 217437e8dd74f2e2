//! Conversations that travel: what a file says is not believed, and nothing is overwritten.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::path::PathBuf;

use segno_core::Command;
use segno_core::State;
use segno_core::event::RunEnded;
use segno_core::event::RunStarted;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::transfer::Transferred;
use segno_engine::transfer::conversations_beside;
use segno_engine::transfer::export_conversations;
use segno_engine::transfer::import_conversations;

use crate::common::Room;

const LOG: &str = "{\"type\":\"user\"}\n{\"type\":\"assistant\"}\n";

/// An engine whose agents have their home there, and a session that had these conversations.
fn world(room: &Room, had: &[(&str, &str)]) -> (Engine, State, PathBuf) {
    let home = room.path().join("home");
    std::fs::create_dir_all(&home).unwrap();
    let variables = [("HOME".to_owned(), home.to_str().unwrap().to_owned())].into();
    let engine = Engine::new(Box::new(room.store()), EngineOptions { variables, ..room.options() });
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    for (number, (agent, native)) in had.iter().enumerate() {
        let run = format!("run-{number}");
        let started = RunStarted {
            run: run.clone(),
            agent: (*agent).to_owned(),
            native_id: Some((*native).to_owned()),
            pid: u32::MAX,
            ..RunStarted::default()
        };
        let ended = RunEnded { run, outcome: "completed".into(), ..RunEnded::default() };
        engine.act(id, Command::StartRun(Box::new(started))).unwrap();
        engine.act(id, Command::EndRun(Box::new(ended))).unwrap();
    }
    let state = engine.load(id).unwrap().state;
    (engine, state, home)
}

fn bundle(room: &Room, entries: &[(&str, &str, &str)]) -> PathBuf {
    let path = room.path().join("x.json.conversation");
    let mut text = "segno conversations 1\n".to_owned();
    for (agent, conversation, content) in entries {
        let head =
            serde_json::json!({ "agent": agent, "conversation": conversation, "bytes": content.len() });
        text.push_str(&format!("{head}\n{content}\n"));
    }
    std::fs::write(&path, text).unwrap();
    path
}

/// Every file below a directory.
fn files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path().display().to_string()),
        }
    }
    found.sort();
    found
}

fn came(engine: &Engine, state: &State, from: &Path) -> Vec<Transferred> {
    import_conversations(engine, state, from).unwrap().into_iter().map(|one| one.came).collect()
}

#[test]
fn what_goes_out_comes_in() {
    let room = Room::new();
    let (engine, state, home) =
        world(&room, &[("claude", "conv-1"), ("codex", "conv-2"), ("plain", "conv-3")]);
    let log = home.join(".claude/projects/anywhere/conv-1.jsonl");
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    // Its last line is not whole yet.
    std::fs::write(&log, format!("{LOG}{{\"type\":")).unwrap();
    let to = conversations_beside(&room.path().join("out.json"));
    let (carried, _) = export_conversations(&engine, state.session_id, &to).unwrap();
    assert_eq!(carried.len(), 3);
    assert_eq!(carried[2].came, Transferred::There(log.clone()), "the newest is first");
    assert!(matches!(&carried[1].came, Transferred::Not(why) if why.contains("is not there")), "{carried:?}");
    assert_eq!(std::fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(came(&engine, &state, &to), [Transferred::Already(log.clone())]);
    std::fs::remove_dir_all(home.join(".claude")).unwrap();
    let [Transferred::There(put)] = &came(&engine, &state, &to)[..] else { panic!() };
    assert_eq!(std::fs::read_to_string(put).unwrap(), LOG);
    assert_eq!(std::fs::metadata(put).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(put.starts_with(home.join(".claude/projects")), "{put:?}");
}

#[test]
fn nothing_leads_out_of_the_directory_of_the_agent() {
    let room = Room::new();
    let evil = ["../../../evil", "/etc/evil", "a/../../evil", ".."];
    let had: Vec<(&str, &str)> =
        evil.iter().flat_map(|id| ["claude", "codex", "gemini"].map(|agent| (agent, *id))).collect();
    let (engine, state, home) = world(&room, &had);
    let entries: Vec<(&str, &str, &str)> = had.iter().map(|(agent, id)| (*agent, *id, LOG)).collect();
    let before = files(room.path()).len();
    let from = bundle(&room, &entries);
    for one in came(&engine, &state, &from) {
        assert!(matches!(&one, Transferred::Not(_)), "{one:?}");
    }
    assert_eq!(files(&home), Vec::<String>::new());
    assert_eq!(files(room.path()).len(), before + 1, "only the bundle is new");
}

#[test]
fn what_the_session_does_not_speak_of_stays_out() {
    let room = Room::new();
    let (engine, state, home) = world(&room, &[("claude", "conv-1"), ("opencode", "ses_1")]);
    let from = bundle(
        &room,
        &[
            ("claude", "conv-9", LOG),
            ("codex", "conv-1", LOG),
            ("opencode", "ses_1", LOG),
            ("claude", "conv-1", "#!/bin/sh\n"),
        ],
    );
    for one in came(&engine, &state, &from) {
        assert!(matches!(&one, Transferred::Not(_)), "{one:?}");
    }
    assert_eq!(files(&home), Vec::<String>::new());
}

/// A link in the agent's directory could lead anywhere.
#[test]
fn a_link_on_the_way_is_refused() {
    let room = Room::new();
    let (engine, state, home) = world(&room, &[("claude", "conv-1")]);
    let outside = room.path().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::create_dir_all(home.join(".claude/projects")).unwrap();
    let name: String =
        state.project.path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    std::os::unix::fs::symlink(&outside, home.join(".claude/projects").join(name)).unwrap();
    let from = bundle(&room, &[("claude", "conv-1", LOG)]);
    let came = came(&engine, &state, &from);
    assert!(matches!(&came[..], [Transferred::Not(_)]), "{came:?}");
    assert_eq!(files(&outside), Vec::<String>::new());
}

#[test]
fn a_file_that_is_none_or_cut_off_is_refused() {
    let room = Room::new();
    let (engine, state, home) = world(&room, &[("claude", "conv-1")]);
    let path = room.path().join("bad.conversation");
    for bad in [
        "",
        "segno conversations 2\n",
        "segno conversations 1\nno json\n",
        "segno conversations 1\n{\"agent\":\"claude\",\"conversation\":\"conv-1\",\"bytes\":900}\n{}\n",
        "segno conversations 1\n{\"agent\":\"claude\",\"conversation\":\"conv-1\",\"bytes\":99999999999}\n{}\n",
        "segno conversations 1\n{\"agent\":\"claude\",\"conversation\":\"conv-1\",\"bytes\":1}\n{}\n",
    ] {
        std::fs::write(&path, bad).unwrap();
        import_conversations(&engine, &state, &path).unwrap_err();
    }
    assert_eq!(files(&home), Vec::<String>::new());
}

/// Gemini CLI knows the folder of a project by a file in it.
#[test]
fn a_folder_that_belongs_to_another_project_is_not_taken() {
    let room = Room::new();
    let id = "0199a213-7f3e-7c11-9d8a-5b6c7d8e9f00";
    let (engine, state, home) = world(&room, &[("gemini", id)]);
    let tmp = home.join(".gemini/tmp");
    std::fs::create_dir_all(tmp.join("harbour")).unwrap();
    std::fs::write(tmp.join("harbour/.project_root"), "/another/harbour").unwrap();
    let content = format!("{{\"sessionId\":\"{id}\"}}\n");
    let from = bundle(&room, &[("gemini", id, &content)]);
    let [Transferred::There(path)] = &came(&engine, &state, &from)[..] else { panic!() };
    assert!(path.starts_with(tmp.join("harbour-1/chats")), "{path:?}");
    assert_eq!(std::fs::read_to_string(tmp.join("harbour-1/.project_root")).unwrap(), state.project.path);
    assert_eq!(came(&engine, &state, &from), [Transferred::Already(path.clone())]);
}
