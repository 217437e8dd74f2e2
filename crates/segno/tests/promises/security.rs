//! What comes from outside is never believed.

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
            assert_eq!(code, "7", "{command}: {}", std::fs::read_to_string(lab.path("tried.log")).unwrap());
        }
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
        assert_eq!(said.code, 7, "{}", said.stderr);
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
