//! A session as the writers of all families get it.

use std::collections::BTreeMap;

use segno_core::List;
use segno_core::State;
use segno_core::rows::Row;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;

use crate::family::Family;
use crate::files::FileSet;
use crate::node::Node;

/// The version of the extension member.
const VERSION: u32 = 1;

/// A session to be written.
#[derive(Clone, Debug)]
pub struct Snapshot<'a> {
    /// Its state.
    pub state: &'a State,
    /// The newest rows of its lists, in the order they happened.
    pub lists: BTreeMap<List, Vec<Value>>,
    /// What it is written for, such as `auto`, `action` or `checkpoint`.
    pub save_trigger: String,
    /// What its journal says of its past, for the files of a PRP loop; none is what its state says.
    pub record: Option<std::sync::Arc<crate::prp::Record>>,
    /// The branch that its project is on, for files that name one before the session has any of its own.
    pub branch: Option<String>,
    /// How it was at its checkpoints, by their numbers, where their files have to be made.
    pub then: BTreeMap<u64, crate::go_team::Then>,
    /// How often others changed its files.
    pub changed: u32,
    /// What ultra-create is told about its files.
    pub ultra_create: crate::ultra_create::Config,
}

/// Our own fields, in one member of one file of each family.
#[derive(Serialize)]
pub(crate) struct Extension {
    version: u32,
    session_id: String,
    seq: u64,
    changed: u32,
    state: Node,
}

impl Snapshot<'_> {
    /// The rows of a list as values.
    pub(crate) fn rows<T: Row>(&self) -> Vec<T> {
        self.lists.get(&T::LIST).into_iter().flatten().map(|row| T::read_any(row)).collect()
    }

    /// What an import kept of the foreign files.
    pub(crate) fn carried(&self, family: Family) -> Option<&Map<String, Value>> {
        self.state.workflow_state.as_ref()?.get(family.as_str())?.as_object()
    }

    /// What an import kept of one of them.
    pub(crate) fn carried_file(&self, family: Family, file: &str) -> Option<&Value> {
        self.carried(family)?.get("files")?.get(file)
    }

    /// The name that the session has in the family: the one it came with, or one of ours.
    pub(crate) fn name(&self, family: Family) -> String {
        let ours = || crate::own_name(family, self.state.session_id, self.state.uid);
        crate::foreign_name(family, self.state).map_or_else(ours, ToOwned::to_owned)
    }

    /// Our own fields.
    pub(crate) fn extension(&self) -> Extension {
        // Who drives and what was asked of them is true for a moment only, and grants nothing elsewhere.
        let mut state = self.state.clone();
        state.driver = None;
        state.requests.clear();
        Extension {
            version: VERSION,
            session_id: state.session_id.to_string(),
            seq: state.seq,
            changed: self.changed,
            state: Node::of(&state),
        }
    }

    /// A file of ours, with what an import kept of it and what `beyond` finds in the present one that we do not know, at
    /// its top and in the named inner objects.
    pub(crate) fn document(
        &self,
        (family, file): (Family, &str),
        ours: &impl Serialize,
        beyond: impl FnOnce(&Node) -> Option<Node>,
        inner: &[&str],
    ) -> Node {
        let mut node = Node::of(ours);
        let is_main = node.member(crate::EXTENSION).is_some();
        if let Some(present) = beyond(&node) {
            node.adopt(&present, inner);
        }
        if let Some(carried) = self.carried_file(family, file) {
            node.adopt(&Node::of(carried), inner);
        }
        if is_main {
            crate::foreign_edit::seal(family, &mut node);
        } else {
            crate::foreign_edit::mark(&mut node, self.state.session_id);
        }
        node
    }

    /// The same of a JSON file, as text.
    pub(crate) fn json(
        &self,
        (family, file): (Family, &str),
        ours: &impl Serialize,
        existing: &FileSet,
        inner: &[&str],
    ) -> (String, Vec<u8>) {
        let beyond = |ours: &Node| Node::beyond(existing.get(file)?, ours, inner);
        (file.to_owned(), self.document((family, file), ours, beyond, inner).to_json())
    }
}
