//! Processes that die while they make or restore a snapshot.
//!
//! `SEGNO_KILLS` says how often (20), `SEGNO_SEED` at which moments. What fails prints its seed.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use segno_workspace::Selection;

use crate::support::*;

const HOME: &str = "SEGNO_TEST_CRASH_HOME";
const ROUND: &str = "SEGNO_TEST_CRASH_ROUND";
const SETTLE: &str = "SEGNO_TEST_CRASH_SETTLE";
const TARGET: &str = "SEGNO_TEST_CRASH_TARGET";

/// Makes a snapshot, then goes back to an older one, and says what it has done.
#[test]
#[ignore = "started by the test below"]
fn child() {
    let Some(base) = std::env::var_os(HOME) else { return };
    if let Ok(direction) = std::env::var(SETTLE) {
        let workspace = Home::at(base.as_ref()).open();
        let settled =
            if direction == "finish" { workspace.finish_pending() } else { workspace.undo_pending() };
        assert_eq!(settled.unwrap().kept, []);
        return;
    }
    let (round, target) = (std::env::var(ROUND).unwrap(), std::env::var(TARGET).unwrap());
    let say = |text: String| {
        println!("{text}");
        std::io::stdout().flush().unwrap();
    };
    let workspace = Home::at(base.as_ref()).open();
    workspace.snapshot(&format!("cp-{round}")).unwrap();
    say(format!("\nready cp-{round}"));
    let safety = workspace.safety_snapshot(&format!("safety-{round}")).unwrap().snapshot;
    say(format!("\nready safety-{round}"));
    let target = workspace.get(&target).unwrap();
    let plan = workspace.plan(&target, &Selection::All, &safety).unwrap();
    let applied = workspace.apply(&plan).unwrap();
    assert_eq!(applied.kept, []);
    say(format!("\nrestored\nsteps {}", segno_workspace::steps_passed()));
}

