//! Command lines.

use segno_agents::Conversation;
use segno_agents::LaunchRequest;
use segno_agents::LaunchSpec;
use segno_agents::by_name;
use segno_agents::launch::LaunchError;
use segno_agents::launch::Unsupported;
use segno_agents::plain;

const ID: &str = "11111111-2222-4333-8444-555555555555";
const NEW: &str = "99999999-2222-4333-8444-555555555555";

fn request(conversation: Conversation) -> LaunchRequest {
    LaunchRequest { prompt: "do it".into(), conversation, ..LaunchRequest::default() }
}

fn full(conversation: Conversation) -> LaunchRequest {
    LaunchRequest {
        model: Some("big".into()),
        max_turns: Some(7),
        max_cost_usd: Some(1.5),
        extra_args: vec!["--allowedTools".into(), "Bash".into()],
        outside_git: true,
        ..request(conversation)
    }
}

fn launch(agent: &str, request: &LaunchRequest) -> LaunchSpec {
    by_name(agent).unwrap().launch(request).unwrap()
}

#[test]
fn command_lines() {
    let fork = Conversation::Fork { from: ID.into(), id: Some(NEW.into()), at: Some("u1".into()) };
    let claude = "claude -p --output-format stream-json --verbose";
    let gemini = "gemini --output-format stream-json";
    let opencode = "opencode run --format json";
    for (agent, request, expected) in [
        ("claude", request(Conversation::New), claude.to_owned()),
        ("claude", request(Conversation::NewWithId(ID.into())), format!("{claude} --session-id {ID}")),
        ("claude", request(Conversation::Resume(ID.into())), format!("{claude} --resume {ID}")),
        (
            "claude",
            full(fork.clone()),
            format!(
                "{claude} --resume {ID} --resume-session-at u1 --session-id {NEW} --fork-session --model big \
                 --max-turns 7 --max-budget-usd 1.5 --allowedTools Bash"
            ),
        ),
        ("codex", request(Conversation::New), "codex exec --json -".to_owned()),
        ("codex", request(Conversation::Resume(ID.into())), format!("codex exec --json resume {ID} -")),
        (
            "codex",
            full(fork),
            format!("codex exec --allowedTools Bash --json --skip-git-repo-check --model big fork {ID} -"),
        ),
        ("gemini", request(Conversation::New), gemini.to_owned()),
        ("gemini", request(Conversation::NewWithId(ID.into())), format!("{gemini} --session-id {ID}")),
        ("gemini", request(Conversation::Resume(ID.into())), format!("{gemini} --resume {ID}")),
        (
            "gemini",
            full(Conversation::Fork { from: "/g/chat.jsonl".into(), id: None, at: None }),
            format!("{gemini} --session-file /g/chat.jsonl --model big --allowedTools Bash"),
        ),
        ("opencode", request(Conversation::New), opencode.to_owned()),
        ("opencode", request(Conversation::Resume("ses_1".into())), format!("{opencode} --session ses_1")),
        (
            "opencode",
            full(Conversation::Fork { from: "ses_1".into(), id: None, at: None }),
            format!("{opencode} --session ses_1 --fork --model big --allowedTools Bash"),
        ),
    ] {
        let spec = launch(agent, &request);
        let line = [std::slice::from_ref(&spec.program), spec.args.as_slice()].concat().join(" ");
        assert_eq!(line, expected);
        assert_eq!(spec.stdin, b"do it", "the prompt goes through stdin");
        let bypass = by_name(agent).unwrap();
        assert!(spec.args.iter().all(|arg| !bypass.bypass_flags().contains(&arg.as_str())));
        assert!(!spec.args.iter().any(|arg| arg.contains("dangerously")));
    }
}

#[test]
fn what_an_agent_cannot_do_is_said() {
    let fork = Conversation::Fork { from: ID.into(), id: Some(NEW.into()), at: Some("u1".into()) };
    let codex = LaunchRequest { hook_command: Some(vec!["segno".into()]), ..full(fork) };
    assert_eq!(
        launch("codex", &codex).unsupported,
        [
            Unsupported::ToolHooks,
            Unsupported::ChosenId,
            Unsupported::ForkAt,
            Unsupported::MaxTurns,
            Unsupported::MaxCost
        ]
    );
    let hooks = |conversation| LaunchRequest {
        hook_command: Some(vec!["segno".into()]),
        private_tmp: Some("/run/s1".into()),
        ..full(conversation)
    };
    let fork =
        |from: &str| Conversation::Fork { from: from.into(), id: Some(NEW.into()), at: Some("u1".into()) };
    assert_eq!(
        launch("gemini", &hooks(fork("/chat"))).unsupported,
        [
            Unsupported::ChosenId,
            Unsupported::ForkAt,
            Unsupported::ToolHooks,
            Unsupported::MaxTurns,
            Unsupported::MaxCost
        ]
    );
    assert_eq!(
        launch("opencode", &hooks(fork("ses_1"))).unsupported,
        [Unsupported::ChosenId, Unsupported::ForkAt, Unsupported::MaxTurns, Unsupported::MaxCost]
    );
    let nowhere = LaunchRequest { private_tmp: None, ..hooks(Conversation::New) };
    assert!(launch("opencode", &nowhere).unsupported.contains(&Unsupported::ToolHooks));
    assert_eq!(launch("claude", &full(Conversation::New)).unsupported, []);
    assert_eq!(launch("codex", &request(Conversation::NewWithId(ID.into()))).native_id, None);
    assert_eq!(launch("claude", &request(Conversation::NewWithId(ID.into()))).native_id.as_deref(), Some(ID));
}

