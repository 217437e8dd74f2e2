//! Takes a snapshot out into one file, and in from one.

use std::ffi::OsStr;
use std::path::Path;
use std::path::PathBuf;

use crate::Workspace;
use crate::batch::Batch;
use crate::error::Context as _;
use crate::error::Error;
use crate::id::Kind;
use crate::id::ObjectId;
use crate::objects::Objects;
use crate::objects::Sink;
use crate::record::FILES;
use crate::record::MANIFEST;
use crate::record::MODE_FILE;
use crate::record::MODE_TREE;
use crate::record::Snapshot;
use crate::record::TreeEntry;
use crate::record::encode_tree;
use crate::shadow::full_ref;
use crate::shadow::is_name;

impl Workspace {
    /// Writes a snapshot with everything it needs into a git bundle. Fails if `to` exists.
    pub fn export(&self, snapshot: &Snapshot, to: &Path) -> Result<u64, Error> {
        self.export_all(std::slice::from_ref(snapshot), to)
    }

    /// The same for several, which share what they have in common.
    pub fn export_all(&self, snapshots: &[Snapshot], to: &Path) -> Result<u64, Error> {
        use std::os::unix::fs::OpenOptionsExt as _;
        // Not shared: git writes beside its snapshots first, and whoever takes the lock removes what is left there.
        let _lock = self.shadow.lock(self.options.patience)?;
        for snapshot in snapshots {
            if self.shadow.read_ref(&snapshot.name)? != Some(snapshot.commit) {
                return Err(Error::NotFound(snapshot.name.clone()));
            }
        }
        let file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(to);
        file.context("cannot create", to)?;
        let written = self.write_bundle(snapshots, to);
        if written.is_err() {
            let _ = std::fs::remove_file(to);
        }
        written
    }

    /// Git makes its file, and one beside it, for everybody to read: so it works in our own directory.
    fn write_bundle(&self, snapshots: &[Snapshot], to: &Path) -> Result<u64, Error> {
        let scratch = self.shadow.scratch();
        crate::durable::make_dirs(&scratch)?;
        let made = scratch.join("bundle");
        let names: Vec<String> = snapshots.iter().map(|snapshot| full_ref(&snapshot.name)).collect();
        let mut arguments: Vec<&OsStr> =
            vec!["bundle".as_ref(), "create".as_ref(), "--quiet".as_ref(), made.as_os_str()];
        arguments.extend(names.iter().map(AsRef::<OsStr>::as_ref));
        self.git.run(&arguments)?;
        let mut from = std::fs::File::open(&made).context("cannot open", &made)?;
        let mut file = std::fs::File::options().write(true).open(to).context("cannot open", to)?;
        let size = std::io::copy(&mut from, &mut file).context("cannot write", to)?;
        file.sync_all().context("cannot sync", to)?;
        crate::shadow::remove_all(&scratch)?;
        let whole = std::path::absolute(to).context("cannot write", to)?;
        if let Some(parent) = whole.parent() {
            crate::durable::sync_dir(parent)?;
        }
        Ok(size)
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
        let whole = bundle_at(from)?;
        let said = self.git.run(&["bundle".as_ref(), "unbundle".as_ref(), whole.as_os_str()])?;
        let said = String::from_utf8_lossy(&said);
        let mut commits = said.lines().filter_map(|line| ObjectId::parse(line.split_once(' ')?.0));
        let (Some(commit), None) = (commits.next(), commits.next()) else {
            return Err(Error::damaged(from.display().to_string(), "it does not hold one snapshot"));
        };
        let object = Batch::start(&self.git)?.read(commit, Kind::Commit)?;
        let snapshot = Snapshot::decode(name, commit, &object)?;
        self.verify_all(&snapshot)?;
        let snapshot = self.made_harmless(snapshot)?;
        crate::durable::sync_dir(&self.shadow.packs())?;
        self.shadow.write_ref(name, snapshot.commit)?;
        Ok(snapshot)
    }

    /// Takes in those snapshots of a bundle that are wanted, by name and commit. Each is checked first, and one that cannot be
    /// taken in keeps none of the others; answers with what is wrong with which.
    pub fn import_all(
        &self,
        from: &Path,
        wanted: &[(String, ObjectId)],
    ) -> Result<Vec<(String, Error)>, Error> {
        let _lock = self.shadow.lock(self.options.patience)?;
        let whole = bundle_at(from)?;
        self.git.run(&["bundle".as_ref(), "unbundle".as_ref(), whole.as_os_str()])?;
        crate::durable::sync_dir(&self.shadow.packs())?;
        let taken = wanted.iter().map(|(name, commit)| (name, self.take_in(name, *commit)));
        Ok(taken.filter_map(|(name, taken)| taken.err().map(|why| (name.clone(), why))).collect())
    }

    fn take_in(&self, name: &str, commit: ObjectId) -> Result<(), Error> {
        match self.shadow.read_ref(name)? {
            Some(known) if known == commit => return Ok(()),
            Some(_) => return Err(Error::NameTaken(name.to_owned())),
            None => {}
        }
        let object = Batch::start(&self.git)?.read(commit, Kind::Commit)?;
        let snapshot = Snapshot::decode(name, commit, &object)?;
        self.verify_all(&snapshot)?;
        // It is known by its content, so its permissions cannot be changed.
        if !self.manifest(&snapshot)?.is_harmless() {
            let why = "it has files with rights that nobody else may give";
            return Err(Error::damaged(format!("snapshot {name}"), why));
        }
        self.shadow.write_ref(name, commit)
    }

    /// The same snapshot with permissions that anybody's bundle may ask for.
    fn made_harmless(&self, mut snapshot: Snapshot) -> Result<Snapshot, Error> {
        let mut manifest = self.manifest(&snapshot)?;
        if !manifest.make_harmless() {
            return Ok(snapshot);
        }
        let packs = self.shadow.packs();
        let sink = Sink::new(Objects::open(&packs)?, &packs, 0, u64::MAX)?;
        snapshot.manifest = sink.put(Kind::Blob, &manifest.write())?;
        let mut entries = [
            TreeEntry { mode: MODE_TREE, name: FILES, id: snapshot.tree },
            TreeEntry { mode: MODE_FILE, name: MANIFEST, id: snapshot.manifest },
        ];
        let tree = sink.put(Kind::Tree, &encode_tree(&mut entries))?;
        snapshot.commit = sink.put(Kind::Commit, &snapshot.encode(tree))?;
        sink.finish()?;
        Ok(snapshot)
    }
}

/// The whole path of a bundle. Whoever would read a pipe or a device would wait, or never come to an end.
fn bundle_at(from: &Path) -> Result<PathBuf, Error> {
    let whole = std::path::absolute(from).context("cannot read", from)?;
    match std::fs::metadata(&whole).context("cannot read", from)?.is_file() {
        true => Ok(whole),
        false => Err(Error::damaged(from.display().to_string(), "it is no file")),
    }
}
