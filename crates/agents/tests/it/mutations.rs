//! A slice of fuzzing for every day: recordings and samples, damaged at random, hold to the invariants.
//!
//! `SEGNO_ROUNDS` says how many damaged inputs there are (4000), `SEGNO_SEED` which. What fails prints both. The fuzz
//! targets, which learn from what they reach, are run by `scripts/fuzz`.
#![expect(clippy::disallowed_methods, reason = "a test finds its recordings and settings")]

use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::panic::resume_unwind;
use std::path::Path;
use std::path::PathBuf;

use segno_agents::Agent;
use segno_agents::EndCause;
use segno_agents::ExitInfo;
use segno_agents::NAMES;
use segno_agents::by_name;
use segno_agents::plain::Plain;

use crate::invariants::Delivery;
use crate::invariants::{self};

/// splitmix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Two places in `bytes`, in order, seldom far apart.
    fn span(&mut self, bytes: &[u8]) -> (usize, usize) {
        let start = self.below(bytes.len() + 1);
        let most = if self.below(4) == 0 { bytes.len() } else { 32 };
        (start, (start + self.below(most)).min(bytes.len()))
    }
}

#[derive(Default)]
struct Inputs {
    streams: Vec<(String, Vec<u8>)>,
    hooks: Vec<(String, Vec<u8>)>,
    transcripts: Vec<(String, Vec<u8>)>,
}

