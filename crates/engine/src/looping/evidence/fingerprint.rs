//! What a command that measures the work is made of, as hashes: an easier test is not progress.
//!
//! Which files a command reads cannot be listed in general. Followed are the scripts that its text names, wherever they
//! lie, through the programs that only run others, what those scripts name in turn, targets of a Makefile, scripts of a package, and the
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
/// How far directories are looked through for settings.
const DEEP: usize = 8;
/// Directories that hold what others made.
const APART: &[&str] = &["node_modules", "target", "venv", "__pycache__", "build", "dist", "site-packages"];
/// Where what belongs to the system lies.
const SYSTEM: &[&str] =
    &["/bin", "/sbin", "/usr", "/lib", "/lib64", "/opt", "/nix", "/etc", "/dev", "/proc", "/sys"];
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
                Need::Given(file) => self.given(&file, &dirs, depth),
                Need::Perhaps(word) => self.perhaps(&word, &dirs, depth),
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
                self.place(&dirs.lies_in.join(behind)).or_else(|| Some(dirs.lies_in.clone()))
            }
            directory => self.place(&dirs.runs_in.join(directory)),
        }
    }

    /// A path from the root on; one that leads out of the project stays whole. What belongs to the system is what its name
    /// says.
    fn place(&self, path: &Path) -> Option<PathBuf> {
        let mut plain = PathBuf::new();
        for part in self.root.join(path).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    plain.pop();
                }
                part => plain.push(part),
            }
        }
        match plain.strip_prefix(self.root) {
            Ok(inside) => Some(inside.to_owned()),
            Err(_) => Some(plain).filter(|path| !SYSTEM.iter().any(|place| path.starts_with(place))),
        }
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

    /// What a shell or an interpreter gets to read, if it is there.
    fn given(&mut self, file: &str, dirs: &Directories, depth: usize) {
        let there = self.matching(file, dirs).into_iter().find(|path| self.root.join(path).is_file());
        if let Some(path) =
            there.or_else(|| self.find(file, dirs).filter(|path| self.root.join(path).is_file()))
        {
            self.script_at(&path, dirs, true, depth);
        }
    }

    /// A word of a program that nobody knows, if it names a script.
    fn perhaps(&mut self, word: &str, dirs: &Directories, depth: usize) {
        let found = self.find(word, dirs).filter(|path| self.root.join(path).is_file());
        let Some(path) = found else { return };
        let ending = path.extension().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
        let says_so = || self.read(&path).is_some_and(|text| text.starts_with("#!"));
        if ["sh", "bash", "zsh", "ksh"].contains(&ending) || says_so() {
            self.script_at(&path, dirs, true, depth);
        }
    }

    /// The files that a pattern means, in their order; none if it is no pattern.
    fn matching(&self, file: &str, dirs: &Directories) -> Vec<PathBuf> {
        if !file.contains(['*', '?']) {
            return Vec::new();
        }
        let pattern = self.place(&dirs.runs_in.join(file)).filter(|path| path.is_relative());
        let pattern = pattern.map(|path| path.display().to_string());
        let mark = pattern.and_then(|pattern| super::protect::protected(&[pattern], self.root));
        mark.map(|mark| mark.files.into_keys().map(PathBuf::from).collect()).unwrap_or_default()
    }

    fn script(&mut self, file: &str, dirs: &Directories, shell: bool, depth: usize) {
        // Of several that a pattern means the first one is run, and gets the others.
        let first = self.matching(file, dirs).into_iter().next();
        let Some(path) = first.or_else(|| self.find(file, dirs)) else { return };
        self.script_at(&path, dirs, shell, depth);
    }

    fn script_at(&mut self, path: &Path, dirs: &Directories, shell: bool, depth: usize) {
        let path = path.to_owned();
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
                .filter_map(|from| self.place(&from.join(&name)))
                .find(|path| self.root.join(path).is_file());
        }
        let path = self.place(&dirs.runs_in.join(file))?;
        let beside = self.place(&dirs.lies_in.join(file));
        let there = |path: &PathBuf| self.root.join(path).is_file();
        Some(if there(&path) { path } else { beside.filter(there).unwrap_or(path) })
    }

    fn module(&mut self, name: &str, dirs: &Directories) {
        let name = name.replace('.', "/");
        for file in [
            format!("{name}.py"),
            format!("{name}/__init__.py"),
            format!("{name}/__main__.py"),
            format!("src/{name}/__main__.py"),
        ] {
            let path = dirs.runs_in.join(file);
            if self.root.join(&path).is_file() {
                self.take(&path);
            }
        }
    }

    fn first(&self, dirs: &Directories, named: Option<&str>, usual: &[&str]) -> Option<PathBuf> {
        match named {
            Some(named) => self.place(&dirs.runs_in.join(named)),
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
            let mut files = self.matching(&include, dirs);
            if files.is_empty() {
                files.extend(self.place(&dirs.runs_in.join(include)));
            }
            for path in &files {
                self.take(path);
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
        let Some(path) = self.place(&dirs.runs_in.join("package.json")) else { return };
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
        // A place that a runner is pointed to may be a file, or nothing at all.
        let full = self.root.join(dirs);
        let dirs = if full.is_file() { dirs.parent().unwrap_or(dirs) } else { dirs };
        if !self.root.join(dirs).is_dir() {
            return;
        }
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
                    "jest.config.mts",
                    "jest.config.cts",
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
                    "vitest.config.cts",
                    "vitest.config.cjs",
                    "vite.config.ts",
                    "vite.config.js",
                    "vite.config.mts",
                    "vite.config.mjs",
                    "vite.config.cts",
                    "vite.config.cjs",
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
                    ".mocharc.mjs",
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
            // Whether tests are run at all, in each package; the rest of these files is everyday work.
            for path in self.files_below(dirs, &|name| name == "Cargo.toml") {
                let kept = says_of_tests(&self.read(&path).unwrap_or_default());
                self.text_setting(&path, &kept, kept.is_empty());
            }
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
            // Every `conftest.py`, which pytest takes in by itself, those above the directory among them.
            let mut conftests = self.files_below(dirs, &|name| name == "conftest.py");
            conftests.extend(dirs.ancestors().skip(1).map(|above| above.join("conftest.py")));
            conftests.iter().for_each(|path| self.setting(path));
            self.plugins(dirs);
        }
    }

    /// Plug-ins of pytest that packages in a directory announce: it is on Python's path.
    fn plugins(&mut self, dirs: &Path) {
        let entries = std::fs::read_dir(self.root.join(dirs)).into_iter().flatten().flatten();
        for name in entries.take(LOOKED_AT).filter_map(|entry| entry.file_name().into_string().ok()) {
            if [".dist-info", ".egg-info"].iter().any(|ending| name.ends_with(ending)) {
                let path = dirs.join(name).join("entry_points.txt");
                let kept = segno_evidence::sections(&self.read(&path).unwrap_or_default(), &["[pytest11"]);
                self.text_setting(&path, &kept, kept.is_empty());
            }
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

    /// Files of a kind below a directory, not those that others made.
    fn files_below(&self, dirs: &Path, wanted: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
        let mut found = Vec::new();
        files_below(&self.root.join(dirs), DEEP, &mut LOOKED_AT.clone(), &mut |path| {
            let name = path.file_name().and_then(std::ffi::OsStr::to_str);
            if name.is_some_and(wanted) {
                found.extend(path.strip_prefix(self.root).ok().map(Path::to_owned));
            }
        });
        found
    }
}

/// Tells of every file below a directory, but for those that others made. A link is no directory.
pub(crate) fn files_below(directory: &Path, deep: usize, left: &mut usize, tell: &mut dyn FnMut(&Path)) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        *left = left.saturating_sub(1);
        let (name, kind) = (entry.file_name(), entry.file_type());
        let Some(name) = name.to_str().filter(|_| *left > 0) else { continue };
        match kind {
            Ok(kind) if kind.is_dir() => {
                if deep > 0 && !name.starts_with('.') && !APART.contains(&name) {
                    files_below(&entry.path(), deep - 1, left, tell);
                }
            }
            Ok(_) => tell(&entry.path()),
            Err(_) => {}
        }
    }
}

/// The lines of a `Cargo.toml` that say whether tests are run, and by whom. What it says of benchmarks is about none.
fn says_of_tests(text: &str) -> String {
    let mut section = String::new();
    let mut kept = String::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            line.clone_into(&mut section);
        }
        let name = line.split('=').next().unwrap_or_default().trim();
        if line.contains('=')
            && ["harness", "test", "autotests", "doctest"].contains(&name)
            && !section.starts_with("[[bench]]")
        {
            kept.push_str(&format!("{section} {line}\n"));
        }
    }
    kept
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
