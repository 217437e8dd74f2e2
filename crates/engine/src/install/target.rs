//! The files of an agent that something of ours is put into, and what.

use std::path::Path;
use std::path::PathBuf;

use segno_agents::watching;
use segno_agents::watching::Block;
use segno_agents::watching::Installed;
use segno_agents::watching::ServerFile;
use segno_agents::watching::SettingsError;
use segno_agents::watching::Standing;
use segno_agents::watching::Wanted;

use super::Extras;
use super::FilePlan;
use super::InstallError;
use super::Installer;
use super::Plan;
use super::Scope;
use super::failed;
use super::missing_folders;
use super::record;
use super::record::Kind;
use super::record::Record;
use super::watching as watching_of;

/// A file and what is put into it.
pub(super) struct Target {
    pub(super) path: PathBuf,
    pub(super) content: Content,
}

/// What is put into a file.
pub(super) enum Content {
    /// Pieces of settings in JSON: always, with a status line, with a server.
    Settings { hooks: Wanted, status_line: Wanted, server: Wanted },
    /// Lines at the end of a text.
    Block(Block),
    /// All of it: a command.
    Whole(String),
}

impl Content {
    /// What is wanted of settings: hooks, what is asked for, and what is there already.
    fn wanted(&self, text: &str, extras: Extras) -> Result<Wanted, SettingsError> {
        let Self::Settings { hooks, status_line, server } = self else { return Ok(Wanted::default()) };
        let mut wanted = hooks.clone();
        for (asked, extra) in [(extras.status_line, status_line), (extras.server, server)] {
            if asked || watching::standing(text, extra)? != Standing::Missing && !extra.is_empty() {
                wanted = wanted.and(extra.clone());
            }
        }
        Ok(wanted)
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Settings { .. } | Self::Block(_) => Kind::Shared,
            Self::Whole(_) => Kind::Whole,
        }
    }
}

impl Installer {
    /// All files of an agent that may have something of ours, the settings first.
    pub(super) fn targets(&self, agent: &str) -> Result<Vec<Target>, InstallError> {
        let watching = watching_of(agent)?;
        let word = segno_agents::launch::shell_word(&self.program);
        let servers = watching.servers;
        let server = Wanted::server(servers.member, (servers.make)(&self.program));
        let status_line = match watching.status_line {
            true => Wanted::status_line(&watching::status_line(&word)),
            false => Wanted::default(),
        };
        let in_settings = matches!(servers.file, ServerFile::Settings);
        let mut targets = vec![Target {
            path: self.target(&self.settings_path(agent)?)?,
            content: Content::Settings {
                hooks: self.hooks(agent)?,
                status_line,
                server: if in_settings { server.clone() } else { Wanted::default() },
            },
        }];
        let root = |named: &str, folder: PathBuf| match &self.scope {
            Scope::User => folder,
            Scope::Project(root) => root.join(named),
        };
        match servers.file {
            ServerFile::Settings => {}
            ServerFile::Json(user, project) => {
                let variable = self.variables.get(watching.variable).filter(|value| !value.is_empty());
                let home = || self.variables.get("HOME").ok_or(InstallError::NoHome);
                let folder = variable.map_or_else(home, Ok)?;
                let content =
                    Content::Settings { hooks: Wanted::default(), status_line: Wanted::default(), server };
                targets.push(Target {
                    path: self.target(&root(project, Path::new(folder).join(user)))?,
                    content,
                });
            }
            ServerFile::Toml(user, project) => {
                let path = self.target(&root(project, self.folder(&watching)?.join(user)))?;
                targets.push(Target { path, content: Content::Block(Block::server(&self.program)) });
            }
        }
        let commands = watching.commands;
        let folder = root(commands.project_folder, self.folder(&watching)?.join(commands.folder));
        for file in commands.files(&word) {
            let path = self.target(&folder.join(file.path))?;
            targets.push(Target { path, content: Content::Whole(file.text) });
        }
        Ok(targets)
    }

