//! Hooks go into settings in all the shapes that people have, and leave no trace when they are taken out.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;

use segno_agents::watching::Standing;
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
        let plan = self.installer.plan_install(agent).unwrap_or_else(|why| panic!("{agent}: {why}"));
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

#[test]
fn settings_in_fifty_shapes_come_back_to_the_byte() {
    for agent in segno_agents::CODING {
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
            let before = all(&house.home());
            house.install(agent);
            assert_eq!(house.installer.standing(agent).unwrap().1, Standing::Complete, "{agent} {seed}");
            let once = all(&house.home());
            assert_ne!(once, before, "{agent} {seed}");
            assert!(
                house.installer.plan_install(agent).unwrap().is_empty(),
                "{agent} {seed}: it is there already"
            );
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
        let why = house.installer.plan_install("claude").unwrap_err().to_string();
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
    let plan = house.installer.plan_install("claude").unwrap();
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
    for agent in segno_agents::CODING {
        house.install(agent);
    }
    for file in [".claude/settings.json", ".codex/hooks.json", ".gemini/settings.json", "opencode.json"] {
        assert!(project.join(file).is_file(), "{file}");
    }
    assert!(all(&house.home()).is_empty(), "nothing of the person's is touched");
    for agent in segno_agents::CODING {
        house.remove(agent);
    }
    assert!(all(&project).is_empty());
    symlink(house.home(), project.join(".claude")).unwrap();
    let why = house.installer.plan_install("claude").unwrap_err().to_string();
    assert!(why.contains("leads out of the project"), "{why}");
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
