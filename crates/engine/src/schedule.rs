//! What the system does for a store when nobody waits for it: a timer that goes on with loops that are due, and a service that
//! follows agents which were started by hand.
//!
//! One timer serves all loops of a store: it looks every few minutes, and goes on with whatever is due. So there is
//! nothing to arm anew when a loop is parked, and after a night in which the machine slept it fires once.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use segno_core::StoreId;
use segno_files::Access;

use crate::Error;

/// What runs timers and services on this system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// systemd's manager of the user.
    Systemd,
    /// launchd.
    Launchd,
}

impl Scheduler {
    /// The one of this system.
    pub fn here() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }

    /// Where it looks for what it is to do, below the user's home or their configuration.
    pub fn directory(self, home: &Path, config: &Path) -> PathBuf {
        match self {
            Self::Systemd => config.join("systemd/user"),
            Self::Launchd => home.join("Library/LaunchAgents"),
        }
    }
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Something short, again and again.
    Due {
        /// How often it looks.
        every: Duration,
    },
    /// Something that stays, and is started again if it fails.
    Follow,
}

/// A timer or a service for one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Who runs it.
    pub scheduler: Scheduler,
    /// Where its files are.
    pub directory: PathBuf,
    /// The store that it is for.
    pub store: StoreId,
    /// What it runs: the program and its arguments.
    pub command: Vec<String>,
    /// The variables that the command needs. They are written down: none may be a secret.
    pub environment: Vec<(String, String)>,
    /// What is done.
    pub job: Job,
}

impl Schedule {
    /// What it is called.
    pub fn name(&self) -> String {
        let id: String = self.store.to_string().chars().filter(char::is_ascii_alphanumeric).take(8).collect();
        let job = match self.job {
            Job::Due { .. } => "due",
            Job::Follow => "watch",
        };
        match self.scheduler {
            Scheduler::Systemd => format!("segno-{job}-{id}"),
            Scheduler::Launchd => format!("segno.{job}.{id}"),
        }
    }

    /// Its files, with what is in them.
    pub fn files(&self) -> Vec<(PathBuf, String)> {
        let file = |ending: &str| self.directory.join(format!("{}.{ending}", self.name()));
        match (self.scheduler, self.job) {
            (Scheduler::Systemd, Job::Due { every }) => {
                vec![(file("service"), self.service()), (file("timer"), timer(every))]
            }
            (Scheduler::Systemd, Job::Follow) => vec![(file("service"), self.service())],
            (Scheduler::Launchd, _) => vec![(file("plist"), self.plist())],
        }
    }

    fn service(&self) -> String {
        let environment: String = self
            .environment
            .iter()
            .map(|(name, value)| format!("Environment={}\n", quoted(&format!("{name}={value}"), false)))
            .collect();
        let command: Vec<String> = self.command.iter().map(|word| quoted(word, true)).collect();
        let (what, kind, end) = match self.job {
            // A loop may work for hours, and is not to be killed for that.
            Job::Due { .. } => {
                ("Goes on with the loops of segno that are due", "oneshot\nTimeoutStartSec=infinity", "")
            }
            Job::Follow => (
                "Follows agents that were started by hand, for segno",
                "simple\nRestart=on-failure\nRestartSec=10s\nNice=10",
                "\n[Install]\nWantedBy=default.target\n",
            ),
        };
        format!(
            "[Unit]\nDescription={what}\n\n[Service]\nType={kind}\n{environment}ExecStart={}\n{end}",
            command.join(" ")
        )
    }

    fn plist(&self) -> String {
        let string = |text: &String| format!("    <string>{}</string>\n", escaped(text));
        let command: String = self.command.iter().map(string).collect();
        let environment: String = self
            .environment
            .iter()
            .map(|(name, value)| format!("    <key>{}</key>\n{}", escaped(name), string(value)))
            .collect();
        let when = match self.job {
            Job::Due { every } => {
                format!("<key>StartInterval</key>\n  <integer>{}</integer>", every.as_secs().max(1))
            }
            Job::Follow => "<key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  <dict>\n    \
                            <key>SuccessfulExit</key>\n    <false/>\n  </dict>"
                .to_owned(),
        };
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \
             \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n<plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  \
             <string>{}</string>\n  <key>ProgramArguments</key>\n  <array>\n{command}  </array>\n  \
             <key>EnvironmentVariables</key>\n  <dict>\n{environment}  </dict>\n  {when}\n</dict>\n</plist>\n",
            escaped(&self.name()),
        )
    }

    /// The commands that arm it once its files are there.
    pub fn arming(&self) -> Vec<Vec<String>> {
        match self.scheduler {
            Scheduler::Systemd => {
                vec![words("systemctl --user daemon-reload"), self.systemctl("enable --now")]
            }
            Scheduler::Launchd => vec![self.launchctl("load")],
        }
    }

    /// The commands that disarm it before its files are removed.
    pub fn disarming(&self) -> Vec<Vec<String>> {
        match self.scheduler {
            Scheduler::Systemd => vec![self.systemctl("disable --now")],
            Scheduler::Launchd => vec![self.launchctl("unload")],
        }
    }

    fn systemctl(&self, what: &str) -> Vec<String> {
        words(&format!("systemctl --user {what} {}.{}", self.name(), self.unit()))
    }

    fn launchctl(&self, what: &str) -> Vec<String> {
        let file = self.directory.join(format!("{}.plist", self.name()));
        ["launchctl", what, "-w"].map(str::to_owned).into_iter().chain([file.display().to_string()]).collect()
    }

    /// Whether its files are there.
    pub fn is_written(&self) -> bool {
        self.files().iter().all(|(path, _)| path.is_file())
    }

    /// The kind of unit of systemd that is armed.
    fn unit(&self) -> &'static str {
        match self.job {
            Job::Due { .. } => "timer",
            Job::Follow => "service",
        }
    }

    /// Whether it fires, as far as its files tell: a unit of systemd is linked from where it is wanted.
    pub fn is_armed(&self) -> bool {
        let target = match self.job {
            Job::Due { .. } => "timers.target.wants",
            Job::Follow => "default.target.wants",
        };
        let wanted = self.directory.join(target).join(format!("{}.{}", self.name(), self.unit()));
        self.is_written() && (self.scheduler == Scheduler::Launchd || wanted.symlink_metadata().is_ok())
    }

    /// Writes its files.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn write(&self) -> Result<(), Error> {
        segno_files::make_directory(&self.directory).map_err(|why| Error::file(&self.directory, why))?;
        for (path, text) in self.files() {
            segno_files::replace(&path, text.as_bytes(), Access::Private)
                .map_err(|why| Error::file(&path, why))?;
        }
        Ok(())
    }

    /// Removes its files; false if there were none.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn remove(&self) -> Result<bool, Error> {
        let mut there = false;
        for (path, _) in self.files() {
            match std::fs::remove_file(&path) {
                Ok(()) => there = true,
                Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
                Err(why) => return Err(Error::file(&path, why)),
            }
        }
        Ok(there)
    }
}