    /// Plans what is put into one file.
    pub(super) fn plan_in(
        &self,
        plan: &mut Plan,
        target: &Target,
        extras: Extras,
    ) -> Result<(), InstallError> {
        let wrong = |why| InstallError::Settings { path: target.path.clone(), why };
        let mut file = self.file_plan(plan, target)?;
        let text = file.before.clone().unwrap_or_default();
        let (standing, installed) = match &target.content {
            Content::Settings { .. } => {
                let wanted = target.content.wanted(&text, extras).map_err(wrong)?;
                let taken = watching::taken(&text, &wanted).map_err(wrong)?;
                plan.notices.extend(taken.iter().map(|name| theirs(&target.path, name)));
                let wanted = wanted.without(&taken);
                let standing = match wanted.is_empty() {
                    true => Standing::Complete,
                    false => watching::standing(&text, &wanted).map_err(wrong)?,
                };
                let base = self.without_ours(&file, target)?;
                let text = base.as_deref().unwrap_or_default();
                (standing, (base.clone(), watching::put_in(text, &wanted)))
            }
            Content::Block(block) if !extras.server && block.standing(&text) == Standing::Missing => {
                return Ok(());
            }
            Content::Whole(_) if !extras.commands && file.before.is_none() => return Ok(()),
            Content::Block(block) => {
                check_toml(&target.path, &text, block)?;
                let base = self.without_ours(&file, target)?;
                let installed = block.put_in(base.as_deref().unwrap_or_default());
                check_toml_result(&target.path, &installed.text, &self.program)?;
                (block.standing(&text), (base, Ok(installed)))
            }
            Content::Whole(ours) => {
                let standing = if text == *ours { Standing::Complete } else { Standing::Missing };
                let is_known =
                    file.record.as_ref().is_some_and(|record| record.digest == record::digest(&text));
                if file.before.is_some() && standing != Standing::Complete && !is_known {
                    plan.notices
                        .push(format!("{} is somebody else's and stays as it is", target.path.display()));
                    return Ok(());
                }
                let installed = Installed { text: ours.clone(), ranges: Vec::new(), made: Vec::new() };
                (standing, (None, Ok(installed)))
            }
        };
        if plan.files.is_empty() {
            plan.standing = standing.clone();
        } else if standing == Standing::Complete {
            return Ok(());
        }
        if standing != Standing::Complete {
            let (base, installed) = installed;
            let installed = installed.map_err(wrong)?;
            let was_made = file.record.as_ref().is_some_and(|record| record.created);
            let missing = missing_folders(&target.path);
            let known = file.record.take();
            file.record = Some(Record {
                agent: plan.agent.clone(),
                path: target.path.clone(),
                created: base.is_none()
                    && (file.before.is_none() || was_made || target.content.kind() == Kind::Whole),
                folders: if missing.is_empty() {
                    known.map_or(missing, |known| known.folders)
                } else {
                    missing
                },
                digest: record::digest(&installed.text),
                ranges: installed.ranges,
                made: installed.made,
                kind: target.content.kind(),
                beside: None,
            });
            file.after = Some(installed.text);
        }
        plan.files.push(file);
        Ok(())
    }

    /// Plans what is taken out of one file.
    pub(super) fn plan_out(&self, plan: &mut Plan, target: &Target) -> Result<(), InstallError> {
        let mut file = self.file_plan(plan, target)?;
        let text = file.before.clone().unwrap_or_default();
        let wrong = |why| InstallError::Settings { path: target.path.clone(), why };
        let is_first = plan.files.is_empty();
        let standing = match &target.content {
            Content::Settings { .. } => {
                let all = target.content.wanted(&text, Extras::ALL).map_err(wrong)?;
                watching::standing(&text, &all).map_err(wrong)?
            }
            Content::Block(block) => block.standing(&text),
            Content::Whole(ours) => {
                let known = file.record.as_ref();
                if file.before.is_none() || known.is_none() && text != *ours {
                    Standing::Missing
                } else if known.is_some_and(|known| known.digest != record::digest(&text)) && text != *ours {
                    plan.notices.push(format!("{} was changed since and stays", target.path.display()));
                    Standing::Missing
                } else {
                    Standing::Complete
                }
            }
        };
        if is_first {
            plan.standing = standing.clone();
        }
        if standing != Standing::Missing {
            self.check_writable(&target.path)?;
            file.after = match target.content {
                Content::Whole(_) => None,
                _ => self.without_ours(&file, target)?,
            };
        }
        if is_first || file.is_change() || file.record.is_some() {
            plan.files.push(file);
        }
        Ok(())
    }