#[test]
fn bad_requests() {
    let claude = by_name("claude").unwrap();
    let codex = by_name("codex").unwrap();
    let empty = LaunchRequest { prompt: " \n".into(), ..LaunchRequest::default() };
    assert_eq!(claude.launch(&empty), Err(LaunchError::EmptyPrompt));
    let option = LaunchRequest { model: Some("--flag".into()), ..request(Conversation::New) };
    assert!(matches!(claude.launch(&option), Err(LaunchError::BadValue { what: "model", .. })));
    assert!(matches!(codex.launch(&option), Err(LaunchError::BadValue { what: "model", .. })));
    let resume = request(Conversation::Resume("--last".into()));
    assert!(claude.launch(&resume).is_err());
    // An unknown name would silently open a new thread.
    assert!(matches!(
        codex.launch(&request(Conversation::Resume("name".into()))),
        Err(LaunchError::NotUuid { .. })
    ));
    assert!(matches!(
        claude.launch(&request(Conversation::NewWithId("x".into()))),
        Err(LaunchError::NotUuid { .. })
    ));
    // It copies files, and a number would be taken for one of its list.
    let fork = Conversation::Fork { from: ID.into(), id: None, at: None };
    let gemini = by_name("gemini").unwrap();
    assert!(matches!(gemini.launch(&request(fork)), Err(LaunchError::NotRecord { .. })));
    assert!(matches!(
        gemini.launch(&request(Conversation::Resume("1".into()))),
        Err(LaunchError::NotUuid { .. })
    ));
    let zero = LaunchRequest { extra_args: vec!["a\0b".into()], ..request(Conversation::New) };
    assert!(claude.launch(&zero).is_err());
    assert_eq!(by_name("plain").unwrap().launch(&LaunchRequest::default()), Err(LaunchError::NoCommand));
}

