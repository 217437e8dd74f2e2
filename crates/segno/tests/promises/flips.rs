//! Damage anywhere: in the database with its rows and texts, in its log, in what is noted beside them, in packs of
//! snapshots, in the spool, in views and caches.
//!
//! `SEGNO_FLIPS` says how many bits and bytes are changed, each in a world that was whole before; `SEGNO_SEED` which.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::SEGNO;
use crate::common::TestEnv;
use crate::lab::skip;
use crate::lab::variable;
use crate::repair::three_sessions;
use crate::setup::Dice;

/// What kinds of files there are to damage, each as likely as it is often in the list.
const KINDS: &[fn(&Path) -> bool] = &[
    |path| path.ends_with("segno.db"),
    |path| path.ends_with("segno.db"),
    |path| path.ends_with("segno.db"),
    |path| path.ends_with("segno.db-wal"),
    |path| path.ends_with("segno.db-wal"),
    |path| path.ends_with("segno.db.heads"),
    |path| has(path, "/snapshots/") && has(path, "/objects/"),
    |path| has(path, "/snapshots/") && has(path, "/objects/"),
    // Names, caches and notes of the snapshots.
    |path| has(path, "/snapshots/") && !has(path, "/objects/"),
    |path| has(path, "/spool/"),
    |path| has(path, "/state/") && !has(path, "/spool/"),
    |path| has(path, "/project/.segno/"),
];

fn has(path: &Path, part: &str) -> bool {
    path.to_str().unwrap().contains(part)
}

/// A whole world, as it is put back before every flip.
struct Whole {
    env: TestEnv,
    sessions: Vec<String>,
    files: BTreeMap<PathBuf, (Vec<u8>, u32)>,
    events: BTreeSet<String>,
}

/// What the files of the project are, and what they are after going back to the checkpoint `old`.
const NEW: [(&str, &str); 3] = [("a.txt", "new a\n"), ("b.txt", "new b\n"), ("d/c.txt", "new c\n")];
const OLD: [(&str, &str); 3] = [("a.txt", "old a\n"), ("b.txt", "old b\n"), ("d/c.txt", "old c\n")];

impl Whole {
    fn new() -> Self {
        let mut env = TestEnv::new();
        env.set("SEGNO_CHECKPOINT_FILES", "true");
        env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
        for (name, content) in OLD {
            env.write(&format!("project/{name}"), content);
        }
        let sessions = three_sessions(&env);
        env.ok(&["note", "--session", &sessions[0], &"a long text ".repeat(1_500)]);
        env.ok(&["task", "add", "--session", &sessions[1], "a row that changes"]);
        env.ok(&["checkpoint", "create", "old", "--session", &sessions[2]]);
        env.ok(&["checkpoint", "gc", "--session", &sessions[2]]);
        for (name, content) in NEW {
            env.write(&format!("project/{name}"), content);
        }
        env.ok(&["checkpoint", "create", "new", "--session", &sessions[2]]);
        env.ok(&["ls"]);
        let mut whole = Self { env, sessions, files: BTreeMap::new(), events: BTreeSet::new() };
        whole.events = whole.readable();
        // Last of all a fact that waits in the spool.
        let busy = rusqlite::Connection::open(whole.env.path("data/segno/segno.db")).unwrap();
        busy.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut command = whole.env.command(SEGNO);
        let said = command.env("SEGNO_STORE_BUSY_TIMEOUT_MS", "100");
        let said = said.args(["tokens", "777", "--session", &whole.sessions[1]]).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        // Nobody folds the log into the database now.
        std::mem::forget(busy);
        for (path, content) in whole.present() {
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            whole.files.insert(path, (content, mode));
        }
        assert!(
            KINDS.iter().all(|kind| whole.files.keys().any(|path| kind(path))),
            "{:?}",
            whole.files.keys()
        );
        whole
    }

    /// Every file but the memory that processes share.
    fn present(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = self.env.files();
        files.retain(|path, content| {
            !content.is_empty() && !has(path, ".db-shm") && !has(path, "/home/") && !has(path, "copy.db")
        });
        files
    }

    fn put_back(&self) {
        let present = self.env.files();
        for path in present.keys() {
            if has(path, ".db-shm") || !self.files.contains_key(path) {
                let _ = fs::remove_file(path);
            }
        }
        for (path, (content, mode)) in &self.files {
            if present.get(path) != Some(content) {
                let _ = fs::remove_file(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(*mode)).unwrap();
            }
        }
    }

    /// Every event of every session that can be read, as one line each.
    fn readable(&self) -> BTreeSet<String> {
        let lines = |id: &String| {
            let said = self.env.raw(&["log", id, "--json"]);
            let text = String::from_utf8_lossy(&said.stdout).into_owned();
            text.lines().map(|line| format!("{id} {line}")).collect::<Vec<_>>()
        };
        self.sessions.iter().flat_map(lines).collect()
    }

    fn has_files(&self, files: [(&str, &str); 3]) -> bool {
        let read = |name: &str| fs::read_to_string(self.env.path(&format!("project/{name}"))).ok();
        files.iter().all(|(name, content)| read(name).as_deref() == Some(*content))
    }

