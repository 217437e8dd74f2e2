//! Taking in the transcripts of an agent beside a program that only parses their lines, and finding words in what came of it
//! beside ripgrep on the transcripts.

use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use segno_benches::Times;
use segno_benches::fail;

use super::Bench;
use super::time;

/// Lines of all transcripts. About 500 bytes each, 300 of them words.
const LINES: u64 = 1_000_000;
/// Lines of one.
const EACH: u64 = 2_000;
/// Words that there are.
const WORDS: u64 = 20_000;
/// How often something is looked for.
const SEARCHES: u64 = 100;

impl Bench {
    /// `just bench history`. `SEGNO_BENCH_LINES` says how many lines there are.
    pub(super) fn history(&self) {
        let lines =
            std::env::var("SEGNO_BENCH_LINES").ok().and_then(|text| text.parse().ok()).unwrap_or(LINES);
        let folder = self.home.join(".claude/projects/-srv-shop");
        let (bytes, files) = generate(&folder, lines);
        let mb = |bytes: u64| bytes as f64 / 1e6;
        println!("\nhistory: {} transcripts, {lines} lines, {:.0} MB", files.len(), mb(bytes));
        let project = self.project("history");
        let floor = parse(&files);
        println!(
            "  serde_json, every line    {:8.1} s   {:6.1} MB/s",
            floor.as_secs_f64(),
            mb(bytes) / floor.as_secs_f64()
        );
        let import = self.measured(&mut self.segno(&project, &["import", "claude", "--json"]));
        let took = |name: &str| {
            let ms = import.said["took"][name].as_u64().unwrap_or(0);
            Duration::from_millis(ms)
        };
        let (taken, indexed) = (took("import_ms"), took("index_ms"));
        let events = &import.said["agents"][0]["events"];
        println!(
            "  segno import              {:8.1} s   {:6.1} MB/s   {events} events   {:.0} MB of memory (aim: at most 100)",
            taken.as_secs_f64(),
            mb(bytes) / taken.as_secs_f64(),
            mb(import.memory)
        );
        println!(
            "  share of its speed        {:8.2}     (aim: at least 0.4)",
            floor.as_secs_f64() / taken.as_secs_f64().max(1e-9)
        );
        let data = self.home.join(".local/share/segno");
        let size = |name: &str| std::fs::metadata(data.join(name)).map_or(0, |meta| meta.len());
        println!(
            "  index                     {:8.1} s   {:6.0} MB, the store {:.0} MB",
            indexed.as_secs_f64(),
            mb(size("segno.db.index")),
            mb(size("segno.db"))
        );
        let (mut again, mut starts) = (Times::default(), Times::default());
        for _ in 0..20 {
            again.push(time(&mut self.segno(&project, &["import", "claude"])));
            starts.push(time(&mut self.segno(&project, &["--version"])));
        }
        let above = again.median().saturating_sub(starts.median());
        println!(
            "  a second time             {:8.3} s above the start of the program (aim: at most 0.1)",
            above.as_secs_f64()
        );
        self.ccusage(&project);
        self.searches(&project, &folder, starts.median());
    }

    /// What ccusage makes of the transcripts of this home; none if it is not installed, or not whole.
    pub(super) fn ccusage_daily(&self, project: &Path) -> Option<Command> {
        let program = installed("SEGNO_BENCH_CCUSAGE")?;
        // Its package may be there without the part for this system.
        Command::new(&program).arg("--version").output().ok().filter(|ended| ended.status.success())?;
        let mut command = Command::new(program);
        command.args(["daily", "--offline", "--json"]).current_dir(project);
        command.env("HOME", &self.home).env("CLAUDE_CONFIG_DIR", self.home.join(".claude"));
        Some(command)
    }

    fn ccusage(&self, project: &Path) {
        let Some(mut command) = self.ccusage_daily(project) else {
            println!("  ccusage                   is not installed");
            return;
        };
        let theirs = self.measured(&mut command);
        let ours =
            self.measured(&mut self.segno(project, &["cost", "--everywhere", "--by", "day", "--json"]));
        println!(
            "  ccusage daily             {:8.1} s   {:.0} MB of memory   segno cost --by day, once taken in: {:.3} s",
            theirs.took.as_secs_f64(),
            theirs.memory as f64 / 1e6,
            ours.took.as_secs_f64()
        );
        let (input, output) = (&theirs.said["totals"]["inputTokens"], &theirs.said["totals"]["outputTokens"]);
        let tokens = &ours.said["total"]["tokens"];
        println!(
            "    input and output tokens: {input} {output}, segno {} {}",
            tokens["input"], tokens["output"]
        );
    }

    fn searches(&self, project: &Path, folder: &Path, start: Duration) {
        for count in [1, 2] {
            let (mut times, mut slowest) = (Times::default(), (Duration::ZERO, String::new()));
            for number in 0..SEARCHES {
                let words: Vec<String> = (0..count).map(|part| word(spread(number * 2 + part + 1))).collect();
                let mut command = self.segno(project, &["search"]);
                let took = time(command.args(&words)).saturating_sub(start);
                if took > slowest.0 {
                    slowest = (took, words.join(" "));
                }
                times.push(took);
            }
            println!("  search, {count} word(s)         {} above the start", times.line());
            println!(
                "    p95 {:.1} ms (aim: at most 30); the slowest: {}",
                times.at(0.95).as_secs_f64() * 1e3,
                slowest.1
            );
        }
        let mut theirs = Times::default();
        for number in 0..5 {
            let word = word(spread(number + 1));
            let mut command = Command::new("rg");
            command.args(["--count", "--word-regexp", &word]).arg(folder);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let started = Instant::now();
            if command.status().is_err() {
                println!("  ripgrep                   is not installed");
                return;
            }
            theirs.push(started.elapsed());
        }
        println!("  rg, one word, all files   {}", theirs.line());
    }

