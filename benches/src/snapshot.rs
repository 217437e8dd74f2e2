//! Snapshots of a large tree beside what git itself does with it, in one run, taking turns.
//!
//! Usage: `snapshot [DIRECTORY]`, where to work. `SEGNO_BENCH_FILES` (50000) and `SEGNO_BENCH_ROUNDS` (11) change it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the figures are what this program is for")]

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use segno_workspace::Options;
use segno_workspace::Workspace;

/// Bytes of the whole tree.
const BYTES: usize = 300 << 20;
/// Files in a directory.
const WIDTH: usize = 50;
/// Files that change between two snapshots.
const CHANGED: usize = 20;

type Fault = Box<dyn std::error::Error>;

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Fault> {
    let home = match std::env::args_os().nth(1) {
        Some(directory) => tempfile::tempdir_in(directory)?,
        None => tempfile::tempdir()?,
    };
    let (files, rounds) = (setting("SEGNO_BENCH_FILES", 50_000), setting("SEGNO_BENCH_ROUNDS", 11));
    let tree = Tree { top: home.path().join("project"), files };
    tree.make()?;
    println!("{files} files, {} MB, {CHANGED} changed between rounds, {rounds} rounds", tree.size()? >> 20);

    // The plain repository that git works on is a copy, so that neither warms the other's index up.
    git(&tree.top, &["init", "-q"])?;
    let took = time(|| git(&tree.top, &["add", "-A"]).and_then(|()| git(&tree.top, &["write-tree"])))?;
    println!("  git add -A && git write-tree, first       {}", shown(took));
    // Ids are cached by time; a tree that was just written could not be trusted by anybody.
    std::thread::sleep(Duration::from_millis(2_500));
    git(&tree.top, &["status"])?;

    let found = segno_workspace::git::find(&std::env::var_os("PATH").unwrap_or_default());
    let program = found.ok_or("there is no git")?;
    let open = |shadow: &str| {
        let mut options = Options::new(&tree.top, home.path().join(shadow), &program);
        options.patience = Duration::from_secs(5);
        Workspace::open(&options)
    };
    let mut firsts = Vec::new();
    for number in 0..3 {
        firsts.push(time(|| Ok(open(&format!("shadow-{number}"))?.snapshot("first").map(drop)?))?);
    }
    let first = median(&mut firsts);
    println!("  first snapshot, durable                   {}   (aim: at most 2 s)", shown(first));
    let workspace = open("shadow-0")?;
    println!("    on disk                                 {} MB", workspace.size()? >> 20);
    workspace.snapshot("warm")?;
    let start = workspace.size()?;

    let (mut statuses, mut adds, mut snapshots, mut unchanged) = (vec![], vec![], vec![], vec![]);
    for round in 0..rounds {
        tree.change(round)?;
        statuses.push(time(|| git(&tree.top, &["status", "--porcelain"]))?);
        snapshots.push(time(|| Ok(open("shadow-0")?.snapshot(&format!("round-{round}")).map(drop)?))?);
        unchanged.push(time(|| Ok(open("shadow-0")?.snapshot(&format!("same-{round}")).map(drop)?))?);
        adds.push(time(|| git(&tree.top, &["add", "-A"]).and_then(|()| git(&tree.top, &["write-tree"])))?);
    }
    let (status, snapshot) = (median(&mut statuses), median(&mut snapshots));
    println!("  git status                                {}", shown(status));
    println!("  git add -A && git write-tree              {}   (not durable)", shown(median(&mut adds)));
    println!("  snapshot, durable, opening included       {}", shown(snapshot));
    println!("  snapshot of an unchanged tree             {}", shown(median(&mut unchanged)));
    let ratio = snapshot.as_secs_f64() / status.as_secs_f64();
    println!("  snapshot / git status                     {ratio:.2}   (aim: at most 1.5)");

    let before = workspace.size()?;
    for number in 0..100 {
        tree.change(rounds + number)?;
        workspace.snapshot(&format!("more-{number}"))?;
    }
    let added = workspace.size()? - before;
    println!("  100 more snapshots                        {} KB in all", added >> 10);
    let (took, garbage) = {
        let began = Instant::now();
        (workspace.collect_garbage(std::time::Duration::ZERO)?, began.elapsed())
    };
    println!("  after collecting garbage                  {} MB, {}", took.after >> 20, shown(garbage));
    println!(
        "    of which snapshots after the first take {} KB before collecting",
        (before + added - start) >> 10
    );
    let target = workspace.get("round-0")?;
    let safety = workspace.safety_snapshot("safety")?.snapshot;
    let took = time(|| {
        let plan = workspace.plan(&target, &segno_workspace::Selection::All, &safety)?;
        println!("  a restore of {} files", plan.writes().count());
        Ok(workspace.apply(&plan).map(drop)?)
    })?;
    println!("    plan and apply, durable                 {}", shown(took));
    Ok(())
}

struct Tree {
    top: PathBuf,
    files: usize,
}

impl Tree {
    fn path(&self, number: usize) -> PathBuf {
        let directory = number / WIDTH;
        self.top.join(format!("part-{}/module-{}/file-{number}.rs", directory / 20, directory % 20))
    }

    /// Text that compresses about as well as source code, every file another.
    fn make(&self) -> Result<(), Fault> {
        let words =
            ["let", "fn", "value", "self", "return", "match", "Some", "result", "index", "struct", "impl"];
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        for number in 0..self.files {
            let path = self.path(number);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            let length = BYTES / self.files / 2 + number % (BYTES / self.files);
            let mut text = String::with_capacity(length + 32);
            while text.len() < length {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let word = words.get((state % words.len() as u64) as usize).copied().unwrap_or_default();
                text.push_str(word);
                match state >> 60 {
                    0..3 => text.push_str(&format!("_{:x}", (state >> 32) & 0xffff)),
                    3..5 => text.push_str("(\n    "),
                    _ => text.push(' '),
                }
            }
            std::fs::write(path, text)?;
        }
        Ok(())
    }

    fn change(&self, round: usize) -> Result<(), Fault> {
        for number in 0..CHANGED {
            let path = self.path((round * 7_919 + number * 2_503) % self.files);
            let mut text = std::fs::read_to_string(&path)?;
            text.push_str(&format!("// round {round}\n"));
            std::fs::write(&path, text)?;
        }
        Ok(())
    }

    fn size(&self) -> Result<u64, Fault> {
        (0..self.files).map(|number| Ok(std::fs::metadata(self.path(number))?.len())).sum()
    }
}

fn git(directory: &Path, arguments: &[&str]) -> Result<(), Fault> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(directory).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output()?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
}

fn time(act: impl FnOnce() -> Result<(), Fault>) -> Result<Duration, Fault> {
    let began = Instant::now();
    act()?;
    Ok(began.elapsed())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn shown(time: Duration) -> String {
    format!("{:8.1} ms", time.as_secs_f64() * 1e3)
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}
