//! Going on: every flag does what it says for every kind of session, or is refused.

use segno_testkit::lines::claude;
use segno_testkit::lines::codex;
use segno_testkit::scripted::SignalName;
use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::until;
use crate::setup::git;
use crate::setup::ok;
use crate::terminal::CTRL_C;
use crate::terminal::ENTER;
use crate::terminal::Terminal;

/// The end of input.
const CTRL_D: &str = "\u{4}";

/// An agent that dies unless it is told that it is resuming.
fn comes_back() -> Vec<Step> {
    let ends = vec![Step::Json(claude::result("${session}", "done")), Step::Exit(0)];
    vec![
        Step::Stdin(0),
        Step::Json(claude::init("${session}")),
        Step::IfStdin { matches: "You are resuming".to_owned(), steps: ends },
        Step::Json(claude::tool_use("${session}", "toolu_1", "Bash", json!({ "command": "make" }))),
        Step::Kill(SignalName::Kill),
    ]
}

/// A lab with a session whose agent died.
fn interrupted() -> Lab {
    let mut lab = Lab::new();
    lab.stand_in("claude", &comes_back());
    lab.run(&["run", "--no-hooks", "--prompt", "go"]);
    assert_eq!(lab.state()["status"], "interrupted");
    lab
}

/// From now on the agent does what it is told; answers with what that was, each time.
fn finishes(lab: &mut Lab) -> impl Fn(&Lab) -> Vec<String> + use<> {
    let records = lab.path("records");
    lab.stand_in(
        "claude",
        &[
            Step::Stdin(0),
            Step::Record(records.clone()),
            Step::Json(claude::init("${session}")),
            Step::Json(claude::result("${session}", "done")),
        ],
    );
    move |_| {
        let files = std::fs::read_dir(&records).into_iter().flatten().flatten();
        let read = |path| serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap();
        files.map(|file| read(file.path())["stdin"].as_str().unwrap().trim().to_owned()).collect()
    }
}

fn statuses(lab: &Lab) -> Vec<String> {
    let sessions = lab.json(&["ls", "--all"])["sessions"].take();
    let word = |session: &Value| session["status"].as_str().unwrap().to_owned();
    sessions.as_array().unwrap().iter().map(word).collect()
}

promise!(
    /// A checkpoint that does not exist is refused, whatever kind of session it is and whether an agent is started.
    fn an_unknown_checkpoint_is_refused_everywhere() {
        let lab = interrupted();
        for args in [
            &["resume", "last", "--checkpoint", "nosuch"][..],
            &["resume", "last", "--checkpoint", "nosuch", "--no-run"],
        ] {
            assert_ne!(lab.run(args).code, Some(0), "{args:?}");
            assert_eq!(lab.state()["status"], "interrupted");
        }
        ok(&lab, &["abort", "last"]);
        ok(&lab, &["new", "by hand"]);
        ok(&lab, &["pause"]);
        assert_ne!(lab.run(&["resume", "last", "--checkpoint", "nosuch"]).code, Some(0));
        assert_eq!(lab.state()["status"], "paused");
        ok(&lab, &["abort", "last"]);
        lab.run(&["run", "--", "sh", "-c", "kill -9 $$"]);
        assert_ne!(lab.run(&["resume", "last", "--checkpoint", "nosuch"]).code, Some(0));
        assert_eq!(lab.state()["status"], "interrupted");
    }
);

promise!(
    /// `--from checkpoint` takes state and files of a session made by hand back, and `--from fresh` begins another one.
    fn from_works_for_sessions_made_by_hand() {
        let lab = Lab::new();
        ok(&lab, &["new", "by hand", "--phases", "red,green,blue"]);
        ok(&lab, &["checkpoint", "create", "early"]);
        ok(&lab, &["phase", "green"]);
        std::fs::write(lab.home.work().join("later.txt"), "x").unwrap();
        ok(&lab, &["pause"]);
        ok(&lab, &["resume", "last", "--checkpoint", "early"]);
        let state = lab.state();
        assert_eq!((&state["status"], &state["phase"]), (&json!("active"), &json!("red")), "{state}");
        ok(&lab, &["pause"]);
        let old = lab.state()["session_id"].clone();
        ok(&lab, &["resume", "last", "--from", "fresh"]);
        let new = lab.state();
        assert_eq!((&new["continues"], &new["status"]), (&old, &json!("active")));
        assert_eq!(new["workflow"]["phases"], json!(["red", "green", "blue"]));
        assert_eq!(statuses(&lab).iter().filter(|status| *status == "aborted").count(), 1);
    }
);