    /// Runs a program to its end: what it printed, how long it took, and the most memory that it had.
    pub(super) fn measured(&self, command: &mut Command) -> Measured {
        let output = self.home.join("output.json");
        let file = std::fs::File::create(&output).unwrap_or_else(|why| fail(&why.to_string()));
        command.stdin(Stdio::null()).stdout(file).stderr(Stdio::null());
        let started = Instant::now();
        let mut child = command.spawn().unwrap_or_else(|why| fail(&why.to_string()));
        let status = format!("/proc/{}/status", child.id());
        let mut memory = 0;
        let ended = loop {
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let peak = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
            memory = memory.max(peak.unwrap_or(0) * 1024);
            match child.try_wait() {
                Ok(Some(ended)) => break ended,
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                Err(why) => return fail(&why.to_string()),
            }
        };
        let took = started.elapsed();
        if !ended.success() {
            return fail(&format!("{command:?} ended with {ended}"));
        }
        let text = std::fs::read(&output).unwrap_or_default();
        Measured { said: serde_json::from_slice(&text).unwrap_or_default(), took, memory }
    }
}

/// What became of a program.
pub(super) struct Measured {
    pub(super) said: serde_json::Value,
    pub(super) took: Duration,
    memory: u64,
}

/// The numbers from 0 on in an order that looks like none.
fn mixed(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The number of a word as texts have them: the second is half as frequent as the first, the third a third, …
fn spread(number: u64) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
    let share = (mixed(number) >> 11) as f64 / (1_u64 << 53) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and the number of words"
    )]
    let rank = ((WORDS as f64).powf(share) - 1.0) as u64;
    rank.min(WORDS - 1)
}

/// A word by its number.
fn word(number: u64) -> String {
    let mut letters = String::new();
    let mut rest = mixed(number ^ 0x5e60) % 300_000_000 + 8_000_000;
    while rest > 0 {
        let (consonant, vowel) = (rest % 14, rest / 14 % 5);
        letters.push(char::from(b"bdfghklmnprstv"[usize::try_from(consonant).unwrap_or(0)]));
        letters.push(char::from(b"aeiou"[usize::try_from(vowel).unwrap_or(0)]));
        rest /= 14 * 5 * 5;
    }
    letters
}

/// A program of others that `scripts/bench` has installed.
pub(super) fn installed(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists())
}

/// Makes transcripts as Claude Code writes them. Answers with their size and names.
pub(super) fn generate(folder: &Path, lines: u64) -> (u64, Vec<PathBuf>) {
    let io = |why: std::io::Error| fail(&why.to_string());
    std::fs::create_dir_all(folder).unwrap_or_else(io);
    let dictionary: Vec<String> = (0..WORDS).map(word).collect();
    let (mut bytes, mut files) = (0, Vec::new());
    for number in 0..lines.div_ceil(EACH) {
        let id = format!("0199a213-7f3e-4c11-9d8a-{number:012}");
        let mut text = String::new();
        for line in 0..EACH.min(lines - number * EACH) {
            let seed = (number * EACH + line) * 64;
            let words: Vec<&str> = (0..40)
                .map(|n| dictionary[usize::try_from(spread(seed + n)).unwrap_or(0)].as_str())
                .collect();
            let words = words.join(" ");
            let (minute, second) = (line / 60 % 60, line % 60);
            let common = format!(
                "\"uuid\":\"{id}-{line}\",\"timestamp\":\"2026-{:02}-{:02}T{:02}:{minute:02}:{second:02}.000Z\",\
                 \"cwd\":\"/srv/shop\",\"sessionId\":\"{id}\",\"version\":\"2.1.0\"",
                number % 9 + 1,
                number / 9 % 28 + 1,
                line / 3_600 % 24
            );
            let parent = match line {
                0 => "null".to_owned(),
                line => format!("\"{id}-{}\"", line - 1),
            };
            let written = match line % 4 {
                0 => format!(
                    "{{\"parentUuid\":{parent},\"isSidechain\":false,\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"{words}\"}},{common}}}\n"
                ),
                _ => format!(
                    "{{\"parentUuid\":{parent},\"isSidechain\":false,\"message\":{{\"id\":\"m-{number}-{line}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[{{\"type\":\"text\",\"text\":\"{words}\"}}],\"usage\":{{\"input_tokens\":10,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":100,\"output_tokens\":7}}}},\"requestId\":\"r-{number}-{line}\",\"type\":\"assistant\",{common}}}\n"
                ),
            };
            text.push_str(&written);
        }
        let path = folder.join(format!("{id}.jsonl"));
        let mut file = std::fs::File::create(&path).unwrap_or_else(|why| fail(&why.to_string()));
        file.write_all(text.as_bytes()).unwrap_or_else(|why| fail(&why.to_string()));
        bytes += text.len() as u64;
        files.push(path);
    }
    (bytes, files)
}

/// Parses every line, and nothing else.
pub(super) fn parse(files: &[PathBuf]) -> Duration {
    let started = Instant::now();
    let mut members = 0;
    for path in files {
        let file = std::fs::File::open(path).unwrap_or_else(|why| fail(&why.to_string()));
        let mut reader = BufReader::with_capacity(256 << 10, file);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).unwrap_or(0) > 0 {
            let value: serde_json::Value =
                serde_json::from_slice(&line).unwrap_or_else(|why| fail(&why.to_string()));
            members += value.as_object().map_or(0, serde_json::Map::len);
            line.clear();
        }
    }
    assert!(members > 0);
    started.elapsed()
}
