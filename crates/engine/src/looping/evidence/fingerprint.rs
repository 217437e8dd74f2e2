//! What a command that measures the work is made of, as hashes: an easier test is not progress.
//!
//! Which files a command reads cannot be listed in general. Followed are the scripts that its text names, through the
//! programs that only run others, what those scripts name in turn, targets of a Makefile, scripts of a package, and the
//! settings of the test runner. Whatever else matters is protected by name: see [`super::protect`].

use std::collections::BTreeMap;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use segno_evidence::Need;
use segno_evidence::NeedIn;
use segno_evidence::Toolkit;

use crate::files;
use crate::files::Links;

/// The most files that are followed.
const MOST: usize = 64;
/// How far scripts are followed that name scripts.
const DEEPEST: usize = 6;
/// The largest text that is read for what it names.
const LARGEST_TEXT: u64 = 1024 * 1024;
/// How many entries of directories are looked at for settings.
const LOOKED_AT: usize = 20_000;
/// Marks the settings of a test runner among the files of a command.
const SETTINGS: &str = "settings:";

/// A command with the files that it is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// Of the command and its scripts.
    pub(crate) command: String,
    /// Of the settings of its test runner; empty if it is none that is known.
    pub(crate) settings: String,
    /// Each file with its hash.
    pub(crate) files: BTreeMap<String, String>,
}

/// What a command is made of that runs in this directory.
pub(crate) fn fingerprint(command: &str, directory: &Path) -> Fingerprint {
    let (scripts, settings) = (BTreeMap::new(), BTreeMap::new());
    let mut found = Found { root: directory, scripts, settings, toolkit: false };
    found.follow(command, &Directories::default(), 0);
    let sum = |files: &BTreeMap<String, String>, begin: &str| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(begin.as_bytes());
        for (name, hash) in files {
            hasher.update(format!("\0{name}\0{hash}").as_bytes());
        }
        short(&hasher.finalize())
    };
    let settings = if found.toolkit { sum(&found.settings, "settings") } else { String::new() };
    let command = sum(&found.scripts, command);
    let settings_files = found.settings.into_iter().map(|(name, hash)| (format!("{SETTINGS}{name}"), hash));
    Fingerprint { command, settings, files: found.scripts.into_iter().chain(settings_files).collect() }
}

/// Which files differ: scripts, and settings.
pub(crate) fn changed(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> (Vec<String>, Vec<String>) {
    let differs = |name: &&String| before.get(*name) != now.get(*name);
    let mut names: Vec<&String> = before.keys().chain(now.keys()).filter(differs).collect();
    names.sort_unstable();
    names.dedup();
    let (settings, scripts): (Vec<&String>, Vec<&String>) =
        names.into_iter().partition(|name| name.starts_with(SETTINGS));
    let bare = |names: Vec<&String>| {
        names.into_iter().map(|name| name.trim_start_matches(SETTINGS).to_owned()).collect()
    };
    (bare(scripts), bare(settings))
}

fn short(hash: &blake3::Hash) -> String {
    hash.to_hex()[..32].to_owned()
}

/// The hash of a file; none if it is none, or cannot be read.
pub(crate) fn file_hash(path: &Path) -> Option<String> {
    let mut file = files::open_regular(path, Links::Follow).ok().flatten()?;
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut file, &mut hasher).ok()?;
    Some(short(&hasher.finalize()))
}

/// Where a text stands that is followed: the directory that its commands run in, and the one that it lies in, both from
/// the root on.
#[derive(Clone, Debug, Default)]
struct Directories {
    runs_in: PathBuf,
    lies_in: PathBuf,
}

struct Found<'a> {
    root: &'a Path,
    scripts: BTreeMap<String, String>,
    settings: BTreeMap<String, String>,
    toolkit: bool,
}

