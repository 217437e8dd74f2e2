//! Hooks go into settings in all the shapes that people have, and leave no trace when they are taken out.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;

use segno_agents::watching::Standing;
use segno_engine::install::Extras;
use segno_engine::install::InstallError;
use segno_engine::install::Installer;
use segno_engine::install::Scope;

/// The shapes of each agent's settings.
const SHAPES: u64 = 50;

struct House {
    dir: tempfile::TempDir,
    installer: Installer,
}

impl House {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        std::fs::create_dir(&home).unwrap();
        let variables: BTreeMap<String, String> =
            [("HOME".to_owned(), home.to_str().unwrap().to_owned())].into();
        let (state, data) = (dir.path().join("state"), dir.path().join("data"));
        let installer = Installer { scope: Scope::User, variables, state, data, program: "segno".to_owned() };
        Self { dir, installer }
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn install(&self, agent: &str) {
        self.install_with(agent, Extras::default());
    }

    fn install_with(&self, agent: &str, extras: Extras) {
        let plan = self.installer.plan_install(agent, extras).unwrap_or_else(|why| panic!("{agent}: {why}"));
        self.installer.carry_out(&plan).unwrap();
    }

    fn remove(&self, agent: &str) {
        let plan = self.installer.plan_removal(agent).unwrap_or_else(|why| panic!("{agent}: {why}"));
        self.installer.carry_out(&plan).unwrap();
    }
}

/// Everything below a folder: what it is, who may read it and what is in it.
fn all(folder: &Path) -> BTreeMap<PathBuf, (u32, Option<PathBuf>, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let content = if meta.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            found.insert(path.clone(), (meta.mode(), std::fs::read_link(&path).ok(), content));
            if meta.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.roll(of.len() as u64)).unwrap()]
    }
}

/// Settings as somebody may have written them.
fn settings(dice: &mut Dice) -> String {
    let mut members = Vec::new();
    for at in 0..dice.roll(6) {
        let value = dice.pick(&[
            "1",
            "true",
            "\"a // b\"",
            "[1, 2]",
            "[\n    \"x\",\n    \"y\" // mine\n  ]",
            "{ }",
            "{\"deep\": [[{}]]}",
        ]);
        members.push(format!("\"key{at}\": {value}"));
    }
    if dice.roll(2) == 0 {
        let theirs = "{\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"bell\"}]}";
        let list = match dice.roll(4) {
            0 => "[]".to_owned(),
            1 => format!("[{theirs}]"),
            2 => format!("[\n      {theirs},\n    ]"),
            _ => format!("[\n      // mine\n      {theirs} /* loud */\n    ]"),
        };
        let events: Vec<String> = ["PreToolUse", "BeforeTool", "Stop", "Notification"]
            .iter()
            .filter(|_| dice.roll(2) == 0)
            .map(|event| format!("\n    \"{event}\": {list}"))
            .collect();
        members.push(format!("\"hooks\": {{{}{}}}", events.join(","), dice.pick(&["", "\n  ", "\n"])));
    }
    if dice.roll(3) == 0 {
        let list = dice.pick(&["[]", "[\"a\"]", "[\n    \"a\",\n    \"b\"\n  ]"]);
        members.push(format!("\"plugin\": {list}"));
    }
    for (name, entry) in [
        ("mcpServers", "\"theirs\": {\"command\": \"x\", \"args\": [\"mcp\"]}"),
        ("mcp", "\"theirs\": {\"type\": \"local\", \"command\": [\"x\"]} // loud\n"),
    ] {
        if dice.roll(4) == 0 {
            let inner = if dice.roll(2) == 0 { "" } else { entry };
            members.push(format!("\"{name}\": {{{inner}}}"));
        }
    }
    if dice.roll(4) == 0 {
        members
            .push("\"statusLine\": {\"type\": \"command\", \"command\": \"~/bin/statusline.sh\"}".to_owned());
    }
    if dice.roll(8) == 0 {
        let long = "lorem ipsum ".repeat(20_000);
        members.push(format!("\"large\": \"{long}\""));
    }
    let blank = dice.pick(&["\n  ", "\n\t", "\n    ", " ", "", "\n\n  // what is this?\n  "]);
    let trailing = if !members.is_empty() && dice.roll(4) == 0 { "," } else { "" };
    let body = members.join(&format!(",{blank}"));
    let end = dice.pick(&["\n", "", "\n\n"]);
    let top = dice.pick(&["", "", "// my settings\n", "/* keep */ "]);
    let text = format!("{top}{{{blank}{body}{trailing}{}}}{end}", dice.pick(&["\n", "", " "]));
    let text = if dice.roll(4) == 0 { text.replace('\n', "\r\n") } else { text };
    if dice.roll(5) == 0 { format!("\u{feff}{text}") } else { text }
}

