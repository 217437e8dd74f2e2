//! `scripts/bench numbers`: three figures that anybody can check in a few minutes, each beside the least that can be done and beside
//! what people know.

use std::process::Command;
use std::time::Duration;

use segno_benches::Times;
use segno_benches::fail;

use crate::Bench;
use crate::agent::PAYLOADS;
use crate::agent::node;
use crate::history::generate;
use crate::history::installed;
use crate::history::parse;
use crate::time;

/// How often each pair of processes takes turns.
const ROUNDS: usize = 100;
/// How often a process that takes long is run.
const FEW: usize = 10;
/// Lines of all transcripts: those of some months.
const LINES: u64 = 100_000;

impl Bench {
    pub(crate) fn numbers(&self) {
        println!("\nthree figures, each in a fresh process; medians");
        // What other parts made is in no transcript and no store of these.
        let home = self.home.join("numbers");
        std::fs::create_dir_all(&home).unwrap_or_else(|why| fail(&why.to_string()));
        let own = Self { segno: self.segno.clone(), floor: self.floor.clone(), home };
        let rows = [own.a_hook(), own.a_fact(), own.days()];
        println!("\n| what | segno | the least | beside |\n|---|---|---|---|");
        for row in rows {
            println!("| {} |", row.join(" | "));
        }
    }

    /// The hook before a call of an agent that somebody started by hand: durable before it is answered.
    fn a_hook(&self) -> [String; 4] {
        let (project, store) = (self.project("numbers-hook"), self.home.join("numbers-hook.db"));
        let (ours, floor) = self.watched_hook(&project, &store, PAYLOADS[0], 1);
        let node =
            node().map_or("node is not installed".to_owned(), |times| format!("`node -e 0`: {}", ms(&times)));
        ["a hook before a call, 2 KB, durable".to_owned(), ms(&ours), floor_of(&floor), node]
    }

    /// One fact that a script records.
    fn a_fact(&self) -> [String; 4] {
        let project = self.project("numbers-fact");
        self.run(&project, &["new", "bench"]);
        let (file, database) = (self.home.join("numbers-floor.log"), self.home.join("numbers-peer.db"));
        let event = r#"{"tokens":{"other":1},"estimated":false,"source":"hand"}"#;
        let (mut ours, mut floors, mut theirs) = (Times::default(), Times::default(), Times::default());
        for _ in 0..ROUNDS {
            floors.push(time(Command::new(&self.floor).arg(&file).arg(event)));
            ours.push(time(&mut self.segno(&project, &["--quiet", "tokens", "1"])));
        }
        let Some(peer) = installed("SEGNO_BENCH_SQLITE_UTILS") else {
            let beside = "sqlite-utils is not installed".to_owned();
            return ["one fact from a script, durable".to_owned(), ms(&ours), floor_of(&floors), beside];
        };
        let row = self.home.join("numbers-row.json");
        std::fs::write(&row, event).unwrap_or_else(|why| fail(&why.to_string()));
        for _ in 0..FEW {
            theirs.push(time(Command::new(&peer).arg("insert").arg(&database).arg("events").arg(&row)));
        }
        let beside = format!("`sqlite-utils insert` (PyPI): {}", ms(&theirs));
        ["one fact from a script, durable".to_owned(), ms(&ours), floor_of(&floors), beside]
    }

    /// What was used each day, from the transcripts of an agent.
    fn days(&self) -> [String; 4] {
        let project = self.project("numbers-days");
        let (bytes, files) = generate(&self.home.join(".claude/projects/-srv-shop"), LINES);
        let floor = parse(&files);
        let import = self.measured(&mut self.segno(&project, &["import", "claude", "--json"]));
        let mut ours = Times::default();
        let words = ["cost", "--everywhere", "--by", "day", "--json"];
        for _ in 0..FEW {
            ours.push(time(&mut self.segno(&project, &words)));
        }
        let what = format!("tokens by day, transcripts of {LINES} lines ({} MB)", bytes / 1_000_000);
        let segno = format!("{}, once taken in ({})", ms(&ours), seconds(import.took));
        let least = format!("parse each line: {}", seconds(floor));
        let Some(mut peer) = self.ccusage_daily(&project) else {
            return [what, segno, least, "ccusage is not installed".to_owned()];
        };
        let theirs = self.measured(&mut peer);
        let tokens = &self.measured(&mut self.segno(&project, &words)).said["total"]["tokens"];
        let totals = &theirs.said["totals"];
        let counted =
            [(&totals["inputTokens"], &tokens["input"]), (&totals["outputTokens"], &tokens["output"])];
        let agree = counted.iter().all(|(theirs, ours)| theirs.is_u64() && theirs == ours);
        println!(
            "  input and output tokens: ccusage {} {}, segno {} {}",
            totals["inputTokens"], totals["outputTokens"], tokens["input"], tokens["output"]
        );
        let word = if agree { "the same tokens" } else { "other tokens" };
        [what, segno, least, format!("`ccusage daily` (npm): {}, {word}", seconds(theirs.took))]
    }
}

fn floor_of(times: &Times) -> String {
    format!("C, `write` and `fdatasync`: {}", ms(times))
}

fn ms(times: &Times) -> String {
    format!("{:.1} ms", times.median().as_secs_f64() * 1e3)
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}
