//! The ignore rules of a snapshot that is gone back to.
//!
//! A file that its rules ignored was not captured, so that it is missing there does not mean that it was not there.

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::Gitignore;
use rustix::fs::FileType;

use crate::Workspace;
use crate::batch::Batch;
use crate::beneath::Root;
use crate::beneath::as_path;
use crate::beneath::join;
use crate::beneath::split;
use crate::changes::Node;
use crate::error::Error;
use crate::id::Kind;
use crate::rules::Rules;
use crate::rules::compile;
use crate::stat::Stat;

const NAME: &[u8] = b".gitignore";

/// Rules by the directory they are in, and those that hold above all of them.
pub(crate) struct RulesThen {
    rules: BTreeMap<Vec<u8>, Option<Gitignore>>,
    outside: Arc<Rules>,
}

impl Workspace {
    /// `then` says what was at a path, if it was something else than now; `changed` are the paths for which it does.
    pub(crate) fn rules_then<'p>(
        &self,
        then: impl Fn(&[u8]) -> Option<Option<Node>>,
        changed: impl Iterator<Item = &'p Vec<u8>>,
    ) -> Result<RulesThen, Error> {
        let mut rules = BTreeMap::new();
        // A file that is tracked is captured though a rule matches it, and it may have become tracked since.
        let options = &self.options;
        let outside =
            Rules::at_root(&options.root, options.home.as_deref(), options.global_excludes.as_deref());
        let outside = outside.enter(&options.root, b"", None, options.root.join(".git").exists());
        let mut batch = Batch::start(&self.git)?;
        for path in changed {
            for directory in above(path) {
                if rules.contains_key(directory) {
                    continue;
                }
                let text = match then(&join(directory, NAME)) {
                    Some(Some(Node::File { id, .. })) => Some(batch.read(id, Kind::Blob)?),
                    Some(_) => None,
                    None => read_rules(&self.root, directory),
                };
                rules.insert(directory.to_vec(), text.and_then(|text| compile(&text)));
            }
        }
        Ok(RulesThen { rules, outside })
    }
}

/// The ignore file in a directory, if it is a plain file.
pub(crate) fn read_rules(root: &Root, directory: &[u8]) -> Option<Vec<u8>> {
    use std::io::Read as _;
    let fd = root.file(&join(directory, NAME)).ok()?;
    let stat = Stat::from(&rustix::fs::fstat(fd.as_fd()).ok()?);
    if stat.kind() != FileType::RegularFile {
        return None;
    }
    let mut text = Vec::new();
    std::fs::File::from(fd).take(8 << 20).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The directories above a path, from the inside out; the last is the top.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(split(path).0), |path| (!path.is_empty()).then(|| split(path).0))
}

impl RulesThen {
    /// Whether a path, or a directory above it, was ignored.
    pub(crate) fn ignored(&self, path: &[u8], is_dir: bool) -> bool {
        self.matches(path, is_dir)
            || above(path).filter(|part| !part.is_empty()).any(|part| self.matches(part, true))
    }

    /// The innermost rule that matches decides.
    fn matches(&self, path: &[u8], is_dir: bool) -> bool {
        for directory in above(path) {
            let lead = if directory.is_empty() { 0 } else { directory.len() + 1 };
            let Some(Some(rules)) = self.rules.get(directory) else { continue };
            match rules.matched(as_path(path.get(lead..).unwrap_or_default()), is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        self.outside.ignores(path, is_dir)
    }
}