/// Settings in TOML as somebody may have written them.
fn toml_settings(dice: &mut Dice) -> String {
    let text = dice.pick(&[
        "",
        "\n",
        "model = \"x\"",
        "# mine\nmodel = \"x\" # the good one\n\n[features]\nhooks = true\n",
        "[mcp_servers.theirs]\ncommand = \"x\"\nargs = [\"mcp\"]\n\n\n",
        "[projects.\"/p\"]\ntrust_level = \"trusted\"\n[hooks.state.\"a:b\"]\ntrusted_hash = \"sha256:1\"\n",
    ]);
    let text = text.to_owned();
    if dice.roll(4) == 0 { text.replace('\n', "\r\n") } else { text }
}

/// What is put in besides hooks: each of the eight ways in turn, and commands, which are many files, now and then.
fn extras(seed: u64) -> Extras {
    Extras { status_line: seed & 1 > 0, server: seed & 2 > 0, commands: seed.is_multiple_of(7) }
}

#[test]
fn settings_in_fifty_shapes_come_back_to_the_byte() {
    for agent in &segno_agents::watched() {
        for seed in 1..=SHAPES {
            let house = House::new();
            let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            dice.roll(2);
            let path = house.installer.settings_path(agent).unwrap();
            let folder = path.parent().unwrap();
            match dice.roll(6) {
                // Nothing is there yet, not even the folder.
                0 => {}
                1 => std::fs::create_dir_all(folder).unwrap(),
                2 => {
                    std::fs::create_dir_all(folder).unwrap();
                    std::fs::write(house.home().join("dotfile"), settings(&mut dice)).unwrap();
                    symlink(house.home().join("dotfile"), &path).unwrap();
                }
                _ => {
                    std::fs::create_dir_all(folder).unwrap();
                    let text = if dice.roll(8) == 0 {
                        dice.pick(&["", "\n", "{}"]).to_owned()
                    } else {
                        settings(&mut dice)
                    };
                    std::fs::write(&path, text).unwrap();
                    let mode = [0o600, 0o644, 0o664][usize::try_from(dice.roll(3)).unwrap()];
                    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
                }
            }
            // What servers are named in, where that is a file of its own.
            if dice.roll(3) > 0 && *agent == "claude" {
                std::fs::write(house.home().join(".claude.json"), settings(&mut dice)).unwrap();
            }
            if dice.roll(3) > 0 && *agent == "codex" {
                std::fs::create_dir_all(folder).unwrap();
                std::fs::write(folder.join("config.toml"), toml_settings(&mut dice)).unwrap();
            }
            if dice.roll(4) == 0 {
                std::fs::create_dir_all(folder.join("commands")).unwrap();
                std::fs::write(folder.join("commands/sessions.md"), "theirs").unwrap();
            }
            let (before, extras) = (all(&house.home()), extras(seed));
            house.install_with(agent, extras);
            assert_eq!(house.installer.standing(agent).unwrap().1, Standing::Complete, "{agent} {seed}");
            let once = all(&house.home());
            assert_ne!(once, before, "{agent} {seed}");
            for again in [extras, Extras::default()] {
                let plan = house.installer.plan_install(agent, again).unwrap();
                assert!(plan.is_empty(), "{agent} {seed}: it is there already");
            }
            house.install(agent);
            assert_eq!(all(&house.home()), once, "{agent} {seed}: a second time changes nothing");
            house.remove(agent);
            assert_eq!(all(&house.home()), before, "{agent} {seed}");
            house.remove(agent);
            assert_eq!(all(&house.home()), before, "{agent} {seed}: a second time changes nothing");
            assert_eq!(
                all(&house.dir.path().join("state")).len(),
                1,
                "{agent} {seed}: only an empty folder is left"
            );
        }
    }
}

