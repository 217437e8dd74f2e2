//! Measures what the first text costs a process that has just started: making a redactor, asking it whether it
//! suspects the text, and redacting it; then, in the same process, what exact values add to the first two.
//!
//! Starts itself many times, because only a new process is cold. Each process takes 2 KB of the files given as
//! arguments, another part each time, or else of a text that looks like the output of a tool.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program to be run by hand: it reads files, keeps time, starts itself and prints"
)]

use std::error::Error;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use segno_redact::Options;
use segno_redact::Redactor;

const TIMES: usize = 200;
const LENGTH: usize = 2048;
const CHILD: &str = "--child";

const SAMPLE: &str = "   Compiling parser v0.3.1 (https://forge.example/tools/parser)\n\
    warning: unused variable: `key`\n  --> src/lib.rs:42:9\n   |\n42 |     let key = self.next_token()?;\n   |         ^^^ help: \
    if they are intentional, prefix it with an underscore: `_key`\n\nrunning 12 tests\ntest path::tests::compat_mode ... ok\n\
    test machine::tests::kind: survey ... ok\nwrote data: 1834 bytes, cookie jar untouched, task-12 done in 0.3 s\n";

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, part, files @ ..] = args.as_slice()
        && flag == CHILD
    {
        return child(part.parse()?, files);
    }
    let mut times: [Vec<f64>; 4] = Default::default();
    for part in 0..TIMES {
        let output =
            Command::new(std::env::current_exe()?).arg(CHILD).arg(part.to_string()).args(&args).output()?;
        let line = String::from_utf8(output.stdout)?;
        for (list, value) in times.iter_mut().zip(line.split_whitespace()) {
            list.push(value.parse()?);
        }
    }
    println!("microseconds in a new process   min   median    9 of 10     max");
    for (name, list) in
        ["new and suspects", "then text", "together", "new, with exact values"].iter().zip(&mut times)
    {
        list.sort_by(f64::total_cmp);
        let at = |share: usize| list.get(list.len() * share / 100).copied().unwrap_or_default();
        let most = list.last().copied().unwrap_or_default();
        println!("{name:24} {:10.1} {:8.1} {:10.1} {most:7.1}", at(0), at(50), at(90));
    }
    Ok(())
}

fn child(part: usize, files: &[String]) -> Result<(), Box<dyn Error>> {
    let mut all = String::new();
    for file in files {
        all.push_str(&std::fs::read_to_string(file)?);
    }
    if all.is_empty() {
        all = SAMPLE.repeat(LENGTH / SAMPLE.len() + 1);
    }
    let parts = (all.len() / LENGTH).max(1);
    let from = all.floor_char_boundary(part * parts / TIMES * LENGTH);
    let text = &all[from..all.floor_char_boundary((from + LENGTH).min(all.len()))];
    let started = Instant::now();
    let redactor = Redactor::new(Options::default());
    black_box(redactor.suspects(text));
    let suspected = started.elapsed().as_secs_f64() * 1e6;
    black_box(redactor.text(text));
    let all = started.elapsed().as_secs_f64() * 1e6;
    let started = Instant::now();
    let exact = (0..5).map(|i| (format!("SECRET_{i}"), format!("q8Zt4Lm2-{i}-").repeat(3))).collect();
    let redactor = Redactor::new(Options { exact, ..Options::default() });
    black_box(redactor.suspects(text));
    let exact = started.elapsed().as_secs_f64() * 1e6;
    println!("{suspected} {} {all} {exact}", all - suspected);
    Ok(())
}
