//! Printing much, and printing badly.

use std::io::Write;
use std::io::{self};

use serde_json::Value;

use super::step::Shape;
use crate::lines::claude;
use crate::lines::codex;

/// Prints bytes and makes sure that they are out.
pub(super) fn print(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

pub(super) fn print_json(value: &Value) -> io::Result<()> {
    print(format!("{value}\n").as_bytes())
}

/// Numbered lines, so that a gap is seen.
pub(super) fn flood(bytes: u64, line: usize) -> io::Result<()> {
    let mut stdout = io::BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let rest = " ".to_owned() + &".".repeat(line.saturating_sub(14)) + "\n";
    let mut left = bytes;
    for number in 0_u64.. {
        let text = format!("{number:012}{rest}");
        if text.len() as u64 >= left {
            let last = usize::try_from(left).unwrap_or(usize::MAX);
            stdout.write_all(&text.as_bytes()[text.len() - last..])?;
            break;
        }
        stdout.write_all(text.as_bytes())?;
        left -= text.len() as u64;
    }
    stdout.flush()
}

pub(super) fn long_line(bytes: usize, shape: Shape, session: &str) -> io::Result<()> {
    let text = "x".repeat(bytes);
    match shape {
        Shape::Plain => print((text + "\n").as_bytes()),
        Shape::Claude => print_json(&claude::text(session, &text)),
        Shape::Codex => print_json(&codex::message("item_0", &text)),
    }
}

/// The bytes that hexadecimal text stands for.
pub(super) fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: String = text.split_whitespace().collect();
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return Err(format!("{text:?} is not hexadecimal"));
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|error| format!("{text:?}: {error}")))
        .collect()
}

/// Lets stdout lead nowhere, as far as the reader of the pipe can tell.
pub(super) fn close_stdout() -> io::Result<()> {
    let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(nowhere)?)
}
