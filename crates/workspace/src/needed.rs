//! Reads everything that a restore needs before it touches anything.

use std::collections::HashSet;

use crate::Workspace;
use crate::batch::Batch;
use crate::error::Error;
use crate::id::Kind;
use crate::manifest::Manifest;
use crate::plan::Plan;
use crate::retention::parse_tree;

impl Workspace {
    /// Reads the trees and manifests of both sides, what will be written, and what the way back would need. An error
    /// if any of it is not what its id says.
    pub(crate) fn verify_needed(&self, plan: &Plan) -> Result<(), Error> {
        let mut batch = Batch::start(&self.git)?;
        let mut seen = HashSet::new();
        for snapshot in [&plan.target, &plan.safety] {
            let damaged = |why: &str| Error::damaged(format!("snapshot {}", snapshot.name), why);
            batch.read(snapshot.commit, Kind::Commit)?;
            Manifest::read(&batch.read(snapshot.manifest, Kind::Blob)?)?;
            let mut trees = vec![snapshot.tree];
            while let Some(id) = trees.pop() {
                if !seen.insert(id) {
                    continue;
                }
                let tree = batch.read(id, Kind::Tree)?;
                let entries = parse_tree(&tree).ok_or_else(|| damaged("a tree cannot be understood"))?;
                trees.extend(entries.iter().filter(|entry| entry.mode == b"40000").map(|entry| entry.id));
            }
        }
        let nodes = plan.steps.values().flat_map(|step| [step.from, step.to]).flatten();
        for id in nodes.filter_map(|node| node.id()) {
            if seen.insert(id) {
                batch.copy(id, Kind::Blob, &mut std::io::sink())?;
            }
        }
        Ok(())
    }
}