#[test]
fn what_is_asked_for_later_comes_to_what_is_there_and_goes_with_it() {
    for agent in &segno_agents::watched() {
        let house = House::new();
        let path = house.installer.settings_path(agent).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "{\n  \"mine\": 1 // this\n}\n").unwrap();
        let before = all(&house.home());
        house.install(agent);
        let hooks = all(&house.home());
        house.install_with(agent, extras(7));
        let whole = all(&house.home());
        assert!(whole.len() > hooks.len(), "{agent}: commands are files");
        house.install(agent);
        assert_eq!(all(&house.home()), whole, "{agent}: what is not asked for again stays");
        house.remove(agent);
        assert_eq!(all(&house.home()), before, "{agent}");
    }
}

#[test]
fn what_is_somebody_elses_is_named_and_stays() {
    let house = House::new();
    let path = house.installer.settings_path("claude").unwrap();
    std::fs::create_dir_all(path.parent().unwrap().join("commands")).unwrap();
    std::fs::write(&path, "{\"statusLine\": {\"type\": \"command\", \"command\": \"my-statusline\"}}")
        .unwrap();
    std::fs::write(path.parent().unwrap().join("commands/wake.md"), "mine").unwrap();
    let plan = house.installer.plan_install("claude", extras(7)).unwrap();
    assert_eq!(plan.notices.len(), 2, "{:?}", plan.notices);
    assert!(plan.notices[0].ends_with("has a `statusLine` of its own, which stays as it is"));
    assert!(plan.notices[1].ends_with("commands/wake.md is somebody else's and stays as it is"));
    house.installer.carry_out(&plan).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("my-statusline") && !text.contains("segno statusline"), "{text}");
    // A command that somebody made their own stays when ours go.
    let own = path.parent().unwrap().join("commands/sessions.md");
    std::fs::write(&own, "changed").unwrap();
    let plan = house.installer.plan_removal("claude").unwrap();
    assert!(
        plan.notices[0].ends_with("commands/sessions.md was changed since and stays"),
        "{:?}",
        plan.notices
    );
    house.installer.carry_out(&plan).unwrap();
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "changed");
    assert_eq!(std::fs::read_dir(own.parent().unwrap()).unwrap().count(), 2);
    // So does a server of the same name that is not ours.
    let toml = house.home().join(".codex/config.toml");
    std::fs::create_dir_all(toml.parent().unwrap()).unwrap();
    std::fs::write(&toml, "[mcp_servers.segno]\ncommand = \"other\"\n").unwrap();
    let why = house.installer.plan_install("codex", extras(2)).unwrap_err().to_string();
    assert!(why.contains("an mcp_servers.segno of its own"), "{why}");
    // And what cannot be added to at the end of the file: the result would be no TOML.
    for inline in ["mcp_servers = { other = { command = \"true\" } }\n", "mcp_servers = {}\n"] {
        std::fs::write(&toml, inline).unwrap();
        let why = house.installer.plan_install("codex", extras(2)).unwrap_err();
        let InstallError::File { why: words, hint, .. } = &why else { panic!("{why}") };
        assert!(words.contains("its mcp_servers is one value"), "{words}");
        assert!(hint.ends_with("segno = { command = \"segno\", args = [\"mcp\"] }"), "{hint}");
        assert_eq!(std::fs::read_to_string(&toml).unwrap(), inline);
    }
    std::fs::write(&toml, "mcp_servers.other.command = \"true\"\r\n").unwrap();
    house.installer.plan_install("codex", extras(2)).unwrap();
    std::fs::write(&toml, "[broken").unwrap();
    let why = house.installer.plan_install("codex", extras(2)).unwrap_err().to_string();
    assert!(why.contains("it cannot be read"), "{why}");
}

