//! Faults at an exact system call, with strace.

use std::process::Command;
use std::process::Output;

use crate::home::again;

/// Why strace cannot be used here, if it cannot.
pub(crate) fn unavailable() -> Option<String> {
    let probe = Command::new("strace").args(["-f", "-qq", "-e", "trace=none", "true"]).output();
    match probe {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(why) => Some(why.to_string()),
    }
}

/// This binary again as `role` in `test`, with a fault: `fault` is what strace calls an injection, such as
/// `fsync:error=EIO:when=3`.
pub(crate) fn run_with(fault: &str, test: &str, role: &str) -> Output {
    let child = again(test, role);
    let mut strace = Command::new("strace");
    let calls = fault.split(':').next().unwrap();
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
    strace.args(["-e", &format!("inject={fault}")]);
    strace.arg(child.get_program()).args(child.get_args()).env("SEGNO_TEST_ROLE", role);
    strace.output().unwrap()
}

/// Whether it was killed. strace ends as its child did.
pub(crate) fn was_killed(output: &Output) -> bool {
    use std::os::unix::process::ExitStatusExt;
    output.status.signal() == Some(9) || output.status.code() == Some(137)
}

/// What a process that should have ended well has to say.
pub(crate) fn assert_ended_well(output: &Output, what: &str) {
    assert!(
        output.status.success(),
        "{what}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
