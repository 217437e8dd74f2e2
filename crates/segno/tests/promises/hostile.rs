//! Stores, spools, notes, bundles, indexes, exports and configurations that somebody made to hurt, or that were chewed
//! up on the way: nothing outside of our own directories is touched, no process of others is signalled, no command takes
//! more than 300 MB or 30 seconds.
//!
//! `SEGNO_HOSTILE` says how many there are, `SEGNO_SEED` which. Memory is measured where there is a `time` program.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;
use std::time::Instant;

use rusqlite::Connection;
use serde_json::Value;
use serde_json::json;

use crate::common::SEGNO;
use crate::common::TestEnv;
use crate::lab::program;
use crate::lab::skip;
use crate::lab::until;
use crate::lab::variable;
use crate::setup::Dice;

/// Most kilobytes that a command may take.
const MEMORY: u64 = 300 * 1024;
/// How many seconds a command may take.
const SECONDS: u64 = 30;

impl Dice {
    fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// Where something hostile can lie.
const KINDS: &[&str] = &[
    "store",
    "store",
    "store values",
    "store values",
    "spool",
    "note",
    "bundle",
    "export",
    "index",
    "config",
];

struct World {
    env: TestEnv,
    session: String,
    whole: BTreeMap<PathBuf, Vec<u8>>,
    process: Child,
    /// The most memory that a command took.
    most: u64,
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl World {
    /// A store with notes, a checkpoint, a run that was killed, a fact in the spool; beside it what others own.
    fn new() -> Self {
        let mut env = TestEnv::new();
        env.set("SEGNO_CHECKPOINT_FILES", "true");
        env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
        env.write("victim/thesis.txt", "years of work");
        env.write("project/a.txt", "mine\n");
        assert_eq!(
            env.shell("git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -q -m x")
                .code,
            0
        );
        let session = env.start(&["work"]);
        env.ok(&["note", "something", "--session", &session]);
        env.ok(&["checkpoint", "create", "first", "--session", &session]);
        env.ok(&["checkpoint", "export", "first", "../bundle", "--session", &session]);
        let document = env.raw(&["export", &session]).stdout;
        fs::write(env.path("export.json"), document).unwrap();
        let marker = env.path("begun");
        let script = format!("echo said; touch {}; exec sleep 600", marker.display());
        let mut command = env.command(SEGNO);
        let mut driver =
            command.args(["run", "--session", &session, "--", "sh", "-c", &script]).spawn().unwrap();
        let run = until("the command has begun and is recorded", || {
            let shown: Value = serde_json::from_slice(&env.raw(&["show", &session, "--json"]).stdout).ok()?;
            let run = shown["state"]["run"].clone();
            (marker.exists() && run["pid"].is_u64()).then_some(run)
        });
        driver.kill().unwrap();
        driver.wait().unwrap();
        let pid = u32::try_from(run["pid"].as_u64().unwrap()).unwrap();
        crate::lab::signal(pid, rustix::process::Signal::KILL);
        until("the command is gone", || (!fs::exists(format!("/proc/{pid}")).unwrap()).then_some(()));
        let busy = Connection::open(env.path("data/segno/segno.db")).unwrap();
        busy.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut command = env.command(SEGNO);
        let said =
            command.env("SEGNO_STORE_BUSY_TIMEOUT_MS", "100").args(["tokens", "7", "--session", &session]);
        assert!(said.output().unwrap().status.success());
        busy.execute_batch("ROLLBACK").unwrap();
        drop(busy);
        let process = program("sleep").arg("6000").env_clear().spawn().unwrap();
        let whole = env.files();
        Self { env, session, whole, process, most: 0 }
    }

    fn put_back(&self) {
        let present = self.env.files();
        for path in present.keys().filter(|path| !self.whole.contains_key(*path)) {
            let _ = fs::remove_file(path);
        }
        for (path, content) in &self.whole {
            if present.get(path) != Some(content) {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                let _ = fs::remove_file(path);
                fs::write(path, content).unwrap();
                use std::os::unix::fs::PermissionsExt as _;
                fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
            }
        }
    }

    /// Whatever somebody would like to see believed.
    fn lie(&self, dice: &mut Dice) -> Value {
        let victim = self.env.path("victim").to_str().unwrap().to_owned();
        let choices = [
            json!(victim),
            json!(format!("{victim}/thesis.txt")),
            json!("../../../../victim"),
            json!("../victim"),
            json!(self.process.id()),
            json!(-1),
            json!(u64::MAX),
            json!(i64::MAX),
            json!(1e300),
            json!(null),
            json!([]),
            json!({}),
            json!(""),
            json!("\u{0}"),
            json!("\u{1b}]0;x\u{7}\n[31m"),
            json!("x".repeat(1 << 20)),
            json!("$(touch ../victim/owned)"),
            json!("--upload-pack=touch ../victim/owned"),
            json!(true),
        ];
        dice.one_of(&choices).clone()
    }

    /// Puts a lie into a document.
    fn bend(&self, value: &mut Value, dice: &mut Dice) {
        match value {
            Value::Object(members) if !members.is_empty() && dice.below(8) > 0 => {
                let at = dice.below(members.len());
                if let Some((_, member)) = members.iter_mut().nth(at) {
                    self.bend(member, dice);
                }
            }
            Value::Array(items) if !items.is_empty() && dice.below(8) > 0 => {
                let at = dice.below(items.len());
                self.bend(&mut items[at], dice);
            }
            // As deep as nobody writes.
            other if dice.below(30) == 0 => {
                *other = serde_json::from_str(&format!("{}{}", "[".repeat(100), "]".repeat(100))).unwrap();
            }
            other => *other = self.lie(dice),
        }
    }

    fn bend_text(&self, bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
        match serde_json::from_slice::<Value>(bytes) {
            Ok(mut value) if dice.below(3) > 0 => {
                for _ in 0..=dice.below(3) {
                    self.bend(&mut value, dice);
                }
                value.to_string().into_bytes()
            }
            _ => chew(bytes, dice),
        }
    }

    /// Makes something hostile; says where it lies.
    fn plant(&self, kind: &str, dice: &mut Dice) -> PathBuf {
        let store = self.env.path("data/segno/segno.db");
        let one = |part: &str, dice: &mut Dice| {
            let found: Vec<&PathBuf> =
                self.whole.keys().filter(|path| path.to_str().unwrap().contains(part)).collect();
            assert!(!found.is_empty(), "nothing is like {part}");
            (*dice.one_of(&found)).clone()
        };
        let path = match kind {
            "store" | "store values" => store.clone(),
            "spool" => one("/spool/", dice),
            "note" => one("/note.json", dice),
            "bundle" => self.env.path("bundle"),
            "export" => self.env.path("export.json"),
            "index" => self.env.path("project/.git/index"),
            _ => self
                .env
                .path(dice.one_of::<&str>(&["project/.segno/config.toml", "config/segno/config.toml"])),
        };
        match kind {
            "store values" => self.bend_store(&store, dice),
            "config" => {
                let key = dice.one_of(&[
                    "store.url",
                    "run.allow",
                    "view.enabled",
                    "checkpoint.risky",
                    "agents.x.command",
                    "checkpoint.include_ignored",
                    "resume.auto",
                    "nonsense",
                ]);
                let text = format!("{key} = {}\n", self.lie(dice));
                let text = if dice.below(2) == 0 { chew(text.as_bytes(), dice) } else { text.into_bytes() };
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, text).unwrap();
            }
            "store" | "bundle" | "index" => fs::write(&path, chew(&self.whole[&path], dice)).unwrap(),
            _ => fs::write(&path, self.bend_text(&self.whole[&path], dice)).unwrap(),
        }
        path
    }