promise!(
    /// `[n]` begins a new session and leaves the waiting one as it is; `[a]` gives the waiting one up.
    fn panel_keys_do_what_they_say() {
        let mut lab = interrupted();
        let told = finishes(&mut lab);
        let terminal = Terminal::open(&lab);
        let place = terminal.place();
        terminal.type_keys(&format!("$SEGNO resume last{ENTER}"));
        terminal.wait_for(place, "[n]");
        terminal.type_keys(&format!("n{ENTER}"));
        assert_eq!(terminal.exit_code(), 0);
        let after = statuses(&lab);
        assert_eq!(after.iter().filter(|status| *status == "interrupted").count(), 1, "{after:?}");
        assert_eq!(after.len(), 2, "{after:?}");
        assert!(after.contains(&"completed".to_owned()), "the agent worked in the new one: {after:?}");
        assert_eq!(told(&lab), ["go"], "with the same task");
        let place = terminal.place();
        let waiting = lab.json(&["ls", "--status", "interrupted"])["sessions"][0]["session_id"].clone();
        let waiting = waiting.as_str().unwrap();
        terminal.type_keys(&format!("$SEGNO resume {waiting}{ENTER}"));
        terminal.wait_for(place, "[a]");
        terminal.type_keys(&format!("a{ENTER}"));
        assert_eq!(terminal.exit_code(), 0);
        assert_eq!(lab.json(&["show", waiting])["session"]["status"], "aborted");
    }
);

promise!(
    /// The panel is there for sessions made by hand, is as wide as the terminal, and Ctrl-C is an answer: exit code 14.
    fn the_panel_fits_and_ctrl_c_is_an_answer() {
        let lab = Lab::new();
        let topic =
            "a topic that is rather long so that it would not fit into eighty columns at all but does here";
        ok(&lab, &["new", topic]);
        ok(&lab, &["pause"]);
        let terminal = Terminal::open(&lab);
        terminal.resize(160, 40);
        let place = terminal.place();
        terminal.type_keys(&format!("$SEGNO resume last{ENTER}"));
        terminal.wait_for(place, "[n]");
        assert!(terminal.since(place).contains("but does here"), "{}", terminal.since(place));
        terminal.type_keys(CTRL_C);
        assert_eq!(terminal.exit_code(), 14);
        assert_eq!(lab.state()["status"], "paused");
    }
);

promise!(
    /// A slip of the finger at a panel is asked again, and does nothing.
    fn a_wrong_key_at_the_panel_is_asked_again() {
        let lab = Lab::new();
        ok(&lab, &["new", "one"]);
        ok(&lab, &["pause"]);
        let terminal = Terminal::open(&lab);
        let place = terminal.place();
        terminal.type_keys(&format!("$SEGNO resume last{ENTER}"));
        terminal.wait_for(place, "[n]");
        terminal.type_keys(&format!("7{ENTER}"));
        terminal.wait_for(place, "that is not one of the answers");
        assert_eq!(lab.state()["status"], "paused");
        terminal.type_keys(&format!("q{ENTER}"));
        assert_eq!(terminal.exit_code(), 14);
        assert_eq!(lab.state()["status"], "paused");
    }
);

promise!(
    /// The end of input at a panel is no Enter: nothing is done, and no agent starts.
    fn end_of_input_at_the_panel_is_no_yes() {
        let mut lab = interrupted();
        let told = finishes(&mut lab);
        let before = lab.state();
        let terminal = Terminal::open(&lab);
        let place = terminal.place();
        terminal.type_keys(&format!("$SEGNO resume last{ENTER}"));
        terminal.wait_for(place, "[n]");
        terminal.type_keys(CTRL_D);
        assert_eq!(terminal.exit_code(), 14);
        assert!(terminal.since(place).contains("nothing was done"), "{}", terminal.since(place));
        // At the question before a run it is no "not now" either.
        let place = terminal.place();
        terminal.type_keys(&format!("$SEGNO run --prompt else{ENTER}"));
        terminal.wait_for(place, "what becomes of it?");
        terminal.type_keys(CTRL_D);
        assert_eq!(terminal.exit_code(), 14);
        assert_eq!((lab.state(), told(&lab)), (before, Vec::new()));
    }
);

