//! What everybody meets in the first minute.

use segno_testkit::lines::claude;
use segno_testkit::scripted::Step;

use crate::common::TestEnv;
use crate::lab::Lab;
use crate::terminal::ENTER;
use crate::terminal::Terminal;

promise!(
    /// Who looks after a run means that run, although it has ended.
    fn looking_means_the_last_session_when_none_is_open() {
        let lab = Lab::new();
        assert_eq!(lab.run(&["run", "--", "sh", "-c", "echo hello"]).code, Some(0));
        for args in [&["show"][..], &["log"], &["show", "--tools"], &["history"], &["state"], &["budget"]] {
            let said = lab.run(args);
            assert_eq!(said.code, Some(0), "{args:?}: {}", said.stderr);
        }
        // What changes something still wants to know which one.
        let said = lab.run(&["note", "x"]);
        assert_eq!(said.code, Some(3), "{}", said.stderr);
    }
);

promise!(
    /// A command means what it means where it is typed, and what it did there is taken back there.
    fn a_command_runs_where_it_is_typed() {
        let lab = Lab::new();
        let (root, sub) = (lab.home.work().to_owned(), lab.home.work().join("build/deep"));
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::create_dir_all(&sub).unwrap();
        for file in [root.join("keep.txt"), sub.join("old.txt")] {
            std::fs::write(file, "old").unwrap();
        }
        let there = |args: &[&str]| {
            let mut command = lab.segno(args);
            let said = lab.start_command(command.current_dir(&sub), None).finish();
            assert_eq!(said.code, Some(0), "{}", said.stderr);
            said
        };
        there(&["run", "--", "sh", "-c", "rm -f ./*.txt; pwd -P > here.log"]);
        assert_eq!(std::fs::read_to_string(root.join("keep.txt")).unwrap(), "old");
        assert!(!sub.join("old.txt").exists());
        let here = std::fs::read_to_string(sub.join("here.log")).unwrap();
        assert_eq!(std::path::Path::new(here.trim()), sub.canonicalize().unwrap());
        there(&["undo", "--yes"]);
        assert_eq!(std::fs::read_to_string(sub.join("old.txt")).unwrap(), "old");
        assert!(!sub.join("here.log").exists());
        // Outside of the project that is named there is no such place in it.
        let elsewhere = lab.path("");
        let mut command =
            lab.segno(&["run", "--project", root.to_str().unwrap(), "--", "sh", "-c", "pwd -P"]);
        let said = lab.start_command(command.current_dir(elsewhere), None).finish();
        assert_eq!(std::path::Path::new(said.text().trim()), root.canonicalize().unwrap());
    }
);

promise!(
    /// What a command cannot obey is refused, and what it does not get is said.
    fn a_command_says_what_it_does_not_take() {
        let lab = Lab::new();
        for (flag, value) in [("--model", "big"), ("--max-turns", "3")] {
            let said = lab.run(&["run", flag, value, "--", "true"]);
            let expected = format!("{flag} is for agents, not for a command");
            assert!(
                said.code == Some(2) && said.stderr.contains(&expected),
                "{:?} {}",
                said.code,
                said.stderr
            );
        }
        assert_eq!(lab.json(&["ls", "--all"])["total"], 0, "and no session was made for it");
        lab.write("input.txt", "something");
        let warns = |file: &str| {
            let mut command = lab.segno(&["run", "--", "cat"]);
            command.stdin(std::fs::File::open(file).unwrap());
            let said = command.output().unwrap();
            assert!(said.status.success());
            String::from_utf8(said.stderr).unwrap().contains("standard input is not passed on")
        };
        assert!(warns(&lab.path("input.txt")) && !warns("/dev/null"));
    }
);

