//! Hooks in the settings of agents, so that sessions are recorded that a person starts by hand.
//!
//! A change is planned first, as a text that can be shown, and carried out as planned or not at all. What was put in is
//! written down without a word of the settings themselves: where it stands, and the hash of the whole. So it is taken out
//! byte for byte as long as nobody else changed the file, and piece by piece afterwards.

mod health;
mod record;
mod target;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;

use segno_agents::opencode;
use segno_agents::watching;
use segno_agents::watching::Block;
use segno_agents::watching::Form;
use segno_agents::watching::MARK;
use segno_agents::watching::PLUGIN;
use segno_agents::watching::SettingsError;
use segno_agents::watching::Standing;
use segno_agents::watching::Wanted;
use segno_agents::watching::Watching;
use segno_files::Access;
use segno_files::Links;
use thiserror::Error;

pub use health::Health;
use record::Record;
use target::Content;
use target::Target;

/// Largest file of settings that is looked at.
const LARGEST: u64 = 8 * 1024 * 1024;
/// What opencode reads before it looks for packages of its own, which it waits for as soon as there is any plug-in.
const NPM_SETTINGS: &str = ".npmrc";
const NPM_TEXT: &str = "# Made by `segno init`: with a plug-in opencode waits for a package of its own at each start.\n\
                        # Without a network this keeps it from trying for minutes.\nfetch-retries=0\n";

/// Where opencode has what belongs to a project, if it has anything.
const OPENCODE_FOLDER: &str = ".opencode";
/// What nothing of ours can keep from happening.
const WAITS: &str = "without a network opencode waits for more than a minute at each start in a project with a .opencode folder; \
                     the line fetch-retries=0 in ~/.npmrc, or in .npmrc in that folder, keeps it from that";

/// What agents of all vendors read of a project.
const AGENTS_MD: &str = "AGENTS.md";
/// Whose files those of the plug-in directory are said to be.
const PLUGIN_DIRECTORY: &str = "plug-in";

/// Whose settings are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The person's own.
    User,
    /// Those of a project, by its root.
    Project(PathBuf),
}

/// Why settings are left as they are.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InstallError {
    /// Nothing is known of such an agent's settings.
    #[error("{0} has no settings that hooks could be put into")]
    NoSettings(String),
    /// Nobody said where home is.
    #[error("there is no home directory to look for settings in")]
    NoHome,
    /// The file is not as it should be.
    #[error("{path} is left as it is: {why}")]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: SettingsError,
    },
    /// The file cannot be read, or may not be changed.
    #[error("{path} is left as it is: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
        /// What to do about it.
        hint: String,
    },
}

/// What puts hooks in and takes them out.
#[derive(Clone, Debug)]
pub struct Installer {
    /// Whose settings.
    pub scope: Scope,
    /// `HOME` and the variables that say where agents have their settings.
    pub variables: BTreeMap<String, String>,
    /// Where it is written down what was put in.
    pub state: PathBuf,
    /// Where the plug-in is kept.
    pub data: PathBuf,
    /// How this program is called from a shell: its name, or its path.
    pub program: String,
}

/// What is put in besides hooks, for whoever asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// A command that draws the status line, for an agent that has one.
    pub status_line: bool,
    /// A server of the Model Context Protocol.
    pub server: bool,
    /// Commands that a person types in the agent.
    pub commands: bool,
}

impl Extras {
    const ALL: Self = Self { status_line: true, server: true, commands: true };
}

/// What shall become of one file.
#[derive(Clone, Debug)]
struct FilePlan {
    path: PathBuf,
    before: Option<String>,
    /// None: it is removed.
    after: Option<String>,
    /// What is written down of it, and where; what is noted of a file that nothing of ours is in any more goes.
    record: Option<Record>,
    record_path: Option<PathBuf>,
}

impl FilePlan {
    fn is_change(&self) -> bool {
        self.before != self.after
    }
}

