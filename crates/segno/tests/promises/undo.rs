//! Undo means what this session did, and goes nowhere while somebody works in the tree.

use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::common::TestEnv;
use crate::driver::begun;
use crate::driver::let_go;
use crate::driver::patient;
use crate::lab::Lab;
use crate::lab::Live;
use crate::lab::Said;
use crate::lab::until;
use crate::setup::MINE;
use crate::terminal::ENTER;
use crate::terminal::Terminal;

fn ok(said: Said) -> Said {
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    said
}

fn write(lab: &Lab, name: &str, text: &str) {
    let path = lab.home.work().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(lab: &Lab, name: &str) -> Option<String> {
    std::fs::read_to_string(lab.home.work().join(name)).ok()
}

/// A session whose agent shows its calls one by one and waits before each step until it is let go on.
struct Story {
    lab: Lab,
    live: Live,
}

impl Story {
    fn begin(steps: impl Fn(&Lab) -> Vec<Step>, files: &[&str]) -> Self {
        let lab = Lab::new();
        for name in files {
            write(&lab, name, "old\n");
        }
        let command = lab.scripted("mine", &steps(&lab));
        lab.config(&MINE.replace("prompt = ", &format!("command = {command:?}\nprompt = ")));
        let live = lab.start(&["run", "--agent", "mine"], None);
        Self { lab, live }
    }

    fn go(&self, step: &str) {
        std::fs::write(self.lab.path(step), "").unwrap();
    }

    fn end(self) -> Lab {
        ok(self.live.finish());
        self.lab
    }
}

fn call(id: &str, tool: &str, input: Value) -> Step {
    Step::Json(json!({ "type": "call", "id": id, "tool": tool, "input": input }))
}

fn done(id: &str) -> Step {
    Step::Json(json!({ "type": "done", "id": id, "out": "fine" }))
}

fn held(lab: &Lab, step: &str) -> Step {
    Step::WaitFor { path: lab.path(step), seconds: 60 }
}

fn put(path: &str, content: &str) -> Step {
    Step::Write { path: path.to_owned(), content: content.to_owned() }
}

/// One call that names a file, one shell call that changes, makes and removes files; a person and another session
/// write before, between and after them.
fn told_apart() -> Lab {
    let steps = |lab: &Lab| {
        vec![
            held(lab, "one"),
            call("c1", "Write", json!({ "file_path": "named.txt" })),
            held(lab, "two"),
            put("named.txt", "agent\n"),
            Step::Json(json!({ "type": "file", "path": "named.txt", "change": "modified", "id": "c1" })),
            done("c1"),
            held(lab, "three"),
            call("c2", "Bash", json!({ "command": "sh work.sh; rm gone.txt" })),
            held(lab, "four"),
            done("c2"),
            held(lab, "five"),
            Step::Json(json!({ "type": "bye" })),
        ]
    };
    let files = ["named.txt", "shell.txt", "gone.txt", "notes.md", "removed.md"];
    let story = Story::begin(steps, &files);
    story.lab.running();
    write(&story.lab, "notes.md", "mine\n");
    story.go("one");
    story.wait_for_call("c1");
    story.go("two");
    story.wait_for_end("c1");
    write(&story.lab, "idea.md", "mine\n");
    std::fs::remove_file(story.lab.home.work().join("removed.md")).unwrap();
    ok(story.lab.run(&["run", "--", "sh", "-c", "echo theirs > other.txt"]));
    story.go("three");
    story.wait_for_call("c2");
    // This is what its shell does.
    for name in ["shell.txt", "made.txt", "d/deep.txt"] {
        write(&story.lab, name, "agent\n");
    }
    std::fs::remove_file(story.lab.home.work().join("gone.txt")).unwrap();
    story.go("four");
    story.wait_for_end("c2");
    write(&story.lab, "late.md", "mine\n");
    story.go("five");
    story.end()
}

impl Story {
    fn tools(&self) -> Vec<Value> {
        let listed = self.lab.run(&["ls", "--all", "--json"]);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap_or_default();
        let ids = listed["sessions"].as_array().or(listed["items"].as_array()).cloned().unwrap_or_default();
        let mut rows = Vec::new();
        for row in ids {
            let Some(id) = row["session_id"].as_str() else { continue };
            let said = self.lab.run(&["show", id, "--tools", "--json"]);
            let shown: Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
            rows.extend(shown["items"].as_array().cloned().unwrap_or_default());
        }
        rows
    }

    fn wait_for_call(&self, call: &str) {
        self.wait_for_mark("the call is recorded", "started_at", |row| row["call"] == call);
    }

    fn wait_for_end(&self, call: &str) {
        let ended = |row: &Value| row["call"] == call && row["state"] == "completed";
        self.wait_for_mark("the call has ended", "ended_at", ended);
    }

    /// Waits for a call, and until what is written now is marked as later: the marks of files lag behind the clock by a
    /// tick. Nobody is that quick, but a test may be.
    fn wait_for_mark(&self, what: &str, when: &str, fits: impl Fn(&Value) -> bool) {
        let at = until(what, || {
            let found = self.tools().into_iter().find(|row| fits(row))?;
            Some(found[when].as_str()?.parse::<jiff::Timestamp>().unwrap().as_microsecond())
        });
        let mark = self.lab.path("mark");
        until("the system's marks are later than that", || {
            use std::os::unix::fs::MetadataExt as _;
            std::fs::write(&mark, "").unwrap();
            let meta = std::fs::metadata(&mark).unwrap();
            (meta.ctime() * 1_000_000 + meta.ctime_nsec() / 1000 > at).then_some(())
        });
    }
}

/// The id of the session whose agent was this.
fn session_of(lab: &Lab, agent: &str) -> String {
    let listed = lab.json(&["ls", "--all"]);
    let rows = listed["sessions"].as_array().or(listed["items"].as_array()).cloned().unwrap();
    let of = rows.iter().find(|row| row["agent"] == agent).unwrap_or_else(|| panic!("{listed}"));
    of["session_id"].as_str().unwrap().to_owned()
}

/// A session whose agent changed `a.txt` from `old` to `agent`, and its id.
fn one_change() -> (Lab, String) {
    let lab = Lab::new();
    write(&lab, "a.txt", "old\n");
    ok(lab.run(&["run", "--", "sh", "-c", "echo agent > a.txt"]));
    let id = lab.state()["session_id"].as_str().unwrap().to_owned();
    (lab, id)
}

promise!(
    /// Undo takes back what the session's calls did, file by file, and leaves what a person and another session did.
    fn an_undo_takes_back_what_the_session_did_and_nothing_else() {
        let lab = told_apart();
        let id = session_of(&lab, "mine");
        let undone = lab.json(&["undo", "--session", &id, "--yes"]);
        let now = |name: &str| read(&lab, name);
        for (name, wanted) in [
            ("named.txt", Some("old\n")),
            ("shell.txt", Some("old\n")),
            ("gone.txt", Some("old\n")),
            ("made.txt", None),
            ("d/deep.txt", None),
            ("notes.md", Some("mine\n")),
            ("idea.md", Some("mine\n")),
            ("late.md", Some("mine\n")),
            ("other.txt", Some("theirs\n")),
            ("removed.md", None),
        ] {
            assert_eq!(now(name).as_deref(), wanted, "{name}: {undone}");
        }
        let kept: Vec<&str> =
            undone["kept"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect();
        assert!(kept.contains(&"notes.md") && kept.contains(&"idea.md"), "they are listed: {undone}");
        // There and back again.
        ok(lab.run(&["redo", "--session", &id, "--yes"]));
        assert_eq!((now("shell.txt").as_deref(), now("gone.txt")), (Some("agent\n"), None));
        ok(lab.run(&["undo", "--session", &id, "--yes"]));
        assert_eq!((now("shell.txt").as_deref(), now("made.txt")), (Some("old\n"), None));
        assert_eq!(now("idea.md").as_deref(), Some("mine\n"));
    }
);

/// A person writes just before a shell call is told of; nobody can know whether the call had begun.
fn just_before_a_call() -> Lab {
    let steps = |lab: &Lab| {
        vec![
            put("notes.md", "mine\n"),
            call("c1", "Bash", json!({ "command": "sh work.sh" })),
            held(lab, "one"),
            done("c1"),
            Step::Json(json!({ "type": "bye" })),
        ]
    };
    let story = Story::begin(steps, &["notes.md", "shell.txt"]);
    story.wait_for_call("c1");
    write(&story.lab, "shell.txt", "agent\n");
    story.go("one");
    story.end()
}

promise!(
    /// What a person did just before a call was seen is not taken back unless somebody says so.
    fn an_edit_just_before_a_call_is_left_where_nobody_is_asked() {
        let lab = just_before_a_call();
        let undone = lab.json(&["undo", "--yes"]);
        assert_eq!(read(&lab, "shell.txt").as_deref(), Some("old\n"), "{undone}");
        assert_eq!(read(&lab, "notes.md").as_deref(), Some("mine\n"), "{undone}");
        assert_eq!(undone["kept"][0]["path"], "notes.md", "{undone}");
        assert_eq!(undone["written"], json!(["shell.txt"]), "{undone}");
    }
);

promise!(
    /// It is listed apart, and asked about.
    fn an_edit_just_before_a_call_is_asked_about() {
        for (answer, wanted) in [("n", "mine\n"), ("y", "old\n")] {
            let lab = just_before_a_call();
            let terminal = Terminal::open(&lab);
            terminal.type_keys(&format!("\"$SEGNO\" undo{ENTER}"));
            terminal.wait_for(0, "unsure  notes.md");
            terminal.wait_for(0, "[y/N]");
            let place = terminal.place();
            terminal.type_keys(&format!("{answer}{ENTER}"));
            terminal.wait_for(place, "go to ");
            terminal.wait_for(place, "[y/N]");
            terminal.type_keys(&format!("y{ENTER}"));
            assert_eq!(terminal.exit_code(), 0);
            assert_eq!(read(&lab, "notes.md").as_deref(), Some(wanted));
            assert_eq!(read(&lab, "shell.txt").as_deref(), Some("old\n"));
        }
    }
);

promise!(
    /// Who asks for all of it gets all of it.
    fn an_undo_of_all_takes_the_rest_too() {
        let lab = told_apart();
        let id = session_of(&lab, "mine");
        ok(lab.run(&["undo", "--session", &id, "--all", "--yes"]));
        assert_eq!(read(&lab, "notes.md").as_deref(), Some("old\n"));
        assert_eq!((read(&lab, "idea.md"), read(&lab, "removed.md").as_deref()), (None, Some("old\n")));
    }
);

promise!(
    /// Nobody goes back in a tree in which an agent of another session works.
    fn nothing_is_undone_under_the_hands_of_another_session() {
        let (lab, id) = one_change();
        let script = patient(&lab);
        let live = lab.start(&["run", "--", "sh", "-c", &script], None);
        begun(&lab);
        let said = lab.run(&["undo", "--session", &id, "--yes"]);
        assert_eq!(
            (said.code, read(&lab, "a.txt").as_deref()),
            (Some(7), Some("agent\n")),
            "{}",
            said.stderr
        );
        assert!(said.stderr.contains("works in this tree"), "{}", said.stderr);
        let_go(&lab);
        ok(live.finish());
        ok(lab.run(&["undo", "--session", &id, "--yes"]));
        assert_eq!(read(&lab, "a.txt").as_deref(), Some("old\n"));
    }
);

promise!(
    /// Nor if it began to work while somebody was asked.
    fn nothing_is_undone_when_somebody_began_to_work_during_the_question() {
        let (lab, id) = one_change();
        let terminal = Terminal::open(&lab);
        terminal.type_keys(&format!("\"$SEGNO\" undo --session {id}{ENTER}"));
        terminal.wait_for(0, "[y/N]");
        let script = patient(&lab);
        let live = lab.start(&["run", "--", "sh", "-c", &script], None);
        begun(&lab);
        terminal.type_keys(&format!("y{ENTER}"));
        assert_eq!(terminal.exit_code(), 7);
        assert_eq!(read(&lab, "a.txt").as_deref(), Some("agent\n"));
        let_go(&lab);
        ok(live.finish());
    }
);

promise!(
    /// What changed while somebody thought is shown, and asked about again.
    fn what_changed_during_the_question_is_asked_about_again() {
        let lab = Lab::new();
        write(&lab, "a.txt", "old\n");
        write(&lab, "b.txt", "old\n");
        ok(lab.run(&["run", "--", "sh", "-c", "echo agent > a.txt; echo agent > b.txt"]));
        let terminal = Terminal::open(&lab);
        terminal.type_keys(&format!("\"$SEGNO\" undo{ENTER}"));
        terminal.wait_for(0, "[y/N]");
        write(&lab, "b.txt", "mine\n");
        let place = terminal.place();
        terminal.type_keys(&format!("y{ENTER}"));
        terminal.wait_for(place, "changed while you were asked");
        terminal.wait_for(place, "[y/N]");
        assert_eq!(read(&lab, "a.txt").as_deref(), Some("agent\n"), "nothing is done yet");
        terminal.type_keys(&format!("y{ENTER}"));
        assert_eq!(terminal.exit_code(), 0);
        assert_eq!(read(&lab, "a.txt").as_deref(), Some("old\n"));
        assert_eq!(read(&lab, "b.txt").as_deref(), Some("mine\n"));
    }
);

/// A world in which checkpoints hold files.
fn world() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("SEGNO_CHECKPOINT_FILES", "true");
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    env
}

promise!(
    /// Without a terminal going back needs a yes, as removing does.
    fn going_back_without_a_terminal_needs_a_yes() {
        let env = world();
        env.write("project/a.txt", "old\n");
        env.start(&["shop"]);
        env.ok(&["checkpoint", "create", "first"]);
        env.ok(&["run", "--session", "last", "--", "sh", "-c", "echo agent > a.txt"]);
        for args in
            [&["undo"][..], &["undo", "--json"], &["checkpoint", "restore", "first"], &["rollback", "first"]]
        {
            let said = env.run(args);
            assert_eq!(said.code, 14, "{args:?}: {}", said.stderr);
            assert!(said.stderr.contains("--yes") || said.stdout.contains("--yes"), "{args:?}");
            assert_eq!(env.read("project/a.txt"), "agent\n", "{args:?}");
        }
        env.ok(&["undo", "--yes"]);
        assert_eq!(env.read("project/a.txt"), "old\n");
    }
);

promise!(
    /// Without a name an undo means the session of the last run, whatever else is open and was touched since, and says so.
    fn an_undo_means_the_last_run() {
        let env = world();
        env.write("project/a.txt", "old\n");
        env.ok(&["run", "--", "sh", "-c", "echo agent > a.txt"]);
        for topic in ["one", "two"] {
            env.start(&[topic, "--parallel"]);
        }
        let diff = env.run(&["diff", "--stat"]);
        assert!(diff.stdout.contains("a.txt"), "{}{}", diff.stdout, diff.stderr);
        assert!(diff.stderr.contains("to now"), "{}", diff.stderr);
        let undo = env.run(&["undo", "--yes"]);
        assert_eq!(undo.code, 0, "{}", undo.stderr);
        assert_eq!(env.read("project/a.txt"), "old\n");
        assert!(undo.stderr.contains("echo agent > a.txt"), "it names what it took: {}", undo.stderr);
        assert!(undo.stderr.contains("2 others are open"), "{}", undo.stderr);
    }
);

promise!(
    /// Whoever only looks means the session in which something happened last; of several open ones none is ended unasked.
    fn several_open_sessions_do_not_stop_commands() {
        let env = world();
        let one = env.start(&["one"]);
        let two = env.start(&["two", "--parallel"]);
        let topic = |args: &[&str]| env.json(args)["session"]["topic"].clone();
        assert_eq!(topic(&["show"]), "two");
        let noted = env.run(&["note", "to whom?"]);
        assert_eq!(noted.code, 0, "{}", noted.stderr);
        assert!(noted.stderr.contains("two") && noted.stderr.contains("another is open"), "{}", noted.stderr);
        env.ok(&["note", "to this one", "--session", &one]);
        assert_eq!(topic(&["show"]), "one");
        for ends in ["complete", "abort", "fail"] {
            let said = env.run(&[ends]);
            assert_eq!(said.code, 4, "{ends}: {}", said.stderr);
        }
        // What is said of the session is true of the one that is changed.
        env.ok(&["abort", &env.start(&["three", "--parallel"])]);
        let extended = env.run(&["budget", "extend", "1k"]);
        assert!(extended.stderr.contains("one") && !extended.stderr.contains("three"), "{}", extended.stderr);
        assert_eq!(env.json(&["budget", "--session", &one])["tokens"]["total_budget"], 101_000);
        // Both wait, as after two runs at the terminal.
        env.ok(&["pause", &one]);
        env.ok(&["pause", &two]);
        assert_eq!(topic(&["show"]), "two");
        assert_eq!(env.run(&["note", "still no refusal"]).code, 0);
    }
);

promise!(
    /// The id of a session is no path: an undo says how it is meant.
    fn an_id_is_not_taken_for_a_path() {
        let env = world();
        env.write("project/a.txt", "old\n");
        env.ok(&["run", "--", "sh", "-c", "echo agent > a.txt"]);
        let id = env.json(&["show", "last"])["session"]["session_id"].as_str().unwrap().to_owned();
        let tail = &id[id.len() - 6..];
        for command in ["undo", "diff"] {
            let said = env.run(&[command, tail]);
            assert_eq!(said.code, 2, "{}", said.stderr);
            assert!(said.stderr.contains(&format!("segno {command} --session {tail}")), "{}", said.stderr);
        }
        assert_eq!(env.read("project/a.txt"), "agent\n");
    }
);

promise!(
    /// An ignored file that came to be tracked was there before: an undo leaves it.
    fn an_ignored_file_that_is_tracked_now_is_not_removed() {
        let env = world();
        env.write("project/.gitignore", ".env\n.segno/\n");
        env.write("project/.env", "SECRET=1\n");
        env.shell("git init -q && git add .gitignore");
        env.ok(&["run", "--", "sh", "-c", "git add -f .env; echo new > made"]);
        env.ok(&["undo", "--yes"]);
        assert_eq!(env.read("project/.env"), "SECRET=1\n");
        assert!(!env.path("project/made").exists());
    }
);

promise!(
    /// A run whose last line has no end can be undone like any other.
    fn a_run_without_a_last_newline_can_be_undone() {
        let env = world();
        env.write("project/a.txt", "base\n");
        assert_eq!(env.run(&["run", "--", "sh", "-c", "echo agent > a.txt; printf hi; exit 3"]).code, 20);
        env.ok(&["undo", "--yes"]);
        assert_eq!(env.read("project/a.txt"), "base\n");
    }
);

promise!(
    /// Going on from a checkpoint after a crash leaves what a person did since.
    fn a_resume_from_a_checkpoint_leaves_what_a_person_made_since() {
        let mut lab = Lab::new();
        write(&lab, "a.txt", "old\n");
        let init = segno_testkit::lines::claude::init("${session}");
        let bash = json!({ "type": "assistant", "session_id": "${session}", "message": { "id": "m1", "content": [
            { "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "sh work.sh" } } ] } });
        let ready = lab.path("ready");
        let known = lab.path("known");
        lab.stand_in(
            "claude",
            &[
                Step::Stdin(0),
                Step::Json(init),
                Step::Json(bash),
                Step::WaitFor { path: known.clone(), seconds: 60 },
                put("a.txt", "agent\n"),
                // Heard of while the call is open: it wrote before that.
                Step::Json(segno_testkit::lines::claude::text("${session}", "it is at work")),
                put(&ready, ""),
                Step::SleepMs(60_000),
            ],
        );
        let live = lab.start(&["run", "--agent", "claude", "--prompt", "work"], None);
        let run = lab.running();
        until("the call is recorded", || {
            (lab.state()["calls"]["open"].as_object()?.len() == 1).then_some(())
        });
        std::fs::write(&known, "").unwrap();
        until("the agent works", || std::fs::exists(&ready).unwrap().then_some(()));
        until("that is recorded", || (!lab.journal(Some("said")).is_empty()).then_some(()));
        let pid = u32::try_from(run["pid"].as_u64().unwrap()).unwrap();
        live.signal(rustix::process::Signal::KILL);
        crate::lab::signal(pid, rustix::process::Signal::KILL);
        drop(live);
        lab.assert_no_process_left();
        write(&lab, "mine.txt", "mine\n");
        lab.stand_in("claude", &[Step::Exit(0)]);
        let said = lab.run(&["resume", "--from", "checkpoint"]);
        assert_eq!(read(&lab, "a.txt").as_deref(), Some("old\n"), "it went back: {}", said.stderr);
        assert_eq!(read(&lab, "mine.txt").as_deref(), Some("mine\n"));
    }
);

promise!(
    /// The patterns of risky commands can all be used by the program as it is shipped, which has fewer parts of the
    /// pattern library than tests have.
    fn the_shipped_program_has_what_its_patterns_need() {
        let cargo = crate::lab::variable("CARGO").unwrap_or_else(|| "cargo".to_owned());
        let tree = crate::lab::program(cargo)
            .args(["tree", "--offline", "--locked", "-p", "segno", "-e", "normal", "--prefix", "none"])
            .args(["-f", "{p} {f}"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        let tree = String::from_utf8(tree.stdout).unwrap();
        let regex = tree.lines().find(|line| line.starts_with("regex v")).unwrap_or_else(|| panic!("{tree}"));
        assert!(regex.contains("unicode-case") && regex.contains("unicode-perl"), "{regex}");
    }
);

promise!(
    /// A pattern that is none is refused, and found by whoever looks.
    fn a_pattern_that_is_none_is_refused() {
        let env = world();
        let said = env.run(&["config", "set", "checkpoint.risky", "[\"(broken\"]"]);
        assert!(said.code != 0 && said.stderr.contains("no pattern"), "{}", said.stderr);
        env.write("config/segno/config.toml", "[checkpoint]\nrisky = [\"(broken\"]\n");
        let said = env.run(&["doctor"]);
        let all = format!("{}{}", said.stdout, said.stderr);
        assert!(all.contains("checkpoint.risky"), "{all}");
    }
);

promise!(
    /// A session with few checkpoints left can still undo its last turn, and an aborted one keeps as many as were asked
    /// for.
    fn a_thinned_session_undoes_its_last_turn() {
        let mut env = world();
        env.set("SEGNO_CHECKPOINT_MAX", "3");
        env.set("SEGNO_CHECKPOINT_KEEP_ON_FAILURE", "1");
        env.write("project/a.txt", "old\n");
        let id = env.start(&["shop"]);
        let make = format!("{} --session {id} checkpoint create", crate::common::SEGNO);
        let script = format!("for i in 1 2 3 4 5 6; do echo $i > a.txt; {make}; done");
        env.ok(&["run", "--session", &id, "--", "sh", "-c", &script]);
        env.ok(&["undo", "--yes"]);
        assert_eq!(env.read("project/a.txt"), "old\n");
        let ready = || -> Vec<String> {
            let mut rows = env.json(&["checkpoint", "list", "--session", &id, "--limit", "100"]);
            let rows = rows["items"].as_array_mut().unwrap().split_off(0);
            let is_kept = |row: &Value| row["ready"] == true && row["dropped"] != true;
            let kept = rows.into_iter().filter(is_kept);
            kept.map(|row| row["reason"].as_str().unwrap().to_owned()).collect()
        };
        // The newest three, and the one that the last turn began with.
        assert_eq!(ready(), ["run_start", "asked", "run_end", "before_restore"]);
        env.ok(&["abort"]);
        env.ok(&["checkpoint", "gc", "--session", &id]);
        // Where the tree is, and what a redo would need.
        assert_eq!(ready(), ["run_start", "run_end"]);
    }
);

promise!(
    /// A checkpoint that could not take the files in is tried again when it is asked for again.
    fn a_failed_checkpoint_is_tried_again() {
        let mut env = world();
        env.write("project/a.txt", "old\n");
        env.start(&["shop"]);
        env.set("PATH", "/nowhere");
        assert_ne!(env.run(&["checkpoint", "create", "x", "--key", "K"]).code, 0);
        env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
        env.ok(&["checkpoint", "create", "x", "--key", "K"]);
        assert_eq!(env.json(&["checkpoint", "show", "x"])["checkpoint"]["ready"], true);
    }
);

promise!(
    /// An error of the disk on the way is an error, names the file, and nothing of it stays in the tree.
    fn a_disk_error_on_the_way_is_an_error_and_is_taken_back() {
        let env = world();
        for number in 0..8 {
            env.write(&format!("project/f{number}"), "old\n");
        }
        env.start(&["shop"]);
        env.ok(&["checkpoint", "create", "first"]);
        for number in 0..8 {
            env.write(&format!("project/f{number}"), "new\n");
        }
        let restore = |fault: &str| {
            let inject = format!("inject=renameat2:error=EDQUOT:{fault}");
            let mut command = env.command("/usr/bin/strace");
            command.args(["-f", "-qq", "-o", "/dev/null", "-e", &inject, crate::common::SEGNO]);
            let said = command.args(["checkpoint", "restore", "first", "--yes"]).output().ok()?;
            assert!(!said.status.success());
            Some(String::from_utf8_lossy(&said.stderr).into_owned())
        };
        let all_new = |said: &str| {
            for number in 0..8 {
                assert_eq!(env.read(&format!("project/f{number}")), "new\n", "{said}");
            }
            let entries = std::fs::read_dir(env.path("project")).unwrap().flatten();
            let names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
            assert!(!names.iter().any(|name| name.starts_with(".segno-tmp")), "{names:?}");
        };
        let Some(said) = restore("when=4") else { return crate::lab::skip("strace cannot be used here") };
        assert!(said.contains("Disk quota exceeded") && said.contains("taken back"), "{said}");
        all_new(&said);
        // The way back fails too: it says so, and what to type.
        let said = restore("when=4..6").unwrap();
        assert!(said.contains("stopped half-way") && said.contains("--take-back"), "{said}");
        env.ok(&["checkpoint", "pending", "--take-back"]);
        all_new(&said);
        env.ok(&["checkpoint", "restore", "first", "--yes"]);
        assert_eq!(env.read("project/f7"), "old\n");
    }
);

promise!(
    /// Another project at the same place does not get the files of the one that was there before.
    fn another_project_at_the_same_place_is_left_alone() {
        let lab = Lab::new();
        let work = lab.home.work().to_owned();
        std::fs::write(work.join("a.txt"), "first project\n").unwrap();
        assert_eq!(lab.run(&["run", "--", "sh", "-c", "echo agent >a.txt"]).code, Some(0));
        std::fs::rename(&work, work.with_extension("moved")).unwrap();
        std::fs::create_dir(&work).unwrap();
        std::fs::write(work.join("b.txt"), "second project\n").unwrap();
        let said = lab.run(&["checkpoint", "restore", "1", "--session", "last", "--yes"]);
        assert_eq!(said.code, Some(5), "{}", said.stderr);
        assert!(said.stderr.contains("segno checkpoint claim --session"), "{}", said.stderr);
        assert_eq!(std::fs::read_to_string(work.join("b.txt")).unwrap(), "second project\n");
        assert!(!work.join("a.txt").exists());
        // It has snapshots of its own.
        ok(lab.run(&["run", "--", "sh", "-c", "echo agent >b.txt"]));
        ok(lab.run(&["undo", "--session", "last", "--yes"]));
        assert_eq!(read(&lab, "b.txt").as_deref(), Some("second project\n"));
        assert!(!work.join("a.txt").exists());
    }
);

promise!(
    /// A project that was copied back, or that somebody says is the same, finds what was kept of it.
    fn the_same_project_in_another_directory_is_known() {
        let lab = Lab::new();
        let work = lab.home.work().to_owned();
        write(&lab, "a.txt", "old\n");
        ok(lab.run(&["run", "--", "sh", "-c", "echo agent >a.txt"]));
        // Copied back, with what segno keeps in it.
        let aside = work.with_extension("aside");
        std::fs::rename(&work, &aside).unwrap();
        let copied = crate::lab::program("cp").arg("-a").args([&aside, &work]).status().unwrap();
        assert!(copied.success());
        ok(lab.run(&["undo", "--yes"]));
        assert_eq!(read(&lab, "a.txt").as_deref(), Some("old\n"));
        // Without.
        std::fs::remove_dir_all(&work).unwrap();
        std::fs::create_dir(&work).unwrap();
        assert_eq!(lab.run(&["checkpoint", "restore", "1", "--session", "last", "--yes"]).code, Some(5));
        ok(lab.run(&["checkpoint", "claim", "--session", "last"]));
        ok(lab.run(&["checkpoint", "restore", "1", "--session", "last", "--yes"]));
        assert_eq!(read(&lab, "a.txt").as_deref(), Some("old\n"));
    }
);

promise!(
    /// What a person wrote between two runs of a session is not taken for the first one's.
    fn a_file_made_between_two_runs_stays() {
        let lab = Lab::new();
        write(&lab, "base.txt", "old\n");
        let id = ok(lab.run(&["new", "t", "--quiet"])).text().trim().to_owned();
        ok(lab.run(&["run", "--session", &id, "--", "sh", "-c", "echo s > one.txt"]));
        write(&lab, "person.txt", "mine\n");
        write(&lab, "base.txt", "mine\n");
        ok(lab.run(&["run", "--session", &id, "--", "sh", "-c", "echo s > two.txt"]));
        let undone = lab.json(&["undo", "--turns", "2", "--session", &id, "--yes"]);
        assert_eq!((read(&lab, "one.txt"), read(&lab, "two.txt")), (None, None), "{undone}");
        assert_eq!(read(&lab, "person.txt").as_deref(), Some("mine\n"), "{undone}");
        assert_eq!(read(&lab, "base.txt").as_deref(), Some("mine\n"), "{undone}");
    }
);

promise!(
    /// What a person does to a file right after the agent's call wrote it is not taken back unless somebody says so.
    fn an_edit_right_after_a_call_of_the_same_file_is_left() {
        let steps = |lab: &Lab| {
            vec![
                call("c1", "Write", json!({ "file_path": "named.txt" })),
                put("named.txt", "agent\n"),
                done("c1"),
                held(lab, "one"),
                Step::Json(json!({ "type": "bye" })),
            ]
        };
        let story = Story::begin(steps, &["named.txt"]);
        story.wait_for_end("c1");
        write(&story.lab, "named.txt", "agent\nmine\n");
        story.go("one");
        let lab = story.end();
        let undone = lab.json(&["undo", "--yes"]);
        assert_eq!(read(&lab, "named.txt").as_deref(), Some("agent\nmine\n"), "{undone}");
        assert_eq!(undone["kept"][0]["path"], "named.txt", "{undone}");
    }
);

promise!(
    /// A project inside another one is the same tree: nobody goes back around an agent that works in it.
    fn nothing_is_undone_around_an_agent_in_a_project_inside() {
        let lab = Lab::new();
        write(&lab, "a.txt", "old\n");
        write(&lab, "sub/b.txt", "old\n");
        let sub = lab.home.work().join("sub").to_str().unwrap().to_owned();
        ok(lab.run(&["--project", &sub, "new", "inner"]));
        ok(lab.run(&["run", "--", "sh", "-c", "echo agent > a.txt"]));
        let id = session_of(&lab, "plain");
        let script = patient(&lab);
        let live =
            lab.start(&["--project", &sub, "run", "--session", "last", "--", "sh", "-c", &script], None);
        until("the command has begun", || std::fs::exists(lab.path("ready")).unwrap().then_some(()));
        let said = lab.run(&["undo", "--session", &id, "--yes"]);
        assert_eq!(
            (said.code, read(&lab, "a.txt").as_deref()),
            (Some(7), Some("agent\n")),
            "{}",
            said.stderr
        );
        let_go(&lab);
        ok(live.finish());
        ok(lab.run(&["undo", "--session", &id, "--yes"]));
        assert_eq!(read(&lab, "a.txt").as_deref(), Some("old\n"));
    }
);
