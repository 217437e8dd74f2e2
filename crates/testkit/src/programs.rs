//! Where the programs of this crate are.

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

/// The scripted agent.
///
/// # Errors
/// It is not built and cannot be.
pub fn scripted_agent() -> io::Result<PathBuf> {
    program("scripted-agent")
}

/// The scripted model server.
///
/// # Errors
/// It is not built and cannot be.
pub fn scripted_model() -> io::Result<PathBuf> {
    program("scripted-model")
}

/// Cargo builds programs only for the tests of their own package, so tests of other packages may find none, or an old
/// one: then it is built here.
fn program(name: &str) -> io::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let running = std::env::current_exe()?;
    // Tests are in target/<profile>/deps, programs one up.
    let profile = running.ancestors().find(|path| path.ends_with("deps")).and_then(Path::parent);
    let profile = profile.or_else(|| running.parent()).ok_or(io::ErrorKind::NotFound)?;
    let program = profile.join(name);
    let built = program.metadata().and_then(|file| file.modified()).ok();
    if built.is_some_and(|built| newest(&source).is_none_or(|changed| changed <= built)) {
        return Ok(program);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", "segno-testkit", "--bins", "--manifest-path"]);
    build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    if let Some(target) = profile.parent() {
        build.arg("--target-dir").arg(target);
    }
    if profile.ends_with("release") {
        build.arg("--release");
    }
    let status = build.status()?;
    // Cargo leaves a program that needs no rebuilding as it is, however the times of the sources look.
    if status.success() && program.is_file() {
        return Ok(program);
    }
    Err(io::Error::other(format!("{name} is not at {} and could not be built", program.display())))
}

/// When anything below `directory` was last changed; None when there are no sources here.
fn newest(directory: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    entries
        .filter_map(|entry| {
            let path = entry.path();
            if path.is_dir() { newest(&path) } else { entry.metadata().ok()?.modified().ok() }
        })
        .max()
}