promise!(
    /// Nothing is said, recorded or brought back for an agent that is not there any more.
    fn an_agent_that_is_gone_is_said_before_anything_is_done() {
        let mut lab = interrupted();
        lab.env.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        let before = lab.state();
        for more in [&[][..], &["--from", "checkpoint"], &["--from", "fresh"]] {
            let said = lab.run(&[&["resume", "last"], more].concat());
            assert_eq!(said.code, Some(27), "{more:?}: {}", said.stderr);
            let told = said.text() + &said.stderr;
            assert!(!told.contains("resumed") && !told.contains("restored"), "{more:?}: {told}");
            assert_eq!(
                (lab.state(), statuses(&lab)),
                (before.clone(), vec!["interrupted".to_owned()]),
                "{more:?}"
            );
        }
    }
);

promise!(
    /// On a narrow terminal the panel gets longer, and says all of what each choice costs.
    fn a_narrow_panel_says_what_each_choice_costs() {
        let lab = Lab::new();
        lab.run(&["run", "--", "sh", "-c", "echo x > made.txt; kill -9 $$"]);
        let terminal = Terminal::open(&lab);
        for columns in [40, 44, 62] {
            terminal.resize(columns, 40);
            let place = terminal.place();
            terminal.type_keys(&format!("$SEGNO --color never resume last{ENTER}"));
            terminal.wait_for(place, "[q] nothing");
            terminal.wait_for(place, "┘");
            let shown = terminal.since(place);
            let panel: Vec<&str> = shown.lines().filter(|line| line.starts_with(['┌', '│', '└'])).collect();
            let said = panel.iter().map(|line| line.trim_matches(['│', ' '])).collect::<Vec<_>>().join(" ");
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            for words in [
                "loses changes to 1 file",
                "loses nothing recommended",
                "gives this session up; its record stays",
                "[n] new session",
                "[a] abort this one",
            ] {
                assert!(said.contains(words), "{words} at {columns}:\n{}", panel.join("\n"));
            }
            for line in panel {
                assert!(unicode_width::UnicodeWidthStr::width(line) <= usize::from(columns), "{line}");
            }
            terminal.type_keys(&format!("q{ENTER}"));
            assert_eq!(terminal.exit_code(), 14);
        }
    }
);

promise!(
    /// What going back loses counts the files that changed, also those of a plain command.
    fn costs_count_files() {
        let lab = Lab::new();
        lab.run(&["run", "--", "sh", "-c", "echo x > made.txt; kill -9 $$"]);
        assert!(lab.home.work().join("made.txt").exists());
        let options = lab.json(&["resume", "last", "--options"]);
        let ways = options["options"]["ways"].as_array().unwrap();
        let back = ways.iter().find(|way| way["recovery"] == "checkpoint").unwrap();
        assert!(back["loses"].as_str().unwrap().contains("1 file"), "{back}");
        assert_eq!(back["files_lost"], 1, "{back}");
    }
);

