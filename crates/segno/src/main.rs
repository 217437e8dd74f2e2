//! The program. It decides who handles the command line, and nothing else.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // The hook is called before and after every tool an agent uses, so it must not pay for building the command tree.
    if arguments.get(1).is_some_and(|word| word == "hook")
        && arguments
            .get(2)
            .is_some_and(|word| word == "--watch" || !word.as_encoded_bytes().starts_with(b"-"))
    {
        return segno::hook::run(&arguments[2..]).into();
    }
    if arguments.get(1).is_some_and(|word| word == segno::KEEP_OUTPUT)
        && let Some(directory) = arguments.get(2)
    {
        segno::keep_output(directory.as_ref());
        return ExitCode::SUCCESS;
    }
    if arguments.get(1).is_some_and(|word| word == segno::GUARD)
        && let Some(id) = arguments.get(2).and_then(|id| id.to_str())
    {
        segno::guard_command(id);
        return ExitCode::SUCCESS;
    }
    segno::allocator::share_one_region();
    segno::signals::at_start();
    // Writing to a closed pipe is an error we see, not a signal that kills us: a session being recorded must not die
    // because someone quit a pager. The printer turns that error into a quiet, successful end.
    segno::run(arguments).into()
}
