//! The program killed at random system calls while it makes checkpoints and goes back to them.
//!
//! `SEGNO_KILLS` says how often (20), `SEGNO_SEED` at which moments. What fails prints its seed.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::process::Output;

use serde_json::Value;

use crate::common::SEGNO;
use crate::common::TestEnv;
use crate::going_back::tree;
use crate::going_back::world;

type Tree = Vec<(String, String)>;

/// Numbers that look random and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a campaign is, is no setting of the program")]
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// At which of its system calls a process is killed at the latest; it makes about that many.
const CALLS: u64 = 600;

#[derive(Debug, Default)]
struct Figures {
    kills: u64,
    ended: u64,
    ready: u64,
    restores: u64,
}

/// What is known of a world: every file that was there when something was to go back, and what each checkpoint must
/// hold.
#[derive(Default)]
struct Known {
    risked: BTreeSet<(String, String)>,
    checkpoints: BTreeMap<String, Tree>,
}

#[test]
fn whatever_is_killed_can_be_gone_back_to() {
    let probe = TestEnv::new();
    let strace = probe.command("/usr/bin/strace").args(["-qq", "-e", "trace=none", "/bin/true"]).output();
    if !strace.is_ok_and(|output| output.status.success()) {
        println!("skipped: strace cannot be used here");
        return;
    }
    let (kills, seed) = (setting("SEGNO_KILLS", 20), setting("SEGNO_SEED", 20_260_101));
    let mut dice = Dice(seed);
    let mut figures = Figures::default();
    while figures.kills < kills {
        let before = figures.kills;
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            one_world(&mut dice, &mut figures, kills.min(before + 20));
        }));
        if let Err(panic) = checked {
            println!("SEGNO_SEED={seed} SEGNO_KILLS={kills}: after {} kills", figures.kills);
            std::panic::resume_unwind(panic);
        }
    }
    println!("{figures:?}");
}

fn one_world(dice: &mut Dice, figures: &mut Figures, until: u64) {
    let mut env = world();
    env.set("SEGNO_CHECKPOINT_MAX", "1000");
    let mut known = Known::default();
    for number in 0..12 {
        env.write(&format!("project/d{}/f{number}", number % 3), &format!("first {number}\n"));
    }
    env.start(&["campaign"]);
    let mut names = 0;
    while figures.kills < until {
        edit(&env, dice);
        let here = tree(&env);
        let goes_back = dice.below(2) == 0 && !known.checkpoints.is_empty();
        let output = if goes_back {
            figures.restores += 1;
            known.risked.extend(here.iter().cloned());
            let names: Vec<&String> = known.checkpoints.keys().collect();
            let name = names[dice.below(names.len() as u64) as usize].clone();
            killed(&env, dice, &["checkpoint", "restore", &name, "--yes"])
        } else {
            names += 1;
            let name = format!("n{names}");
            let output = killed(&env, dice, &["checkpoint", "create", &name]);
            // It may be there however the process ended; what it must hold is known.
            known.checkpoints.insert(name.clone(), here.clone());
            assert!(!output.status.success() || ready(&env).contains(&name), "{name} was called ready");
            output
        };
        if output.status.success() {
            figures.ended += 1;
        } else {
            figures.kills += 1;
        }
        // The next command that goes anywhere finishes or undoes what was cut short.
        env.ok(&["checkpoint", "create"]);
        let ready = ready(&env);
        known.checkpoints.retain(|name, _| ready.contains(name));
        if !goes_back {
            assert_eq!(tree(&env), here, "making a checkpoint changed the files");
        }
    }
    look_everywhere(&env, &known, figures);
}

/// Changes some files as a person would.
fn edit(env: &TestEnv, dice: &mut Dice) {
    for _ in 0..=dice.below(4) {
        let path = format!("d{}/f{}", dice.below(3), dice.below(14));
        if dice.below(4) == 0 {
            let _ = std::fs::remove_file(env.path("project").join(&path));
        } else {
            let text = format!("{}\n", dice.below(1 << 30)).repeat(1 + dice.below(400) as usize);
            env.write(&format!("project/{path}"), &text);
        }
    }
}

/// Runs segno and kills it, or a process it started, at one of its system calls.
fn killed(env: &TestEnv, dice: &mut Dice, args: &[&str]) -> Output {
    let when = 50 + dice.below(CALLS);
    let mut strace = env.command("/usr/bin/strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject=all:signal=KILL:when={when}")]);
    strace.arg(SEGNO).args(args).output().unwrap()
}

/// The names of the checkpoints that are called ready.
fn ready(env: &TestEnv) -> BTreeSet<String> {
    let name = |row: &Value| row["name"].as_str().or(row["id"].as_str()).unwrap_or_default().to_owned();
    rows(env).iter().map(name).collect()
}

fn rows(env: &TestEnv) -> Vec<Value> {
    let listed = env.json(&["checkpoint", "list", "--limit", "1000"]);
    let rows = listed["items"].as_array().cloned().unwrap_or_else(|| panic!("{listed}"));
    rows.into_iter().filter(|row| row["ready"] == true).collect()
}

/// Every checkpoint that is called ready is whole and brings back what was there; and nothing that was there when
/// something was to go back is gone from both the files and the checkpoints.
fn look_everywhere(env: &TestEnv, known: &Known, figures: &mut Figures) {
    env.ok(&["checkpoint", "validate"]);
    let mut found: BTreeSet<(String, String)> = tree(env).into_iter().collect();
    for row in rows(env) {
        figures.ready += 1;
        env.ok(&["checkpoint", "restore", &row["ordinal"].to_string(), "--yes"]);
        let here = tree(env);
        if let Some(expected) = row["name"].as_str().and_then(|name| known.checkpoints.get(name)) {
            assert_eq!(&here, expected, "as {} has it", row["name"]);
        }
        found.extend(here);
    }
    let lost: Vec<&String> =
        known.risked.iter().filter(|file| !found.contains(*file)).map(|(path, _)| path).collect();
    assert!(lost.is_empty(), "gone from files and checkpoints: {lost:?}");
}
