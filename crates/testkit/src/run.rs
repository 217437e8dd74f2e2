//! Runs a program with a deadline.

use std::fs::File;
use std::io::Read;
use std::io::Seek;
use std::io::Write;
use std::io::{self};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::thread;
use std::time::Duration;
use std::time::Instant;

/// How a program ended and what it wrote.
#[derive(Debug)]
pub struct Finished {
    /// Everything on stdout.
    pub stdout: Vec<u8>,
    /// Everything on stderr.
    pub stderr: String,
    /// The exit code, if it exited.
    pub code: Option<i32>,
    /// The signal, if one killed it.
    pub signal: Option<i32>,
    /// How long it ran.
    pub took: Duration,
    /// It was killed because its time was over.
    pub timed_out: bool,
}

/// Runs `command` with this on stdin, and kills it when its time is over. Its output goes through files, so it never
/// waits for a reader, and children it leaves behind do not keep us waiting.
///
/// # Errors
/// It cannot be started, or its output cannot be read.
pub fn run(command: &mut Command, stdin: &[u8], deadline: Duration) -> io::Result<Finished> {
    let mut stdout = tempfile::tempfile()?;
    let mut stderr = tempfile::tempfile()?;
    command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    command.stdin(if stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
    let begin = Instant::now();
    let mut child = command.spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        let stdin = stdin.to_vec();
        // A program need not read what it is given.
        thread::spawn(move || drop(pipe.write_all(&stdin)));
    }
    let (status, timed_out) = wait(&mut child, begin, deadline)?;
    Ok(Finished {
        stdout: content(&mut stdout)?,
        stderr: String::from_utf8_lossy(&content(&mut stderr)?).into_owned(),
        code: status.code(),
        signal: status.signal(),
        took: begin.elapsed(),
        timed_out,
    })
}

fn wait(child: &mut Child, begin: Instant, deadline: Duration) -> io::Result<(ExitStatus, bool)> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, false));
        }
        if begin.elapsed() >= deadline {
            child.kill()?;
            return Ok((child.wait()?, true));
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn content(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends() {
        let sh = |script: &str, seconds| {
            run(Command::new("sh").args(["-c", script]), b"in", Duration::from_secs(seconds)).unwrap()
        };
        let done = sh("cat; echo err >&2; exit 3", 20);
        assert_eq!((done.stdout.as_slice(), done.stderr.as_str(), done.code), (&b"in"[..], "err\n", Some(3)));
        assert_eq!(sh("kill -TERM $$", 20).signal, Some(15));
        let late = sh("exec sleep 30", 0);
        assert!(late.timed_out && late.signal == Some(9) && late.took < Duration::from_secs(10));
        let left = sh("sleep 5 & echo out", 20);
        assert!(left.took < Duration::from_secs(4), "children do not keep us waiting");
    }
}