#[test]
fn where_servers_and_commands_go() {
    let mut house = House::new();
    for agent in &segno_agents::watched() {
        house.install_with(agent, extras(7));
    }
    let read = |file: &str| {
        std::fs::read_to_string(house.home().join(file)).unwrap_or_else(|why| panic!("{file}: {why}"))
    };
    assert!(read(".claude/settings.json").contains("segno statusline || true"));
    assert!(read(".claude.json").contains("\"segno\": {"));
    assert!(
        read(".codex/config.toml").contains("[mcp_servers.segno]\ncommand = \"segno\"\nargs = [\"mcp\"]\n")
    );
    assert!(read(".codex/skills/segno/SKILL.md").contains("`segno wake --show-brief`"));
    assert!(read(".gemini/settings.json").contains("\"mcpServers\""));
    assert!(read(".gemini/commands/sessions.toml").contains("segno sessions $1"));
    assert!(read(".config/opencode/opencode.json").contains("\"mcp\""));
    assert!(read(".config/opencode/command/segno-undo.md").contains("segno undo --dry-run $ARGUMENTS"));
    assert!(
        read(".claude/commands/segno-checkpoint.md")
            .contains("allowed-tools: Bash(segno checkpoint --make:*)")
    );
    let project = house.dir.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let others = all(&house.home());
    house.installer.scope = Scope::Project(project.clone());
    for agent in &segno_agents::watched() {
        house.install_with(agent, extras(7));
    }
    for file in
        [".mcp.json", ".codex/config.toml", ".agents/skills/segno/SKILL.md", ".opencode/command/wake.md"]
    {
        assert!(project.join(file).is_file(), "{file}");
    }
    for agent in &segno_agents::watched() {
        house.remove(agent);
    }
    assert_eq!((all(&project).len(), all(&house.home())), (0, others));
}

#[test]
fn a_few_lines_in_agents_md_come_and_go() {
    let house = House::new();
    let project = house.dir.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let file = project.join("AGENTS.md");
    for text in [None, Some("# Rules\n\nBe kind.\n"), Some("no end of line")] {
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let plan = house.installer.plan_agents_md(&project, false).unwrap();
        house.installer.carry_out(&plan).unwrap();
        let with = std::fs::read_to_string(&file).unwrap();
        assert!(
            with.starts_with(text.unwrap_or_default()) && with.contains("segno resume --show-brief"),
            "{with}"
        );
        assert!(house.installer.plan_agents_md(&project, false).unwrap().is_empty());
        let plan = house.installer.plan_agents_md(&project, true).unwrap();
        house.installer.carry_out(&plan).unwrap();
        assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), text);
    }
}

#[test]
fn what_somebody_else_changed_meanwhile_stays() {
    let house = House::new();
    let path = house.installer.settings_path("claude").unwrap();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "{\n  \"model\": \"opus\"\n}\n").unwrap();
    house.install("claude");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"opus\"", "\"sonnet\",\n  \"theme\": \"dark\"")).unwrap();
    house.remove("claude");
    let after = std::fs::read_to_string(&path).unwrap();
    assert_eq!(after, "{\n  \"model\": \"sonnet\",\n  \"theme\": \"dark\"\n}\n");
}

#[test]
fn the_note_holds_nothing_of_the_settings() {
    let house = House::new();
    let path = house.installer.settings_path("gemini").unwrap();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "{\"key\": \"s3cret-value\"}").unwrap();
    house.install("gemini");
    let notes = all(&house.dir.path().join("state"));
    let text: String =
        notes.values().map(|(.., content)| String::from_utf8_lossy(content).into_owned()).collect();
    assert!(!text.is_empty() && !text.contains("s3cret-value"), "{text}");
}

#[test]
fn hooks_of_an_earlier_version_are_brought_up_to_date() {
    let house = House::new();
    let path = house.installer.settings_path("codex").unwrap();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let old = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"/opt/segno hook --watch codex\"}]}]}}\n";
    std::fs::write(&path, old).unwrap();
    assert!(matches!(house.installer.standing("codex").unwrap().1, Standing::Changed(_)));
    house.install("codex");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        !text.contains("/opt/segno") && house.installer.standing("codex").unwrap().1 == Standing::Complete
    );
    house.remove("codex");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}\n");
}

#[test]
fn what_is_broken_protected_or_elsewhere_is_left_alone() {
    let house = House::new();
    let path = house.installer.settings_path("claude").unwrap();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let says = |wanted: &str| {
        let why = house.installer.plan_install("claude", Extras::default()).unwrap_err().to_string();
        assert!(why.contains(wanted), "{why}");
    };
    for (text, wanted) in [
        (&b"{\"a\": 1"[..], "line 1"),
        (b"{\n \"a\" 1}", "line 2"),
        (b"[]", "no object"),
        (b"{\"hooks\": []}", "`hooks` is no object"),
        (b"{\"a\": \"\xff\"}", "UTF-8"),
    ] {
        std::fs::write(&path, text).unwrap();
        says(wanted);
        assert_eq!(std::fs::read(&path).unwrap(), text);
    }
    std::fs::write(&path, "{}").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    says("read-only");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::hard_link(&path, house.home().join("twin")).unwrap();
    says("hard link");
    std::fs::remove_file(house.home().join("twin")).unwrap();
    // Somebody else is quicker than the person who thinks about it.
    let plan = house.installer.plan_install("claude", Extras::default()).unwrap();
    std::fs::write(&path, "{\"new\": 1}").unwrap();
    let why = house.installer.carry_out(&plan).unwrap_err();
    assert!(matches!(&why, InstallError::File { why, .. } if why.contains("just been changed")), "{why}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"new\": 1}");
}

