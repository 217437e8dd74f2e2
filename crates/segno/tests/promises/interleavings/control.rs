//! A campaign that never finds anything shows nothing: each of these guards is broken on purpose, by a switch that only
//! debug builds have, and a few worlds have to be enough to notice.

use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use rstest::rstest;

use super::World;
use super::number;

/// In how many worlds it has to be noticed.
const WORLDS: u64 = 40;

/// A world that ends for another reason than the promise that the guard keeps shows nothing.
#[rstest]
#[case::collect("collect", "is in neither tree nor snapshots")]
#[case::right("right", "an agent works in the tree")]
#[case::spool("spool", "acknowledged, and in the journal")]
#[case::hook("hook", "a call was allowed")]
#[case::life("life", "its driver lives")]
#[case::cap("cap", "an agent was started under a used-up cap")]
fn a_broken_guard_is_noticed(#[case] guard: &'static str, #[case] promise: &'static str) {
    let first = number("SEGNO_SEED", 20_261_116);
    for seed in first..first + WORLDS {
        let mut world = World::new(seed, Some(guard));
        let Err(why) = catch_unwind(AssertUnwindSafe(|| world.live())) else { continue };
        let why = why.downcast::<String>().map_or_else(
            |why| why.downcast_ref::<&str>().copied().unwrap_or_default().to_owned(),
            |why| *why,
        );
        println!("without the guard `{guard}`, world {} of at most {WORLDS}: {why:.300}", seed - first + 1);
        if why.contains(promise) {
            return;
        }
    }
    panic!("{WORLDS} worlds without the guard `{guard}`, and nobody noticed that {promise:?} is broken");
}
