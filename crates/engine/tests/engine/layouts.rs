//! Files of other session managers: what is read to keep them current.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use segno_core::Command;
use segno_core::Fact;
use segno_core::Input;
use segno_core::SessionId;
use segno_core::event::CallEnd;
use segno_core::event::Source;
use segno_core::event::Workflow;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::NewSession;
use segno_engine::layout;
use segno_engine::layout::Family;
use segno_engine::view;
use serde_json::json;

use crate::common::Room;
use crate::common::note;
use crate::counting::Counting;
use crate::counting::Counts;

/// A process of its own, with what it reads.
struct Process {
    engine: Engine,
    counts: Arc<Counts>,
}

impl Process {
    fn new(room: &Room) -> Self {
        let counts = Arc::new(Counts::default());
        let view = view::Options { enabled: false, ..view::Options::default() };
        let layout = layout::Options {
            most_items: 1_000,
            pasts: Some(room.path().join("state/layouts")),
            ..layout::Options::default()
        };
        let store = Counting { store: room.store(), counts: Arc::clone(&counts) };
        let engine = Engine::new(Box::new(store), EngineOptions { view, layout, ..room.options() });
        Self { engine, counts }
    }

    /// Writes the files of a PRP session; answers with how many rows and events were read.
    fn write(&self, id: SessionId) -> u64 {
        let state = self.engine.load(id).unwrap().state;
        self.counts.take();
        let written = self.engine.write_layout(Family::Prp, &state).unwrap();
        assert_eq!(written.notices, Vec::<String>::new());
        self.counts.take().0
    }
}

/// A session in the phases of the document.
fn begin(room: &Room, engine: &Engine) -> SessionId {
    let phases = ["RED", "GREEN"].map(str::to_owned).to_vec();
    let workflow = Workflow { name: "prp".to_owned(), phases };
    let phase = Some("RED".to_owned());
    let wanted = NewSession { workflow: Some(workflow), phase, ..room.new_session() };
    engine.create(wanted).unwrap().state.session_id
}

fn calls(engine: &Engine, id: SessionId, from: usize, to: usize) {
    let inputs = (from..to).flat_map(|n| {
        let (call, tool) = (format!("call-{n}"), "Bash".to_owned());
        let input = json!({ "command": "true" });
        let start =
            Fact::ToolStarted { call: call.clone(), tool, input, write_ahead: true, source: Source::Hook };
        let end = CallEnd::Completed;
        let end = Fact::ToolEnded { call, tool: None, end, output: None, source: Source::Hook };
        [Input::from(start), Input::from(end)]
    });
    for part in inputs.collect::<Vec<_>>().chunks(200) {
        engine.act_all(id, part.to_vec(), None).unwrap();
    }
}

fn written(room: &Room) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = room.project().join(".prp-session");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn kept(room: &Room) -> Vec<PathBuf> {
    let folder = room.path().join("state/layouts");
    std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// What a command of its own reads of a session's past is bounded, however long that is; and what it writes is the same as
/// if it had read all of it.
#[test]
fn what_a_command_reads_of_the_past_does_not_grow_with_the_session() {
    let room = Room::new();
    let first = Process::new(&room);
    let id = begin(&room, &first.engine);
    first.engine.act(id, Command::StartIteration).unwrap();
    assert!(Process::new(&room).write(id) < 10);
    assert_eq!(kept(&room), Vec::<PathBuf>::new(), "a short past is read again");
    let most = 520;
    for length in [500, 1_500] {
        calls(&first.engine, id, length - 500, length);
        Process::new(&room).write(id);
        for step in 0..3 {
            first.engine.act(id, note("one more")).unwrap();
            let read = Process::new(&room).write(id);
            assert!(read <= most, "{read} rows after {length} calls and {step} notes");
        }
    }
    assert_eq!(kept(&room).len(), 1);
    first.engine.act(id, Command::AdvancePhase { to: "GREEN".to_owned(), step: None, of: None }).unwrap();
    Process::new(&room).write(id);
    let ours = written(&room);
    std::fs::remove_file(&kept(&room)[0]).unwrap();
    let all = Process::new(&room).write(id);
    assert!(all > 1_500, "{all}");
    assert_eq!(written(&room), ours);
}

fn change(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from}");
    std::fs::write(path, text.replace(from, to)).unwrap();
}