    /// Bends a value in a row of the store, with all that keeps it consistent left as it is.
    fn bend_store(&self, path: &Path, dice: &mut Dice) {
        let Ok(store) = Connection::open(path) else { return };
        let names = |sql: &str| -> Vec<String> {
            let mut found = store.prepare(sql).unwrap();
            let rows = found.query_map([], |row| row.get::<_, String>(0)).unwrap();
            rows.flatten().collect()
        };
        let tables =
            names("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
        for _ in 0..=dice.below(4) {
            let table = dice.one_of(&tables);
            let columns = names(&format!("SELECT name FROM pragma_table_info('{table}')"));
            let column = dice.one_of(&columns);
            let sql = format!("SELECT {column} FROM {table} ORDER BY random() LIMIT 1");
            let before = store.query_row(&sql, [], |row| row.get::<_, String>(0)).unwrap_or_default();
            let after = match serde_json::from_str::<Value>(&before) {
                Ok(mut value) => {
                    self.bend(&mut value, dice);
                    value.to_string()
                }
                Err(_) => match self.lie(dice) {
                    Value::String(text) => text,
                    other => other.to_string(),
                },
            };
            // What the schema refuses cannot come to anybody that way.
            let _ = store.execute(&format!("UPDATE OR IGNORE {table} SET {column} = ?1"), [after]);
        }
    }

    /// A command as somebody runs it; it ends by itself, soon, without taking the machine's memory.
    fn meets(&mut self, what: &str, args: &[&str]) {
        let measured = Path::new("/usr/bin/time").exists();
        let peak = self.env.path("peak");
        let _ = fs::remove_file(&peak);
        let mut command = self.env.command(if measured { "/usr/bin/time" } else { "env" });
        if measured {
            command.args(["-q", "-f", "%M", "-o", peak.to_str().unwrap()]);
        }
        let begin = Instant::now();
        let limit = SECONDS.to_string();
        let said = command.args(["timeout", "-s", "KILL", &limit, SEGNO]).args(args).output().unwrap();
        let took = begin.elapsed();
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        let tail: String = text.chars().take(2_000).collect();
        let code = said.status.code();
        assert!(took < Duration::from_secs(SECONDS), "{what}: {args:?} took {took:?}: {tail}");
        assert!(
            code.is_some_and(|code| code < 100) && !text.contains("panicked"),
            "{what}: {args:?}: {code:?} {tail}"
        );
        if let Some(used) = fs::read_to_string(&peak).ok().and_then(|text| text.trim().parse::<u64>().ok()) {
            self.most = self.most.max(used);
            assert!(used <= MEMORY, "{what}: {args:?} took {used} kB: {tail}");
        }
    }

    /// What others own is as it was.
    fn check(&mut self, what: &str, planted: &Path) {
        assert!(self.process.try_wait().unwrap().is_none(), "{what}: a process of others was ended");
        let state = fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        assert!(!state.contains(") T "), "{what}: a process of others was stopped");
        let ours = ["/data/", "/state/", "/config/", "/project/.segno/", "/project/.git/", "/home/"];
        let others = |files: BTreeMap<PathBuf, Vec<u8>>| -> BTreeMap<PathBuf, Vec<u8>> {
            let is_ours = |path: &Path| ours.iter().any(|part| path.to_str().unwrap().contains(part));
            files
                .into_iter()
                .filter(|(path, _)| !is_ours(path) && path != planted && !path.ends_with("peak"))
                .collect()
        };
        let (before, after) = (others(self.whole.clone()), others(self.env.files()));
        let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&after), names(&before), "{what}: files of others");
        assert!(after == before, "{what}: what is in files of others changed");
    }
}

