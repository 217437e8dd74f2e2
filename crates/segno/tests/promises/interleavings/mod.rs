//! What people, agents, drivers, copies and the machine do, in random order; after each step the promises are checked.
//!
//! `SEGNO_INTERLEAVINGS` says how many worlds there are, `SEGNO_SEED` what happens in the first, `SEGNO_JOBS` how many
//! there are at a time; what fails prints the seed of its world and the steps that led there, `SEGNO_TELL` prints them
//! for every world. `SEGNO_BREAK` names a guard that is broken in all of them, `SEGNO_PROGRAM` another program than the
//! one that was built last, so that a long campaign and a compiler do not disturb each other.
//!
//! Checked after every step ([`checks`]):
//! - what was acknowledged is in the journal, once, in the order of its acknowledgements;
//! - what a person wrote is in the tree, or in a snapshot that something still refers to;
//! - an agent that lives has a driver that lives, or segno says that it has none;
//!
//! and within steps: nothing goes back under the hands of an agent; a call is never allowed under a used-up hard cap or
//! in the name of a driver that was replaced; a driver that lives is never called dead, and none leaves
//! unasked. [`control`] breaks guards on purpose and shows that this is noticed.

mod checks;
mod control;
mod hooks;
mod question;
mod steps;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Signal;
use segno_testkit::home::Home;

use crate::lab::Lab;
use crate::lab::Live;
use crate::lab::variable;

/// How many steps a world has.
const STEPS: u64 = 25;

/// splitmix64: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    variable(name).and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

/// After so many worlds in which a promise was broken the rest would say the same.
const ENOUGH: usize = 5;

/// How often a step was done, and for how long.
type Cost = BTreeMap<&'static str, (u64, Duration)>;

/// What came of the worlds so far.
#[derive(Default)]
struct Campaign {
    held: u64,
    broken: Vec<u64>,
    cost: Cost,
}

impl Campaign {
    fn add(&mut self, world: &World, broken: Option<u64>) {
        for (step, (count, took)) in &world.done {
            let sum = self.cost.entry(step).or_default();
            *sum = (sum.0 + count, sum.1 + *took);
        }
        match broken {
            Some(seed) => self.broken.push(seed),
            None => self.held += 1,
        }
    }
}

#[test]
fn promises_hold_whatever_happens_in_whatever_order() {
    let (worlds, first) = (number("SEGNO_INTERLEAVINGS", 4), number("SEGNO_SEED", 20_261_116));
    let next = AtomicU64::new(first);
    let campaign = Mutex::new(Campaign::default());
    std::thread::scope(|scope| {
        for _ in 0..number("SEGNO_JOBS", 2) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + worlds || campaign.lock().unwrap().broken.len() >= ENOUGH {
                        return;
                    }
                    let mut world = World::new(seed, variable("SEGNO_BREAK").as_deref());
                    let held = catch_unwind(AssertUnwindSafe(|| world.live())).is_ok();
                    if !held || variable("SEGNO_TELL").is_some() {
                        println!("SEGNO_SEED={seed} SEGNO_INTERLEAVINGS=1 did this:\n{}", world.told);
                    }
                    campaign.lock().unwrap().add(&world, (!held).then_some(seed));
                }
            });
        }
    });
    let Campaign { held, broken, cost } = campaign.into_inner().unwrap();
    for (step, (count, took)) in &cost {
        println!("{count:>6} × {step}: {took:.1?}");
    }
    println!(
        "{held} of {worlds} worlds of {STEPS} steps held, from SEGNO_SEED={first} on; broken: {broken:?}"
    );
    assert_eq!((held, &broken[..]), (worlds, &[][..]), "the seeds of the worlds that broke a promise");
}

/// One thing that happens.
type Step = fn(&mut World);

