//! What comes from outside is never believed.

use std::path::Path;
use std::path::PathBuf;
use std::process::Child;

use rustix::process::Signal;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::NewSession;
use segno_engine::core::Command;
use segno_engine::core::SessionId;
use segno_engine::core::event::Holder;
use segno_engine::core::event::RunStarted;
use segno_engine::view;
use segno_store::OpenOptions;
use segno_store::Store as _;
use segno_store::sqlite::SqliteStore;
use serde_json::json;

use crate::common::TestEnv;
use crate::lab::Lab;
use crate::lab::program;

/// A run id as segno makes them.
const RUN: &str = "0192f0c4a1b27c3d8e4f5a6b7c8d9e0f";

/// A directory and a process that no store may make segno touch, and what points at them.
struct Victim {
    /// Holds a file that must stay.
    directory: PathBuf,
    /// Looks like the capture of a run.
    capture: PathBuf,
    process: Child,
}

impl Victim {
    fn new(lab: &Lab) -> Self {
        let process = program("sleep").arg("600").env_clear().spawn().unwrap();
        let victim = Self { directory: lab.path("victim").into(), capture: lab.path("evil").into(), process };
        std::fs::create_dir_all(&victim.directory).unwrap();
        std::fs::write(victim.directory.join("thesis.txt"), "years of work").unwrap();
        victim
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    fn start(&self) -> u64 {
        segno_engine::run::tree::start_of(self.pid()).unwrap()
    }

    /// The capture of a run whose note says that the victims are the run's own.
    fn plant(&self, capture: &Path, session: &str, run: &str, store: &str) {
        std::fs::create_dir_all(capture).unwrap();
        let note = json!({
            "session": session, "run": run, "agent": "sh", "plain": null, "expected_native_id": null,
            "resumed": false, "completes": false, "cgroup": self.capture, "scratch": self.directory,
            "store": store, "epoch": 1,
        });
        std::fs::write(capture.join("note.json"), note.to_string()).unwrap();
        for name in ["stdout", "stderr"] {
            std::fs::write(capture.join(name), "").unwrap();
        }
        std::fs::create_dir_all(&self.capture).unwrap();
        std::fs::write(self.capture.join("cgroup.procs"), format!("{}\n", self.pid())).unwrap();
        std::fs::write(self.capture.join("cgroup.kill"), "").unwrap();
    }

    fn assert_untouched(&mut self) {
        assert!(self.directory.join("thesis.txt").exists(), "the directory was removed");
        assert!(self.process.try_wait().unwrap().is_none(), "the process was killed");
        assert!(self.capture.join("cgroup.procs").exists(), "the directory was removed");
        assert_eq!(std::fs::read_to_string(self.capture.join("cgroup.kill")).unwrap(), "");
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A holder that is long gone: on this machine, or on another that has been silent for years.
fn gone(elsewhere: bool) -> Holder {
    let here = segno_engine::lease::here("segno run sh");
    if elsewhere {
        Holder { host: "elsewhere".into(), boot_id: "another".into(), pid: 7, ..here }
    } else {
        Holder { process_start: 1, ..here }
    }
}

/// A store with one session whose driver is gone while its run goes on, as somebody else may have made it.
fn hostile_store(path: &Path, holder: &Holder, start: RunStarted) -> SessionId {
    let store = SqliteStore::open(path, OpenOptions::default()).unwrap();
    let view = view::Options { enabled: false, ..view::Options::default() };
    let engine = Engine::new(Box::new(store), EngineOptions { view, ..EngineOptions::default() });
    let session = engine.create(NewSession::default()).unwrap().state.session_id;
    let beside = SqliteStore::open(path, OpenOptions::default()).unwrap();
    let lease = beside.acquire(session, holder, None).unwrap();
    let attach = Command::AttachDriver { epoch: lease.epoch, holder: holder.clone() };
    engine.act_all(session, vec![attach, Command::StartRun(Box::new(start))], None).unwrap();
    drop((engine, beside));
    let database = rusqlite::Connection::open(path).unwrap();
    database.execute("UPDATE leases SET heartbeat_us = 1000", []).unwrap();
    session
}

fn run_started(run: &str, pid: u32, process_start: u64) -> RunStarted {
    RunStarted { run: run.into(), agent: "sh".into(), pid, process_start, ..RunStarted::default() }
}

promise!(
    /// Looking at a store file from elsewhere removes nothing and ends nothing, whatever its runs are called.
    fn a_store_from_elsewhere_makes_a_look_neither_remove_nor_kill() {
        for elsewhere in [true, false] {
            let lab = Lab::new();
            let mut victim = Victim::new(&lab);
            let evil = lab.path("evil.db");
            let run = victim.capture.to_str().unwrap().to_owned();
            let start = run_started(&run, victim.pid(), 1);
            let session = hostile_store(Path::new(&evil), &gone(elsewhere), start);
            victim.plant(&victim.capture, &session.to_string(), &run, &evil);
            let store = format!("sqlite:{evil}");
            let id = session.to_string();
            // It is looked into like any other: a driver of this machine is known to be gone.
            let listed = lab.json(&["--store", &store, "ls", "--everywhere"]);
            let is = &listed["sessions"][0];
            let status = if elsewhere { "active" } else { "interrupted" };
            assert_eq!((&is["session_id"], &is["status"]), (&json!(id), &json!(status)), "{listed}");
            victim.assert_untouched();
            for args in [
                vec!["ls"],
                vec!["show", &id],
                vec!["doctor", "--repair"],
                vec!["attach", &id],
                vec!["kill", &id],
                vec!["resume", &id, "--yes"],
            ] {
                let args: Vec<&str> = ["--store", &store].into_iter().chain(args).collect();
                lab.run(&args);
                victim.assert_untouched();
            }
            assert!(victim.capture.join("note.json").exists());
        }
    }
);

promise!(
    /// A run's process is ended only if something other than the store says that it is the run's.
    fn a_store_from_elsewhere_cannot_name_a_process_to_be_killed() {
        let lab = Lab::new();
        let mut victim = Victim::new(&lab);
        let evil = lab.path("evil.db");
        let start = run_started(RUN, victim.pid(), victim.start());
        let session = hostile_store(Path::new(&evil), &gone(false), start).to_string();
        let store = format!("sqlite:{evil}");
        for args in [["kill", &session], ["stop", &session], ["attach", &session], ["resume", &session]] {
            let args: Vec<&str> = ["--store", &store].into_iter().chain(args).collect();
            lab.run(&args);
            assert!(victim.process.try_wait().unwrap().is_none(), "{args:?} killed the process");
        }
    }
);

promise!(
    /// The note beside a capture is believed only if it tells of the run that the store tells of, and even then only
    /// directories and control groups that bear the run's name are touched.
    fn a_note_that_names_what_is_not_the_runs_own_is_not_followed() {
        let lab = Lab::new();
        let mut victim = Victim::new(&lab);
        let capture = lab.home.path().join(".local/state/segno/runs").join(RUN);
        let store = lab.path("store.db");
        let session = hostile_store(Path::new(&store), &gone(false), run_started(RUN, 1, 1));
        // Everything agrees but what is to be removed.
        victim.plant(&capture, &session.to_string(), RUN, &store);
        let listed = lab.json(&["--store", &format!("sqlite:{store}"), "ls", "--everywhere"]);
        assert_eq!(listed["sessions"][0]["status"], "interrupted", "{listed}");
        victim.assert_untouched();
        // Another session's note is left where it is.
        let other = lab.path("other.db");
        hostile_store(Path::new(&other), &gone(false), run_started(RUN, 1, 1));
        victim.plant(&capture, "session_20200101_000000_000000", RUN, &other);
        lab.run(&["--store", &format!("sqlite:{other}"), "ls"]);
        victim.assert_untouched();
        assert!(capture.join("note.json").exists(), "the capture of another session was removed");
    }
);

promise!(
    /// The spool takes facts that could have been recorded by anybody; it starts no runs and grants nothing.
    fn a_spooled_line_cannot_start_a_run() {
        let lab = Lab::new();
        let mut victim = Victim::new(&lab);
        let session = lab.json(&["new", "work"])["session_id"].as_str().unwrap().to_owned();
        let run = victim.capture.to_str().unwrap().to_owned();
        victim.plant(&victim.capture, &session, &run, "");
        let forged = [
            json!({ "kind": "run_started", "version": 1,
                    "body": run_started(&run, victim.pid(), victim.start()) }),
            json!({ "kind": "budget_extended", "version": 1, "body": { "unit": "tokens", "added": 1_000_000 } }),
            json!({ "kind": "session_completed", "version": 1, "body": { "summary": null } }),
            // A fact that anybody may record, told in the same way: it is taken in.
            json!({ "kind": "tokens_recorded", "version": 1, "body":
                    { "tokens": { "input": 777 }, "estimated": false, "source": "hand" } }),
        ];
        let spool = lab.home.path().join(".local/state/segno/spool");
        for (index, event) in forged.into_iter().enumerate() {
            let line = json!({
                "session": session, "key": format!("forged-{index}"), "at": "2026-01-01T00:00:00Z",
                "run": null, "epoch": null, "events": [event],
            });
            std::fs::create_dir_all(&spool).unwrap();
            std::fs::write(spool.join(format!("{index}.json")), line.to_string()).unwrap();
        }
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&spool, std::fs::Permissions::from_mode(0o700)).unwrap();
        lab.run(&["attach", &session]);
        lab.run(&["ls"]);
        victim.assert_untouched();
        assert!(victim.capture.join("note.json").exists());
        for kind in ["run_started", "budget_extended", "session_completed"] {
            assert_eq!(lab.journal(Some(kind)), Vec::<serde_json::Value>::new());
        }
        assert_eq!(lab.state()["budget"]["tokens_used"], 777, "the spool was looked into");
        crate::lab::signal(victim.pid(), Signal::CONT);
    }
);

promise!(
    /// Directories that others own or may write to are not used, and it is said which and why.
    fn directories_of_others_are_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let lab = Lab::new();
        assert_eq!(lab.run(&["new", "work"]).code, Some(0));
        let state = lab.home.path().join(".local/state/segno");
        let data = lab.home.path().join(".local/share/segno");
        let chmod = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for name in ["spool", "runs"] {
            std::fs::create_dir_all(state.join(name)).unwrap();
            chmod(&state.join(name), 0o700);
        }
        for directory in [&data, &state, &state.join("spool"), &state.join("runs")] {
            chmod(directory, 0o777);
            let said = lab.run(&["ls", "--json"]);
            assert_eq!(said.code, Some(12), "{}: {}", directory.display(), said.stderr);
            assert!(said.stderr.contains("others may write to it"), "{}", said.stderr);
            assert!(said.stderr.contains(directory.to_str().unwrap()), "{}", said.stderr);
            chmod(directory, 0o700);
            if rustix::process::geteuid().is_root() {
                std::os::unix::fs::chown(directory, Some(65_534), None).unwrap();
                let said = lab.run(&["ls"]);
                assert_eq!(said.code, Some(12), "{}", said.stderr);
                assert!(said.stderr.contains("belongs to another user"), "{}", said.stderr);
                std::os::unix::fs::chown(directory, Some(0), None).unwrap();
            }
        }
        assert_eq!(lab.run(&["ls"]).code, Some(0));
    }
);

/// What an agent tries, and what came of each try, by name.
mod as_an_agent {
    use crate::lab::Lab;