/// Bytes that were damaged on the way: changed, cut, doubled, blown up.
fn chew(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len().max(1));
        match dice.below(6) {
            0 => bytes.truncate(at),
            1 => {
                let piece = bytes[at..(at + 4096).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            2 => bytes.iter_mut().skip(at).take(8).for_each(|byte| *byte = 0xff),
            3 => bytes.iter_mut().skip(at).take(512).for_each(|byte| *byte = 0),
            4 if bytes.len() < 1 << 20 => bytes.extend(vec![b'['; 1 << 20]),
            _ => bytes.iter_mut().skip(at).step_by(97).take(20).for_each(|byte| *byte ^= 0x5a),
        }
    }
    bytes
}

promise!(
    /// Whatever is found in a store, beside it or in a project: it is refused or read, and hurts nobody.
    fn what_comes_from_elsewhere_hurts_nobody() {
        let number = |name: &str, default: u64| variable(name).map_or(default, |n| n.parse().unwrap());
        let (cases, mut dice) = (number("SEGNO_HOSTILE", 12), Dice(number("SEGNO_SEED", 7) | 1));
        let mut world = World::new();
        let mut met = BTreeMap::new();
        for case in 0..cases {
            world.put_back();
            let kind = *dice.one_of(KINDS);
            *met.entry(kind).or_insert(0) += 1;
            let planted = world.plant(kind, &mut dice);
            let what = format!("case {case} ({kind})");
            let (bundle, export) = (world.env.path("bundle"), world.env.path("export.json"));
            let (bundle, export) = (bundle.to_str().unwrap().to_owned(), export.to_str().unwrap().to_owned());
            let (store, session) = (world.env.path("data/segno/segno.db"), world.session.clone());
            let store = format!("sqlite:{}", store.display());
            match kind {
                "bundle" => world.meets(&what, &["checkpoint", "import", &bundle, "--session", &session]),
                "export" => {
                    let new = format!("sqlite:{}", world.env.path("data/other/segno.db").display());
                    world.meets(&what, &["--store", &new, "import", &export]);
                    world.meets(&what, &["--store", &new, "show", "last"]);
                }
                "index" => world.meets(&what, &["checkpoint", "create", "again", "--session", &session]),
                _ => {}
            }
            for args in [
                &["ls", "--all"][..],
                &["show", "last"],
                &["log", "last", "--json"],
                &["resume", "last", "--show-brief"],
                &["checkpoint", "list", "--session", &session],
                &["kill", &session],
                &["doctor", "--deep"],
                &["doctor", "--repair"],
                &["ls"],
            ] {
                let args: Vec<&str> = ["--store", &store].into_iter().chain(args.iter().copied()).collect();
                world.meets(&what, &args);
            }
            world.check(&what, &planted);
        }
        // Shown with --no-capture, for the long version.
        skip(&format!("nothing: {cases} cases {met:?}, at most {} kB", world.most));
    }
);