/// What is kept of another journal, or by another program, or is not whole, counts for nothing; and it goes with its session.
#[test]
fn a_kept_past_of_something_else_is_not_believed() {
    let room = Room::new();
    let first = Process::new(&room);
    let id = begin(&room, &first.engine);
    first.engine.act(id, Command::StartIteration).unwrap();
    calls(&first.engine, id, 0, 400);
    Process::new(&room).write(id);
    let ours = written(&room);
    let path = kept(&room).pop().unwrap();
    let whole = std::fs::read_to_string(&path).unwrap();
    let hash = whole.split("\"hash\":\"").nth(1).unwrap()[..64].to_owned();
    let other_hash: String = hash.chars().rev().collect();
    let cases: [(&str, &str); 3] = [
        (&hash, &other_hash),
        (env!("CARGO_PKG_VERSION"), "0.0.0"),
        ("\"iterations\":1", "\"iterations\":\""),
    ];
    for (from, to) in cases {
        std::fs::write(&path, &whole).unwrap();
        change(&path, "PHASE: RED", "PHASE: DOCUMENT");
        change(&path, from, to);
        let read = Process::new(&room).write(id);
        assert!(read > 800, "{read} with {to}");
        assert_eq!(written(&room), ours, "{to}");
    }
    assert!(first.engine.delete(id).unwrap());
    assert_eq!(kept(&room), Vec::<PathBuf>::new());
}

/// The document of AgentForge has a `.gitkeep` in a folder that was not there. Both it and what keeps the folder out of the
/// repository go with the last session; one that was there before is its owner's.
#[test]
fn a_folder_of_agentforge_is_made_as_its_document_says() {
    let room = Room::new();
    let process = Process::new(&room);
    let id = begin(&room, &process.engine);
    let state = process.engine.load(id).unwrap().state;
    let folder = room.project().join(".agentforge/sessions");
    process.engine.write_layout(Family::AgentForge, &state).unwrap();
    assert_eq!(std::fs::read(folder.join(".gitkeep")).unwrap(), b"");
    assert!(folder.join(".gitignore").is_file());
    process.engine.remove_layout(Family::AgentForge, &state).unwrap();
    assert!(!folder.exists());
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(".gitkeep"), "").unwrap();
    process.engine.write_layout(Family::AgentForge, &state).unwrap();
    assert!(!folder.join(".gitignore").exists());
    process.engine.remove_layout(Family::AgentForge, &state).unwrap();
    assert!(folder.join(".gitkeep").is_file(), "theirs stays");
}

/// Before the first checkpoint of a go-team session its branch is the one that the project is on.
#[test]
fn a_go_team_session_has_a_branch_before_its_first_checkpoint() {
    let room = Room::new();
    let process = Process::new(&room);
    let id = begin(&room, &process.engine);
    let state = process.engine.load(id).unwrap().state;
    let registry = room.project().join(".claude/agents/microai/teams/go-team/checkpoints/sessions.json");
    let branch = || {
        process.engine.write_layout(Family::GoTeam, &state).unwrap();
        let file: serde_json::Value = serde_json::from_slice(&std::fs::read(&registry).unwrap()).unwrap();
        file["sessions"][0]["git_branch"].clone()
    };
    assert_eq!(branch(), serde_json::Value::Null);
    let git = room.project().join(".git");
    std::fs::create_dir(&git).unwrap();
    for (head, name) in [
        ("ref: refs/heads/go-team/session-abc123\n", json!("go-team/session-abc123")),
        ("1f2e3d4c5b6a79881f2e3d4c5b6a79881f2e3d4c\n", serde_json::Value::Null),
        ("ref: refs/heads/.invalid\n", serde_json::Value::Null),
    ] {
        std::fs::write(git.join("HEAD"), head).unwrap();
        assert_eq!(branch(), name, "{head}");
    }
}

/// Whatever is wrong with files, an import leaves them as they are.
#[test]
fn an_import_leaves_damaged_files_as_they_are() {
    use std::os::unix::fs::MetadataExt as _;
    let room = Room::new();
    let process = Process::new(&room);
    let names = [
        ".prp-session/loop-state.json",
        ".prp-session/phase-status.log",
        ".agentforge/sessions/session_20251230_101530_a1b2c3/session.yaml",
        "checkpoints/sessions.json",
        "checkpoints/session-abc123/state.json",
        "home/sessions/current-session.json",
        "home/sessions/current-session.json.gz",
    ];
    let damaged: [&[u8]; 7] = [
        b"",
        b" \n",
        b"{\"session_id\": \"x\"",
        b"[1]",
        b"\xff\xfe{}",
        &[0; 64],
        b"session_id: x\nstate: asleep\n",
    ];
    for content in damaged {
        let place = room.path().join("theirs");
        for name in names {
            let path = place.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let look = || {
            names.map(|name| {
                let path = place.join(name);
                let meta = std::fs::metadata(&path).unwrap();
                let of_file = (meta.ino(), meta.mtime_nsec(), meta.ctime_nsec(), meta.mode());
                (std::fs::read(path).unwrap(), of_file)
            })
        };
        let before = look();
        for folder in [".prp-session", ".agentforge/sessions", "checkpoints", "home/sessions"] {
            let options = segno_engine::transfer::Options::default();
            let answer = layout::import(&process.engine, &place.join(folder), &options);
            assert!(answer.is_err(), "{folder} with {content:?}: {answer:?}");
        }
        assert_eq!(look(), before, "{content:?}");
        std::fs::remove_dir_all(place).unwrap();
    }
}