#[test]
fn a_project_has_settings_of_its_own_and_nothing_leads_out_of_it() {
    let mut house = House::new();
    let project = house.dir.path().join("project");
    std::fs::create_dir(&project).unwrap();
    house.installer.scope = Scope::Project(project.clone());
    for agent in &segno_agents::watched() {
        house.install(agent);
    }
    for file in [".claude/settings.json", ".codex/hooks.json", ".gemini/settings.json", "opencode.json"] {
        assert!(project.join(file).is_file(), "{file}");
    }
    assert!(all(&house.home()).is_empty(), "nothing of the person's is touched");
    for agent in &segno_agents::watched() {
        house.remove(agent);
    }
    assert!(all(&project).is_empty());
    symlink(house.home(), project.join(".claude")).unwrap();
    let why = house.installer.plan_install("claude", Extras::default()).unwrap_err().to_string();
    assert!(why.contains("leads out of the project"), "{why}");
}

#[test]
fn what_keeps_hooks_from_running_is_named() {
    let house = House::new();
    let root = house.dir.path().join("project");
    std::fs::create_dir_all(root.join(".claude")).unwrap();
    let project = Installer { scope: Scope::Project(root.clone()), ..house.installer.clone() };
    let problems = |agent: &str| {
        let health = house.installer.health(&project).into_iter().find(|health| health.agent == agent);
        health.unwrap_or_else(|| panic!("{agent} has hooks")).problems
    };
    assert!(house.installer.health(&project).is_empty(), "nothing is installed yet");
    for agent in &segno_agents::watched() {
        house.install(agent);
    }
    assert_eq!((problems("claude"), problems("gemini"), problems("opencode")), (vec![], vec![], vec![]));
    assert_eq!(problems("codex"), ["installed, not yet trusted: type /hooks in codex and look at them once"]);
    // One entry is not all of them, and one that is switched off is none.
    let hooks = house.installer.settings_path("codex").unwrap();
    let text: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&hooks).unwrap()).unwrap();
    let snake = |event: &str| {
        let words = event.split_inclusive(|_: char| false).flat_map(str::chars);
        words.fold(String::new(), |mut snake, c| {
            if c.is_ascii_uppercase() && !snake.is_empty() {
                snake.push('_');
            }
            snake.push(c.to_ascii_lowercase());
            snake
        })
    };
    let entry = |event: &str, more: &str| {
        format!(
            "[hooks.state.\"{}:{}:0:0\"]\ntrusted_hash = \"sha256:00\"\n{more}",
            hooks.display(),
            snake(event)
        )
    };
    let events: Vec<&String> = text["hooks"].as_object().unwrap().keys().collect();
    let config = hooks.with_file_name("config.toml");
    std::fs::write(&config, entry("PreToolUse", "")).unwrap();
    let said = problems("codex");
    assert!(said[0].starts_with("not yet trusted: ") && !said[0].contains("PreToolUse"), "{said:?}");
    let all: String = events.iter().map(|event| entry(event, "")).collect();
    std::fs::write(&config, &all).unwrap();
    assert_eq!(problems("codex"), Vec::<String>::new());
    std::fs::write(&config, all.replacen(":00\"\n", ":00\"\nenabled = false\n", 1)).unwrap();
    assert!(problems("codex")[0].starts_with("switched off: "), "{:?}", problems("codex"));
    std::fs::write(&config, "broken =").unwrap();
    assert!(
        problems("codex")[0].contains("is not known: its config.toml is no TOML"),
        "{:?}",
        problems("codex")
    );
    std::fs::remove_file(&config).unwrap();
    // A plug-in that is named and is not there records nothing.
    let plugin = house.dir.path().join("data/segno-watch.js");
    let text = std::fs::read_to_string(&plugin).unwrap();
    std::fs::write(&plugin, "// x").unwrap();
    assert!(problems("opencode")[0].contains("was changed, or is of another version"));
    std::fs::remove_file(&plugin).unwrap();
    assert!(problems("opencode")[0].contains("is not there, and nothing is recorded"));
    std::fs::write(&plugin, text).unwrap();
    // A project's own settings, which nobody may have looked at, switch them off.
    let local = root.join(".claude/settings.local.json");
    std::fs::write(&local, "{\"disableAllHooks\": true}").unwrap();
    assert_eq!(problems("claude"), [format!("switched off: disableAllHooks is set in {}", local.display())]);
    std::fs::remove_file(&local).unwrap();
    let settings = house.installer.settings_path("gemini").unwrap();
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text.replacen('{', "{\"hooksConfig\": {\"enabled\": false},", 1)).unwrap();
    assert!(problems("gemini")[0].starts_with("switched off: hooksConfig.enabled is false in "));
    std::fs::write(&settings, &text).unwrap();
    // The same as a plug-in: everything would be told twice.
    std::fs::create_dir_all(house.home().join(".gemini/extensions/segno")).unwrap();
    assert!(
        problems("gemini")[0].starts_with("a plug-in of segno is installed too"),
        "{:?}",
        problems("gemini")
    );
    let settings = house.installer.settings_path("claude").unwrap();
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text.replacen('{', "{\"enabledPlugins\": {\"segno@segno\": true},", 1))
        .unwrap();
    assert!(
        problems("claude")[0].starts_with("a plug-in of segno is installed too"),
        "{:?}",
        problems("claude")
    );
    std::fs::write(&settings, text.replace("PreToolUse", "PreTool")).unwrap();
    assert_eq!(problems("claude"), ["missing or different: PreToolUse; segno init repairs them"]);
    std::fs::write(&settings, "{}").unwrap();
    assert_eq!(problems("claude"), ["they were taken out by somebody else; segno init puts them back"]);
    // Two at once.
    house.install("claude");
    let plan = project.plan_install("claude", Extras::default()).unwrap();
    project.carry_out(&plan).unwrap();
    assert!(problems("claude")[0].contains("too, and run twice"), "{:?}", problems("claude"));
}