/// This program again, to die at a moment.
fn again(home: &Home, die_at: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "crashes::child", "--nocapture", "--ignored"])
        .env(HOME, home.base())
        .env("SEGNO_WORKSPACE_DIE_AT", die_at.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn start(home: &Home, round: u64, target: &str, die_at: Option<u64>) -> Child {
    let mut command = again(home, die_at.unwrap_or(u64::MAX));
    command.env(ROUND, round.to_string()).env(TARGET, target).spawn().unwrap()
}

/// Begins to go to a snapshot and dies half-way, so that a restore is pending.
pub(crate) fn cut_short(home: &Home, target: &str) {
    let first = home.open().list().unwrap().len() as u64 * 1000;
    for round in 0..200 {
        assert!(!outcome(start(home, first + round, target, Some(20 + round))).1, "it was never cut short");
        if home.open().pending().unwrap().is_some() {
            return;
        }
    }
    panic!("it was never cut short");
}

/// What the child said before its end, and whether it came to it by itself.
fn outcome(mut child: Child) -> (Vec<String>, bool) {
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    let mut complained = String::new();
    child.stderr.take().unwrap().read_to_string(&mut complained).unwrap();
    let status = child.wait().unwrap();
    let killed = std::os::unix::process::ExitStatusExt::signal(&status) == Some(9);
    assert!(status.success() || killed, "{said}{complained}");
    (said.lines().map(str::to_owned).collect(), status.success())
}

type Look = BTreeMap<PathBuf, Print>;

#[test]
fn whatever_dies_nothing_is_lost_and_the_next_one_settles_it() {
    let (kills, seed) = (setting("SEGNO_KILLS", 20), setting("SEGNO_SEED", 20_260_101));
    let mut dice = Dice::new(seed);
    let mut figures = Figures::default();
    while figures.kills < kills {
        let home = Home::new();
        // After some kills a new home, so that looking at all of it stays quick.
        let until = (figures.kills + 25).min(kills);
        let campaign = std::panic::AssertUnwindSafe(|| campaign(&home, &mut dice, until, &mut figures));
        if let Err(panic) = std::panic::catch_unwind(campaign) {
            println!("SEGNO_SEED={seed} SEGNO_KILLS={kills}: after {} kills", figures.kills);
            std::panic::resume_unwind(panic);
        }
    }
    println!("{figures:?}");
}

#[derive(Debug, Default)]
struct Figures {
    kills: u64,
    ready: u64,
    pending: u64,
    finished: u64,
    undone: u64,
}

fn campaign(home: &Home, dice: &mut Dice, until: u64, figures: &mut Figures) {
    let mut known: BTreeMap<String, Look> = BTreeMap::new();
    edit(home, dice);
    let workspace = home.open();
    workspace.snapshot("start").unwrap();
    known.insert("start".to_owned(), home.look());
    let mut steps = 0;
    for round in 0.. {
        if figures.kills >= until {
            break;
        }
        edit(home, dice);
        let before = home.look();
        let target = known.keys().nth(dice.below(known.len() as u64) as usize).unwrap().clone();
        // The first round lives, to learn how many moments there are. Later ones die at one of them, or at a time.
        let by_time = round > 0 && dice.below(3) == 0;
        let die_at = (round > 0 && !by_time).then(|| 1 + dice.below(steps + steps / 10));
        let mut running = start(home, round, &target, die_at);
        if by_time {
            std::thread::sleep(Duration::from_micros(dice.below(250_000)));
            running.kill().unwrap();
        }
        let (said, lived) = outcome(running);
        figures.kills += u64::from(!lived);
        if let Some(count) = said.iter().find_map(|line| line.strip_prefix("steps ")) {
            steps = count.parse().unwrap();
        }
        let restored = said.iter().any(|line| line == "restored");
        for name in said.iter().filter_map(|line| line.strip_prefix("ready ")) {
            known.insert(name.to_owned(), before.clone());
            figures.ready += 1;
        }
        settle(home, dice, &before, &known[&target], restored, figures);
        check(home, dice, &known, round);
    }
    for (number, (name, look)) in known.iter().enumerate() {
        let snapshot = workspace.get(name).unwrap();
        assert_eq!(home.restore(&snapshot, &format!("last-{number}")).kept, []);
        assert_same(look, &home.look(), name);
    }
}

/// A restore that was cut short is finished or taken back, completely.
fn settle(home: &Home, dice: &mut Dice, before: &Look, target: &Look, restored: bool, figures: &mut Figures) {
    let workspace = home.open();
    if workspace.pending().unwrap().is_none() {
        let now = home.look();
        assert!(now == *target || (!restored && now == *before), "neither restored nor untouched");
        return;
    }
    assert!(!restored, "what was said to be done is done");
    figures.pending += 1;
    // Those who settle it may die too, one after the other.
    while dice.below(2) == 0 && workspace.pending().unwrap().is_some() {
        let direction = ["finish", "undo"][dice.below(2) as usize];
        let mut command = again(home, 1 + dice.below(40));
        let (_, lived) = outcome(command.env(SETTLE, direction).spawn().unwrap());
        figures.kills += u64::from(!lived);
        if lived {
            let wanted = if direction == "finish" { target } else { before };
            return assert_same(wanted, &home.look(), direction);
        }
    }
    if workspace.pending().unwrap().is_none() {
        // It died between its last deed and its last word.
        let now = home.look();
        return assert!(now == *target || now == *before, "neither restored nor untouched");
    }
    let finish = dice.below(2) == 0;
    let applied = if finish { workspace.finish_pending() } else { workspace.undo_pending() }.unwrap();
    assert_eq!(applied.kept, []);
    figures.finished += u64::from(finish);
    figures.undone += u64::from(!finish);
    assert_same(
        if finish { target } else { before },
        &home.look(),
        if finish { "finished" } else { "undone" },
    );
    assert!(workspace.pending().unwrap().is_none());
}

/// Every snapshot that was called ready is there and whole; there are no halves of others.
fn check(home: &Home, dice: &mut Dice, known: &BTreeMap<String, Look>, round: u64) {
    let workspace = home.open();
    let listed = workspace.list().unwrap().into_iter().map(|listed| (listed.name, listed.snapshot));
    let listed: BTreeMap<_, _> = listed.collect();
    for (name, snapshot) in &listed {
        let snapshot = snapshot.as_ref().unwrap_or_else(|why| panic!("{name}: {why}"));
        workspace.verify(snapshot).unwrap();
    }
    for name in known.keys() {
        assert!(listed.contains_key(name), "{name} was ready and is gone");
    }
    let (name, look) = known.iter().nth(dice.below(known.len() as u64) as usize).unwrap();
    assert_eq!(home.restore(&workspace.get(name).unwrap(), &format!("check-{round}")).kept, []);
    assert_same(look, &home.look(), name);
    let shadow = std::fs::read_dir(home.base().join("shadow")).unwrap();
    let left: Vec<_> = shadow.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.starts_with("tmp")), "{left:?}");
}

/// Some changes of every kind.
fn edit(home: &Home, dice: &mut Dice) {
    for _ in 0..12 {
        let name = format!("d{}/e{}/f{}", dice.below(3), dice.below(2), dice.below(6));
        let top = format!("d{}", dice.below(3));
        match dice.below(8) {
            0 if home.exists(&name) => home.remove(&name),
            1 if home.exists(&top) && dice.below(3) == 0 => home.remove(&top),
            2 if home.exists(&name) && !home.path(&name).is_symlink() => {
                home.chmod(&name, [0o600, 0o644, 0o755][dice.below(3) as usize]);
            }
            3 => {
                let _ = std::fs::create_dir_all(home.path(format!("hollow{}/h", dice.below(3))));
            }
            4 if !home.exists(&name) => {
                std::fs::create_dir_all(home.path(&name).parent().unwrap()).unwrap();
                std::os::unix::fs::symlink(format!("t{}", dice.below(9)), home.path(&name)).unwrap();
            }
            5 => {
                // What was a file becomes a directory, and the other way round.
                let path = format!("t{}", dice.below(2));
                let was_dir = home.path(&path).is_dir();
                if home.exists(&path) {
                    home.remove(&path);
                }
                home.write(
                    if was_dir { path } else { format!("{path}/inner") },
                    format!("{}", dice.below(1000)),
                );
            }
            _ => {
                if home.path(&name).is_symlink() {
                    home.remove(&name);
                }
                home.write(&name, format!("{} ", dice.below(1 << 40)).repeat(1 + dice.below(400) as usize));
            }
        }
    }
}