promise!(
    /// A session keeps its branch: it is shown, going on elsewhere is said, and `--checkout-branch` goes there.
    fn the_branch_is_kept() {
        let mut lab = Lab::new();
        lab.stand_in("claude", &comes_back());
        git(&lab, &["init", "-q", "-b", "main"]);
        std::fs::write(lab.home.work().join("a.txt"), "a").unwrap();
        git(&lab, &["add", "."]);
        git(&lab, &["commit", "-qm", "first"]);
        lab.run(&["run", "--no-hooks", "--prompt", "go", "--branch", "work"]);
        assert_eq!(git(&lab, &["branch", "--show-current"]), "work");
        git(&lab, &["checkout", "-q", "main"]);
        let shown = lab.json(&["show", "last"]);
        assert_eq!(
            (&shown["state"]["branch"], &shown["session"]["branch"]),
            (&json!("work"), &json!("work"))
        );
        assert!(lab.run(&["show", "last"]).text().contains("work"));
        let said = lab.run(&["resume", "last"]);
        assert_eq!(said.code, Some(5), "{}", said.stderr);
        assert!(said.stderr.contains("main") && said.stderr.contains("--checkout-branch"), "{}", said.stderr);
        assert_eq!(lab.journal(Some("run_started")).len(), 1);
        let said = lab.run(&["resume", "last", "--checkout-branch"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert_eq!(git(&lab, &["branch", "--show-current"]), "work");
        assert!(said.stderr.contains("branch work"), "the confirmation names it: {}", said.stderr);
    }
);

promise!(
    /// A rollback takes outputs, the current agent and tasks back with the rest of the plan.
    fn a_rollback_takes_outputs_and_agent_back() {
        let lab = Lab::new();
        ok(&lab, &["new", "t", "--phases", "red,green,blue"]);
        ok(&lab, &["agent", "switch", "writer"]);
        ok(&lab, &["output", "set", "plan", "first"]);
        ok(&lab, &["checkpoint", "create", "here"]);
        ok(&lab, &["agent", "switch", "tester"]);
        ok(&lab, &["output", "set", "code", "second"]);
        ok(&lab, &["output", "set", "plan", "changed since"]);
        ok(&lab, &["rollback", "here", "--yes"]);
        let state = lab.state();
        assert_eq!(state["agent"], "writer", "{state}");
        assert_eq!(state["outputs"].as_object().unwrap().keys().collect::<Vec<_>>(), ["plan"]);
        assert_eq!(lab.run(&["output", "get", "plan"]).text(), "first");
        let listed = lab.json(&["output", "list"]);
        let names: Vec<&str> =
            listed["items"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["plan"], "{listed}");
    }
);

promise!(
    /// `rollback step N` goes to the end of step N, where the document's checkpoint of that number stands.
    fn rollback_step_is_the_end_of_that_step() {
        let lab = Lab::new();
        ok(&lab, &["new", "t", "--phases", "red,green,blue"]);
        std::fs::write(lab.home.work().join("red.txt"), "x").unwrap();
        ok(&lab, &["phase", "green"]);
        std::fs::write(lab.home.work().join("green.txt"), "x").unwrap();
        ok(&lab, &["phase", "blue"]);
        std::fs::write(lab.home.work().join("blue.txt"), "x").unwrap();
        ok(&lab, &["rollback", "step", "2", "--yes"]);
        let there = |name: &str| lab.home.work().join(name).exists();
        assert_eq!((there("red.txt"), there("green.txt"), there("blue.txt")), (true, true, false));
        ok(&lab, &["rollback", "step", "1", "--yes"]);
        assert_eq!((there("red.txt"), there("green.txt")), (true, false));
    }
);

promise!(
    /// A step that work jumped over is no place to go to, and the one before it ended when work left it.
    fn rollback_step_knows_steps_that_were_skipped() {
        let lab = Lab::new();
        ok(&lab, &["new", "t", "--phases", "red,green,blue,white"]);
        let write = |name: &str| std::fs::write(lab.home.work().join(name), "x").unwrap();
        write("red.txt");
        ok(&lab, &["phase", "green"]);
        ok(&lab, &["checkpoint", "create", "early"]);
        write("green.txt");
        ok(&lab, &["phase", "white"]);
        write("white.txt");
        let there = |name: &str| lab.home.work().join(name).exists();
        let skipped = lab.run(&["rollback", "step", "3", "--yes"]);
        assert_eq!(skipped.code, Some(5), "{}{}", skipped.text(), skipped.stderr);
        assert!(there("white.txt"));
        ok(&lab, &["rollback", "step", "2", "--yes"]);
        assert_eq!((there("red.txt"), there("green.txt"), there("white.txt")), (true, true, false));
        ok(&lab, &["rollback", "step", "1", "--yes"]);
        assert_eq!((there("red.txt"), there("green.txt")), (true, false));
    }
);

promise!(
    /// What `detect` offers, `resume` takes.
    fn what_detect_offers_resume_takes() {
        let lab = Lab::new();
        ok(&lab, &["new", "x"]);
        let offered = lab.json(&["detect"]);
        assert_eq!(offered["action"], "offer_resume");
        ok(&lab, &["resume"]);
        assert_eq!(lab.state()["status"], "active");
    }
);

promise!(
    /// Work that was completed is said to be so, also beside other open work; a name that cannot be kept is refused.
    fn detect_knows_completed_work_beside_open_work() {
        let mut lab = Lab::new();
        let ends = [
            Step::Stdin(0),
            Step::Json(claude::init("${session}")),
            Step::Json(claude::result("${session}", "done")),
        ];
        lab.stand_in("claude", &ends);
        std::fs::write(lab.home.work().join("task.md"), "do it").unwrap();
        ok(&lab, &["run", "--no-hooks", "--file", "task.md"]);
        ok(&lab, &["new", "other work"]);
        let found = lab.json(&["detect", "--file", "task.md"]);
        assert_eq!(found["reason"], "Session completed successfully", "{found}");
        assert_eq!(found["action"], "create_new");
        assert_eq!(lab.run(&["detect", "--file", "a\nb"]).code, Some(2));
    }
);

promise!(
    /// A start that fails leaves no active session behind, and a branch that cannot be made leaves none at all.
    fn a_failed_start_leaves_no_active_session() {
        let lab = Lab::new();
        let bad = lab.home.work().join("bad");
        std::fs::write(&bad, "#!/no/such/interpreter\n").unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&bad, std::fs::Permissions::from_mode(0o755)).unwrap();
        let said = lab.run(&["run", "--", bad.to_str().unwrap()]);
        assert_eq!(said.code, Some(27), "{}", said.stderr);
        assert_eq!(statuses(&lab), ["paused"]);
        let said = lab.run(&["run", "--branch", "a..b", "--", "true"]);
        assert_ne!(said.code, Some(0));
        assert_eq!(statuses(&lab), ["paused"], "no second session: {}", said.stderr);
    }
);

promise!(
    /// At a breakpoint work stops until somebody continues.
    fn a_breakpoint_stops() {
        let lab = Lab::new();
        ok(&lab, &["new", "t", "--phases", "red,green"]);
        ok(&lab, &["breakpoint", "wait", "review"]);
        let said = lab.run(&["phase", "green"]);
        assert_eq!(said.code, Some(5), "{}", said.stderr);
        assert!(said.stderr.contains("segno breakpoint continue"), "{}", said.stderr);
        assert_eq!(lab.run(&["run", "--session", "last", "--", "true"]).code, Some(5));
        ok(&lab, &["breakpoint", "continue"]);
        ok(&lab, &["phase", "green"]);
    }
);

promise!(
    /// A phase that the declared workflow does not have is refused; one without declared phases takes any.
    fn only_declared_phases() {
        let lab = Lab::new();
        ok(&lab, &["new", "t", "--phases", "red,green"]);
        let said = lab.run(&["phase", "purple"]);
        assert_eq!(said.code, Some(5), "{}", said.stderr);
        assert!(said.stderr.contains("red") && said.stderr.contains("green"), "{}", said.stderr);
        ok(&lab, &["complete"]);
        ok(&lab, &["new", "u"]);
        ok(&lab, &["phase", "purple"]);
    }
);

promise!(
    /// A phase that was left backwards, or that failed its check, has no tick.
    fn ticks_are_honest() {
        let lab = Lab::new();
        ok(&lab, &["new", "t", "--phases", "red,green,blue"]);
        ok(&lab, &["phase", "green"]);
        ok(&lab, &["phase", "red"]);
        assert_eq!(
            lab.state()["phases_completed"],
            Value::Null,
            "green was left backwards, red is being done"
        );
        ok(&lab, &["phase", "green", "--verify", "fail"]);
        assert_eq!(lab.state()["phases_completed"], Value::Null, "red failed its check");
        ok(&lab, &["phase", "blue", "--verify", "pass"]);
        assert_eq!(lab.state()["phases_completed"], json!(["green"]));
    }
);

promise!(
    /// `complete` says what is still open, how long it took and what the metrics are.
    fn complete_says_what_is_open_and_what_came_of_it() {
        let lab = Lab::new();
        ok(&lab, &["new", "t", "--phases", "red,green,blue"]);
        ok(&lab, &["task", "add", "write the tests"]);
        ok(&lab, &["metric", "set", "coverage", "81"]);
        let said = ok(&lab, &["complete"]);
        assert!(said.stderr.contains("1 task") && said.stderr.contains("open"), "{}", said.stderr);
        assert!(said.stderr.contains("step 1 of 3") || said.stderr.contains("1/3"), "{}", said.stderr);
        assert!(said.stderr.contains("coverage 81"), "{}", said.stderr);
        assert!(said.stderr.contains("took"), "{}", said.stderr);
    }
);

promise!(
    /// A resume ends in a confirmation that names what was restored.
    fn a_resume_confirms_what_it_restored() {
        let lab = Lab::new();
        ok(&lab, &["new", "login", "--phases", "red,green"]);
        ok(&lab, &["phase", "green"]);
        ok(&lab, &["output", "set", "plan", "text"]);
        ok(&lab, &["metric", "set", "coverage", "81"]);
        ok(&lab, &["pause"]);
        let said = ok(&lab, &["resume"]);
        for word in ["login", "green", "2", "plan", "coverage 81"] {
            assert!(said.stderr.contains(word), "{word}: {}", said.stderr);
        }
    }
);

promise!(
    /// With one session that waits, nobody is told of a second one.
    fn only_those_that_wait_are_offered() {
        let lab = interrupted();
        let said = lab.run(&["run", "--", "true"]);
        assert!(said.stderr.contains("segno resume"), "{}", said.stderr);
        assert!(!said.stderr.contains("the second one"), "{}", said.stderr);
    }
);

promise!(
    /// After a pause and a resume, `show` does not advise any more how to take the session up.
    fn advice_ends_with_the_stop() {
        let lab = Lab::new();
        ok(&lab, &["new", "t"]);
        ok(&lab, &["pause"]);
        ok(&lab, &["resume"]);
        let shown = lab.run(&["show"]).text();
        assert!(!shown.contains("best taken up"), "{shown}");
        assert_eq!(lab.json(&["show"])["recovery"]["recovery_type"], "live");
    }
);

promise!(
    /// What a save was for is said: an agent switch, a breakpoint.
    fn the_trigger_of_a_save_is_named() {
        let lab = Lab::new();
        ok(&lab, &["new", "t"]);
        ok(&lab, &["agent", "switch", "writer"]);
        assert_eq!(lab.json(&["state", "--live"])["save_trigger"], "agent_switch");
        ok(&lab, &["breakpoint", "wait", "review"]);
        assert_eq!(lab.json(&["state", "--live"])["save_trigger"], "breakpoint");
    }
);

promise!(
    /// The work item and the work file are in the record and are shown; a session of a file has a topic.
    fn work_items_and_files_are_recorded() {
        let mut lab = Lab::new();
        lab.stand_in(
            "claude",
            &[
                Step::Stdin(0),
                Step::Json(claude::init("${session}")),
                Step::Json(claude::result("${session}", "done")),
            ],
        );
        lab.write("item.json", r#"{"id": "seg-7", "title": "Fix it", "description": "It breaks."}"#);
        ok(&lab, &["run", "--no-hooks", "--work-item", &lab.path("item.json")]);
        let shown = lab.json(&["show", "last"]);
        assert_eq!(shown["state"]["work_item"]["id"], "seg-7", "{shown}");
        assert_eq!(shown["session"]["work_item"], "seg-7");
        assert!(lab.run(&["show", "last"]).text().contains("seg-7"));
        std::fs::write(lab.home.work().join("task.md"), "# Login form\n\ndo it").unwrap();
        ok(&lab, &["run", "--no-hooks", "--file", "task.md"]);
        let shown = lab.json(&["show", "last"]);
        assert_eq!(shown["session"]["topic"], "Login form", "{shown}");
        assert_eq!(shown["session"]["file"], "task.md");
        assert!(lab.run(&["show", "last"]).text().contains("task.md"));
    }
);

promise!(
    /// Of several work items the one is taken that is most urgent and not done.
    fn the_most_urgent_open_work_item_is_taken() {
        let mut lab = Lab::new();
        lab.stand_in(
            "claude",
            &[
                Step::Stdin(0),
                Step::Json(claude::init("${session}")),
                Step::Json(claude::result("${session}", "done")),
            ],
        );
        let items = r#"[
            {"id": "a-1", "title": "closed", "status": "closed", "priority": 0, "created_at": "2026-01-01T00:00:00Z"},
            {"id": "a-2", "title": "an epic", "status": "open", "priority": 0, "issue_type": "epic"},
            {"id": "a-3", "title": "later", "status": "open", "priority": 2, "created_at": "2026-01-01T00:00:00Z"},
            {"id": "a-4", "title": "younger", "status": "open", "priority": 1, "created_at": "2026-01-03T00:00:00Z"},
            {"id": "a-5", "title": "this one", "status": "open", "priority": 1, "created_at": "2026-01-02T00:00:00Z"}
        ]"#;
        lab.write("items.json", items);
        ok(&lab, &["run", "--no-hooks", "--work-item", &lab.path("items.json")]);
        assert_eq!(lab.state()["topic"], "this one");
    }
);

promise!(
    /// An error is in the history, and in what is known of the last stop.
    fn an_error_is_in_history_and_recovery() {
        let lab = Lab::new();
        ok(&lab, &["new", "t"]);
        ok(&lab, &["error", "connection refused", "--kind", "network"]);
        let history = lab.json(&["history"])["items"].take();
        let rows = history.as_array().unwrap();
        assert!(rows.iter().any(|row| row["action"] == "error_recorded"), "{rows:?}");
        ok(&lab, &["pause"]);
        let known = lab.json(&["show"])["recovery"]["last_known_state"].take();
        assert_eq!(known["error"], "connection refused", "{known}");
    }
);

promise!(
    /// A note can name its action.
    fn a_note_can_name_its_action() {
        let lab = Lab::new();
        ok(&lab, &["new", "t"]);
        ok(&lab, &["note", "looked at it", "--action", "review"]);
        let history = lab.json(&["history"])["items"].take();
        let last = history.as_array().unwrap().iter().find(|row| row["action"] == "review");
        assert!(last.is_some(), "{history}");
    }
);

promise!(
    /// A session is resumed with the same words, whoever made it.
    fn one_way_to_say_resumed() {
        let lab = interrupted();
        let said = ok(&lab, &["resume", "last", "--no-run"]);
        assert!(said.stderr.contains("resumed") && said.stderr.contains("from live"), "{}", said.stderr);
        let (by_run, _) = said.stderr.split_once('\n').unwrap();
        let shape = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
        let by_run = shape(by_run);
        ok(&lab, &["abort", "last"]);
        ok(&lab, &["new", "t"]);
        ok(&lab, &["pause"]);
        let said = ok(&lab, &["resume"]);
        assert!(said.stderr.contains("from live"), "{}", said.stderr);
        assert_eq!(shape(said.stderr.lines().next().unwrap()), by_run);
    }
);

promise!(
    /// Another agent can take a session up: same session, same tree, with the brief.
    fn another_agent_takes_over() {
        let mut lab = Lab::new();
        lab.stand_in("claude", &comes_back());
        let records = lab.path("records");
        lab.stand_in(
            "codex",
            &[
                Step::Stdin(0),
                Step::Record(records.clone()),
                Step::Json(codex::thread_started("0190c0de-0000-7000-8000-000000000001")),
                Step::Json(codex::turn_started()),
                Step::Json(codex::message("item_0", "done")),
                Step::Json(codex::turn_completed()),
            ],
        );
        lab.run(&["run", "--no-hooks", "--prompt", "make it work"]);
        let session = lab.state()["session_id"].clone();
        let said = lab.run(&["resume", "last", "--agent", "codex"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert_eq!(lab.state()["session_id"], session);
        let runs = lab.json(&["show", "last", "--runs"])["items"].take();
        assert_eq!((&runs[0]["agent"], &runs[1]["agent"]), (&json!("claude"), &json!("codex")));
        let file = std::fs::read_dir(records).unwrap().next().unwrap().unwrap().path();
        let record: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let told = record["stdin"].as_str().unwrap();
        assert!(told.contains("make it work") && told.contains("IN DOUBT"), "{told}");
        let args: Vec<&str> = record["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(!args.contains(&"resume"), "a conversation of its own: {args:?}");
    }
);

promise!(
    /// `resume --all` takes up what was cut off, and leaves what was stopped on purpose.
    fn all_that_was_cut_off_is_taken_up() {
        let lab = interrupted();
        lab.run(&["run", "--no-hooks", "--prompt", "go again"]);
        ok(&lab, &["new", "by hand"]);
        ok(&lab, &["pause", "last", "--reason", "on purpose"]);
        let said = lab.run(&["resume", "--all", "--yes"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let completed = |after: &[String]| after.iter().filter(|status| *status == "completed").count();
        let after =
            until("both have come back", || Some(statuses(&lab)).filter(|after| completed(after) == 2));
        assert_eq!(after.iter().filter(|status| *status == "paused").count(), 1, "{after:?}");
        let again = lab.run(&["resume", "--all", "--yes"]);
        assert!(
            again.stderr.contains("there is no interrupted work that an agent could continue"),
            "{}",
            again.stderr
        );
    }
);

promise!(
    /// `[n]` begins anew for every kind of session: a plain command runs again, one made by hand begins again.
    fn a_new_session_can_be_begun_from_the_panel_of_any_kind() {
        let lab = Lab::new();
        lab.run(&[
            "run",
            "--",
            "sh",
            "-c",
            "echo x >> ran.txt; [ -e again ] || { touch again; kill -9 $$; }",
        ]);
        assert_eq!(lab.state()["status"], "interrupted");
        let terminal = Terminal::open(&lab);
        let place = terminal.place();
        terminal.type_keys(&format!("$SEGNO resume last{ENTER}"));
        terminal.wait_for(place, "[n]");
        terminal.type_keys(&format!("n{ENTER}"));
        assert_eq!(terminal.exit_code(), 0);
        assert_eq!(std::fs::read_to_string(lab.home.work().join("ran.txt")).unwrap(), "x\nx\n");
        let mut all = statuses(&lab);
        all.sort();
        assert_eq!(all, ["completed", "interrupted"]);
    }
);

/// What `segno run` on a terminal says when it asks.
const ASKS: &str = "what becomes of it?";

/// Begins something new at a terminal where an interrupted session waits, and gives an answer. With what came of it.
fn asked(answer: &str) -> (Lab, Vec<String>) {
    let mut lab = interrupted();
    let _told = finishes(&mut lab);
    let terminal = Terminal::open(&lab);
    let place = terminal.place();
    terminal.type_keys(&format!("$SEGNO run --no-hooks --prompt new{ENTER}"));
    terminal.wait_for(place, ASKS);
    terminal.type_keys(&format!("{answer}{ENTER}"));
    assert_eq!(terminal.exit_code(), 0, "{}", terminal.since(place));
    let mut all = statuses(&lab);
    all.sort();
    (lab, all)
}

/// Whether it asks when something new is begun once more.
fn asks_again(lab: &Lab) -> bool {
    let terminal = Terminal::open(lab);
    let place = terminal.place();
    terminal.type_keys(&format!("$SEGNO run --no-hooks --prompt newer; echo over-$?{ENTER}"));
    let asks = until("it asks or it is over", || {
        let said = terminal.since(place);
        let is_over = said.lines().any(|line| line.starts_with("over-"));
        (said.contains(ASKS) || is_over).then(|| said.contains(ASKS))
    });
    if asks {
        terminal.type_keys(&format!("l{ENTER}"));
    }
    until("it is over", || terminal.since(place).lines().any(|line| line.starts_with("over-")).then_some(()));
    asks
}

promise!(
    /// Whoever begins something new where an interrupted session waits is asked what becomes of it.
    fn what_waits_is_asked_about_before_something_new_begins() {
        let (lab, all) = asked("r");
        assert_eq!(all, ["completed"], "it was resumed, and nothing else began");
        assert!(!asks_again(&lab));
        let (lab, all) = asked("n");
        assert_eq!(all, ["completed", "interrupted"]);
        assert!(asks_again(&lab), "it still waits");
        assert!(!asks_again(&lab), "not now is remembered");
        let (lab, all) = asked("a");
        assert_eq!(all, ["aborted", "completed"]);
        assert!(!asks_again(&lab));
        let (lab, all) = asked("l");
        assert_eq!(all, ["completed", "interrupted"]);
        assert!(!asks_again(&lab), "not now is remembered");
    }
);

promise!(
    /// Who does not want to be asked is not; nor is anybody without a terminal; and `new` asks, too.
    fn who_is_asked_about_what_waits() {
        let mut lab = interrupted();
        let _told = finishes(&mut lab);
        ok(&lab, &["run", "--no-hooks", "--prompt", "new"]);
        let terminal = Terminal::open(&lab);
        let place = terminal.place();
        terminal.type_keys(&format!("$SEGNO new something{ENTER}"));
        terminal.wait_for(place, ASKS);
        terminal.type_keys(&format!("n{ENTER}"));
        assert_eq!(terminal.exit_code(), 0, "{}", terminal.since(place));
        assert!(statuses(&lab).contains(&"active".to_owned()));
        ok(&lab, &["config", "set", "resume.ask", "false"]);
        assert!(!asks_again(&lab));
    }
);
