//! A terminal with a shell in it, as a person has one.

use std::fs::File;
use std::io::Read as _;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;

use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use crate::lab::Lab;
use crate::lab::program;
use crate::lab::until;

/// The keys that matter.
pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const CTRL_Z: &str = "\u{1a}";
/// Leaves a question.
pub(crate) const ESCAPE: &str = "\u{1b}";
pub(crate) const ENTER: &str = "\r";

/// A shell on a terminal of its own, with job control.
pub(crate) struct Terminal {
    keys: File,
    ours: OwnedFd,
    shell: Child,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    pub(crate) fn open(lab: &Lab) -> Self {
        let ours =
            rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        rustix::pty::grantpt(&ours).unwrap();
        rustix::pty::unlockpt(&ours).unwrap();
        let name = rustix::pty::ptsname(&ours, Vec::new()).unwrap();
        let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let end = || Stdio::from(theirs.try_clone().unwrap());
        // It must lead a session to have the terminal for itself, which a program of its own sees to.
        let shell = program("setsid")
            .args(["--ctty", "bash", "--norc", "--noprofile", "-i"])
            .env_clear()
            .envs(&lab.env)
            .env("SEGNO", &lab.segno)
            .env("PS1", "shell> ")
            .current_dir(lab.home.work())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let keys = File::from(ours.try_clone().unwrap());
        let shown = Arc::<Mutex<Vec<u8>>>::default();
        let (mut from, into) = (keys.try_clone().unwrap(), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Ends with an error when nobody has the other end any more.
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                into.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        let terminal = Self { keys, ours, shell, shown };
        terminal.resize(100, 30);
        terminal.wait_for(0, "shell> ");
        terminal
    }

    /// Types something.
    pub(crate) fn type_keys(&self, keys: &str) {
        (&self.keys).write_all(keys.as_bytes()).unwrap();
    }

    /// How much was shown so far.
    pub(crate) fn place(&self) -> usize {
        self.shown.lock().unwrap().len()
    }

    /// What was shown since a place, control sequences and all.
    pub(crate) fn since(&self, place: usize) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()[place..]).into_owned()
    }

    /// Waits until something is shown after a place.
    pub(crate) fn wait_for(&self, place: usize, text: &str) {
        until(text, || self.since(place).contains(text).then_some(()));
    }

    /// The exit code of what ran last. The shell must have the terminal.
    pub(crate) fn exit_code(&self) -> i32 {
        let place = self.place();
        // What is typed is shown too, but not like this.
        self.type_keys(&format!("echo code=$?=edoc{ENTER}"));
        until("the exit code", || {
            let shown = self.since(place);
            let (_, rest) = shown.rsplit_once("code=").filter(|(_, rest)| !rest.starts_with('$'))?;
            rest.split_once("=edoc")?.0.parse().ok()
        })
    }

    /// The settings of the terminal line.
    pub(crate) fn modes(&self) -> String {
        format!("{:?}", rustix::termios::tcgetattr(self.ours.as_fd()).unwrap())
    }

    /// Makes it another size.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(self.ours.as_fd(), size).unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("on the terminal:\n{:?}", self.since(self.place().saturating_sub(6000)));
        }
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