promise!(
    /// `ls` shows a run that has just ended, below those that are open.
    fn a_list_shows_what_ended_last_below_what_is_open() {
        let lab = Lab::new();
        lab.run(&["new", "first", "-q"]);
        assert_eq!(lab.run(&["run", "--", "sh", "-c", "echo hello"]).code, Some(0));
        let listed = lab.json(&["ls"]);
        let rows: Vec<(&str, &str)> = listed["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["topic"].as_str().unwrap(), row["status"].as_str().unwrap()))
            .collect();
        assert_eq!(rows, [("first", "active"), ("sh -c echo hello", "completed")]);
        assert_eq!(lab.json(&["ls", "--open"])["total"], 1);
        assert!(lab.run(&["ls"]).text().contains("completed"));
    }
);

promise!(
    /// Other tools' words for a status are understood.
    fn statuses_of_other_tools_are_understood() {
        let env = TestEnv::new();
        env.start(&["x"]);
        for (word, count) in
            [("running", 1), ("created", 1), ("suspended", 0), ("crashed", 0), ("abandoned", 0)]
        {
            assert_eq!(env.json(&["ls", "--status", word])["total"], count, "{word}");
        }
    }
);

promise!(
    /// A run leaves `git status` as it was, and `git add -A` takes nothing of ours.
    fn a_run_leaves_git_status_as_it_was() {
        let lab = Lab::new();
        let git = |args: &[&str]| {
            let output = crate::lab::program("git")
                .args(["-c", "user.name=a", "-c", "user.email=a@b"])
                .args(args)
                .env_clear()
                .envs(&lab.env)
                .current_dir(lab.home.work())
                .output()
                .unwrap();
            assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "start"]);
        assert_eq!(lab.run(&["run", "--", "sh", "-c", "echo hello"]).code, Some(0));
        assert_eq!(git(&["status", "--porcelain"]), "");
        git(&["add", "-A"]);
        assert_eq!(git(&["diff", "--cached", "--name-only"]), "");
    }
);

promise!(
    /// The log tells what happened in words, not in JSON.
    fn the_log_is_told_in_words() {
        let env = TestEnv::new();
        env.start(&["login form", "--phases", "RED,GREEN"]);
        env.ok(&["phase", "GREEN"]);
        env.ok(&["tokens", "1200"]);
        env.ok(&["decide", "which database?", "--choice", "sqlite"]);
        let said = env.ok(&["log"]);
        assert!(!said.stdout.contains('{'), "{}", said.stdout);
        for words in ["login form", "RED → GREEN", "1.2k tok", "which database? sqlite"] {
            assert!(said.stdout.contains(words), "{words}: {}", said.stdout);
        }
    }
);

promise!(
    /// Who makes a checkpoint in a script learns its name.
    fn a_new_checkpoint_is_named_in_json() {
        let env = TestEnv::new();
        env.start(&["x"]);
        let made = env.json(&["checkpoint", "create", "before"]);
        let name = made["checkpoint"].as_str().unwrap();
        env.ok(&["checkpoint", "show", name]);
    }
);

promise!(
    /// Paths given to `diff` are obeyed, however it is printed.
    fn a_diff_of_some_paths_shows_only_those() {
        let lab = Lab::new();
        let both = "echo a >a.txt; echo b >b.txt";
        assert_eq!(lab.run(&["run", "--", "sh", "-c", both]).code, Some(0));
        let files = lab.json(&["--session", "last", "diff", "a.txt"])["files"].clone();
        let paths: Vec<&str> =
            files.as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["a.txt"]);
        let stat = lab.run(&["--session", "last", "diff", "--stat", "a.txt"]).text();
        assert!(stat.contains("a.txt") && !stat.contains("b.txt"), "{stat}");
    }
);

