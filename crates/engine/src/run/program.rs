//! Programs: where they are, which version they have, and this one again in the background.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use segno_agents::Agent;

/// How long an agent may take to say its version.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most of what it says that is read.
const ANSWER: u64 = 4_096;

/// The first executable of this name in the PATH of an environment; a path is taken as it is.
pub fn find_program(name: &str, environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let executable = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return std::path::absolute(name).ok().filter(|path| executable(path));
    }
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value)?;
    // A relative entry would let the project decide which program is run.
    let mut candidates =
        std::env::split_paths(path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name));
    candidates.find(|path| executable(path))
}

/// The version of an agent's program, as the program itself says it. One that does not answer in time is none that
/// can be asked.
pub fn ask_version(
    agent: &dyn Agent,
    program: &Path,
    environment: &[(OsString, OsString)],
) -> Option<String> {
    ask_within(PATIENCE, agent, program, environment)
}

fn ask_within(
    patience: Duration,
    agent: &dyn Agent,
    program: &Path,
    environment: &[(OsString, OsString)],
) -> Option<String> {
    let args = agent.probe().version_args;
    if args.is_empty() {
        return None;
    }
    let mut child = Command::new(program)
        .args(args)
        .env_clear()
        .envs(environment.iter().cloned())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .ok()?;
    let until = Instant::now() + patience;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() >= until {
            // Gemini CLI starts itself again as a child, which would go on alone.
            if let Some(group) = super::tree::pid(child.id()) {
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut said = String::new();
    child.stdout.take()?.take(ANSWER).read_to_string(&mut said).ok()?;
    agent.version(&said)
}

/// Starts a program in the background with some more variables; what it says goes to a file. Where systemd keeps the user's processes
/// (`runtime` is their runtime directory), it gets a scope of its own, which outlives the last logout as far as the
/// system lets the user linger.
///
/// # Errors
/// If it cannot be started.
pub fn start_background(
    program: &Path,
    arguments: &[OsString],
    stdin: Stdio,
    log: File,
    runtime: Option<&Path>,
    environment: &[(OsString, OsString)],
    more: &[(OsString, OsString)],
) -> std::io::Result<Child> {
    let err = log.try_clone()?;
    let scope = runtime
        .filter(|runtime| runtime.join("systemd/private").exists())
        .and_then(|_| find_program("systemd-run", environment));
    let mut command = match scope {
        Some(scope) => {
            let mut command = Command::new(scope);
            command.args(["--user", "--scope", "--collect", "--quiet", "--"]).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.args(arguments).envs(more.iter().cloned()).stdin(stdin).stdout(log).stderr(err).spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_absolute_places_only() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32| {
            let path = dir.path().join(name);
            std::fs::write(&path, "#!/bin/sh\necho my-agent 1.2.3\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let (agent, _) = (make("agent", 0o755), make("notes", 0o644));
        let env = |path: &str| vec![(OsString::from("PATH"), OsString::from(path))];
        let here = dir.path().to_str().unwrap();
        assert_eq!(find_program("agent", &env(&format!("/nowhere:{here}"))), Some(agent.clone()));
        assert_eq!(find_program("notes", &env(here)), None);
        assert_eq!(find_program("agent", &env(".")), None);
        assert_eq!(find_program("agent", &[]), None);
        assert_eq!(find_program(agent.to_str().unwrap(), &[]), Some(agent.clone()));
        let claude = segno_agents::by_name("claude").unwrap();
        assert_eq!(ask_version(claude.as_ref(), &agent, &env("/bin:/usr/bin")).as_deref(), Some("1.2.3"));
    }
    #[test]
    fn one_that_does_not_answer_is_ended_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let (path, child) = (dir.path().join("agent"), dir.path().join("child"));
        let script =
            format!("#!/bin/sh\nsleep 100 &\necho $! > {0}.new && mv {0}.new {0}\nwait\n", child.display());
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let claude = segno_agents::by_name("claude").unwrap();
        let env = [(OsString::from("PATH"), OsString::from("/bin:/usr/bin"))];
        // As long as it takes until there is a child to be left behind.
        let mut patience = Duration::from_millis(200);
        while !child.exists() {
            assert_eq!(ask_within(patience, claude.as_ref(), &path, &env), None);
            patience *= 2;
        }
        let pid: u32 = std::fs::read_to_string(child).unwrap().trim().parse().unwrap();
        let until = Instant::now() + PATIENCE;
        while super::super::tree::start_of(pid).is_some() {
            assert!(Instant::now() < until, "it goes on alone");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
