//! A scripted agent; see [`segno_testkit::scripted`].

use std::process::ExitCode;

fn main() -> ExitCode {
    segno_testkit::scripted::main()
}