#[test]
fn each_account_has_settings_of_its_own() {
    let mut house = House::new();
    for account in ["work", "home"] {
        let folder = house.dir.path().join(account);
        house.installer.variables.insert("CLAUDE_CONFIG_DIR".to_owned(), folder.to_str().unwrap().to_owned());
        house.install_with("claude", extras(7));
        assert!(folder.join("settings.json").is_file() && folder.join(".claude.json").is_file());
        assert!(folder.join("commands/sessions.md").is_file());
    }
    house.remove("claude");
    assert!(!house.dir.path().join("home/settings.json").exists(), "what was made for it is gone");
    assert!(house.dir.path().join("work/settings.json").is_file(), "the other account keeps its own");
    house
        .installer
        .variables
        .insert("CLAUDE_CONFIG_DIR".to_owned(), house.dir.path().join("work").to_str().unwrap().to_owned());
    house.remove("claude");
    assert!(!house.dir.path().join("work").exists());
}

#[test]
fn variables_of_the_agents_are_obeyed() {
    let mut house = House::new();
    for (name, agent, wanted) in [
        ("CLAUDE_CONFIG_DIR", "claude", "settings.json"),
        ("CODEX_HOME", "codex", "hooks.json"),
        ("GEMINI_CLI_HOME", "gemini", ".gemini/settings.json"),
        ("XDG_CONFIG_HOME", "opencode", "opencode/opencode.json"),
    ] {
        assert!(Installer::variables_wanted().contains(&name));
        let folder = house.dir.path().join(name);
        house.installer.variables.insert(name.to_owned(), folder.to_str().unwrap().to_owned());
        assert_eq!(house.installer.settings_path(agent).unwrap(), folder.join(wanted));
    }
    // The plug-in is named where opencode looks already.
    let other = house.dir.path().join("XDG_CONFIG_HOME/opencode/opencode.jsonc");
    std::fs::create_dir_all(other.parent().unwrap()).unwrap();
    std::fs::write(&other, "{}").unwrap();
    assert_eq!(house.installer.settings_path("opencode").unwrap(), other);
}
