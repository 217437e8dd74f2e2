//! What a loop costs beside its agent: the time between two iterations in a large tree, and its memory over many of them.

use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use segno_benches::Times;
use segno_benches::fail;

use crate::Bench;
use crate::agent::make_executable;

/// Files of the large tree.
const FILES: usize = 50_000;
/// How many iterations are taken there.
const ITERATIONS: usize = 21;
/// Iterations of the long loop.
const MANY: u64 = 500;

/// Plays Claude Code: notes when it starts, changes a file, says something, and notes when it ends.
const AGENT: &str = r#"#!/bin/bash
case "$*" in *--version*) echo "2.1.325 (Claude Code)"; exit 0;; esac
echo "start $EPOCHREALTIME" >> "$0.log"
id=none; while [ $# -gt 0 ]; do case "$1" in --session-id|--resume) id=$2;; esac; shift; done
cat > /dev/null
printf '{"type":"system","subtype":"init","session_id":"%s","model":"bench","tools":[]}\n' "$id"
echo "$EPOCHREALTIME" > changed.txt
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"%s","num_turns":1,"duration_ms":1,"duration_api_ms":1,"total_cost_usd":0.01,"usage":{"input_tokens":100,"output_tokens":10},"result":"one step more"}\n' "$id"
echo "end $EPOCHREALTIME" >> "$0.log"
"#;

impl Bench {
    /// How long nobody works between two iterations, without any command that measures, and whether a long loop grows.
    pub(crate) fn looping(&self) {
        println!("\na loop without evidence commands in a tree of {FILES} files, {ITERATIONS} iterations");
        let project = self.project("loop-large");
        fill_tree(&project);
        let program = self.agent("loop-large-agent");
        let status = self.start_loop(&project, &program, ITERATIONS as u64).wait();
        // It ends because its iterations are used up.
        check(status.map(|status| status.code()).ok().flatten());
        let mut gaps = Times::default();
        // The first iterations take the first snapshot and warm the caches up.
        for gap in gaps_of(&log_of(&program)).into_iter().skip(2) {
            gaps.push(gap);
        }
        println!("  from one agent's end to the next one's start  {}", gaps.line());
        println!("  median {:.0} ms (aim: at most 500 ms)", gaps.median().as_secs_f64() * 1e3);

        println!("\na loop of {MANY} iterations in a small tree");
        let project = self.project("loop-long");
        let program = self.agent("loop-long-agent");
        let mut child = self.start_loop(&project, &program, MANY);
        let mut seen = Vec::new();
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(why) => return fail(&why.to_string()),
            }
            let done = log_of(&program).matches("end ").count() as u64;
            seen.extend(resident(child.id()).map(|kilobytes| (done, kilobytes)));
            std::thread::sleep(Duration::from_millis(50));
        };
        check(status.code());
        let most = |from: u64, to: u64| {
            let of = seen.iter().filter(|(done, _)| (from..to).contains(done));
            of.map(|(_, kilobytes)| *kilobytes).max().unwrap_or(0) as f64 / 1024.0
        };
        let (early, late) = (most(25, 75), most(MANY - 50, MANY + 1));
        println!("  resident, most: iterations 25 to 75 {early:.1} MB, the last 50 {late:.1} MB");
        let gaps = gaps_of(&log_of(&program));
        let median = |part: &[Duration]| {
            let mut times = Times::default();
            part.iter().for_each(|gap| times.push(*gap));
            times.median().as_secs_f64() * 1e3
        };
        let (first, last) =
            (median(gaps.get(..50).unwrap_or(&gaps)), median(&gaps[gaps.len().saturating_sub(50)..]));
        println!("  between iterations: the first 50 {first:.0} ms, the last 50 {last:.0} ms");
    }

    fn agent(&self, name: &str) -> PathBuf {
        let path = self.home.join(name);
        std::fs::write(&path, AGENT).unwrap_or_else(|why| fail(&why.to_string()));
        make_executable(&path);
        path
    }

    /// The first phase of `spec` goes by the agent's signal alone: nothing is measured in it, and this agent gives none.
    fn start_loop(&self, project: &Path, program: &Path, iterations: u64) -> Child {
        let most = iterations.to_string();
        let store = format!("sqlite:{}.db", program.display());
        let mut command = self.segno(
            project,
            &["--store", &store, "--quiet", "loop", "--prompt", "x", "--workflow", "spec", "--no-hooks"],
        );
        command.args(["--until", "true", "--max-iterations", &most]);
        command.env("SEGNO_AGENTS", format!("[claude]\nprogram = \"{}\"", program.display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap_or_else(|why| fail(&why.to_string()))
    }
}

/// Iterations that are used up are an exit code of their own.
fn check(code: Option<i32>) {
    if code != Some(26) {
        fail(&format!("the loop ended with {code:?}"))
    }
}

fn log_of(program: &Path) -> String {
    std::fs::read_to_string(format!("{}.log", program.display())).unwrap_or_default()
}

/// From each end in the log to the start after it.
fn gaps_of(log: &str) -> Vec<Duration> {
    let (mut gaps, mut end) = (Vec::new(), None::<f64>);
    for line in log.lines() {
        let Some((what, at)) = line.split_once(' ') else { continue };
        let Ok(at) = at.parse::<f64>() else { continue };
        match (what, end) {
            ("start", Some(end)) => gaps.push(Duration::from_secs_f64((at - end).max(0.0))),
            ("end", _) => end = Some(at),
            _ => {}
        }
    }
    gaps
}

/// Memory that a process has, in kilobytes.
fn resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Small files of source in directories of fifty, as a repository of git.
fn fill_tree(project: &Path) {
    std::fs::remove_dir(project.join(".git")).unwrap_or_else(|why| fail(&why.to_string()));
    let made = Command::new("git").args(["init", "-q"]).current_dir(project).status();
    if !made.is_ok_and(|status| status.success()) {
        return fail("no git");
    }
    for number in 0..FILES {
        let directory = project.join(format!("part-{}/module-{}", number / 1_000, number / 50));
        let text = format!("pub fn value_{number}() -> u64 {{\n    {number}\n}}\n");
        let written = std::fs::create_dir_all(&directory)
            .and_then(|()| std::fs::write(directory.join(format!("file-{number}.rs")), text));
        written.unwrap_or_else(|why| fail(&why.to_string()));
    }
}
