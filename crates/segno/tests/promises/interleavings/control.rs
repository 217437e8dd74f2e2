//! A campaign that never finds anything shows nothing: each of these guards is broken on purpose, by a switch that only
//! debug builds have, and a few worlds have to be enough to notice.

use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use rstest::rstest;

use super::World;
use super::number;

/// In how many worlds it has to be noticed.
const WORLDS: u64 = 40;

#[rstest]
fn a_broken_guard_is_noticed(
    #[values("collect", "right", "spool", "hook", "life", "cap")] guard: &'static str,
) {
    let first = number("SEGNO_SEED", 20_261_116);
    for seed in first..first + WORLDS {
        let mut world = World::new(seed, Some(guard));
        let Err(why) = catch_unwind(AssertUnwindSafe(|| world.live())) else { continue };
        let why = why.downcast_ref::<String>().cloned().unwrap_or_default();
        println!("without the guard `{guard}`, world {} of at most {WORLDS}: {why:.300}", seed - first + 1);
        return;
    }
    panic!("{WORLDS} worlds without the guard `{guard}`, and nothing was noticed");
}