    /// Runs the commands inside a run with a hard budget, without the variables that tell of it, and gives the exit
    /// code of each.
    pub(super) fn tries(lab: &Lab, commands: &[&str]) -> Vec<(String, String)> {
        let tried = lab.path("tried");
        let mut script = String::from("unset SEGNO_RUN SEGNO_EPOCH SEGNO_TREE SEGNO_HOOK SEGNO_DOOR\n");
        for command in commands {
            let without = "env -u SEGNO_RUN -u SEGNO_EPOCH -u SEGNO_TREE";
            script += &format!(
                "{without} {} {command} >>{tried}.log 2>&1; echo \"$?\" >>{tried}\n",
                lab.segno.display()
            );
        }
        lab.write("try.sh", &script);
        let path = lab.path("try.sh");
        // Not even the process that was started keeps the marks.
        let said = lab.run(&[
            "run",
            "--budget",
            "1m",
            "--",
            "env",
            "-u",
            "SEGNO_RUN",
            "-u",
            "SEGNO_TREE",
            "sh",
            &path,
        ]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let codes = std::fs::read_to_string(&tried).unwrap();
        assert_eq!(codes.lines().count(), commands.len(), "each was tried: {codes}");
        commands.iter().map(ToString::to_string).zip(codes.lines().map(ToOwned::to_owned)).collect()
    }
}

promise!(
    /// No command below an agent lifts what its user set: caps, settings, trust, what others recorded.
    fn an_agent_lifts_nothing() {
        let lab = crate::lab::Lab::new();
        lab.run(&["new", "somebody else's"]);
        let other = lab.state()["session_id"].as_str().unwrap().to_owned();
        let remove = format!("rm {other} --yes");
        let commands = [
            "budget extend 500k",
            "budget set 900m",
            "budget set 100 --advisory",
            "budget cost 500",
            "config set redact.env false",
            "config set run.allow '[\"Bash\"]'",
            &remove,
            "cleanup --days 0 --yes",
            "trust",
        ];
        for (command, code) in as_an_agent::tries(&lab, &commands) {
            assert_eq!(code, "5", "{command}: {}", std::fs::read_to_string(lab.path("tried.log")).unwrap());
        }
        let told = std::fs::read_to_string(lab.path("tried.log")).unwrap();
        assert_eq!(
            told.matches("started inside a run").count(),
            commands.len(),
            "each for that reason: {told}"
        );
        assert_eq!(lab.json(&["show", &other])["state"]["session_id"], other.as_str());
        assert!(!lab.home.path().join(".config/segno/config.toml").exists());
        // The same at somebody's own prompt is what it always was.
        assert_eq!(lab.run(&["config", "set", "ls.limit", "7"]).code, Some(0));
        assert_eq!(lab.run(&["rm", &other, "--yes"]).code, Some(0));
    }
);

promise!(
    /// A project is trusted by a person at a terminal, not by a script.
    fn trust_needs_a_terminal() {
        let env = crate::common::TestEnv::new();
        env.write("project/.segno/config.toml", "[session]\nbudget = 5\n");
        let said = env.run(&["trust"]);
        assert_eq!(said.code, 5, "{}", said.stderr);
        assert!(said.stderr.contains("terminal"), "{}", said.stderr);
        let Some(output) = env.on_terminal("$SEGNO trust", "y\n") else {
            return crate::lab::skip("there is no program called script");
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(env.json(&["trust", "--show"])["status"], "trusted");
    }
);

promise!(
    /// What a project may not do before it is trusted: take in ignored files, switch checkpoints off, cut a stop short.
    fn an_untrusted_project_loosens_nothing() {
        let env = crate::common::TestEnv::new();
        env.write(
            "project/.segno/config.toml",
            "[checkpoint]\ninclude_ignored = [\".env\"]\nevery_calls = 0\n[run]\ngrace_ms = 0\n",
        );
        for (key, default) in
            [("checkpoint.include_ignored", "[]"), ("checkpoint.every_calls", "20"), ("run.grace_ms", "5000")]
        {
            let said = env.run(&["config", "get", key]);
            assert_eq!(said.stdout.trim(), default, "{key}");
            assert!(
                said.stderr.contains("needs trust") || said.stderr.contains("segno trust"),
                "{}",
                said.stderr
            );
        }
    }
);

promise!(
    /// Trust is about the programs and prompt files that a configuration names, as they were when it was given.
    fn trust_covers_the_files_it_names() {
        let env = crate::common::TestEnv::new();
        env.write("project/tool.sh", "echo one\n");
        env.write("project/ask.md", "do one\n");
        env.write(
            "project/.segno/config.toml",
            "[run]\nprompt_file = \"ask.md\"\n[agents.mine]\ncommand = [\"./tool.sh\"]\n",
        );
        let trust = || env.on_terminal("$SEGNO trust", "y\n");
        if trust().is_none() {
            return crate::lab::skip("there is no program called script");
        }
        let status = || env.json(&["trust", "--show"])["status"].as_str().unwrap().to_owned();
        assert_eq!(status(), "trusted");
        env.write("project/tool.sh", "echo two\n");
        assert_eq!(status(), "changed");
        trust();
        assert_eq!(status(), "trusted");
        env.write("project/ask.md", "do two\n");
        assert_eq!(status(), "changed");
        env.write("project/other.md", "nobody names it\n");
        trust();
        env.write("project/other.md", "nobody names it still\n");
        assert_eq!(status(), "trusted");
    }
);

promise!(
    /// What is recorded of a session is not for the repository, whatever that says itself.
    fn a_repository_cannot_take_in_sessions() {
        let lab = crate::lab::Lab::new();
        let work = lab.home.work();
        let git = |args: &[&str]| {
            let output = crate::lab::program("git").args(args).current_dir(&work).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        git(&["init", "-q"]);
        std::fs::create_dir_all(work.join(".segno/sessions")).unwrap();
        std::fs::write(work.join(".segno/.gitignore"), "!*\n!sessions/\n!sessions/**\n").unwrap();
        std::fs::write(work.join(".segno/sessions/.gitignore"), "!*\n").unwrap();
        git(&["add", "-A", "-f"]);
        lab.run(&["new", "t"]);
        lab.run(&["note", "x"]);
        let id = lab.state()["session_id"].as_str().unwrap().to_owned();
        assert!(work.join(".segno/sessions").join(&id).join("session.yaml").exists());
        let untracked = git(&["ls-files", "--others", "--exclude-standard"]);
        assert!(!untracked.contains(&id), "{untracked}");
    }
);

promise!(
    /// A rule of one's own needs no keywords.
    fn a_rule_without_keywords_works() {
        let lab = crate::lab::Lab::new();
        lab.config("[[redact.rules]]\nid = \"ticket\"\nregex = 'tk[0-9]{4}q[a-z]{3}'\n");
        lab.run(&["new", "t"]);
        let said = lab.run(&["note", "see tk1234qabc for more"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let log = lab.run(&["log", "last", "--json"]).text();
        assert!(log.contains("[redacted:ticket:") && !log.contains("tk1234qabc"), "{log}");
    }
);

/// A stand-in for Claude Code that asks about these calls one after the other.
fn asks(lab: &mut crate::lab::Lab, calls: &[(&str, serde_json::Value)], first: &str) {
    use serde_json::json;
    let mut script = String::from("#!/bin/sh\n");
    let id = "0198c5a1-0000-7000-8000-000000000001";
    let init =
        json!({"type": "system", "subtype": "init", "session_id": id, "cwd": "/", "tools": [], "model": "m"});
    script += &format!("cat <<'END'\n{init}\nEND\nread prompt\n{first}\n");
    for (number, (tool, input)) in calls.iter().enumerate() {
        let request = json!({"subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": format!("c{number}")});
        let ask = json!({"type": "control_request", "request_id": format!("r{number}"), "request": request});
        script += &format!("cat <<'END'\n{ask}\nEND\nread answer\n");
    }
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "ok", "session_id": id, "num_turns": 1});
    script += &format!("cat <<'END'\n{result}\nEND\ncat >/dev/null\n");
    let path = std::path::PathBuf::from(lab.path("bin/claude"));
    lab.write(&path, &script);
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    lab.put_on_path(path.parent().unwrap());
}

/// What was answered to each question, in order.
fn answers(lab: &crate::lab::Lab) -> Vec<String> {
    let reported = lab.journal(Some("reported"));
    let answered = reported.iter().filter(|event| event["body"]["what"] == "permission_answered");
    answered.map(|event| event["body"]["body"]["answer"].as_str().unwrap().to_owned()).collect()
}

promise!(
    /// A rule that forbids a place or a command forbids it however it is spelled.
    fn forbidden_is_forbidden_in_every_spelling() {
        use serde_json::json;
        let mut lab = crate::lab::Lab::new();
        let work = lab.home.work().display().to_string();
        std::fs::create_dir_all(lab.home.work().join("secret")).unwrap();
        std::os::unix::fs::symlink(lab.home.work().join("secret"), lab.home.work().join("link")).unwrap();
        let write = |path: String| ("Write", json!({"file_path": path, "content": "x"}));
        let bash = |command: &str| ("Bash", json!({"command": command}));
        let calls = [
            write(format!("{work}/secret/a")),
            write(format!("{work}//secret/a")),
            write(format!("{work}/./secret/a")),
            write(format!("{work}/other/../secret/a")),
            write("secret/a".to_owned()),
            write("./secret/a".to_owned()),
            write(format!("{work}/link/a")),
            write(format!("{work}/secret/new/deep")),
            bash("rm -rf x"),
            bash("rm  -rf x"),
            bash("  rm -rf x"),
            bash("true;rm -rf x"),
            bash("/bin/rm -rf x"),
            bash("\\rm -rf x"),
            bash("command rm -rf x"),
        ];
        asks(&mut lab, &calls, "");
        lab.config(&format!(
            "[run]\npermissions = \"deny\"\nallow = [\"Write\", \"Bash\"]\ndeny = [\"Write({work}/secret/*)\", \"Bash(rm *)\"]\n"
        ));
        let said = lab.run(&["run", "--agent", "claude", "--prompt", "go", "--no-hooks"]);
        assert_eq!(answers(&lab), vec!["deny"; calls.len()], "{}", said.stderr);
    }
);

promise!(
    /// What is allowed stays allowed: the rules forbid what they say, and no more.
    fn what_no_rule_forbids_is_allowed() {
        use serde_json::json;
        let mut lab = crate::lab::Lab::new();
        let work = lab.home.work().display().to_string();
        let calls = [
            ("Write", json!({"file_path": format!("{work}/public/a"), "content": "x"})),
            ("Bash", json!({"command": "echo rm"})),
            ("Bash", json!({"command": "git rm-something"})),
        ];
        asks(&mut lab, &calls, "");
        lab.config(&format!(
            "[run]\npermissions = \"deny\"\nallow = [\"Write\", \"Bash\"]\ndeny = [\"Write({work}/secret/*)\", \"Bash(rm *)\"]\n"
        ));
        lab.run(&["run", "--agent", "claude", "--prompt", "go", "--no-hooks"]);
        assert_eq!(answers(&lab), ["allow", "allow", "allow"]);
    }
);

/// Runs segno on a terminal with these keys, which are typed as soon as there is one.
fn typed(lab: &crate::lab::Lab, keys: &str) -> Option<String> {
    let script =
        ["/usr/bin/script", "/bin/script"].into_iter().find(|path| std::path::Path::new(path).exists())?;
    let command =
        format!("{} run --agent claude --permissions ask --prompt go --no-hooks", lab.segno.display());
    let mut child = crate::lab::program(script);
    child.args(["-qec", &command, "/dev/null"]).env_clear().envs(&lab.env).current_dir(lab.home.work());
    Some(lab.start_command(&mut child, Some(keys.as_bytes())).finish().text())
}

promise!(
    /// An answer that was typed before the question is none.
    fn keys_typed_ahead_approve_nothing() {
        use serde_json::json;
        let mut lab = crate::lab::Lab::new();
        asks(&mut lab, &[("Bash", json!({"command": "make all"}))], "sleep 1");
        if typed(&lab, "y\ny\n").is_none() {
            return crate::lab::skip("there is no program called script");
        }
        assert_eq!(answers(&lab), ["deny"]);
    }
);

promise!(
    /// The question shows all that a call would do, and "always" is about exactly that.
    fn a_question_shows_and_binds_the_whole_input() {
        use serde_json::json;

        use crate::terminal::ENTER;
        use crate::terminal::Terminal;
        let mut lab = crate::lab::Lab::new();
        let mcp = |path: &str| ("mcp__files__remove", json!({"path": path, "recursive": true}));
        let shell = json!({"command": "make all", "dangerouslyDisableSandbox": true});
        let plain = json!({"command": "make all"});
        let calls = [mcp("a"), mcp("a"), mcp("b"), ("Bash", shell), ("Bash", plain)];
        asks(&mut lab, &calls, "");
        let terminal = Terminal::open(&lab);
        terminal
            .type_keys(&format!("$SEGNO run --agent claude --permissions ask --prompt go --no-hooks{ENTER}"));
        let mut place = 0;
        // The second is the first again, and is not asked about.
        for (shown, keys) in [
            (&["recursive", "\"a\""][..], "a"),
            (&["recursive", "\"b\""], "n"),
            (&["make all", "dangerouslyDisableSandbox"], "a"),
            (&["make all"], "n"),
        ] {
            terminal.wait_for(place, "may it?");
            for words in shown {
                terminal.wait_for(place, words);
            }
            terminal.wait_for(place, "no and why");
            place = terminal.place();
            terminal.type_keys(&format!("{keys}{ENTER}"));
        }
        crate::lab::until("the run ends", || lab.state()["run"]["outcome"].is_string().then_some(()));
        assert_eq!(answers(&lab), ["allow", "allow", "deny", "allow", "deny"]);
    }
);

promise!(
    /// The place that a background run tells its session to is removed only if it was made for that.
    fn a_hidden_flag_removes_nothing_of_others() {
        let env = TestEnv::new();
        env.write("project/mine/kept.txt", "kept\n");
        env.ok(&["run", "--tell", "mine/session", "--", "/bin/true"]);
        assert_eq!(env.read("project/mine/kept.txt"), "kept\n");
    }
);

promise!(
    /// An agent that starts a run of its own cannot make that record what the outer one would not.
    fn a_nested_run_keeps_the_environment_out_too() {
        let mut env = TestEnv::new();
        env.set("HARBOR_API_TOKEN", "seven-Quiet-maples-77");
        env.set("SEGNO_PROGRAM", crate::common::SEGNO);
        let inner =
            r#"SEGNO_REDACT_ENV=false "$SEGNO_PROGRAM" run -- /bin/sh -c 'echo told $HARBOR_API_TOKEN'"#;
        env.ok(&["run", "--", "/bin/sh", "-c", inner]);
        let sessions = env.json(&["ls", "--all"])["sessions"].as_array().unwrap().clone();
        assert_eq!(sessions.len(), 2);
        for session in sessions {
            let log = env.ok(&["log", "--json", "--session", session["session_id"].as_str().unwrap()]).stdout;
            assert!(!log.contains("seven-Quiet"), "{log}");
        }
    }
);
