//! Every store knows what is its own.

use std::path::PathBuf;

use rustix::process::Signal;
use segno_testkit::scripted::Step;
use serde_json::Value;

use crate::lab::Lab;
use crate::lab::until;

fn state_directory(lab: &Lab) -> PathBuf {
    lab.home.path().join(".local/state/segno")
}

fn default_store(lab: &Lab) -> PathBuf {
    lab.home.path().join(".local/share/segno/segno.db")
}

/// The files that wait in the spool.
fn spooled(lab: &Lab) -> Vec<PathBuf> {
    segno_engine::spool::waiting(&state_directory(lab).join("spool"))
}

fn tokens_used(lab: &Lab, store: &str) -> u64 {
    lab.json(&["--store", store, "show", "last"])["state"]["budget"]["tokens_used"].as_u64().unwrap()
}

/// A lab with a session in the default store, and 777 tokens of it in the spool because the store was busy.
fn lab_with_spooled_tokens() -> Lab {
    let mut lab = Lab::new();
    lab.env.insert("SEGNO_STORE_BUSY_TIMEOUT_MS".to_owned(), "100".to_owned());
    assert_eq!(lab.run(&["new", "work"]).code, Some(0));
    let busy = rusqlite::Connection::open(default_store(&lab)).unwrap();
    busy.execute_batch("BEGIN IMMEDIATE").unwrap();
    let said = lab.run(&["tokens", "777"]);
    assert!(said.stderr.contains("safe in the spool"), "{}", said.stderr);
    busy.execute_batch("ROLLBACK").unwrap();
    assert_eq!(spooled(&lab).len(), 1);
    lab
}

promise!(
    /// A fact that was acknowledged goes to the store that it was meant for, whichever store is opened next.
    fn a_spooled_fact_goes_to_its_own_store() {
        let lab = lab_with_spooled_tokens();
        let own = format!("sqlite:{}", default_store(&lab).display());
        let other = format!("sqlite:{}", lab.path("other.db"));
        assert_eq!(lab.run(&["--store", &other, "new", "other work"]).code, Some(0));
        // A copy, too, which has the session.
        let copy = lab.path("copy.db");
        std::fs::copy(default_store(&lab), &copy).unwrap();
        for suffix in ["-wal", "-shm"] {
            let from = format!("{}{suffix}", default_store(&lab).display());
            // Whoever closed it last may have folded the log in.
            let _ = std::fs::copy(from, format!("{copy}{suffix}"));
        }
        let copy = format!("sqlite:{copy}");
        for store in [&other, &copy] {
            assert_eq!(lab.run(&["--store", store, "ls"]).code, Some(0));
            assert_eq!(spooled(&lab).len(), 1, "{store} took it");
            assert_eq!(tokens_used(&lab, store), 0);
        }
        let said = lab.json(&["--store", &other, "doctor"]);
        let left = said["diagnosis"]["left_alone"].as_array().unwrap();
        assert_eq!(left[0]["path"], spooled(&lab)[0].to_str().unwrap());
        assert_eq!(said["diagnosis"]["spooled"], 0);
        let said = lab.run(&["--store", &other, "doctor"]);
        assert!(said.text().contains("left alone"), "{}", said.text());
        assert_eq!(tokens_used(&lab, &own), 777);
        assert_eq!(spooled(&lab), Vec::<PathBuf>::new());
    }
);

promise!(
    /// What a program that knew no ids of stores left in the spool is taken in where its session is, and nowhere else.
    fn facts_of_earlier_programs_go_where_their_session_is() {
        let lab = lab_with_spooled_tokens();
        let path = spooled(&lab).remove(0);
        let mut line: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for member in ["store", "checksum"] {
            line.as_object_mut().unwrap().remove(member).unwrap();
        }
        std::fs::write(&path, line.to_string()).unwrap();
        let other = format!("sqlite:{}", lab.path("other.db"));
        assert_eq!(lab.run(&["--store", &other, "new", "other work"]).code, Some(0));
        assert_eq!(spooled(&lab), [path]);
        let own = format!("sqlite:{}", default_store(&lab).display());
        assert_eq!(tokens_used(&lab, &own), 777);
    }
);

