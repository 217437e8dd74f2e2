//! Who put this program where it is: only they can replace or remove it without leaving a mess.

use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

/// Where a program came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The installer of a release.
    Installer {
        /// What it is below.
        prefix: PathBuf,
        /// Where the release was.
        from: Option<String>,
    },
    /// npm, as a package that others share or that a project has.
    Npm,
    /// `cargo install` or `cargo binstall`.
    Cargo,
    /// A build in a source tree.
    Build,
    /// The packages of the system.
    System,
    /// Somebody, by hand.
    Hand,
}

impl Origin {
    /// The origin of a program, by its resolved path and what `read` says of files beside it.
    pub(super) fn of(program: &Path, read: impl Fn(&Path) -> Option<String>) -> Self {
        if let Some(prefix) = program.parent().filter(|bin| bin.ends_with("bin")).and_then(Path::parent)
            && let Some(receipt) = read(&prefix.join("share/segno-install/receipt"))
            && receipt.lines().any(|line| line == "file bin/segno")
        {
            let from = receipt.lines().find_map(|line| line.strip_prefix("from ")).map(ToOwned::to_owned);
            return Self::Installer { prefix: prefix.to_owned(), from };
        }
        let parts: Vec<&str> = program
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect();
        let has = |name: &str| parts.contains(&name);
        match &*parts {
            _ if has("node_modules") => Self::Npm,
            [.., ".cargo", "bin", _] => Self::Cargo,
            _ if has("target") && (has("release") || has("debug")) => Self::Build,
            ["usr", "bin" | "sbin", ..] | ["bin" | "sbin" | "nix" | "snap" | "opt", ..] => Self::System,
            _ if has("Cellar") || has("linuxbrew") => Self::System,
            _ => Self::Hand,
        }
    }

    /// The word for programs.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Installer { .. } => "installer",
            Self::Npm => "npm",
            Self::Cargo => "cargo",
            Self::Build => "build",
            Self::System => "system",
            Self::Hand => "hand",
        }
    }

    /// The words for people.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Installer { from: Some(from), .. } => format!("installed by the installer, from {from}"),
            Self::Installer { from: None, .. } => "installed by the installer".to_owned(),
            Self::Npm => "installed by npm".to_owned(),
            Self::Cargo => "installed by cargo".to_owned(),
            Self::Build => "built from source".to_owned(),
            Self::System => "installed by the packages of the system".to_owned(),
            Self::Hand => "put there by hand".to_owned(),
        }
    }

    /// Where the release was.
    pub(super) fn from(&self) -> Option<&str> {
        match self {
            Self::Installer { from, .. } => from.as_deref(),
            _ => None,
        }
    }

    /// What updates it.
    pub(super) const fn update(&self) -> &'static str {
        match self {
            Self::Installer { .. } => "segno self update",
            Self::Npm => "npm update -g segno",
            Self::Cargo => "cargo install --locked segno   (or: cargo binstall segno)",
            Self::Build => "git pull && cargo build --release -p segno",
            Self::System => "your system's own update of packages",
            Self::Hand => "sh install.sh --from DIR|URL   installs a release, which can then update itself",
        }
    }

    /// What removes it.
    pub(super) const fn remove(&self) -> &'static str {
        match self {
            Self::Installer { .. } => "segno self remove",
            Self::Npm => "segno uninit && npm uninstall -g segno",
            Self::Cargo => "segno uninit && cargo uninstall segno",
            Self::Build | Self::Hand => "segno uninit, then remove the file",
            Self::System => "segno uninit, then remove the package",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_installed_it() {
        for (path, origin) in [
            ("/home/me/.cargo/bin/segno", Origin::Cargo),
            ("/home/me/.npm/lib/node_modules/segno-linux-x64/bin/segno", Origin::Npm),
            ("/usr/lib/node_modules/segno/node_modules/segno-linux-x64/bin/segno", Origin::Npm),
            ("/src/segno/target/release/segno", Origin::Build),
            ("/src/segno/target/x86_64-unknown-linux-gnu/release/segno", Origin::Build),
            ("/usr/bin/segno", Origin::System),
            ("/nix/store/abc-segno/bin/segno", Origin::System),
            ("/usr/local/bin/segno", Origin::Hand),
            ("/home/me/bin/segno", Origin::Hand),
        ] {
            assert_eq!(Origin::of(Path::new(path), |_| None), origin, "{path}");
        }
    }

    #[test]
    fn a_receipt_counts_for_the_program_it_names() {
        let receipt = "version 0.1.0\nfrom /media/release\nfile bin/segno\n";
        let read = |path: &Path| {
            (path == Path::new("/home/me/.local/share/segno-install/receipt")).then(|| receipt.to_owned())
        };
        let own =
            Origin::Installer { prefix: "/home/me/.local".into(), from: Some("/media/release".to_owned()) };
        assert_eq!(Origin::of(Path::new("/home/me/.local/bin/segno"), read), own);
        // Another place, or a receipt that does not know the program, is not ours.
        assert_eq!(Origin::of(Path::new("/home/you/.local/bin/segno"), read), Origin::Hand);
        let other = |_: &Path| Some("version 0.1.0\n".to_owned());
        assert_eq!(Origin::of(Path::new("/home/me/.local/bin/segno"), other), Origin::Hand);
    }
}