/// What may happen, each as likely as it is often in the list.
const CHOICES: &[(&str, Step)] = &[
    ("note", World::note),
    ("note", World::note),
    ("person writes", World::person_writes),
    ("person writes", World::person_writes),
    ("person writes", World::person_writes),
    ("person removes", World::person_removes),
    ("person commits", World::person_commits),
    ("command runs", World::command_runs),
    ("command runs", World::command_runs),
    ("command starts", World::command_starts),
    ("command starts", World::command_starts),
    ("command starts", World::command_starts),
    ("driver is killed", World::driver_is_killed),
    ("agent without a driver is followed", World::agent_is_followed),
    ("driver is suspended", World::driver_is_suspended),
    ("driver wakes", World::driver_wakes),
    ("run is asked to stop", World::run_is_asked_to_stop),
    ("run is asked to stop", World::run_is_asked_to_stop),
    ("look", World::look),
    ("look from where little is seen", World::look_from_elsewhere),
    ("clock jumps", World::clock_jumps),
    ("undo", World::undo),
    ("redo", World::redo),
    ("person is asked", World::person_is_asked),
    ("person is asked", World::person_is_asked),
    ("checkpoint", World::checkpoint),
    ("checkpoint", World::checkpoint),
    ("restore", World::restore),
    ("restore", World::restore),
    ("collect", World::collect),
    ("collect beside an undo", World::collect_beside_undo),
    ("backup", World::backup),
    ("copy is opened", World::copy_is_opened),
    ("another store in the tree", World::another_store),
    ("store is busy", World::store_is_busy),
    ("store is busy", World::store_is_busy),
    ("store is gone for a moment", World::store_is_gone),
    ("start under a used-up cap", World::used_up_cap),
    ("call under a used-up cap", World::call_under_used_up_cap),
    ("call of a replaced driver", World::call_of_replaced_driver),
];

/// A run that goes on.
struct Running {
    live: Live,
    session: String,
    is_suspended: bool,
}

struct World {
    lab: Lab,
    dice: Dice,
    /// The session that notes go to.
    session: String,
    /// Notes that a command acknowledged.
    acknowledged: Vec<String>,
    /// What a person wrote and has not overwritten or removed: name → content.
    own: BTreeMap<String, String>,
    /// What a person wrote and something else took out of the tree, under its name in the snapshots: it stays there.
    displaced: BTreeMap<String, String>,
    running: Vec<Running>,
    /// Sessions whose agents wrote something.
    worked: Vec<String>,
    /// Sessions whose driver was killed while their agent goes on.
    orphans: Vec<String>,
    /// Sessions of agents that count their lines, and where they write how many there are.
    counted: Vec<(String, std::path::PathBuf)>,
    count: u64,
    told: String,
    done: Cost,
}

impl World {
    fn new(seed: u64, broken: Option<&str>) -> Self {
        let mut lab = Lab::at(Home::in_memory().unwrap());
        if let Some(segno) = variable("SEGNO_PROGRAM") {
            lab.segno = segno.into();
        }
        lab.env.insert("SEGNO_CHECKPOINT_MAX".to_owned(), "1000".to_owned());
        lab.env.insert("SEGNO_CLOCK_SHIFT".to_owned(), lab.path("clock"));
        lab.env.extend(broken.map(|guard| ("SEGNO_BREAK".to_owned(), guard.to_owned())));
        let world = Self {
            lab,
            dice: Dice(seed),
            session: String::new(),
            acknowledged: Vec::new(),
            own: BTreeMap::new(),
            displaced: BTreeMap::new(),
            running: Vec::new(),
            worked: Vec::new(),
            orphans: Vec::new(),
            counted: Vec::new(),
            count: 0,
            told: String::new(),
            done: BTreeMap::new(),
        };
        world.git(&["init", "-q"]);
        world.git(&["commit", "-q", "--allow-empty", "-m", "start"]);
        world
    }

    fn live(&mut self) {
        self.session = self.new_session("work");
        for step in 0..STEPS {
            self.count = step;
            self.step();
            self.timed("(checks)", World::check);
        }
        for run in std::mem::take(&mut self.running) {
            self.orphans.push(run.session.clone());
            run.live.signal(Signal::KILL);
            run.live.finish();
        }
        self.check();
        self.timed("(the end)", World::end);
    }

    fn step(&mut self) {
        let (name, step) = self.dice.one_of(CHOICES);
        let _ = writeln!(self.told, "{:>3} {name}", self.count);
        self.timed(name, step);
    }

    fn timed(&mut self, name: &'static str, step: Step) {
        let begin = Instant::now();
        step(self);
        let sum = self.done.entry(name).or_default();
        *sum = (sum.0 + 1, sum.1 + begin.elapsed());
    }

    /// For whoever reads what led to a failure.
    fn tell(&mut self, what: &str) {
        let _ = writeln!(self.told, "      {what}");
    }

    fn new_session(&self, name: &str) -> String {
        let made = self.lab.run(&["new", name, "--parallel", "-q"]);
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        made.text().trim().to_owned()
    }
}