/// What shall become of the files of one agent.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The agent.
    pub agent: String,
    /// The file of settings.
    pub path: PathBuf,
    /// What stands there now.
    pub standing: Standing,
    /// What is left as it is though it was asked for, and why.
    pub notices: Vec<String>,
    /// The file of settings comes first.
    files: Vec<FilePlan>,
    is_removal: bool,
}

impl Plan {
    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        !self.files.iter().any(FilePlan::is_change)
    }

    /// The files that change: the path, what is in it now and what will be; none where there is or will be no file.
    pub fn changes(&self) -> impl Iterator<Item = (&Path, Option<&str>, Option<&str>)> {
        let changed = self.files.iter().filter(|file| file.is_change());
        changed.map(|file| (file.path.as_path(), file.before.as_deref(), file.after.as_deref()))
    }
}

impl Installer {
    /// The variables that [`Installer::variables`] should have, if they are set.
    pub fn variables_wanted() -> Vec<&'static str> {
        let agents = segno_agents::CODING.iter().filter_map(|name| segno_agents::by_name(name)?.watching());
        std::iter::once("HOME").chain(agents.map(|watching| watching.variable)).collect()
    }

    /// Where the settings of an agent are, whether there are any or not.
    ///
    /// # Errors
    /// If the agent has none, or there is no home.
    pub fn settings_path(&self, agent: &str) -> Result<PathBuf, InstallError> {
        let watching = watching(agent)?;
        let (folder, files) = match &self.scope {
            Scope::User => (self.folder(&watching)?, watching.files),
            Scope::Project(root) => (root.clone(), watching.project_files),
        };
        let named: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
        let there = named.iter().find(|path| path.symlink_metadata().is_ok());
        Ok(there.or(named.first()).cloned().unwrap_or(folder))
    }

    /// Whether the person has this agent's folder of settings.
    pub fn has_folder(&self, agent: &str) -> bool {
        watching(agent).and_then(|watching| self.folder(&watching)).is_ok_and(|folder| folder.is_dir())
    }

    /// What the settings of an agent have of ours.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn standing(&self, agent: &str) -> Result<(PathBuf, Standing), InstallError> {
        let path = self.settings_path(agent)?;
        let text = self.read(&path)?.unwrap_or_default();
        let standing = watching::standing(&text, &self.hooks(agent)?);
        let standing = standing.map_err(|why| InstallError::Settings { path: path.clone(), why })?;
        Ok((path, standing))
    }

    /// Plans to put hooks in, and what was asked for besides. What is there already of that stays, asked for or not.
    ///
    /// # Errors
    /// If a file cannot be read, or must not be changed.
    pub fn plan_install(&self, agent: &str, extras: Extras) -> Result<Plan, InstallError> {
        let mut plan = self.plan(agent, false)?;
        for target in self.targets(agent)? {
            self.plan_in(&mut plan, &target, extras)?;
        }
        if matches!(watching(agent)?.form, Form::Plugin) {
            self.plan_plugin(&mut plan)?;
        }
        for file in plan.files.iter().filter(|file| file.is_change()) {
            self.check_writable(&file.path)?;
        }
        Ok(plan)
    }

    /// Plans to take all of it out.
    ///
    /// # Errors
    /// If a file cannot be read, or must not be changed.
    pub fn plan_removal(&self, agent: &str) -> Result<Plan, InstallError> {
        let mut plan = self.plan(agent, true)?;
        for target in self.targets(agent)? {
            self.plan_out(&mut plan, &target)?;
        }
        let is_plugin = matches!(watching(agent)?.form, Form::Plugin);
        let noted = plan.files.iter().find_map(|file| file.record.as_ref()?.beside.clone());
        let beside = if is_plugin { noted.or(self.npm_settings(&plan)?) } else { noted };
        if let Some(path) = beside {
            let before = self.read(&path)?;
            // Whoever wrote into it since keeps it.
            let after = before.clone().filter(|text| text != NPM_TEXT);
            plan.files.push(FilePlan { path, before, after, record: None, record_path: None });
        }
        for (_, other) in record::of_agent(&self.state, agent) {
            let is_elsewhere = !plan.files.iter().any(|file| file.path == other.path);
            if is_elsewhere && other.kind == record::Kind::Shared && other.path.exists() {
                plan.notices.push(format!(
                    "{} has something of segno too: it was put there from another place, or with another {}",
                    other.path.display(),
                    watching(agent)?.variable
                ));
            }
        }
        let own = plan.files.first().and_then(|file| file.record_path.clone()).unwrap_or_default();
        if is_plugin && !record::others(&self.state, &own, agent) {
            let path = self.plugin_path();
            let before = self.read(&path)?;
            plan.files.push(FilePlan { path, before, after: None, record: None, record_path: None });
        }
        Ok(plan)
    }

    /// Plans to put a few lines about us into the AGENTS.md of a project, or to take them out.
    ///
    /// # Errors
    /// If the file cannot be read, or must not be changed.
    pub fn plan_agents_md(&self, root: &Path, removes: bool) -> Result<Plan, InstallError> {
        let here = Self { scope: Scope::Project(root.to_owned()), ..self.clone() };
        let path = here.target(&root.join(AGENTS_MD))?;
        let mut plan = empty_plan(AGENTS_MD, &path, removes);
        let target = Target { path, content: Content::Block(Block::agents_md()) };
        if removes {
            here.plan_out(&mut plan, &target)?;
        } else {
            here.plan_in(&mut plan, &target, Extras::ALL)?;
        }
        for file in plan.files.iter().filter(|file| file.is_change()) {
            here.check_writable(&file.path)?;
        }
        Ok(plan)
    }

    /// Plans to write a directory with a plug-in for each vendor. No settings are touched.
    ///
    /// # Errors
    /// If a file cannot be read, or must not be changed.
    pub fn plan_plugin_directory(&self, directory: &Path, version: &str) -> Result<Plan, InstallError> {
        let directory = self.target(directory)?;
        let mut plan = empty_plan(PLUGIN_DIRECTORY, &directory, false);
        for file in watching::plugin_files(&self.program, version) {
            let target = Target { path: directory.join(file.path), content: Content::Whole(file.text) };
            self.plan_in(&mut plan, &target, Extras::ALL)?;
        }
        for file in plan.files.iter().filter(|file| file.is_change()) {
            self.check_writable(&file.path)?;
        }
        Ok(plan)
    }

    /// Plans to remove all such directories that were written, as far as nobody changed them.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn plan_plugin_removal(&self) -> Result<Plan, InstallError> {
        let mut plan = empty_plan(PLUGIN_DIRECTORY, Path::new(PLUGIN_DIRECTORY), true);
        for (_, record) in record::of_agent(&self.state, PLUGIN_DIRECTORY) {
            let target = Target { path: record.path, content: Content::Whole(String::new()) };
            self.plan_out(&mut plan, &target)?;
        }
        Ok(plan)
    }

    /// Does what was planned. Files that somebody changed since are left alone.
    ///
    /// # Errors
    /// If a file is another one by now, or cannot be written.
    pub fn carry_out(&self, plan: &Plan) -> Result<(), InstallError> {
        for file in &plan.files {
            if self.read(&file.path)? != file.before {
                return Err(failed(&file.path, "it has just been changed by somebody else", "try again"));
            }
        }
        let noted = || plan.files.iter().filter_map(|file| Some((file, file.record_path.as_ref()?)));
        for (file, path) in noted().filter(|_| !plan.is_removal) {
            let Some(record) = file.record.as_ref().filter(|_| file.is_change()) else { continue };
            record.write(path).map_err(|why| failed(path, why, "free some space, or fix its permissions"))?;
        }
        // What settings name is there before they name it, and goes after they do not any more.
        let (settings, others) = plan.files.split_at(plan.files.len().min(1));
        let order: Vec<&FilePlan> = if plan.is_removal {
            settings.iter().chain(others).collect()
        } else {
            others.iter().chain(settings).collect()
        };
        for file in order.into_iter().filter(|file| file.is_change()) {
            write(file).map_err(|why| failed(&file.path, why, "look at who may write there"))?;
        }
        if plan.is_removal {
            let records = plan.files.iter().filter_map(|file| file.record.as_ref());
            let mut folders: Vec<&PathBuf> =
                records.filter(|record| record.created).flat_map(|record| &record.folders).collect();
            // The innermost first; one that holds something else by now stays.
            folders.sort_by_key(|folder| std::cmp::Reverse(folder.as_os_str().len()));
            for folder in folders {
                let _ = std::fs::remove_dir(folder);
            }
            for (_, path) in noted() {
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(())
    }

    fn plan(&self, agent: &str, is_removal: bool) -> Result<Plan, InstallError> {
        Ok(empty_plan(agent, &self.target(&self.settings_path(agent)?)?, is_removal))
    }

    /// The hooks of an agent.
    fn hooks(&self, agent: &str) -> Result<Wanted, InstallError> {
        let watching = watching(agent)?;
        Ok(match watching.form {
            Form::Hooks(make) => {
                let program = segno_agents::launch::shell_word(&self.program);
                Wanted::hooks(agent, make, &watching::hook_line(&program, agent))
            }
            Form::Plugin => Wanted::plugin(opencode::file_url(&self.plugin_path().to_string_lossy())),
        })
    }

    /// The settings of npm beside a configuration of opencode that is ours to touch: it looks for packages in each folder with
    /// such a configuration, but reads settings only there and in the person's home.
    fn npm_settings(&self, plan: &Plan) -> Result<Option<PathBuf>, InstallError> {
        let folder = match &self.scope {
            Scope::User => plan.path.parent().map(Path::to_owned),
            Scope::Project(root) => {
                let folder = self.target(&root.join(OPENCODE_FOLDER))?;
                let is_made =
                    plan.files.iter().any(|file| file.path.starts_with(&folder) && file.after.is_some());
                (is_made || folder.is_dir()).then_some(folder)
            }
        };
        Ok(folder.map(|folder| folder.join(NPM_SETTINGS)))
    }

    /// Whether the person has said how often npm tries: then no start of opencode waits longer than they want.
    fn retries_are_set(&self) -> bool {
        let Some(home) = self.variables.get("HOME") else { return false };
        let user = Self { scope: Scope::User, ..self.clone() };
        let text = user.read(&Path::new(home).join(NPM_SETTINGS)).ok().flatten().unwrap_or_default();
        text.lines().any(|line| line.trim_start().starts_with("fetch-retries"))
    }

    /// The plug-in of an agent that has plug-ins instead of hooks.
    fn plugin_text(&self, agent: &str) -> String {
        let words: Vec<String> = MARK.split(' ').map(ToOwned::to_owned).collect();
        opencode::watching_plugin(&[vec![self.program.clone()], words, vec![agent.to_owned()]].concat())
    }

    fn plugin_path(&self) -> PathBuf {
        self.data.join(PLUGIN)
    }

    fn plan_plugin(&self, plan: &mut Plan) -> Result<(), InstallError> {
        let path = self.plugin_path();
        let before = self.read(&path)?;
        let after = Some(self.plugin_text(&plan.agent));
        plan.files.push(FilePlan { path, before, after, record: None, record_path: None });
        if !self.retries_are_set() {
            plan.notices.push(WAITS.to_owned());
        }
        if let Scope::Project(_) = self.scope {
            plan.notices.push(format!(
                "{} names {}, which is there for you on this machine only",
                plan.path.display(),
                self.plugin_path().display()
            ));
        }
        let Some(path) = self.npm_settings(plan)? else { return Ok(()) };
        let before = self.read(&path)?;
        let is_ours = before.as_deref().is_none_or(|text| text == NPM_TEXT);
        if let Some(record) = plan.files.first_mut().and_then(|file| file.record.as_mut()) {
            record.beside = is_ours.then(|| path.clone());
        }
        if is_ours {
            let after = Some(NPM_TEXT.to_owned());
            plan.files.push(FilePlan { path, before, after, record: None, record_path: None });
        }
        Ok(())
    }

    fn folder(&self, watching: &Watching) -> Result<PathBuf, InstallError> {
        let variable = |name: &str| self.variables.get(name).filter(|value| !value.is_empty()).cloned();
        watching.folder(&variable).map(PathBuf::from).ok_or(InstallError::NoHome)
    }

    /// The file behind links: people keep their settings elsewhere and link to them. A project's must not lead out of it.
    fn target(&self, path: &Path) -> Result<PathBuf, InstallError> {
        let existing = path.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(path);
        let real = existing.canonicalize().map_err(|why| failed(existing, why, "a link may lead nowhere"))?;
        let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
        let target = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        if let Scope::Project(root) = &self.scope {
            let root =
                root.canonicalize().map_err(|why| failed(root, why, "name a project that is there"))?;
            if !target.starts_with(&root) {
                return Err(failed(
                    path,
                    format!("it leads out of the project, to {}", target.display()),
                    "change that file by hand, or leave --project out",
                ));
            }
        }
        Ok(target)
    }

    fn read(&self, path: &Path) -> Result<Option<String>, InstallError> {
        let links = if self.scope == Scope::User { Links::Follow } else { Links::Refuse };
        let bytes = segno_files::read_bounded(path, LARGEST, links)
            .map_err(|why| failed(path, why, "look at the file"))?;
        let text = bytes.map(String::from_utf8).transpose();
        text.map_err(|_| failed(path, "it is not in UTF-8", "save it in UTF-8 and try again"))
    }

    /// Refuses what somebody protects, and what would not be the same file afterwards.
    fn check_writable(&self, path: &Path) -> Result<(), InstallError> {
        let Ok(meta) = std::fs::metadata(path) else { return Ok(()) };
        if meta.mode() & 0o222 == 0 {
            let hint = format!("chmod u+w {}   (then again)", path.display());
            return Err(failed(path, "it is read-only", &hint));
        }
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(failed(
                path,
                format!("it belongs to another user (uid {}), who could not read it afterwards", meta.uid()),
                "run segno as that user",
            ));
        }
        if meta.nlink() > 1 {
            return Err(failed(
                path,
                "it has another name too (a hard link), which would be left behind",
                "make it a file of its own, or a symbolic link",
            ));
        }
        Ok(())
    }
}

fn empty_plan(agent: &str, path: &Path, is_removal: bool) -> Plan {
    let (agent, path) = (agent.to_owned(), path.to_owned());
    Plan { agent, path, standing: Standing::Missing, notices: Vec::new(), files: Vec::new(), is_removal }
}

fn watching(agent: &str) -> Result<Watching, InstallError> {
    let known = segno_agents::by_name(agent).and_then(|agent| agent.watching());
    known.ok_or_else(|| InstallError::NoSettings(agent.to_owned()))
}

fn failed(path: &Path, why: impl ToString, hint: &str) -> InstallError {
    InstallError::File { path: path.to_owned(), why: why.to_string(), hint: hint.to_owned() }
}

/// The folders above a file that are not there, the innermost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1).take_while(|folder| folder.symlink_metadata().is_err());
    above.map(Path::to_owned).collect()
}

fn write(file: &FilePlan) -> std::io::Result<()> {
    match &file.after {
        Some(text) => {
            if let Some(folder) = file.path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            segno_files::replace(&file.path, text.as_bytes(), Access::Ordinary)
        }
        None => {
            std::fs::remove_file(&file.path)?;
            segno_files::sync_parent(&file.path)
        }
    }
}
