//! A place of a test's own: home, working directory, scratch, environment.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use crate::processes;

/// The variable that marks every process started in a home, so that none is left behind.
const MARK: &str = "SEGNO_TESTKIT_HOME";

/// A temporary home. When it is dropped, so is what it holds, and processes that still run there are killed.
#[derive(Debug)]
pub struct Home {
    root: TempDir,
}

impl Home {
    /// A fresh one.
    ///
    /// # Errors
    /// The directories cannot be made.
    pub fn new() -> io::Result<Self> {
        Self::at(tempfile::Builder::new().prefix("segno-").tempdir()?)
    }

    /// A fresh one in memory if there is such a place, for tests that would wait for the disk most of the time.
    ///
    /// # Errors
    /// The directories cannot be made.
    pub fn in_memory() -> io::Result<Self> {
        let mut named = tempfile::Builder::new();
        let named = named.prefix("segno-");
        Self::at(named.tempdir_in("/dev/shm").or_else(|_| named.tempdir())?)
    }

    fn at(root: TempDir) -> io::Result<Self> {
        let home = Self { root };
        for directory in ["home", "work", "tmp", "run"] {
            std::fs::create_dir(home.root.path().join(directory))?;
        }
        let config = "[user]\n\tname = Test\n\temail = test@example.com\n[init]\n\tdefaultBranch = main\n";
        std::fs::write(home.path().join(".gitconfig"), config)?;
        Ok(home)
    }

    /// The home directory.
    pub fn path(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// The directory to work in; empty at first, not a git repository.
    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// The directory for scratch files and sockets.
    pub fn tmp(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// A path beside the home, for what belongs to the test: gates, records, scripts.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The whole environment of a program that runs here. Only `PATH` comes from outside.
    pub fn env(&self) -> BTreeMap<String, String> {
        let home = self.path();
        let under = |path: &str| text(&home.join(path));
        // Without one, the usual places.
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
        let pairs = [
            (MARK, text(self.root.path())),
            ("HOME", text(&home)),
            ("PATH", path),
            ("TMPDIR", text(&self.tmp())),
            ("XDG_CACHE_HOME", under(".cache")),
            ("XDG_CONFIG_HOME", under(".config")),
            ("XDG_DATA_HOME", under(".local/share")),
            ("XDG_STATE_HOME", under(".local/state")),
            ("XDG_RUNTIME_DIR", text(&self.root.path().join("run"))),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("NO_COLOR", "1".to_owned()),
            ("SHELL", "/bin/sh".to_owned()),
            ("TERM", "dumb".to_owned()),
            ("TZ", "UTC".to_owned()),
            ("USER", "test".to_owned()),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The processes that were started here and still run, however far they moved away from their parents. Only on
    /// Linux; empty elsewhere.
    pub fn processes(&self) -> Vec<i32> {
        processes::marked(MARK, &text(self.root.path()))
    }

    /// Kills them.
    pub fn kill_processes(&self) {
        // A process that is just being born shows its environment a moment later: look until nothing comes any more.
        let mut quiet = 0;
        for _ in 0..50 {
            let found = self.processes();
            quiet = if found.is_empty() { quiet + 1 } else { 0 };
            if quiet == 2 {
                break;
            }
            found.into_iter().for_each(processes::kill);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.kill_processes();
    }
}

/// Temporary directories have plain names.
pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_behind() {
        let home = Home::new().unwrap();
        let root = home.root.path().to_owned();
        let mut child =
            std::process::Command::new("sleep").arg("60").env_clear().envs(home.env()).spawn().unwrap();
        if cfg!(target_os = "linux") {
            let pid = i32::try_from(child.id()).unwrap();
            let seen = (0..1000).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                home.processes() == [pid]
            });
            assert!(seen);
        } else {
            child.kill().unwrap();
        }
        drop(home);
        assert!(!child.wait().unwrap().success());
        assert!(!root.exists());
    }
}
