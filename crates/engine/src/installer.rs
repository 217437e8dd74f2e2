//! Running the installer that the program brings along.

use std::ffi::OsString;
use std::io;
use std::process::Command;
use std::process::Stdio;

/// Runs a shell script with words, and waits for it. What it says goes where the words of this program go, its
/// standard output only if `prints`. The script gets no environment variable named in `without`.
///
/// # Errors
/// If it cannot be started. How it ended otherwise is the answer; `None` if a signal ended it.
pub fn run(script: &str, words: &[OsString], without: &[&str], prints: bool) -> io::Result<Option<i32>> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "install.sh"]).args(words).stdin(Stdio::null());
    command.stdout(if prints { Stdio::inherit() } else { Stdio::null() });
    for name in without {
        command.env_remove(name);
    }
    Ok(command.status()?.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_the_end_are_passed_on() {
        let ended = run("[ \"$1\" = 'a b' ] && exit 3", &["a b".into()], &[], false).unwrap();
        assert_eq!(ended, Some(3));
        // A shell makes itself a PATH, but no HOME.
        assert_eq!(run("exit ${HOME:+7}", &[], &["HOME"], false).unwrap(), Some(0));
        assert_eq!(run("kill -9 $$", &[], &[], false).unwrap(), None);
    }
}
