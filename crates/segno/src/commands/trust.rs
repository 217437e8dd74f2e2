//! `segno trust`: which projects may do more than hold data.

use std::io::IsTerminal as _;

use clap::Args as ClapArgs;
use serde_json::json;

use crate::config::content::Content;
use crate::config::file::Level;
use crate::config::file::{self};
use crate::config::paths;
use crate::config::trust::Status;
use crate::config::trust::Trust;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Column;
use crate::output::Meaning;
use crate::output::Table;
use crate::output::Text;
use crate::output::units;

/// Trust the files of this project
///
/// Until then its settings that name programs or hosts, or that loosen a protection, are ignored. Trust is about the
/// present content of .segno/config.toml, .segno/workflows and .segno/prompts, and of the programs and prompts in the
/// project that these settings name: when they change, it ends. Only a person at a terminal can give it.
#[derive(ClapArgs, Clone, Copy, Debug)]
#[command(after_help = "Example:\n  segno trust --show\n  segno trust")]
#[group(multiple = false)]
pub struct Args {
    /// Do not trust this project any more
    #[arg(long)]
    pub revoke: bool,
    /// List trusted projects
    #[arg(long)]
    pub list: bool,
    /// Only show how this project stands and what trust would change
    #[arg(long)]
    pub show: bool,
}

impl Args {
    /// Whether it would trust the project.
    pub const fn accepts(&self) -> bool {
        !(self.revoke || self.list || self.show)
    }
}

/// Runs `segno trust`.
///
/// # Errors
/// If the project cannot be trusted or the list cannot be changed.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let trust = Trust::in_directory(&context.paths.data);
    if args.list {
        return list(context, &trust);
    }
    if args.revoke {
        return revoke(context, &trust);
    }
    if args.show {
        return show(context, &trust);
    }
    accept(context, &trust)
}

fn accept(context: &Context, trust: &Trust) -> Outcome {
    // Whoever trusts a project has looked at it.
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(CommandError::new(
            ExitCode::Refused,
            "trust_refused",
            "a project is trusted by a person at a terminal",
        )
        .hint("run `segno trust` in a terminal of your own"));
    }
    let root = &context.project.root;
    let content = Content::read(root).map_err(crate::config::trust::Error::from)?;
    let settings = privileged(context, &content)?;
    trust.trust(root, &content, context.now)?;
    if context.printer.is_json() {
        return context.printer.json(&json!({
            "project": root.to_string_lossy(),
            "status": "trusted",
            "hash": content.hash(),
            "files": content.files().map(|(name, _)| name).collect::<Vec<_>>(),
            "settings": settings,
        }));
    }
    context
        .printer
        .talk(Text::new().painted(Meaning::Done, "trusted").plain(" ").plain(root.display().to_string()));
    describe(context, &content, &settings);
    Ok(())
}

fn revoke(context: &Context, trust: &Trust) -> Outcome {
    let root = &context.project.root;
    let known = trust.revoke(root, context.now)?;
    if context.printer.is_json() {
        return context.printer.json(&json!({ "project": root.to_string_lossy(), "revoked": known }));
    }
    let said = if known { "no longer trusted:" } else { "was not trusted:" };
    context.printer.talk(format!("{said} {}", root.display()));
    Ok(())
}

fn list(context: &Context, trust: &Trust) -> Outcome {
    let projects = trust.list(context.now)?;
    let mut rows = Vec::new();
    for (path, record) in projects {
        let standing = trust.status(std::path::Path::new(&path), context.now)?;
        rows.push((path, record, standing.status));
    }
    if context.printer.is_json() {
        let rows: Vec<_> = rows
            .iter()
            .map(|(path, record, status)| {
                json!({ "project": path, "status": status.word(), "trusted_at": record.trusted_at, "hash": record.hash })
            })
            .collect();
        return context.printer.json(&rows);
    }
    if rows.is_empty() {
        context.printer.talk("no project is trusted");
        return Ok(());
    }
    let mut table = Table::new([Column::left("status"), Column::left("since"), Column::left("project")]);
    for (path, record, status) in rows {
        table.row([
            word(&status),
            Text::new().painted(Meaning::Dim, context.time(record.trusted_at)),
            path.into(),
        ]);
    }
    context.printer.table(&table)
}

fn show(context: &Context, trust: &Trust) -> Outcome {
    let root = &context.project.root;
    let status = trust.status(root, context.now)?.status;
    let content = Content::read(root);
    let reason = content.as_ref().err().map(ToString::to_string);
    let content = content.unwrap_or_default();
    let settings = privileged(context, &content)?;
    if context.printer.is_json() {
        let since = match &status {
            Status::Trusted { since } | Status::Changed { since } => Some(since),
            Status::Untrusted { .. } => None,
        };
        return context.printer.json(&json!({
            "project": root.to_string_lossy(),
            "status": status.word(),
            "since": since,
            "reason": reason,
            "hash": content.hash(),
            "files": content.files().map(|(name, _)| name).collect::<Vec<_>>(),
            "settings": settings,
        }));
    }
    let mut line = word(&status).plain(" ").plain(root.display().to_string());
    if let Status::Trusted { since } | Status::Changed { since } = &status {
        line = line.painted(Meaning::Dim, format!("  since {}", context.time(*since)));
    }
    context.printer.data(line)?;
    if let Some(reason) = reason {
        context.printer.data(format!("  cannot be trusted: {reason}"))?;
    }
    for (name, size) in content.files() {
        context.printer.data(
            Text::from(format!("  .segno/{name}"))
                .painted(Meaning::Dim, format!("  {}", units::bytes(size as u64))),
        )?;
    }
    let standing = if status.is_trusted() { "in effect" } else { "needs trust" };
    for setting in &settings {
        context.printer.data(format!("  {standing}: {setting}"))?;
    }
    Ok(())
}

fn describe(context: &Context, content: &Content, settings: &[String]) {
    for (name, size) in content.files() {
        context.printer.talk(
            Text::from(format!("  .segno/{name}"))
                .painted(Meaning::Dim, format!("  {}", units::bytes(size as u64))),
        );
    }
    for setting in settings {
        context.printer.talk(format!("  now in effect: {setting}"));
    }
    if content.files().next().is_none() {
        context.printer.talk("  it has no files yet; when it gets some, trust ends");
    }
}

fn word(status: &Status) -> Text {
    let meaning = match status {
        Status::Trusted { .. } => Meaning::Done,
        Status::Changed { .. } => Meaning::Waiting,
        Status::Untrusted { .. } => Meaning::Lost,
    };
    Text::new().painted(meaning, status.word())
}

/// The settings of a project that need trust, as `key = value`.
fn privileged(context: &Context, content: &Content) -> Outcome<Vec<String>> {
    let Some(bytes) = content.get(paths::CONFIG_FILE) else { return Ok(Vec::new()) };
    let layer = file::read(&context.project.config(), bytes, Level::Project { trusted: true })?;
    let needing = layer.settings.into_iter().filter(|setting| setting.key.class.needs_trust());
    Ok(needing.map(|setting| format!("{} = {}", setting.key.name, setting.value)).collect())
}
