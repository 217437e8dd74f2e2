//! How views come onto the disk, and what they leave alone.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use rstest::rstest;
use segno_core::List;
use segno_core::SessionId;
use segno_core::event::Project;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::view;

use crate::child::Helper;
use crate::common::Room;
use crate::common::files_below;
use crate::common::mode;
use crate::common::note;
use crate::common::notes;
use crate::common::parse;
use crate::looping::counted_store::CountedStore;

fn begun(room: &Room) -> SessionId {
    room.engine().create(room.new_session()).unwrap().state.session_id
}

#[test]
fn the_first_use_keeps_the_folder_in_the_repository_and_its_content_out() {
    let room = Room::new();
    begun(&room);
    let folder = room.project().join(".segno");
    let ignore = std::fs::read_to_string(folder.join(".gitignore")).unwrap();
    assert!(ignore.ends_with("\n*\n"), "{ignore}");
    assert_eq!(std::fs::read(folder.join("sessions/.gitkeep")).unwrap(), b"");
    // Whoever changes them later is left in peace.
    std::fs::remove_file(folder.join(".gitignore")).unwrap();
    begun(&room);
    assert!(!folder.join(".gitignore").exists());
}

#[test]
fn an_ignore_file_that_is_there_stays_as_it_is() {
    let room = Room::new();
    let folder = room.project().join(".segno");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join(".gitignore"), "mine\n").unwrap();
    begun(&room);
    assert_eq!(std::fs::read_to_string(folder.join(".gitignore")).unwrap(), "mine\n");
    assert!(folder.join("sessions/.gitkeep").exists());
}

#[test]
fn a_first_use_that_was_cut_short_is_made_good() {
    let room = Room::new();
    std::fs::create_dir_all(room.project().join(".segno/sessions")).unwrap();
    begun(&room);
    assert!(room.project().join(".segno/sessions/.gitkeep").exists());
    assert!(room.project().join(".segno/.gitignore").exists());
}

#[test]
fn views_are_the_users_own() {
    let room = Room::new();
    let id = begun(&room);
    assert_eq!(mode(&room.view_path(id)), 0o600);
    assert_eq!(mode(&room.store_path()), 0o600);
    assert_eq!(mode(room.store_path().parent().unwrap()), 0o700);
    std::fs::set_permissions(room.view_path(id), std::fs::Permissions::from_mode(0o644)).unwrap();
    room.engine().act(id, note("again")).unwrap();
    assert_eq!(mode(&room.view_path(id)), 0o600);
}

#[rstest]
#[case::folder(".segno")]
#[case::sessions(".segno/sessions")]
#[case::session(".segno/sessions/SESSION")]
#[case::view(".segno/sessions/SESSION/session.yaml")]
fn a_symbolic_link_is_never_followed(#[case] folder: &str) {
    let room = Room::new();
    let outside = room.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("session.yaml"), "precious").unwrap();
    let engine = room.engine();
    // The clock stands, so the next session's name is known.
    let id: SessionId = "session_20260116_100000_000000".parse().unwrap();
    let link = room.project().join(folder.replace("SESSION", &id.to_string()));
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    let target = if folder.ends_with(".yaml") { outside.join("session.yaml") } else { outside.clone() };
    symlink(&target, &link).unwrap();

    let acted = engine.create(room.new_session()).unwrap();
    assert_eq!(acted.state.session_id, id);
    assert_eq!(acted.notices.len(), 1);
    assert!(acted.notices[0].starts_with("the change is recorded, but session.yaml was not written: "));
    assert!(acted.notices[0].contains("symbolic link"), "{:?}", acted.notices);
    let acted = engine.act(id, note("kept")).unwrap();
    assert_eq!(acted.notices.len(), 1);
    assert_eq!(notes(&engine, id), ["kept"], "the change is recorded all the same");

    // Nor when the session is removed, nor when somebody looks for it.
    assert!(engine.delete(id).unwrap());
    assert_eq!(files_below(&outside), [outside.join("session.yaml")]);
    assert_eq!(std::fs::read_to_string(outside.join("session.yaml")).unwrap(), "precious");
    assert!(std::fs::symlink_metadata(&link).is_ok() || folder.ends_with(".yaml"));
    if let Ok(found) = room.manager().load(&id.to_string()) {
        assert!(found.is_none());
    }
}

#[test]
fn removing_does_not_reach_through_links_into_another_project() {
    let room = Room::new();
    let engine = room.engine();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let view = room.view_path(id);
    let elsewhere = room.path().join("elsewhere");
    std::fs::rename(room.project().join(".segno"), &elsewhere).unwrap();
    symlink(&elsewhere, room.project().join(".segno")).unwrap();
    assert!(view.exists(), "reachable through the link");
    assert!(engine.delete(id).unwrap());
    assert!(view.exists(), "and left alone");
}