    /// A command that ends by itself, in good time.
    fn ends(&self, what: &str, args: &[&str]) -> (Option<i32>, String) {
        let said = self.env.command("timeout").args(["60", SEGNO]).args(args).output().unwrap();
        let text =
            String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
        let code = said.status.code();
        assert!(
            code.is_some_and(|code| code < 100) && !text.contains("panicked"),
            "{what}: {args:?} ended with {code:?}: {text}"
        );
        (code, text)
    }

    fn doctor(&self, what: &str, how: &str) -> (bool, String) {
        let (code, text) = self.ends(what, &["doctor", "--json", how]);
        // A flip in the number of its form makes it a newer program's store, which is said and left alone.
        assert!(matches!(code, Some(0 | 10 | 11)), "{what}: doctor {how} ended with {code:?}: {text}");
        // A fact that was set apart is named on the way in, and is no problem of the store.
        (code != Some(0) || text.contains("set-apart"), text)
    }

    fn tokens(&self) -> Option<u64> {
        let said = self.env.raw(&["show", &self.sessions[1], "--json"]);
        let shown: Value = serde_json::from_slice(&said.stdout).ok()?;
        shown["state"]["budget"]["tokens_used"].as_u64()
    }
}

promise!(
    /// Whichever bit or byte changes: it is named or harmless, a repair loses nothing that could be read before it,
    /// going back gives all files or touches none, and nothing hangs, panics or is ended by a signal.
    fn whichever_bit_flips() {
        let number = |name: &str, default: u64| variable(name).map_or(default, |n| n.parse().unwrap());
        let (flips, mut dice) = (number("SEGNO_FLIPS", 16), Dice(number("SEGNO_SEED", 1) | 1));
        let whole = Whole::new();
        let (mut named, mut lost, mut refused) = (0, 0, 0);
        for flip in 0..flips {
            whole.put_back();
            let kind = KINDS[dice.below(KINDS.len())];
            let files: Vec<_> = whole.files.iter().filter(|(path, _)| kind(path)).collect();
            let (path, (bytes, _)) = files[dice.below(files.len())];
            let (place, mut changed) = (dice.below(bytes.len()), bytes.clone());
            changed[place] ^= match dice.below(2) {
                0 => 1 << dice.below(8),
                _ => u8::try_from(1 + dice.below(255)).unwrap(),
            };
            let what = format!("flip {flip}: byte {place} of {} is {:#x}", path.display(), changed[place]);
            let mode = fs::metadata(path).unwrap().permissions();
            fs::remove_file(path).unwrap();
            fs::write(path, changed).unwrap();
            fs::set_permissions(path, mode).unwrap();

            let (is_named, found) = whole.doctor(&what, "--deep");
            let before: Vec<String> = whole.readable().intersection(&whole.events).cloned().collect();
            let (_, repaired) = whole.doctor(&what, "--repair");
            let after = whole.readable();
            let gone: Vec<&String> = before.iter().filter(|line| !after.contains(*line)).collect();
            assert!(gone.is_empty(), "{what}: the repair lost {gone:#?}\n{found}\n{repaired}");
            if !whole.events.is_subset(&after) {
                lost += 1;
                assert!(is_named, "{what}: something is gone, and nobody said so: {found}");
            }
            if whole.tokens() != Some(777) {
                assert!(is_named, "{what}: {:?} tokens, and nobody said so: {found}", whole.tokens());
                // None if the session itself cannot be read any more, zero if only what it used is lost; never another sum.
                assert!(matches!(whole.tokens(), None | Some(0)), "{what}: {:?} tokens", whole.tokens());
            }
            let (code, restored) = whole
                .ends(&what, &["checkpoint", "restore", "old", "--session", &whole.sessions[2], "--yes"]);
            if code == Some(0) {
                assert!(whole.has_files(OLD), "{what}: {restored}");
            } else {
                refused += 1;
                assert!(whole.has_files(NEW), "{what}: some files are gone: {restored}");
                assert!(is_named, "{what}: nobody said that it cannot be gone back to: {found}\n{restored}");
            }
            whole.ends(&what, &["checkpoint", "gc", "--session", &whole.sessions[2]]);
            if code == Some(0) {
                // What was there before is one step away, also after collecting.
                let (code, text) = whole.ends(&what, &["undo", "--session", &whole.sessions[2], "--yes"]);
                let back = whole.has_files(NEW);
                assert!(code != Some(0) || back || text.contains("othing"), "{what}: {text}");
            }
            named += usize::from(is_named);
            // What was said once is known; whatever is left works.
            whole.doctor(&what, "--deep");
            let said = whole.env.run(&["new", "life goes on", "--parallel"]);
            // 11 if the flip made it a newer program's store: that one is left alone for good.
            assert!(matches!(said.code, 0 | 11), "{what}: {}\n{repaired}", said.stderr);
        }
        // Shown with --no-capture, for the long version.
        skip(&format!(
            "nothing: {flips} flips, {named} named, {lost} cost an event, {refused} a checkpoint, none silently"
        ));
    }
);