    /// The file as it is, with what is noted of it.
    fn file_plan(&self, plan: &Plan, target: &Target) -> Result<FilePlan, InstallError> {
        let before = self.read(&target.path)?;
        let record_path = record::path(&self.state, &plan.agent, &target.path);
        let record = Record::read(&record_path).filter(|record| record.path == target.path);
        let (path, after) = (target.path.clone(), before.clone());
        Ok(FilePlan { path, before, after, record, record_path: Some(record_path) })
    }

    /// The text without ours; none for a file that was made for it, or is not there.
    fn without_ours(&self, file: &FilePlan, target: &Target) -> Result<Option<String>, InstallError> {
        let Some(text) = &file.before else { return Ok(None) };
        let wrong = |why| InstallError::Settings { path: target.path.clone(), why };
        let record = file.record.as_ref();
        let exact = record.filter(|record| record.digest == record::digest(text));
        let exact = exact.and_then(|record| watching::undo(text, &record.ranges));
        let rest = match (exact, &target.content) {
            (Some(exact), _) => exact,
            (None, Content::Settings { .. }) => {
                let all = target.content.wanted(text, Extras::ALL).map_err(wrong)?;
                watching::take_out(text, &all, record.map(|record| record.made.as_slice())).map_err(wrong)?
            }
            (None, Content::Block(block)) => block.take_out(text),
            (None, Content::Whole(_)) => text.clone(),
        };
        let was_made = record.is_some_and(|record| record.created);
        Ok(Some(rest).filter(|rest| !(was_made && matches!(rest.trim(), "" | "{}"))))
    }
}

/// A table that somebody wrote for the same server must not be there twice, and what is broken is not made longer.
fn check_toml(path: &Path, text: &str, block: &Block) -> Result<(), InstallError> {
    if path.extension().is_none_or(|extension| extension != "toml") {
        return Ok(());
    }
    let rest = block.take_out(text);
    let table: toml::Table = toml::from_str(rest.trim_start_matches('\u{feff}'))
        .map_err(|why| failed(path, format!("it cannot be read: {}", why.message()), "repair the file"))?;
    match table.get("mcp_servers").and_then(|servers| servers.get("segno")) {
        Some(_) => Err(failed(path, "it has an mcp_servers.segno of its own", "take that out first")),
        None => Ok(()),
    }
}

/// Lines at the end of a text mean what stands before them lets them mean: an inline table, for one, cannot be added to.
fn check_toml_result(path: &Path, text: &str, program: &str) -> Result<(), InstallError> {
    if path.extension().is_none_or(|extension| extension != "toml") {
        return Ok(());
    }
    let table = toml::from_str::<toml::Table>(text.trim_start_matches('\u{feff}'));
    let is_there = table.as_ref().is_ok_and(|table| {
        table.get("mcp_servers").and_then(|servers| servers.get("segno")?.get("command")?.as_str())
            == Some(program)
    });
    if is_there {
        return Ok(());
    }
    let why = "a server cannot be added at its end, for its mcp_servers is one value";
    let program = serde_json::Value::from(program);
    let hint = format!("add this to it by hand: segno = {{ command = {program}, args = [\"mcp\"] }}");
    Err(failed(path, why, &hint))
}

fn theirs(path: &Path, name: &str) -> String {
    format!("{} has a `{name}` of its own, which stays as it is", path.display())
}
