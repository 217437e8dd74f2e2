//! The kill campaign: whatever was acknowledged is there, once, and nothing is out of order.

use std::collections::HashMap;
use std::path::Path;
use std::process::Child;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use segno_core::SessionId;
use segno_store::Store;
use segno_store::StoredEvent;
use segno_store::verify;

use crate::Dice;
use crate::common::*;
use crate::home::Home;
use crate::home::again;
use crate::setting;
use crate::writer::ACKED;
use crate::writer::TEST;
use crate::writer::TRIED;

/// After so many kills the store is a new one, so that looking at all of it stays quick.
const KILLS_PER_STORE: u64 = 50;

#[derive(Default, Debug)]
struct Figures {
    kills: u64,
    acked: u64,
    events: u64,
    unheard: u64,
    retried: u64,
    /// How many of this store's tries were looked at in earlier rounds.
    looked_at: usize,
}

#[test]
fn nothing_acknowledged_is_lost_when_writers_are_killed() {
    let (kills, seed) = (setting("SEGNO_KILLS", 25), setting("SEGNO_SEED", 20_260_101));
    let begin = Instant::now();
    let mut dice = Dice::new(seed);
    let mut figures = Figures::default();
    while figures.kills < kills {
        let home = Home::new();
        let before = figures.kills;
        figures.looked_at = 0;
        while figures.kills < kills && figures.kills - before < KILLS_PER_STORE {
            // A seed for the writers that no others of this store have.
            let round = dice.below(1 << 40) << 8 | (figures.kills - before);
            let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                kill_two(&home, &mut dice, round, &mut figures);
                check(&home, &mut figures);
            }));
            if let Err(panic) = checked {
                println!("SEGNO_SEED={seed} SEGNO_KILLS={kills}: after {} kills", figures.kills);
                std::panic::resume_unwind(panic);
            }
        }
        figures.acked += acked(home.dir()).iter().map(|(_, _, first, last)| last - first + 1).sum::<u64>();
        let store = home.open();
        figures.events += ids(&store).iter().map(|id| store.load(*id).unwrap().state.seq).sum::<u64>();
    }
    println!(
        "{} kills in {:.1} s: {} events acknowledged, 0 lost, 0 twice; {} events in all, {} retries of which {} were \
         there unheard",
        figures.kills,
        begin.elapsed().as_secs_f64(),
        figures.acked,
        figures.events,
        figures.retried,
        figures.unheard
    );
}

fn start(home: &Home, seed: u64) -> Child {
    again(TEST, &format!("{}#{seed}", home.dir().display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Two writers at once, one of each kind, each killed at a moment of its own.
fn kill_two(home: &Home, dice: &mut Dice, round: u64, figures: &mut Figures) {
    let size = |name: &str| std::fs::metadata(home.file(name)).map_or(0, |meta| meta.len());
    let before = size(ACKED);
    let mut writers = [start(home, round * 2), start(home, round * 2 + 1)];
    if dice.below(5) > 0 {
        // Usually they have begun to write; now and then they are still opening the store.
        let patience = Instant::now() + Duration::from_secs(60);
        while size(ACKED) == before && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    for writer in &mut writers {
        std::thread::sleep(Duration::from_micros(dice.below(60_000)));
        // It never ends by itself: if it has, something went wrong in it.
        if let Some(status) = writer.try_wait().unwrap() {
            let mut said = String::new();
            std::io::Read::read_to_string(writer.stderr.as_mut().unwrap(), &mut said).unwrap();
            panic!("a writer ended by itself ({status}): {said}");
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        figures.kills += 1;
    }
}

fn lines(dir: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join(name)).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::to_owned).collect()
}

fn acked(dir: &Path) -> Vec<(SessionId, String, u64, u64)> {
    let parse = |line: String| {
        let words: Vec<&str> = line.split(' ').collect();
        (words[0].parse().unwrap(), words[1].to_owned(), words[2].parse().unwrap(), words[3].parse().unwrap())
    };
    lines(dir, ACKED).into_iter().map(parse).collect()
}

fn check(home: &Home, figures: &mut Figures) {
    let store = home.open();
    retry_the_last(home, &store, figures);
    let mut journals: HashMap<SessionId, Vec<StoredEvent>> = HashMap::new();
    for id in ids(&store) {
        assert_whole(&store, id);
        journals.insert(id, journal(&store, id));
    }
    for (session, name, first, last) in acked(home.dir()) {
        let there =
            journals.get(&session).unwrap_or_else(|| panic!("{session} was acknowledged and is lost"));
        for (part, seq) in (first..=last).enumerate() {
            let stored = there.get(seq as usize - 1);
            assert_eq!(
                stored.map(|stored| stored.key.as_str()),
                Some(key(&name).part(part).as_str()),
                "event {seq} of {session} was acknowledged and is lost"
            );
        }
    }
    let report = verify::verify(&store, false, |_, _| {}).unwrap();
    assert!(report.is_clean(), "{report:?}");
    store.maintain().unwrap();
}

/// What was on its way when the writer died is tried again: it must be there once afterwards, and keep its number if it
/// was there before.
fn retry_the_last(home: &Home, store: &dyn Store, figures: &mut Figures) {
    let acked: std::collections::HashSet<_> =
        acked(home.dir()).into_iter().map(|(session, name, _, _)| (session, name)).collect();
    let tried = lines(home.dir(), TRIED);
    for line in &tried[figures.looked_at..] {
        let (session, name) = line.split_once(' ').unwrap();
        let session: SessionId = session.parse().unwrap();
        if acked.contains(&(session, name.to_owned())) {
            continue;
        }
        let before = keys(store, session).iter().position(|there| there == name);
        let done = append(store, facts(session, name, vec![note("again")])).unwrap();
        assert_eq!(done.repeated, before.is_some());
        if let Some(before) = before {
            assert_eq!(done.first, before as u64 + 1);
            figures.unheard += 1;
        }
        figures.retried += 1;
        let twice = keys(store, session).iter().filter(|there| *there == name).count();
        assert_eq!(twice, 1, "{name} in {session}");
    }
    figures.looked_at = tried.len();
}