impl Inputs {
    fn load() -> Self {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let mut inputs = Self::default();
        for agent in NAMES {
            for path in files(&tests.join("recordings").join(agent)) {
                inputs.streams.push(((*agent).to_owned(), std::fs::read(path).unwrap()));
            }
        }
        for (list, folder) in [
            (&mut inputs.streams, "streams"),
            (&mut inputs.hooks, "hooks"),
            (&mut inputs.transcripts, "transcripts"),
        ] {
            for path in files(&tests.join("samples").join(folder)) {
                let agent = path.file_stem().unwrap().to_string_lossy().into_owned();
                list.push((agent, std::fs::read(&path).unwrap()));
            }
        }
        let payloads = |(agent, lines): (String, Vec<u8>)| {
            let lines: Vec<Vec<u8>> = lines.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            lines.into_iter().map(move |line| (agent.clone(), line))
        };
        inputs.hooks = std::mem::take(&mut inputs.hooks).into_iter().flat_map(payloads).collect();
        assert!(inputs.streams.len() > 30 && inputs.hooks.len() > 20 && inputs.transcripts.len() == 4);
        inputs
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Damages `bytes` in one way. `other` is a second input, to take pieces from.
fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let (start, end) = random.span(bytes);
    match random.below(12) {
        0 if start < bytes.len() => bytes[start] ^= 1 << random.below(8),
        1 => bytes.truncate(start),
        2 => drop(bytes.drain(start..end)),
        3 => {
            let (from, to) = random.span(other);
            drop(bytes.splice(start..start, other[from..to].iter().copied()));
        }
        4 => {
            let piece = bytes[start..end].to_vec();
            let at = random.below(bytes.len() + 1);
            drop(bytes.splice(at..at, piece));
        }
        // Whole lines: gone, twice, or torn by one of another stream, with its line feed.
        5..=7 => {
            let mut lines: Vec<Vec<u8>> =
                bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            let foreign: Vec<&[u8]> = other.split_inclusive(|byte| *byte == b'\n').collect();
            if lines.is_empty() || foreign.is_empty() {
                return;
            }
            let at = random.below(lines.len());
            match random.below(3) {
                0 => drop(lines.remove(at)),
                1 => {
                    let line = lines[at].clone();
                    lines.insert(random.below(lines.len() + 1), line);
                }
                _ => {
                    let cut = random.below(lines[at].len() + 1);
                    let line = random.pick(&foreign).to_vec();
                    drop(lines[at].splice(cut..cut, line));
                }
            }
            *bytes = lines.concat();
        }
        8 => {
            let odd: &[&[u8]] = &[
                b"\0",
                b"\0\0\0\0",
                b"\r\n",
                b"\n",
                b"\xff\xfe",
                b"\xf0\x9f",
                b"\"",
                b"{",
                b"}",
                b"\\",
                b"\\ud800",
                b"\xe2\x80\xa8",
            ];
            drop(bytes.splice(start..start, random.pick(odd).iter().copied()));
        }
        9 => number(bytes, start, random),
        10 => {
            // Deeper than any reader goes, or closed again and valid.
            let depth = 1 + random.below(300);
            let (open, close): (&[u8], &[u8]) =
                if random.below(2) == 0 { (b"[", b"]") } else { (b"{\"a\":", b"}") };
            let mut deep = open.repeat(depth);
            deep.extend_from_slice(b"1");
            deep.extend(close.repeat(if random.below(3) == 0 { 0 } else { depth }));
            value(bytes, start, &deep);
        }
        _ => {
            let text = format!(
                "\"{}\"",
                ["x", "\\n", "ä", "\\u0001"][random.below(4)].repeat(1 + random.below(3000))
            );
            value(bytes, start, text.as_bytes());
        }
    }
}

/// Puts something else in place of the next number.
fn number(bytes: &mut Vec<u8>, from: usize, random: &mut Random) {
    let huge: &[&[u8]] = &[
        b"18446744073709551615",
        b"18446744073709551616",
        b"9223372036854775807",
        b"-9223372036854775808",
        b"1e308",
        b"-1e308",
        b"1e999",
        b"-1",
        b"0.5",
        b"-0.0",
        b"null",
        b"\"7\"",
        b"[]",
    ];
    let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else { return };
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    drop(bytes.splice(start..start + digits, random.pick(huge).iter().copied()));
}

/// Puts `new` before what follows the next colon, or between it and the next comma.
fn value(bytes: &mut Vec<u8>, from: usize, new: &[u8]) {
    let Some(start) = bytes[from..].iter().position(|byte| *byte == b':').map(|at| from + at + 1) else {
        return;
    };
    let length = bytes[start..].iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(0);
    drop(bytes.splice(start..start + length, new.iter().copied()));
}

fn delivery(random: &mut Random) -> Delivery {
    let small = random.below(4) == 0;
    Delivery {
        line_limit: if small { 1 + random.below(600) } else { 1 << 20 },
        lengths: (0..5).map(|_| 1 + random.below(if small { 4 } else { 700 })).collect(),
        takeover: random.below(1000),
        exit: match random.below(5) {
            0 => ExitInfo::code(1).with_stderr("no"),
            1 => ExitInfo::signal(9),
            2 => ExitInfo::code(143).because(EndCause::Stopped),
            _ => ExitInfo::code(0),
        },
    }
}

fn agent(name: &str, random: &mut Random) -> Box<dyn Agent> {
    // Now and then an agent gets the bytes of another.
    let name = if random.below(16) == 0 { *random.pick(NAMES) } else { name };
    match name {
        "plain" if random.below(4) == 0 => Box::new(Plain::default()),
        "plain" => Box::new(invariants::plain_json()),
        name => by_name(name).unwrap(),
    }
}

fn round(inputs: &Inputs, random: &mut Random) {
    let list = match random.below(10) {
        0..=6 => &inputs.streams,
        7..=8 => &inputs.hooks,
        _ => &inputs.transcripts,
    };
    let (name, bytes) = random.pick(list);
    let other = &random.pick(list).1;
    let mut bytes = bytes.clone();
    for _ in 0..random.below(6) {
        damage(&mut bytes, other, random);
    }
    let agent = agent(name, random);
    if std::ptr::eq(list, &inputs.streams) {
        invariants::stream(&*agent, &bytes, &delivery(random));
    } else if std::ptr::eq(list, &inputs.hooks) {
        invariants::hook(&*agent, &bytes);
    } else {
        invariants::transcript(&*agent, &bytes);
    }
}

#[test]
fn damaged_recordings_hold_to_the_invariants() {
    let setting = |name: &str, default| std::env::var(name).map_or(default, |value| value.parse().unwrap());
    let (rounds, seed) = (setting("SEGNO_ROUNDS", 4000), setting("SEGNO_SEED", 20_260_101));
    let inputs = Inputs::load();
    for number in 0..rounds {
        // Each round has its own beginning, so that one that fails can be run alone.
        let seed = seed + number;
        let mut random = Random(seed);
        if let Err(why) = catch_unwind(AssertUnwindSafe(|| round(&inputs, &mut random))) {
            println!("again with SEGNO_SEED={seed} SEGNO_ROUNDS=1");
            resume_unwind(why);
        }
    }
}