fn timer(every: Duration) -> String {
    let every = every.as_secs().max(1);
    format!(
        "[Unit]\nDescription=Looks every {every} s for loops of segno that are due\n\n[Timer]\n\
         OnActiveSec={every}s\nOnStartupSec=60s\nOnUnitInactiveSec={every}s\nAccuracySec=10s\n\n\
         [Install]\nWantedBy=timers.target\n"
    )
}

/// Runs commands one after the other, until one fails.
///
/// # Errors
/// The command that failed, and what it said.
pub fn run_all(commands: &[Vec<String>]) -> Result<(), String> {
    for words in commands {
        let Some((program, arguments)) = words.split_first() else { continue };
        let failed = |why: String| format!("{}: {}", words.join(" "), why.trim());
        let ended = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|why| failed(why.to_string()))?;
        if !ended.status.success() {
            return Err(failed(String::from_utf8_lossy(&ended.stderr).into_owned()));
        }
    }
    Ok(())
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(ToOwned::to_owned).collect()
}

/// A word as systemd takes it: it would replace `%`, and in a command `$` too.
fn quoted(word: &str, in_command: bool) -> String {
    let mut text = String::from("\"");
    for letter in word.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '%' => text.push_str("%%"),
            '$' if in_command => text.push_str("$$"),
            '\n' => text.push_str("\\n"),
            _ => text.push(letter),
        }
    }
    text.push('"');
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(scheduler: Scheduler) -> Schedule {
        Schedule {
            scheduler,
            directory: "/home/ann/.config/systemd/user".into(),
            store: "0123456789abcdef0123456789abcdef".parse().unwrap(),
            command: ["/opt/my tools/segno", "--store", "sqlite:/data/100%/$a\"b.db", "loop"]
                .map(Into::into)
                .into(),
            environment: vec![("PATH".into(), "/usr/bin:/opt/100%".into())],
            job: Job::Due { every: Duration::from_secs(600) },
        }
    }

    #[test]
    fn units_of_systemd() {
        let files = schedule(Scheduler::Systemd).files();
        let names: Vec<_> =
            files.iter().map(|(path, _)| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["segno-due-01234567.service", "segno-due-01234567.timer"]);
        assert_eq!(
            files[0].1,
            "[Unit]\nDescription=Goes on with the loops of segno that are due\n\n[Service]\nType=oneshot\n\
             TimeoutStartSec=infinity\nEnvironment=\"PATH=/usr/bin:/opt/100%%\"\n\
             ExecStart=\"/opt/my tools/segno\" \"--store\" \"sqlite:/data/100%%/$$a\\\"b.db\" \"loop\"\n"
        );
        assert!(
            files[1].1.contains("OnUnitInactiveSec=600s\n")
                && files[1].1.ends_with("WantedBy=timers.target\n")
        );
    }

    #[test]
    fn the_same_for_launchd() {
        let files = schedule(Scheduler::Launchd).files();
        let [(path, text)] = &files[..] else { panic!() };
        assert!(path.ends_with("segno.due.01234567.plist"));
        assert!(text.contains("<string>/opt/my tools/segno</string>"), "{text}");
        assert!(text.contains("<key>PATH</key>") && text.contains("<integer>600</integer>"), "{text}");
    }

    #[test]
    fn a_service_that_stays() {
        let follow = Schedule { job: Job::Follow, ..schedule(Scheduler::Systemd) };
        let files = follow.files();
        let [(path, text)] = &files[..] else { panic!() };
        assert!(path.ends_with("segno-watch-01234567.service"));
        assert!(text.contains("Type=simple\nRestart=on-failure\n"), "{text}");
        assert!(text.ends_with("\"loop\"\n\n[Install]\nWantedBy=default.target\n"), "{text}");
        assert_eq!(
            follow.arming()[1].join(" "),
            "systemctl --user enable --now segno-watch-01234567.service"
        );
        let text = Schedule { job: Job::Follow, ..schedule(Scheduler::Launchd) }.files()[0].1.clone();
        assert!(
            text.contains("<key>RunAtLoad</key>\n  <true/>") && !text.contains("StartInterval"),
            "{text}"
        );
    }
}
