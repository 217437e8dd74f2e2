//! What the patterns of protected files mean in a project.

use std::path::Path;

use crate::looping::evidence::protect::protected;

/// The patterns of protected files that no file of the project matches now, each once.
pub fn unmatched<'a>(patterns: impl IntoIterator<Item = &'a String>, project: &Path) -> Vec<String> {
    let mut none: Vec<String> = Vec::new();
    for pattern in patterns {
        let mark = protected(std::slice::from_ref(pattern), project);
        if mark.is_none_or(|mark| mark.files.is_empty()) && !none.contains(pattern) {
            none.push(pattern.clone());
        }
    }
    none
}