promise!(
    /// A key makes pinning happen once, and is refused where it means nothing.
    fn a_key_is_obeyed_or_refused() {
        let env = TestEnv::new();
        env.start(&["x"]);
        let name = env.json(&["checkpoint", "create"])["checkpoint"].as_str().unwrap().to_owned();
        env.ok(&["checkpoint", "pin", &name, "--key", "k"]);
        assert_eq!(env.json(&["checkpoint", "pin", &name, "--key", "k"])["repeated"], true);
        env.write("project/stream.txt", "hello\n");
        assert_eq!(env.run(&["parse", "--agent", "plain", "stream.txt", "--key", "k"]).code, 2);
    }
);

promise!(
    /// Nothing in the log is said twice on a line, and no event is told by a number that nobody knows.
    fn the_log_names_checkpoints_and_ends_once() {
        let lab = Lab::new();
        assert_eq!(lab.run(&["run", "--", "sh", "-c", "echo hello"]).code, Some(0));
        let said = lab.run(&["log"]).text();
        let told = |words: &str| said.lines().any(|line| line.contains(words));
        assert!(told("cp-01-run-start   before the run"), "{said}");
        assert!(told("cp-01-run-start is on disk"), "{said}");
        assert!(told("completed     the session"), "{said}");
        assert!(!told("run start   run start") && !told("final   final"), "{said}");
        assert!(!told("completed   completed") && !told("number 1"), "{said}");
    }
);

