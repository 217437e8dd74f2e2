//! A note of what a restore is about to do, so that whoever comes after a crash can finish it or take it back.

use std::collections::BTreeSet;

use crate::Workspace;
use crate::batch::Batch;
use crate::durable;
use crate::error::Context as _;
use crate::error::Error;
use crate::id::Kind;
use crate::id::ObjectId;
use crate::id::checksum;
use crate::plan::Plan;
use crate::record::Snapshot;

/// The second form also says where the project's repository stood.
const HEAD: &[u8] = b"segno intent 2";
const OLDER_HEAD: &[u8] = b"segno intent 1";

/// A restore that was cut short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Where it was going.
    pub target: Snapshot,
    /// What was there before.
    pub safety: Snapshot,
    /// How many paths it was about.
    pub paths: usize,
}

pub(crate) struct Intent {
    pub(crate) target: (String, ObjectId),
    pub(crate) safety: (String, ObjectId),
    /// Where the project's repository stood; nothing in a note of the first form.
    pub(crate) head: Option<Vec<u8>>,
    pub(crate) paths: BTreeSet<Vec<u8>>,
}

impl Workspace {
    /// A restore that was cut short, if there is one.
    pub fn pending(&self) -> Result<Option<Pending>, Error> {
        let Some(intent) = self.read_intent()? else { return Ok(None) };
        let (target, safety) = (self.snapshot_of(&intent.target)?, self.snapshot_of(&intent.safety)?);
        Ok(Some(Pending { target, safety, paths: intent.paths.len() }))
    }

    pub(crate) fn refuse_pending(&self) -> Result<(), Error> {
        if self.shadow.intent().exists() { Err(Error::Pending) } else { Ok(()) }
    }

    pub(crate) fn write_intent(&self, plan: &Plan) -> Result<(), Error> {
        let mut out = HEAD.to_vec();
        out.push(0);
        for snapshot in [&plan.target, &plan.safety] {
            out.extend_from_slice(format!("{} {}\0", snapshot.commit, snapshot.name).as_bytes());
        }
        out.extend_from_slice(&self.head_line());
        out.push(0);
        for path in plan.steps.keys() {
            out.extend_from_slice(path);
            out.push(0);
        }
        let sum = checksum(&out);
        out.extend_from_slice(sum.as_bytes());
        durable::remove(&self.shadow.progress())?;
        durable::replace(&self.shadow.intent(), &out)
    }

    /// Where the project's repository stands, as one line. A commit made since means that somebody worked on.
    pub(crate) fn head_line(&self) -> Vec<u8> {
        let head = self.head().ok().flatten();
        let part = |part: Option<String>| part.unwrap_or_else(|| "-".to_owned());
        head.map_or_else(
            || b"-".to_vec(),
            |head| format!("{} {}", part(head.commit), part(head.branch)).into_bytes(),
        )
    }

    pub(crate) fn remove_intent(&self) -> Result<(), Error> {
        let path = self.shadow.intent();
        durable::remove(&path)?;
        durable::remove(&self.shadow.progress())?;
        path.parent().map_or(Ok(()), durable::sync_dir)
    }

    pub(crate) fn read_intent(&self) -> Result<Option<Intent>, Error> {
        let path = self.shadow.intent();
        let bytes = match std::fs::read(&path) {
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.context("cannot read", &path)?,
        };
        let intent = parse(&bytes).ok_or_else(|| {
            Error::damaged("the note of a restore that was cut short", "it cannot be understood")
        })?;
        Ok(Some(intent))
    }

    pub(crate) fn snapshot_of(&self, (name, commit): &(String, ObjectId)) -> Result<Snapshot, Error> {
        Snapshot::decode(name, *commit, &Batch::start(&self.git)?.read(*commit, Kind::Commit)?)
    }
}

fn parse(bytes: &[u8]) -> Option<Intent> {
    let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(ObjectId::LENGTH)?)?;
    if checksum(body).as_bytes() != sum {
        return None;
    }
    let mut parts = body.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    let form = parts.next()?;
    if form != HEAD && form != OLDER_HEAD {
        return None;
    }
    let mut snapshot = || {
        let (commit, name) = std::str::from_utf8(parts.next()?).ok()?.split_once(' ')?;
        Some((name.to_owned(), ObjectId::parse(commit)?))
    };
    let (target, safety) = (snapshot()?, snapshot()?);
    let head = if form == HEAD { Some(parts.next()?.to_vec()) } else { None };
    Some(Intent { target, safety, head, paths: parts.map(<[u8]>::to_vec).collect() })
}