/// No directory and no file, which nobody may write into, whoever they are.
#[test]
fn a_project_that_cannot_be_written_gives_a_notice() {
    let room = Room::new();
    let engine = room.engine();
    std::fs::write(room.project().join(".segno"), "a file in its place").unwrap();
    let acted = engine.create(room.new_session()).unwrap();
    let id = acted.state.session_id;
    assert!(acted.notices[0].contains("session.yaml was not written"), "{:?}", acted.notices);
    engine.act(id, note("kept")).unwrap();
    assert_eq!(notes(&engine, id), ["kept"]);
    assert_eq!(engine.write_view(id).unwrap_err().code(), "file_error");
}

#[test]
fn a_read_only_project_gives_a_notice() {
    let room = Room::new();
    let project = room.project();
    std::fs::set_permissions(&project, std::fs::Permissions::from_mode(0o500)).unwrap();
    let writable = std::fs::write(project.join("probe"), "").is_ok();
    // A system directory stands in for it where nothing is read-only for this user.
    let folder = if writable { Path::new("/proc").to_owned() } else { project.clone() };
    let mut new = room.new_session();
    new.project = Project { path: folder.display().to_string(), name: "read only".to_owned(), kind: None };
    let engine = room.engine();
    let acted = engine.create(new).unwrap();
    assert_eq!(acted.notices.len(), 1, "{:?}", acted.notices);
    let acted = engine.act(acted.state.session_id, note("kept")).unwrap();
    assert_eq!(acted.notices.len(), 1);
    assert_eq!(notes(&engine, acted.state.session_id), ["kept"]);
    std::fs::set_permissions(&project, std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_project_that_is_gone_gives_a_notice() {
    let room = Room::new();
    let mut manager = room.manager();
    manager.create(None, None, None).unwrap();
    assert_eq!(manager.notices(), Vec::<String>::new());
    std::fs::remove_dir_all(room.project()).unwrap();
    manager.pause().unwrap();
    assert!(manager.notices()[0].contains("session.yaml was not written"), "{:?}", manager.notices());
}

#[test]
fn an_edited_view_is_kept_beside_ours_and_reported() {
    let room = Room::new();
    let engine = room.engine();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let path = room.view_path(id);
    let dir = path.parent().unwrap();
    for (round, edit) in
        ["state: completed\n", "", "\u{0}\u{1}", "# segno view 1 abc\nstate: x\n"].iter().enumerate()
    {
        std::fs::write(&path, edit).unwrap();
        let acted = engine.act(id, note("mine")).unwrap();
        assert_eq!(acted.notices.len(), 1, "{edit:?}");
        let named = acted.notices[0].split(' ').find(|word| word.starts_with("session.edited-")).unwrap();
        assert_eq!(&std::fs::read_to_string(dir.join(named)).unwrap(), edit, "kept as {named}");
        // The clock stands still, but nobody's text replaces another's.
        assert_eq!(files_below(dir).len(), round + 2);
        assert_eq!(parse(&std::fs::read_to_string(&path).unwrap())["state"], "active");
    }
    let acted = engine.act(id, note("once more")).unwrap();
    assert_eq!(acted.notices, Vec::<String>::new(), "ours is not reported");
    assert!(engine.delete(id).unwrap());
    assert_eq!(files_below(dir).len(), 4, "what somebody wrote stays when the session goes");
}

#[test]
fn an_edited_view_of_any_size_is_kept_without_being_read() {
    let room = Room::new();
    let engine = room.engine();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let path = room.view_path(id);
    std::fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
    let acted = engine.act(id, note("mine")).unwrap();
    assert_eq!(acted.notices.len(), 1);
    let kept = files_below(path.parent().unwrap());
    let sizes: Vec<u64> = kept.iter().map(|file| std::fs::metadata(file).unwrap().len()).collect();
    assert!(sizes.contains(&(1 << 30)), "{sizes:?}");
    assert_eq!(parse(&std::fs::read_to_string(&path).unwrap())["state"], "active");
}

#[test]
fn what_a_dead_writer_left_is_cleared_away_and_nothing_else() {
    let room = Room::new();
    let engine = room.engine();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let dir = room.view_path(id).parent().unwrap().to_owned();
    let left = dir.join(".session.yaml.0190f5a0c0de7000800000000000beef.tmp");
    std::fs::write(&left, "half of it").unwrap();
    let theirs = [".session.yaml.swp", ".session.yaml.tmp", "notes.tmp", ".session.yaml.mine.tmp"];
    for name in theirs {
        std::fs::write(dir.join(name), "theirs").unwrap();
    }
    engine.act(id, note("next")).unwrap();
    assert!(!left.exists());
    for name in theirs {
        assert!(dir.join(name).exists(), "{name}");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_view_hangs_nobody() {
    let room = Room::new();
    let engine = room.engine();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let path = room.view_path(id);
    std::fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let acted = engine.act(id, note("kept")).unwrap();
    assert!(acted.notices[0].contains("not a regular file"), "{:?}", acted.notices);
    segno_store::Store::delete(&room.store(), id, None).unwrap();
    let error = room.manager().load(&id.to_string()).unwrap_err();
    assert_eq!(error.code(), "session_corrupted");
}

#[test]
fn two_processes_at_once_leave_a_whole_view_of_the_newest_state() {
    let room = Room::new();
    let engine = room.engine();
    let id = engine.create(room.new_session()).unwrap().state.session_id;
    let mut helpers = [0, 1].map(|_| Helper::start("write views", &room.store_path(), &id.to_string()));
    for helper in &mut helpers {
        assert_eq!(helper.hear().as_deref(), Some("ready"));
    }
    let path = room.view_path(id);
    // Whoever reads meanwhile always finds a whole one.
    for _ in 0..50 {
        let view = parse(&std::fs::read_to_string(&path).unwrap());
        assert_eq!(view["session_id"], id.to_string());
    }
    for helper in &mut helpers {
        assert_eq!(helper.hear().as_deref(), Some("done"));
    }
    let view = parse(&std::fs::read_to_string(&path).unwrap());
    assert_eq!(view["journal_seq"], 61);
    assert_eq!(view["totals"]["history"], 61);
    assert_eq!(view["history"].as_array().unwrap().len(), 61);
    assert_eq!(files_below(path.parent().unwrap()), [path]);
}

/// Rows that were read and are not in the file yet are in memory: it is never more than a page of them and what a buffer
/// holds, however long the session is.
#[test]
fn a_long_view_goes_to_its_file_page_by_page() {
    const ROWS: usize = 1_500;
    let room = Room::new();
    let session = begun(&room);
    let writer = room.quiet();
    let notes = (0..ROWS).map(|n| note(&format!("note {n:04}: {}", "words ".repeat(20))));
    writer.act_all(session, notes, None).unwrap();
    let rows = Arc::new(AtomicU64::new(0));
    let most = Arc::new(AtomicU64::new(0));
    let pages = Arc::new(AtomicU64::new(0));
    let folder = room.view_path(session).parent().unwrap().to_owned();
    let in_hand = {
        let (rows, most, pages) = (rows.clone(), most.clone(), pages.clone());
        move |list| {
            let unfinished = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
            let unfinished = unfinished.filter(|path| path.extension().is_some_and(|end| end == "tmp"));
            let written: usize =
                unfinished.map(|path| std::fs::read_to_string(path).unwrap().matches("\n  - ").count()).sum();
            if list == List::History {
                pages.fetch_add(1, Ordering::SeqCst);
                most.fetch_max(rows.load(Ordering::SeqCst) - written as u64, Ordering::SeqCst);
            }
        }
    };
    let store = CountedStore::new(Box::new(room.store()), rows).before_page(Box::new(in_hand));
    let shown = |engine: &Engine| -> Vec<String> {
        view::write(engine, &engine.load(session).unwrap().state).unwrap();
        let view = parse(&std::fs::read_to_string(room.view_path(session)).unwrap());
        let details = view["history"].as_array().unwrap().iter().filter_map(|row| row["details"].as_str());
        details.filter(|it| it.starts_with("note ")).map(|details| details[..9].to_owned()).collect()
    };
    let expected: Vec<String> = (0..ROWS).map(|n| format!("note {n:04}")).collect();
    assert_eq!(shown(&Engine::new(Box::new(store), room.options())), expected);
    let view = view::Options { most_items: 450, ..view::Options::default() };
    let short = Engine::new(Box::new(room.store()), EngineOptions { view, ..room.options() });
    assert_eq!(shown(&short), expected[ROWS - 450..], "the newest, in the order they happened");
    assert!(pages.load(Ordering::SeqCst) > 5, "{pages:?} pages");
    // The newest page is looked at first, to learn how long the list is; a buffer holds some fifty rows.
    let most = most.load(Ordering::SeqCst);
    assert!(most <= 200 + 60, "{most} rows were in memory at once");
}
