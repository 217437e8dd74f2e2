//! Takes a snapshot out into one file, and in from one.

use std::path::Path;

use crate::Workspace;
use crate::batch::Batch;
use crate::error::Context as _;
use crate::error::Error;
use crate::id::Kind;
use crate::id::ObjectId;
use crate::record::Snapshot;
use crate::shadow::full_ref;
use crate::shadow::is_name;

impl Workspace {
    /// Writes a snapshot with everything it needs into a git bundle. Fails if `to` exists.
    pub fn export(&self, snapshot: &Snapshot, to: &Path) -> Result<u64, Error> {
        use std::os::unix::fs::OpenOptionsExt as _;
        use std::os::unix::fs::PermissionsExt as _;
        let _lock = self.shadow.lock_shared(self.options.patience)?;
        if self.shadow.read_ref(&snapshot.name)? != Some(snapshot.commit) {
            return Err(Error::NotFound(snapshot.name.clone()));
        }
        let file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(to);
        file.context("cannot create", to)?;
        // Git writes beside it and renames; it runs elsewhere, so the path must be whole.
        let whole = std::path::absolute(to).context("cannot write", to)?;
        let name = full_ref(&snapshot.name);
        let written = self.git.run(&[
            "bundle".as_ref(),
            "create".as_ref(),
            "--quiet".as_ref(),
            whole.as_os_str(),
            name.as_ref(),
        ]);
        if let Err(why) = written {
            let _ = std::fs::remove_file(to);
            return Err(why);
        }
        let file = std::fs::File::open(to).context("cannot open", to)?;
        // Git made it anew, for everybody to read.
        file.set_permissions(std::fs::Permissions::from_mode(0o600)).context("cannot protect", to)?;
        file.sync_all().context("cannot sync", to)?;
        if let Some(parent) = whole.parent() {
            crate::durable::sync_dir(parent)?;
        }
        Ok(file.metadata().context("cannot look at", to)?.len())
    }

    /// Takes a snapshot in from a bundle, under a new name. All of it is checked first: it may come from anybody.
    pub fn import(&self, from: &Path, name: &str) -> Result<Snapshot, Error> {
        if !is_name(name) {
            return Err(Error::BadName(name.to_owned()));
        }
        let _lock = self.shadow.lock(self.options.patience)?;
        if self.shadow.read_ref(name)?.is_some() {
            return Err(Error::NameTaken(name.to_owned()));
        }
        let whole = std::path::absolute(from).context("cannot read", from)?;
        let said = self.git.run(&["bundle".as_ref(), "unbundle".as_ref(), whole.as_os_str()])?;
        let said = String::from_utf8_lossy(&said);
        let mut commits = said.lines().filter_map(|line| ObjectId::parse(line.split_once(' ')?.0));
        let (Some(commit), None) = (commits.next(), commits.next()) else {
            return Err(Error::damaged(from.display().to_string(), "it does not hold one snapshot"));
        };
        let object = Batch::start(&self.git)?.read(commit, Kind::Commit)?;
        let snapshot = Snapshot::decode(name, commit, &object)?;
        self.verify_all(&snapshot)?;
        crate::durable::sync_dir(&self.shadow.packs())?;
        self.shadow.write_ref(name, commit)?;
        Ok(snapshot)
    }
}