promise!(
    /// A number that changed in the spool is not recorded as genuine.
    fn a_changed_fact_in_the_spool_is_set_apart() {
        let lab = lab_with_spooled_tokens();
        let path = spooled(&lab).remove(0);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("777"));
        std::fs::write(&path, text.replace("777", "7770")).unwrap();
        let said = lab.run(&["ls"]);
        assert!(said.stderr.contains("could not be recorded"), "{}", said.stderr);
        let own = format!("sqlite:{}", default_store(&lab).display());
        assert_eq!(tokens_used(&lab, &own), 0);
        let apart = state_directory(&lab).join("spool/set-apart").join(path.file_name().unwrap());
        assert!(apart.exists());
    }
);

promise!(
    /// Looking into a copy of a store leaves what the store's run printed to the store.
    fn a_copy_leaves_the_output_of_a_run_to_its_store() {
        let lab = Lab::new();
        let steps = [
            Step::Print("before".to_owned()),
            Step::Write { path: lab.path("begun"), content: String::new() },
            Step::WaitFor { path: lab.path("go"), seconds: 60 },
            Step::Print("after the driver died".to_owned()),
        ];
        let agent = lab.scripted("agent", &steps);
        let mut args = vec!["run", "--"];
        args.extend(agent.iter().map(String::as_str));
        let driver = lab.start(&args, None);
        until("the agent works", || lab.home.beside("begun").exists().then_some(()));
        lab.running();
        let copy = lab.path("copy.db");
        assert_eq!(lab.run(&["backup", &copy]).code, Some(0));
        driver.signal(Signal::KILL);
        drop(driver);
        std::fs::write(lab.home.beside("go"), "").unwrap();
        until("the agent ended", || {
            (!lab.processes().iter().any(|line| line.contains("agent.json"))).then_some(())
        });
        let store = format!("sqlite:{copy}");
        let said = lab.run(&["--store", &store, "ls"]);
        assert!(said.stderr.contains("is a copy of"), "{}", said.stderr);
        let changed = lab.run(&["--store", &store, "note", "x"]);
        assert_eq!(changed.code, Some(5), "{}", changed.stderr);
        // The store itself takes it in.
        lab.run(&["ls"]);
        let journal = lab.journal(None);
        let said = serde_json::to_string(&journal).unwrap();
        assert!(said.contains("after the driver died"), "{said}");
        lab.assert_nothing_left();
    }
);

