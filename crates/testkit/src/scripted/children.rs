//! Children that live on.
//!
//! Each is this program again: it is told by its first arguments how to get away, then plays its steps.

use std::io;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use super::step::How;
use super::step::SignalName;
use super::step::Step;

/// First arguments of a child.
pub(super) const SETSID: &str = "--setsid";
pub(super) const DETACH: &str = "--detach";
pub(super) const PID_FILE: &str = "--pid-file";

/// Starts a child; with a file for its process id, waits until that is there.
pub(super) fn spawn(
    how: How,
    steps: &[Step],
    pid_file: Option<&str>,
    keep_output: bool,
    bare: bool,
) -> io::Result<()> {
    let mut steps = steps.to_vec();
    let mut args: Vec<String> = Vec::new();
    match how {
        How::Plain => {}
        How::Nohup => steps.insert(0, Step::Ignore(vec![SignalName::Hup])),
        How::Setsid => args.push(SETSID.to_owned()),
        How::DoubleFork => args.extend([DETACH.to_owned(), SETSID.to_owned()]),
    }
    if let Some(file) = pid_file {
        args.extend([PID_FILE.to_owned(), file.to_owned()]);
    }
    args.extend(["--steps".to_owned(), serde_json::to_string(&steps)?]);
    let mut child = start(&args, keep_output, bare)?;
    if how == How::DoubleFork {
        child.wait()?;
    }
    match pid_file {
        Some(file) => wait_for(Path::new(file), Duration::from_secs(10)),
        None => Ok(()),
    }
}

/// Starts this program again.
pub(super) fn start(args: &[String], keep_output: bool, bare: bool) -> io::Result<std::process::Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args).env_remove("SCRIPTED_AGENT").stdin(Stdio::null());
    if bare {
        command.env_clear();
    }
    if !keep_output {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    command.spawn()
}

/// Waits until a file is there.
pub(super) fn wait_for(path: &Path, time: Duration) -> io::Result<()> {
    let begin = Instant::now();
    while !path.exists() {
        if begin.elapsed() >= time {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{} never came", path.display())));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Writes a file so that whoever sees it sees all of it.
pub(super) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    io::Write::write_all(&mut file, content)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}
