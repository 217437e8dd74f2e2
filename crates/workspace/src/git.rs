//! The one place that runs git, with nothing inherited and nothing of the user's configured.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::error::Error;

/// The oldest git that works: it is the first that can be told to read no configuration of the user's.
pub const OLDEST: Version = Version(2, 32);

/// A version of git, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl Version {
    /// From what `git version` prints.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = text.trim().strip_prefix("git version ")?;
        let mut numbers = numbers.split(['.', ' ', '-']);
        Some(Self(numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }
}

/// Looks for git in a search path such as the value of `PATH`. Relative directories in it do not count: the working
/// directory is an agent's.
pub fn find(path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join("git"))
        .find(|git| is_program(git))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Git in one git directory.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    program: PathBuf,
    dir: PathBuf,
    more: Vec<(&'static str, PathBuf)>,
}

/// Settings that no configuration file can undo. Hooks, monitors, signing, pagers, helpers and transports are what a
/// git command may start; nothing here needs any of them.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    // A large object passes through in pieces; a small file may hold one that fills the memory.
    "core.bigFileThreshold=8m",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.eol=lf",
    "core.safecrlf=false",
    "core.symlinks=true",
    "core.fileMode=true",
    "core.precomposeUnicode=false",
    "core.protectHFS=false",
    "core.protectNTFS=false",
    "core.quotePath=true",
    "core.fsync=all",
    "core.fsyncMethod=fsync",
    "core.alternateRefsCommand=",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.askPass=false",
    "core.editor=false",
    "core.pager=cat",
    "core.multiPackIndex=false",
    "core.commitGraph=false",
    "core.warnAmbiguousRefs=false",
    "credential.helper=",
    "diff.external=",
    "diff.ignoreSubmodules=all",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.renames=false",
    "diff.orderFile=/dev/null",
    "status.showUntrackedFiles=no",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "commit.gpgSign=false",
    "log.showSignature=false",
    "trace2.normalTarget=0",
    "trace2.perfTarget=0",
    "trace2.eventTarget=0",
    "uploadpack.packObjectsHook=",
    "safe.directory=*",
];

/// The program that was asked last in this process and is new enough, with what tells it from a later one: a run looks
/// at the tree at its start and at its end.
static FIT: Mutex<Option<(PathBuf, i64, u64)>> = Mutex::new(None);

impl Git {
    /// Git for the git directory `dir`, which need not exist yet. Fails if git is missing or too old.
    pub(crate) fn new(program: &Path, dir: &Path) -> Result<Self, Error> {
        if !is_program(program) {
            return Err(Error::NoGit(program.to_owned()));
        }
        let git = Self { program: program.to_owned(), dir: dir.to_owned(), more: Vec::new() };
        let asked =
            std::fs::metadata(program).ok().map(|meta| (program.to_owned(), meta.mtime(), meta.len()));
        if asked.is_some() && *FIT.lock().unwrap_or_else(PoisonError::into_inner) == asked {
            return Ok(git);
        }
        let said = git.base().arg("version").stdin(Stdio::null()).output();
        let said = said.map_err(|_| Error::NoGit(program.to_owned()))?;
        let said = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        match Version::parse(&said) {
            Some(version) if version >= OLDEST => {
                *FIT.lock().unwrap_or_else(PoisonError::into_inner) = asked;
                Ok(git)
            }
            _ => Err(Error::OldGit { found: said.trim_start_matches("git version ").to_owned() }),
        }
    }

    /// The same git for another git directory.
    pub(crate) fn in_dir(&self, dir: &Path) -> Self {
        Self { program: self.program.clone(), dir: dir.to_owned(), more: Vec::new() }
    }

    /// The same git with one more environment variable.
    pub(crate) fn with(&self, name: &'static str, value: &Path) -> Self {
        let mut git = self.clone();
        git.more.push((name, value.to_owned()));
        git
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    fn base(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", "/nonexistent")
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_LITERAL_PATHSPECS", "1")
            .env("GIT_ALLOW_PROTOCOL", "")
            .env("GIT_PAGER", "cat")
            .env("GIT_AUTHOR_NAME", "segno")
            .env("GIT_AUTHOR_EMAIL", "segno@localhost")
            .env("GIT_COMMITTER_NAME", "segno")
            .env("GIT_COMMITTER_EMAIL", "segno@localhost");
        command
    }

    /// A git command, ready to be started. It runs in the git directory, never in the tree.
    pub(crate) fn command(&self, arguments: &[&OsStr]) -> Command {
        let mut command = self.base();
        command.arg("--no-pager").env("GIT_DIR", &self.dir).current_dir(&self.dir);
        for setting in SETTINGS {
            command.arg("-c").arg(setting);
        }
        for (name, value) in &self.more {
            command.env(name, value);
        }
        command.args(arguments);
        command
    }

    /// Runs a command to its end and answers with what it printed.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Vec<u8>, Error> {
        self.feed(arguments, &[])
    }

    /// Runs a command with these bytes as its input.
    pub(crate) fn feed<A: AsRef<OsStr>>(&self, arguments: &[A], input: &[u8]) -> Result<Vec<u8>, Error> {
        let arguments: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
        let failed = |said: String| Error::Git {
            command: arguments.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            said,
        };
        crate::fault::step();
        let mut child = self
            .command(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|why| failed(why.to_string()))?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // Written beside the reading, or both would wait when the pipes are full. A command that does not
            // want its input is judged by its exit status.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
            child.wait_with_output()
        });
        let output = output.map_err(|why| failed(why.to_string()))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(failed(if said.is_empty() { output.status.to_string() } else { said }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_each_vendor_prints_them() {
        for (text, version) in [
            ("git version 2.47.3\n", Some(Version(2, 47))),
            ("git version 2.39.5 (Apple Git-154)", Some(Version(2, 39))),
            ("git version 2.45.1.windows.1", Some(Version(2, 45))),
            ("git version 3.0-rc1", Some(Version(3, 0))),
            ("git version", None),
            ("hub version 2.14", None),
        ] {
            assert_eq!(Version::parse(text), version, "{text}");
        }
        assert!(Version(2, 9) < OLDEST && Version(2, 32) >= OLDEST && Version(3, 0) > OLDEST);
    }

    #[test]
    fn relative_directories_are_not_searched() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("git");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        assert_eq!(find(dir.path().as_os_str()), None, "not executable");
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(find(dir.path().as_os_str()), Some(program));
        assert_eq!(find(OsStr::new(".:bin")), None);
    }
}