promise!(
    /// A store that is moved goes on as it was; one that is restored from a copy says so, and goes on.
    fn a_moved_store_goes_on_and_a_restored_one_says_so() {
        let lab = Lab::new();
        assert_eq!(lab.run(&["new", "work"]).code, Some(0));
        let backup = lab.path("backup.db");
        assert_eq!(lab.run(&["backup", &backup]).code, Some(0));
        std::fs::create_dir(lab.path("moved")).unwrap();
        let move_all = |to: &str| {
            for suffix in ["", "-wal", "-shm"] {
                let from = format!("{}{suffix}", default_store(&lab).display());
                let moved = std::fs::rename(from, format!("{to}{suffix}"));
                assert!(moved.is_ok() || !suffix.is_empty());
            }
        };
        let moved = lab.path("moved/segno.db");
        move_all(&moved);
        let store = format!("sqlite:{moved}");
        let said = lab.run(&["--store", &store, "note", "x"]);
        assert_eq!((said.code, said.stderr.contains("warning")), (Some(0), false), "{}", said.stderr);
        // The store is lost, and its backup takes its place.
        std::fs::copy(&backup, default_store(&lab)).unwrap();
        std::fs::remove_file(&moved).unwrap();
        let said = lab.run(&["note", "restored"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(said.stderr.contains("restored from a copy"), "{}", said.stderr);
        let said = lab.run(&["note", "again"]);
        assert!(!said.stderr.contains("restored from a copy"), "{}", said.stderr);
    }
);

promise!(
    /// A key that a user or an agent chooses never stands for one that segno makes, nor for a part of another.
    fn a_users_key_stands_for_nothing_else() {
        let lab = Lab::new();
        let segno = lab.segno.display();
        let script = format!(
            "{segno} note x --key \"run-$SEGNO_RUN@end\"; {segno} note y --key \"run-$SEGNO_RUN@0\"; echo line"
        );
        assert_eq!(lab.run(&["run", "--", "sh", "-c", &script]).code, Some(0));
        assert_eq!(lab.journal(Some("run_ended")).len(), 1);
        assert_eq!(lab.journal(Some("said")).len(), 1);
        assert_eq!(lab.state()["status"], "completed");
        assert_eq!(lab.run(&["new", "work"]).code, Some(0));
        for (key, repeated) in [("job/1", false), ("job", false), ("job/1", true), ("job", true)] {
            let said = lab.json(&["error", "broken", "--key", key]);
            assert_eq!(said["repeated"], repeated, "{key}");
        }
    }
);

promise!(
    /// What an earlier version recorded under a key is not recorded again under the same key.
    fn keys_of_earlier_versions_are_known() {
        let lab = Lab::new();
        assert_eq!(lab.run(&["new", "work"]).code, Some(0));
        let store = segno_store::sqlite::SqliteStore::open(&default_store(&lab), Default::default());
        let store: Box<dyn segno_store::Store> = Box::new(store.unwrap());
        let session = lab.state()["session_id"].as_str().unwrap().parse().unwrap();
        // As it was written then: the key as it was typed.
        let noted = segno_engine::core::decide::events_of_fact(
            None,
            segno_engine::core::Fact::Reported { what: "job".to_owned(), body: Value::Null },
        );
        let redactor = segno_engine::redact::Redactor::new(Default::default());
        let facts =
            noted.unwrap().into_iter().map(|event| redactor.record(event.into_event()).unwrap()).collect();
        let at = segno_engine::core::Timestamp::EPOCH;
        let what = segno_store::What::Facts(facts);
        let append = segno_store::Append::new(session, "job".parse().unwrap(), at, what);
        assert!(store.append(vec![append]).pop().unwrap().is_ok());
        drop(store);
        assert_eq!(lab.json(&["note", "x", "--key", "job"])["repeated"], true);
        assert_eq!(lab.json(&["note", "x", "--key", "job2"])["repeated"], false);
    }
);

promise!(
    /// An agent that does not say which conversation it opened is brought back to the one it was told to open.
    fn an_agent_that_names_no_conversation_keeps_the_one_it_was_given() {
        let mut lab = Lab::new();
        let init = r#"{"type":"system","subtype":"init","model":"m","cwd":"/","tools":["Bash"]}"#;
        let steps = [
            Step::Print(init.to_owned()),
            Step::Write { path: lab.path("begun"), content: String::new() },
            Step::WaitFor { path: lab.path("never"), seconds: 60 },
        ];
        lab.stand_in("claude", &steps);
        let driver = lab.start(&["run", "--agent", "claude", "--prompt", "work"], None);
        until("the agent works", || lab.home.beside("begun").exists().then_some(()));
        let run = lab.running();
        let given = run["native_id"].as_str().unwrap().to_owned();
        until("its first line is recorded", || {
            let journal = serde_json::to_string(&lab.journal(None)).unwrap();
            (journal.contains("run_named") || journal.contains("\"Bash\"")).then_some(())
        });
        driver.signal(Signal::KILL);
        drop(driver);
        lab.run(&["kill", "last"]);
        let run = lab.state()["run"].clone();
        assert_eq!(run["native_id"], given, "{run}");
    }
);
