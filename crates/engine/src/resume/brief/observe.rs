//! What can be seen of the file that a call was about.

use serde_json::Value;

use crate::Engine;

/// What a call was to make of its file.
pub(super) enum Meant {
    /// This content.
    Content(String),
    /// The same with a piece replaced.
    Replaced { old: String, new: String },
    /// Nobody can tell.
    Unknown,
}

/// Larger files are not read to see what became of them.
const LARGEST: u64 = 16 << 20;

/// What can be seen of a file that a call was about.
pub(super) fn observed(project: &str, path: &str, meant: &Meant) -> String {
    let whole = std::path::Path::new(project).join(path);
    let Ok(meta) = std::fs::metadata(&whole) else { return " — the file is not there".to_owned() };
    let bytes = meta.len();
    let read = || std::fs::read(&whole).ok().filter(|_| meta.is_file() && bytes <= LARGEST);
    match meant {
        Meant::Content(content) if bytes == content.len() as u64 => {
            match read().is_some_and(|bytes| bytes == content.as_bytes()) {
                true => " — the file is there with exactly that content: it was done".to_owned(),
                false => " — the file is there with other content".to_owned(),
            }
        }
        Meant::Content(_) => format!(" — the file is there with other content ({bytes} bytes)"),
        Meant::Replaced { old, new } => {
            let text = read().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
            // The old piece may be a part of the new one.
            let has_new = !new.is_empty() && text.contains(new.as_str());
            let has_old = text.replace(new.as_str(), "").contains(old.as_str());
            match (has_new, has_old) {
                (true, false) => " — the file has the new text: it was done".to_owned(),
                (false, true) => " — the file still has the old text: it was not done".to_owned(),
                _ => format!(" — the file is there ({bytes} bytes)"),
            }
        }
        Meant::Unknown => format!(" — the file is there ({bytes} bytes)"),
    }
}

/// Whether a file has exactly this content.
pub(super) fn has_content(project: &str, path: &str, content: &str) -> bool {
    let whole = std::path::Path::new(project).join(path);
    let same_size = std::fs::metadata(&whole).is_ok_and(|meta| meta.len() == content.len() as u64);
    same_size && std::fs::read(&whole).is_ok_and(|bytes| bytes == content.as_bytes())
}

impl Engine {
    /// What a call was to make of its file, as far as its input says so.
    pub(super) fn meant(&self, input: &Value) -> Meant {
        let whole = |name: &str| {
            let text: segno_core::Text = serde_json::from_value(input.get(name)?.clone()).ok()?;
            self.whole(&text).ok()
        };
        match (whole("content"), whole("old_string"), whole("new_string")) {
            (Some(content), ..) => Meant::Content(content),
            (None, Some(old), Some(new)) if !old.is_empty() && old != new => Meant::Replaced { old, new },
            _ => Meant::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_seen_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().to_str().unwrap();
        std::fs::write(dir.path().join("a"), "same").unwrap();
        let content = |text: &str| Meant::Content(text.to_owned());
        let replaced = |old: &str, new: &str| Meant::Replaced { old: old.to_owned(), new: new.to_owned() };
        assert!(observed(project, "a", &content("same")).contains("it was done"));
        assert!(observed(project, "a", &content("else")).contains("other content"));
        assert!(observed(project, "a", &content("longer")).contains("other content (4 bytes)"));
        assert!(observed(project, "a", &Meant::Unknown).contains("(4 bytes)"));
        assert!(observed(project, "b", &content("x")).contains("not there"));
        assert!(observed(project, "a", &replaced("other", "same")).contains("it was done"));
        assert!(observed(project, "a", &replaced("am", "same")).contains("it was done"), "part of the new");
        assert!(observed(project, "a", &replaced("same", "other")).contains("it was not done"));
        assert!(observed(project, "a", &replaced("x", "y")).contains("(4 bytes)"));
    }
}