promise!(
    /// What was asked, said and done reads like a chat: who, when, each call on a line, and no line wider than asked.
    fn a_conversation_reads_like_a_chat() {
        let lab = Lab::new();
        let script = "echo hello; echo world";
        assert_eq!(lab.run(&["run", "--", "sh", "-c", script]).code, Some(0));
        let said = lab.run(&["show", "--conversation"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let text = String::from_utf8(said.stdout.clone()).unwrap();
        let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
        assert!(place("sh starts") < place("  hello"), "{text}");
        assert!(place("  hello") < place("  world"), "{text}");
        assert!(place("  world") < place("── completed"), "{text}");
        let document = lab.json(&["show", "--conversation", "--full"]);
        let kinds: Vec<&str> = document["conversation"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds.first(), Some(&"run_started"), "{kinds:?}");
        assert_eq!(kinds.last(), Some(&"run_ended"), "{kinds:?}");
    }
);

promise!(
    /// `new --file` binds the session to its work file; `show` names it and what each phase brought.
    fn a_session_names_its_file_and_what_each_phase_brought() {
        let env = TestEnv::new();
        env.write("project/prp/login-form.md", "# Login form\n");
        env.start(&["--file", "prp/login-form.md", "--phases", "RED,GREEN,REFACTOR"]);
        env.ok(&["metric", "set", "tests_generated", "10"]);
        env.ok(&["phase", "GREEN"]);
        env.ok(&["metric", "set", "tests_passing", "6"]);
        let state = env.json(&["show"])["state"].clone();
        assert_eq!(state["file"], "prp/login-form.md");
        assert_eq!(state["topic"], "login form");
        let shown = env.ok(&["show"]).stdout;
        assert!(shown.contains("prp/login-form.md"), "{shown}");
        assert!(shown.contains("RED done (10 tests)   GREEN 6 of 10 tests passing"), "{shown}");
        // Another request in the same project is another piece of work.
        assert_eq!(env.json(&["detect", "--file", "prp/login-form.md"])["action"], "offer_resume");
        assert_eq!(env.json(&["detect", "--file", "prp/other.md"])["action"], "create_new");
        let said = env.run(&["new", "--parallel", "--file", "prp/missing.md"]);
        assert_eq!(said.code, 1, "{}", said.stderr);
        assert!(said.stderr.contains("there is no file prp/missing.md"), "{}", said.stderr);
    }
);

promise!(
    /// The panel of a resume says what each phase brought.
    fn the_panel_says_what_each_phase_brought() {
        let env = TestEnv::new();
        env.write("project/prp/login.md", "# Login\n");
        env.start(&["--file", "prp/login.md", "--phases", "RED,GREEN"]);
        env.ok(&["metric", "set", "tests_generated", "10"]);
        env.ok(&["phase", "GREEN"]);
        env.ok(&["metric", "set", "tests_passing", "6"]);
        env.ok(&["pause"]);
        let Some(output) = env.on_terminal("$SEGNO resume", "q\n") else { return };
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(shown.contains("RED done (10 tests)"), "{shown}");
        assert!(shown.contains("GREEN 6 of 10 tests passing"), "{shown}");
        assert!(shown.contains("prp/login.md"), "{shown}");
    }
);

promise!(
    /// Checkpoints are seen while a run goes on: before it, before a risky call, and at its end.
    fn checkpoints_appear_in_the_live_view() {
        let lab = Lab::new();
        let said = lab.run(&["run", "--", "sh", "-c", "echo hello"]);
        assert_eq!(said.code, Some(0));
        let seen = said.stderr.clone();
        for id in ["cp-01-run-start", "cp-02-final"] {
            let line = seen.lines().find(|line| line.contains(id)).unwrap_or_else(|| panic!("{id}: {seen}"));
            assert!(line.contains("● checkpoint") && line.contains("file"), "{line}");
        }
        // Before a call that may destroy something, where calls are known before they run.
        let mut lab = Lab::new();
        let risky = serde_json::json!({
            "tool_name": "Bash", "tool_use_id": "t1", "tool_input": { "command": "rm -rf build" },
        });
        let asks = Step::Hook {
            event: "PreToolUse".to_owned(),
            payload: risky.as_object().unwrap().clone(),
            command: None,
            allowed: Vec::new(),
            denied: Vec::new(),
        };
        let (init, end) = (claude::init("${session}"), claude::result("${session}", "done"));
        lab.stand_in("claude", &[Step::Stdin(0), Step::Json(init), asks, Step::Json(end)]);
        let said = lab.run(&["run", "--agent", "claude", "--prompt", "go"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let shown = |line: &&str| line.contains("● checkpoint cp-02-before-rm-rf");
        assert_eq!(said.stderr.lines().filter(shown).count(), 1, "{}", said.stderr);
    }
);

promise!(
    /// What would be done is said in words that are words, and things are counted as people do.
    fn words_are_words() {
        let lab = Lab::new();
        std::fs::write(lab.home.work().join("a.txt"), "old").unwrap();
        let script = "echo new >a.txt; echo made >b.txt; sleep 100 & sleep 100 & sleep 100 &";
        let said = lab.run(&["run", "--", "sh", "-c", script]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(said.stderr.contains("3 processes left behind"), "{}", said.stderr);
        let looked = lab.run(&["undo", "--dry-run"]);
        let (deeds, whose) = looked.stderr.split_once("  changed while ").unwrap();
        assert_eq!(
            deeds,
            "would go to cp-01-run-start, and nothing was changed\n  writes  a.txt\n  removes b.txt\n"
        );
        assert!(whose.contains("sh -c echo new >a.txt; echo ma"), "{whose}");
        assert!(whose.ends_with(" ran, by it or by anybody else\n"), "{whose}");
    }
);

promise!(
    /// What is listed fits the terminal, however narrow it is; in a pipe nothing is cut.
    fn a_list_fits_the_terminal() {
        let lab = Lab::new();
        let topic = "a login form with a second factor and a way back for those who lost theirs";
        for phases in ["red,green,refactor", "a-phase-with-a-long-name,another"] {
            let args =
                ["new", topic, "--phases", phases, "--budget", "2000000", "--cost", "12.5", "--parallel"];
            assert_eq!(lab.run(&args).code, Some(0));
            assert_eq!(lab.run(&["--session", "last", "tokens", "1234567"]).code, Some(0));
            let reason = "somebody has to look at the second factor before this goes on";
            assert_eq!(lab.run(&["pause", "last", "--reason", reason]).code, Some(0));
        }
        let piped = lab.run(&["ls", "--everywhere"]).text();
        assert!(piped.contains(topic) && piped.contains("progress"), "{piped}");
        assert!(piped.contains(&lab.home.work().display().to_string()), "{piped}");
        let terminal = Terminal::open(&lab);
        for columns in [60, 80, 100, 200] {
            terminal.resize(columns, 30);
            for command in [
                "ls",
                "ls --everywhere",
                "show last",
                "show last --history",
                "checkpoint list",
                "log last",
                "history last",
            ] {
                let place = terminal.place();
                // What is typed is shown too, but not like this.
                let typed =
                    format!("echo be''gin; $SEGNO --color never {command} 2>/dev/null; echo en''d{ENTER}");
                terminal.type_keys(&typed);
                terminal.wait_for(place, "end\r\n");
                let shown = terminal.since(place);
                let shown = shown.split("begin\r\n").nth(1).unwrap().split("end\r\n").next().unwrap();
                assert!(shown.lines().count() > 1 || command == "checkpoint list", "{command}: {shown:?}");
                for line in shown.lines() {
                    let wide = unicode_width::UnicodeWidthStr::width(line.trim_end());
                    assert!(wide <= usize::from(columns), "{command} at {columns}: {wide} in {line:?}");
                }
            }
        }
    }
);

promise!(
    /// The line above a run fits the terminal too: the topic gives way, the session and the agent stay.
    fn the_line_above_a_run_fits_the_terminal() {
        let lab = Lab::new();
        let terminal = Terminal::open(&lab);
        for columns in [60, 80] {
            terminal.resize(columns, 30);
            let place = terminal.place();
            let long = "a login form with a second factor and a way back for those who lost theirs";
            terminal
                .type_keys(&format!("$SEGNO --color never run --topic '{long}' -- true; echo en''d{ENTER}"));
            terminal.wait_for(place, "end\r\n");
            let shown = terminal.since(place);
            let line = shown.lines().find(|line| line.starts_with("segno  session")).unwrap().trim_end();
            let wide = unicode_width::UnicodeWidthStr::width(line);
            assert!(wide <= usize::from(columns), "{wide} at {columns}: {line:?}");
            assert!(line.contains("  a login") && line.ends_with("   plain"), "{line:?}");
        }
    }
);

promise!(
    /// What one is told to type names the session that is meant, also if another one's id ends the same.
    fn a_hint_names_one_session() {
        let lab = Lab::new();
        let make = |topic: &str| lab.run(&["new", topic, "--parallel"]).text().trim().to_owned();
        let (other, meant) = (make("other"), make("meant"));
        let alike = format!("session_20200101_000000_{}", &meant[meant.len() - 6..]);
        let store = lab.home.path().join(".local/share/segno/segno.db");
        let db = rusqlite::Connection::open(store).unwrap();
        assert_eq!(db.execute("UPDATE sessions SET id = ?1 WHERE id = ?2", [&alike, &other]).unwrap(), 1);
        drop(db);
        let said = lab.run(&["show", &meant]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let typed = said.stderr.split("segno log ").nth(1).unwrap().split_whitespace().next().unwrap();
        assert!(meant.ends_with(typed) && !alike.ends_with(typed), "{}", said.stderr);
        assert_eq!(lab.json(&["show", typed])["state"]["session_id"], meant.as_str());
    }
);

promise!(
    /// What a command wrote to standard error can be read where one reads what it did.
    fn standard_error_of_a_command_is_in_the_views() {
        let lab = Lab::new();
        assert_eq!(lab.run(&["run", "--", "sh", "-c", "echo out; echo oh-dear >&2"]).code, Some(0));
        let log = lab.run(&["log"]).text();
        assert!(log.contains("completed   standard error: oh-dear"), "{log}");
        let chat = lab.run(&["show", "--conversation"]).text();
        let (said, after) = chat.split_once("standard error  ").unwrap();
        assert!(said.contains("\n  out\n") && after.contains("\n  oh-dear\n"), "{chat}");
    }
);

promise!(
    /// A program that is not there is called by its name, and a store that cannot be opened is no setting.
    fn what_is_not_there_is_called_by_its_name() {
        let lab = Lab::new();
        let said = lab.run(&["run", "--", "no-such-program", "x"]);
        assert!(
            said.stderr
                .contains("error: no-such-program is not installed: there is no no-such-program in PATH"),
            "{}",
            said.stderr
        );
        let said = lab.run(&["config", "set", "store.url", "postgres://me:hunter2@db/x"]);
        assert_eq!(said.code, Some(13), "{}", said.stderr);
        assert!(said.stderr.contains("must be empty or sqlite:PATH"), "{}", said.stderr);
        assert!(!said.stderr.contains("hunter2"), "{}", said.stderr);
        assert_eq!(lab.run(&["config", "get", "store.url"]).text().trim(), "");
    }
);

promise!(
    /// An export replaces no file that is there, unless that is asked for.
    fn an_export_replaces_nothing_unasked() {
        let env = TestEnv::new();
        env.start(&["boats"]);
        std::fs::write(env.path("project/mine.json"), "mine").unwrap();
        let refused = env.run(&["export", "-o", "mine.json"]);
        assert_eq!(refused.code, 5, "{}", refused.stderr);
        assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
        assert_eq!(env.read("project/mine.json"), "mine");
        env.ok(&["export", "-o", "mine.json", "--force"]);
        assert!(env.read("project/mine.json").contains("boats"));
        // Nor what stands where the files of its checkpoints go.
        std::fs::write(env.path("project/other.json.files"), "mine").unwrap();
        let refused = env.run(&["export", "-o", "other.json", "--with-files"]);
        assert_eq!(refused.code, 5, "{}", refused.stderr);
        assert!(!env.path("project/other.json").exists());
        assert_eq!(env.read("project/other.json.files"), "mine");
    }
);

promise!(
    /// A file is recorded by its path from the project's root on, wherever it was named, and nothing else is.
    fn a_file_is_named_from_the_root_on() {
        let lab = Lab::new();
        assert_eq!(lab.run(&["new", "boats"]).code, Some(0));
        std::fs::create_dir_all(lab.home.work().join("src/deep")).unwrap();
        let whole = lab.home.work().join("src/a.rs").display().to_string();
        assert_eq!(lab.run(&["file", "add", &whole, "created"]).code, Some(0));
        let mut command = lab.segno(&["file", "add", "../b.rs", "modified"]);
        command.current_dir(lab.home.work().join("src/deep"));
        let said = lab.start_command(&mut command, None).finish();
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        for outside in ["/etc/passwd", "../outside.rs", "src/../../x"] {
            let said = lab.run(&["file", "add", outside, "modified"]);
            assert_eq!(said.code, Some(2), "{outside}: {}", said.stderr);
        }
        let listed = lab.json(&["show", "--files"]);
        let paths: Vec<_> = listed["items"].as_array().unwrap().iter().map(|item| &item["path"]).collect();
        assert_eq!(serde_json::json!(paths), serde_json::json!(["src/a.rs", "src/b.rs"]), "{listed}");
    }
);

promise!(
    /// Times of day are those of the person who reads them.
    fn times_are_shown_in_the_readers_own_zone() {
        let mut lab = Lab::new();
        // Nine hours ahead, by a rule that needs no file of the system.
        lab.env.insert("TZ".to_owned(), "TST-9".to_owned());
        assert_eq!(lab.run(&["new", "x"]).code, Some(0));
        let at = lab.journal(None)[0]["at"].as_str().unwrap().to_owned();
        let hour: u32 = at[11..13].parse().unwrap();
        let shown = format!("{:02}{}", (hour + 9) % 24, &at[13..19]);
        let log = lab.run(&["log"]).text();
        assert!(log.contains(&shown), "{at} is {shown} there, and not in:\n{log}");
    }
);