impl Found<'_> {
    fn follow(&mut self, text: &str, dirs: &Directories, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        for NeedIn { directory, need } in segno_evidence::needs(text) {
            let Some(here) = self.directory(&directory, dirs) else { continue };
            let dirs = Directories { runs_in: here, lies_in: dirs.lies_in.clone() };
            match need {
                Need::ShellScript(file) => self.script(&file, &dirs, true, depth),
                Need::Script(file) => self.script(&file, &dirs, false, depth),
                Need::Module(name) => self.module(&name, &dirs),
                Need::Make { file, targets } => self.make(file.as_deref(), &targets, &dirs, depth),
                Need::Just { file } => self.just(file.as_deref(), &dirs, depth),
                Need::PackageScript(name) => self.package(&name, &dirs, depth),
                Need::Settings(toolkit) => self.settings_of(toolkit, &dirs.runs_in),
            }
        }
    }

    /// A directory that a command changes into. One that depends on a variable is taken for where the script lies.
    fn directory(&self, directory: &str, dirs: &Directories) -> Option<PathBuf> {
        match directory {
            "" => Some(dirs.runs_in.clone()),
            directory if directory.contains('$') => {
                let behind = behind_variable(directory).unwrap_or_default();
                self.inside(&dirs.lies_in.join(behind)).or_else(|| Some(dirs.lies_in.clone()))
            }
            directory => self.inside(&dirs.runs_in.join(directory)),
        }
    }

    /// A path from the root on, if it is in the project.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        let path = path.strip_prefix(self.root).unwrap_or(path);
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => plain.pop().then_some(())?,
                Component::Normal(name) => plain.push(name),
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(plain)
    }

    fn read(&self, path: &Path) -> Option<String> {
        let bytes = files::read_bounded(&self.root.join(path), LARGEST_TEXT, Links::Follow).ok().flatten()?;
        String::from_utf8(bytes).ok()
    }

    /// Takes a script in; false if it was there already, or there are too many. One that is not there yet is noted:
    /// when it is there, it is another one.
    fn take(&mut self, path: &Path) -> bool {
        let name = path.display().to_string();
        if self.scripts.contains_key(&name) || self.scripts.len() >= MOST {
            return false;
        }
        let hash = file_hash(&self.root.join(path)).unwrap_or_else(|| "none".to_owned());
        self.scripts.insert(name, hash);
        true
    }

    fn script(&mut self, file: &str, dirs: &Directories, shell: bool, depth: usize) {
        let Some(path) = self.find(file, dirs) else { return };
        if !self.take(&path) || !shell {
            return;
        }
        let Some(text) = self.read(&path).filter(|text| is_shell(text)) else { return };
        let lies_in = path.parent().map(Path::to_owned).unwrap_or_default();
        self.follow(&text, &Directories { runs_in: dirs.runs_in.clone(), lies_in }, depth + 1);
    }

    /// The file that a word of a command means. One that depends on a variable is looked for beside the script.
    fn find(&self, file: &str, dirs: &Directories) -> Option<PathBuf> {
        if file.contains('$') {
            let name = behind_variable(file)?;
            let both = [&dirs.lies_in, &dirs.runs_in].into_iter();
            return both
                .filter_map(|from| self.inside(&from.join(&name)))
                .find(|path| self.root.join(path).is_file());
        }
        let path = self.inside(&dirs.runs_in.join(file))?;
        let beside = self.inside(&dirs.lies_in.join(file));
        let there = |path: &PathBuf| self.root.join(path).is_file();
        Some(if there(&path) { path } else { beside.filter(there).unwrap_or(path) })
    }

    fn module(&mut self, name: &str, dirs: &Directories) {
        let name = name.replace('.', "/");
        for file in [format!("{name}.py"), format!("{name}/__main__.py"), format!("src/{name}/__main__.py")] {
            let path = dirs.runs_in.join(file);
            if self.root.join(&path).is_file() {
                self.take(&path);
            }
        }
    }

    fn first(&self, dirs: &Directories, named: Option<&str>, usual: &[&str]) -> Option<PathBuf> {
        match named {
            Some(named) => self.inside(&dirs.runs_in.join(named)),
            None => {
                usual.iter().map(|name| dirs.runs_in.join(name)).find(|path| self.root.join(path).is_file())
            }
        }
    }

    fn make(&mut self, file: Option<&str>, targets: &[String], dirs: &Directories, depth: usize) {
        let Some(path) = self.first(dirs, file, &["GNUmakefile", "makefile", "Makefile"]) else { return };
        self.take(&path);
        let Some(text) = self.read(&path) else { return };
        let (commands, includes) = segno_evidence::make_recipes(&text, targets);
        for include in includes {
            if let Some(path) = self.inside(&dirs.runs_in.join(include)) {
                self.take(&path);
            }
        }
        self.follow(&commands, dirs, depth + 1);
    }

    fn just(&mut self, file: Option<&str>, dirs: &Directories, depth: usize) {
        let Some(path) = self.first(dirs, file, &["justfile", "Justfile", ".justfile"]) else { return };
        self.take(&path);
        if let Some(text) = self.read(&path) {
            self.follow(&segno_evidence::recipes(&text), dirs, depth + 1);
        }
    }

    /// What a package needs may change; what its scripts do may not.
    fn package(&mut self, name: &str, dirs: &Directories, depth: usize) {
        let Some(path) = self.inside(&dirs.runs_in.join("package.json")) else { return };
        let text = self.read(&path).unwrap_or_default();
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let shown = path.display().to_string();
        let hash = short(&blake3::hash(parsed["scripts"].to_string().as_bytes()));
        self.scripts.insert(shown, hash);
        for name in [format!("pre{name}"), name.to_owned(), format!("post{name}")] {
            if let Some(command) = parsed["scripts"][&name].as_str() {
                self.follow(command, dirs, depth + 1);
            }
        }
    }

    fn settings_of(&mut self, toolkit: Toolkit, dirs: &Path) {
        self.toolkit = true;
        let (files, part): (&[&str], Option<(&str, &str)>) = match toolkit {
            Toolkit::Pytest => (&["pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"], None),
            Toolkit::Tox => (&["tox.ini", "noxfile.py", "pytest.ini", "pytest.toml", ".pytest.toml"], None),
            Toolkit::Jest => (
                &[
                    "jest.config.js",
                    "jest.config.ts",
                    "jest.config.cjs",
                    "jest.config.mjs",
                    "jest.config.json",
                    "jest.setup.js",
                    "jest.setup.ts",
                ],
                Some(("package.json", "jest")),
            ),
            Toolkit::Vitest => (
                &[
                    "vitest.config.ts",
                    "vitest.config.js",
                    "vitest.config.mts",
                    "vitest.config.mjs",
                    "vite.config.ts",
                    "vite.config.js",
                    "vitest.workspace.ts",
                    "vitest.workspace.js",
                    "vitest.workspace.json",
                    "vitest.setup.ts",
                    "vitest.setup.js",
                ],
                None,
            ),
            Toolkit::Mocha => (
                &[
                    ".mocharc.js",
                    ".mocharc.cjs",
                    ".mocharc.json",
                    ".mocharc.jsonc",
                    ".mocharc.yml",
                    ".mocharc.yaml",
                ],
                Some(("package.json", "mocha")),
            ),
            Toolkit::Cargo => (
                &[
                    ".cargo/config.toml",
                    ".cargo/config",
                    ".config/nextest.toml",
                    "rust-toolchain.toml",
                    "rust-toolchain",
                ],
                None,
            ),
            Toolkit::Npm => (&[".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs"], None),
            Toolkit::Jvm => (&["gradle.properties", ".mvn/maven.config", ".mvn/jvm.config"], None),
            Toolkit::Ruby => (&[".rspec", "Rakefile", "spec/spec_helper.rb", "spec/rails_helper.rb"], None),
            Toolkit::Php => (&["phpunit.xml", "phpunit.xml.dist"], None),
        };
        for file in files {
            self.setting(&dirs.join(file));
        }
        if let Some((file, member)) = part {
            let text = self.read(&dirs.join(file)).unwrap_or_default();
            let parsed: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            self.text_setting(&dirs.join(file), &parsed[member].to_string(), parsed[member].is_null());
        }
        if toolkit == Toolkit::Cargo {
            // Whether tests are run at all; the rest of the file is everyday work.
            let text = self.read(&dirs.join("Cargo.toml")).unwrap_or_default();
            let says = |line: &&str| {
                let name = line.split('=').next().unwrap_or_default().trim();
                line.contains('=') && ["harness", "test", "autotests", "doctest"].contains(&name)
            };
            let kept: Vec<&str> = text.lines().filter(says).collect();
            self.text_setting(&dirs.join("Cargo.toml"), &kept.join("\n"), kept.is_empty());
        }
        if matches!(toolkit, Toolkit::Pytest | Toolkit::Tox) {
            for (file, names) in [
                ("pyproject.toml", &["[tool.pytest", "[tool.coverage"][..]),
                ("setup.cfg", &["[tool:pytest", "[coverage"]),
                ("tox.ini", &["[pytest", "[testenv"]),
            ] {
                let text = self.read(&dirs.join(file)).unwrap_or_default();
                let kept = segno_evidence::sections(&text, names);
                self.text_setting(&dirs.join(file), &kept, kept.is_empty());
            }
            let mut left = LOOKED_AT;
            self.conftests(dirs, 0, &mut left);
        }
    }

    fn setting(&mut self, path: &Path) {
        if let Some(hash) = file_hash(&self.root.join(path)) {
            self.settings.insert(path.display().to_string(), hash);
        }
    }

    fn text_setting(&mut self, path: &Path, text: &str, nothing: bool) {
        if !nothing {
            self.settings.insert(path.display().to_string(), short(&blake3::hash(text.as_bytes())));
        }
    }

    /// Every `conftest.py`, which pytest takes in by itself.
    fn conftests(&mut self, dirs: &Path, depth: usize, left: &mut usize) {
        const APART: &[&str] =
            &["node_modules", "target", "venv", "__pycache__", "build", "dist", "site-packages"];
        if depth > 8 {
            return;
        }
        let entries = std::fs::read_dir(self.root.join(dirs)).into_iter().flatten().flatten();
        for entry in entries {
            *left = left.saturating_sub(1);
            let (name, kind) = (entry.file_name(), entry.file_type());
            let Some(name) = name.to_str().filter(|_| *left > 0) else { continue };
            match kind {
                Ok(kind) if kind.is_dir() && !name.starts_with('.') && !APART.contains(&name) => {
                    self.conftests(&dirs.join(name), depth + 1, left);
                }
                Ok(kind) if !kind.is_dir() && name == "conftest.py" => self.setting(&dirs.join(name)),
                _ => {}
            }
        }
    }
}

/// What stands behind the variable or the command that a path begins with, such as `lib.sh` in `"$(dirname "$0")/lib.sh"`.
fn behind_variable(path: &str) -> Option<String> {
    let at = path.rfind(['$', ')', '}'])?;
    let rest = path.get(at..)?;
    let slash = rest.find('/')?;
    Some(rest.get(slash + 1..)?.to_owned()).filter(|rest| !rest.is_empty())
}

/// Whether a text is a script of a shell: it says so, or says nothing.
fn is_shell(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    !first.starts_with("#!")
        || first.split(['/', ' ']).any(|word| matches!(word, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash"))
}

#[cfg(test)]
#[path = "fingerprint_tests.rs"]
mod tests;