#[test]
fn hooks_and_environment() {
    let command = vec!["/opt/my tools/segno".to_owned(), "hook".into(), "claude".into()];
    let request = LaunchRequest {
        hook_command: Some(command.clone()),
        private_tmp: Some("/run/s1".into()),
        env: [("SEGNO_RUN".to_owned(), "r1".to_owned())].into(),
        ..request(Conversation::New)
    };
    let spec = launch("claude", &request);
    let at = spec.args.iter().position(|arg| arg == "--settings").unwrap();
    let settings: serde_json::Value = serde_json::from_str(&spec.args[at + 1]).unwrap();
    let hook = &settings["hooks"]["PreToolUse"][0]["hooks"][0];
    assert_eq!(hook["command"], "'/opt/my tools/segno' hook claude");
    assert_eq!(spec.env_set["CLAUDE_CODE_TMPDIR"], "/run/s1");
    assert_eq!(spec.env_set["SEGNO_RUN"], "r1");
    for name in ["CLAUDECODE", "CLAUDE_CODE_MESSAGING_TOKEN", "CODEX_THREAD_ID"] {
        assert!(spec.env_remove.iter().any(|removed| removed == name), "{name}");
    }
    let spec = launch("codex", &request);
    let at = spec.args.iter().position(|arg| arg == "-c").unwrap();
    assert_eq!(spec.args[at + 1], r#"notify=["/opt/my tools/segno","hook","claude"]"#);
}

#[test]
fn plain_commands() {
    let spec = |prompt: plain::PromptVia| {
        let config = plain::PlainConfig {
            command: vec!["make".into(), "test".into()],
            prompt,
            ..plain::PlainConfig::default()
        };
        let request = LaunchRequest {
            extra_args: vec!["-j2".into()],
            model: Some("m".into()),
            ..request(Conversation::Resume("x".into()))
        };
        segno_agents::Agent::launch(&plain::Plain::new(config), &request).unwrap()
    };
    let on_stdin = spec(plain::PromptVia::Stdin);
    assert_eq!((on_stdin.program.as_str(), on_stdin.args.join(" ")), ("make", "test -j2".to_owned()));
    assert_eq!(on_stdin.stdin, b"do it");
    assert_eq!(on_stdin.unsupported, [Unsupported::Conversations, Unsupported::Model]);
    let as_argument = spec(plain::PromptVia::Argument);
    assert_eq!((as_argument.args.join("|"), as_argument.stdin.len()), ("test|-j2|do it".to_owned(), 0));
    let not_at_all = spec(plain::PromptVia::None);
    assert_eq!((not_at_all.args.join(" "), not_at_all.stdin.len()), ("test -j2".to_owned(), 0));
}

#[test]
fn files_of_one_run() {
    let request = LaunchRequest {
        hook_command: Some(vec!["segno".into(), "hook".into(), "it's".into()]),
        private_tmp: Some("/run/my session/".into()),
        max_turns: Some(3),
        env: [("SEGNO_RUN".to_owned(), "r1".to_owned()), ("API_KEY".to_owned(), "secret".to_owned())].into(),
        ..request(Conversation::New)
    };
    let spec = launch("gemini", &request);
    let [file] = spec.files.as_slice() else { panic!("{:?}", spec.files) };
    assert_eq!(spec.env_set["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"], format!("/run/my session/{}", file.name));
    assert_eq!(spec.env_set["GEMINI_CLI_NO_RELAUNCH"], "true");
    let settings: serde_json::Value = serde_json::from_str(&file.content).unwrap();
    assert_eq!(settings["model"]["maxSessionTurns"], 3);
    let hook = &settings["hooks"]["BeforeTool"][0]["hooks"][0];
    assert_eq!(hook["command"], r"segno hook 'it'\''s' || true");
    assert_eq!(hook["env"], serde_json::json!({ "SEGNO_RUN": "r1" }), "nothing secret is written down");

    let spec = launch("opencode", &request);
    let [file] = spec.files.as_slice() else { panic!("{:?}", spec.files) };
    let config: serde_json::Value = serde_json::from_str(&spec.env_set["OPENCODE_CONFIG_CONTENT"]).unwrap();
    assert_eq!(config, serde_json::json!({ "plugin": [format!("file:///run/my%20session/{}", file.name)] }));
    assert!(file.content.starts_with("const COMMAND = [\"segno\",\"hook\",\"it's\"];\n"));
    // Configuration that somebody else gave to this run stays.
    let theirs = r#"{"theme":"dark","plugin":["theirs"]}"#;
    let given = LaunchRequest {
        env: [("OPENCODE_CONFIG_CONTENT".to_owned(), theirs.to_owned())].into(),
        ..request.clone()
    };
    let spec = launch("opencode", &given);
    let config: serde_json::Value = serde_json::from_str(&spec.env_set["OPENCODE_CONFIG_CONTENT"]).unwrap();
    assert_eq!((&config["theme"], &config["plugin"][0]), (&"dark".into(), &"theirs".into()));
    assert_eq!(config["plugin"].as_array().unwrap().len(), 2);
    let odd = LaunchRequest {
        env: [("OPENCODE_CONFIG_CONTENT".to_owned(), "// not JSON".to_owned())].into(),
        ..request.clone()
    };
    let spec = launch("opencode", &odd);
    assert_eq!((spec.files.len(), spec.env_set["OPENCODE_CONFIG_CONTENT"].as_str()), (0, "// not JSON"));
    assert!(spec.unsupported.contains(&Unsupported::ToolHooks));

    for agent in ["claude", "codex", "gemini", "opencode"] {
        let nothing =
            LaunchRequest { private_tmp: Some("/run/s1".into()), ..self::request(Conversation::New) };
        assert!(launch(agent, &nothing).files.is_empty(), "{agent} needs none without hooks or caps");
    }
}

/// With a person at the terminal nothing is said about output, and a prompt cannot be taken for an option.
#[test]
fn at_a_terminal() {
    let request = |conversation: Conversation, prompt: &str| LaunchRequest {
        interactive: true,
        prompt: prompt.to_owned(),
        conversation,
        hook_command: Some(vec!["segno".to_owned(), "hook".to_owned()]),
        ..LaunchRequest::default()
    };
    let id = "01a1e211-0a50-72a1-bf8f-cde82bc50b1c".to_owned();
    let resume = || Conversation::Resume(id.clone());
    let args = |agent: &str, request: &LaunchRequest| {
        let spec = segno_agents::by_name(agent).unwrap().launch(request).unwrap();
        assert!(spec.stdin.is_empty(), "{spec:?}");
        spec.args.into_iter().filter(|arg| !arg.contains("segno")).collect::<Vec<_>>()
    };
    assert_eq!(args("claude", &request(resume(), "")), ["--resume", &id, "--settings"]);
    assert_eq!(args("claude", &request(Conversation::New, "--x")), ["--settings", "--", "--x"]);
    assert_eq!(args("codex", &request(resume(), "-x")), ["-c", "resume", &id, "--", "-x"]);
    assert_eq!(args("codex", &request(Conversation::New, "")), ["-c"]);
    assert_eq!(args("gemini", &request(resume(), "-x")), ["--prompt-interactive=-x", "--resume", &id]);
    assert_eq!(args("opencode", &request(resume(), "x")), ["--prompt=x", "--session", &id]);
}
