//! Reading the files of a family: regular files only, none too large, nothing behind a link.

use std::path::Path;

use segno_files::Links;
use segno_layouts::FileSet;
use segno_layouts::MOST_FILE;
use segno_layouts::MOST_FILES;
use segno_redact::Redactor;

use crate::Error;

/// The most that all files of a folder may have together.
const MOST_BYTES: u64 = 64 << 20;

/// Whether a file can be one of any family.
fn is_theirs(name: &str) -> bool {
    const ENDS: [&str; 5] = [".json", ".json.gz", ".yaml", ".log", ".md"];
    const RALPH: [&str; 9] = [
        ".ralph_session",
        ".claude_session_id",
        ".circuit_breaker_state",
        ".circuit_breaker_history",
        ".call_count",
        ".token_count",
        ".last_reset",
        ".exit_signals",
        ".ralph_session_history",
    ];
    // What was kept beside a file of ours is no file of the family.
    let hidden = name.starts_with('.') || name.contains(".edited-");
    (!hidden && ENDS.iter().any(|end| name.ends_with(end))) || RALPH.contains(&name)
}

/// The names at the top of a folder that can be of a family.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_theirs(name)).collect();
    names.sort_unstable();
    names
}

/// The files of a folder and of the folders right in it.
pub(super) fn gather(folder: &Path, redactor: Option<&Redactor>) -> Result<FileSet, Error> {
    let mut set = FileSet::default();
    let mut taken = Taken::default();
    take(&mut set, folder, "", redactor, &mut taken)?;
    let entries = std::fs::read_dir(folder).map_err(|why| Error::file(folder, why))?;
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut folders: Vec<String> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    folders.sort_unstable();
    for inner in folders.iter().filter(|inner| !inner.starts_with('.')) {
        take(&mut set, &folder.join(inner), &format!("{inner}/"), redactor, &mut taken)?;
    }
    Ok(set)
}

/// How much was read so far.
#[derive(Default)]
struct Taken {
    files: usize,
    bytes: u64,
}

fn take(
    set: &mut FileSet,
    folder: &Path,
    prefix: &str,
    redactor: Option<&Redactor>,
    taken: &mut Taken,
) -> Result<(), Error> {
    for name in names(folder) {
        taken.files += 1;
        let path = folder.join(&name);
        taken.bytes += std::fs::metadata(&path).map_or(0, |meta| meta.len().min(MOST_FILE));
        if taken.bytes > MOST_BYTES {
            return Err(Error::NotImportable(format!(
                "the files of {} have more than {} MB",
                folder.display(),
                MOST_BYTES >> 20
            )));
        }
        if taken.files > MOST_FILES {
            return Err(Error::NotImportable(format!(
                "{} has more than {MOST_FILES} files",
                folder.display()
            )));
        }
        match segno_files::read_bounded(&path, MOST_FILE, Links::Refuse) {
            Ok(Some(bytes)) => match without_secrets(redactor, &name, &bytes) {
                Some(clean) => set.insert_for(format!("{prefix}{name}"), clean, &bytes),
                None => set.insert(format!("{prefix}{name}"), bytes),
            },
            // It went away meanwhile.
            Ok(None) => {}
            Err(why) => {
                return Err(Error::NotImportable(format!("{} cannot be read: {why}", path.display())));
            }
        }
    }
    Ok(())
}

/// Prose is cut into topics and tasks by who reads it, and so are names; half a secret would not be known for one
/// afterwards. A file with a checksum over itself stays as it is: another text would look like a forged one. None if it
/// stays as it is.
fn without_secrets(redactor: Option<&Redactor>, name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let (redactor, text) = (redactor?, std::str::from_utf8(bytes).ok()?);
    if name.ends_with(".md") {
        return Some(redactor.text(text).into_owned().into_bytes());
    }
    if name.ends_with(".json")
        && let Ok(mut value) = serde_json::from_str::<serde_json::Value>(text)
        && value.get("checksum").is_none()
        && redactor.json(&mut value)
    {
        return Some(value.to_string().into_bytes());
    }
    None
}

#[cfg(test)]
mod tests {
    use segno_redact::Options;
    use segno_redact::Redactor;

    use super::without_secrets;

    #[test]
    fn a_name_in_a_foreign_file_loses_its_secret_before_anybody_cuts_it() {
        let redactor = Redactor::new(Options::default());
        let secret = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
        // Whoever cuts the name after 200 characters would leave half of the secret.
        let long = format!("{} {secret}", "a".repeat(180));
        let text = serde_json::json!({ "phase": long, "count": 3 }).to_string();
        let clean = without_secrets(Some(&redactor), "state.json", text.as_bytes()).unwrap();
        let clean: serde_json::Value = serde_json::from_slice(&clean).unwrap();
        assert_eq!(clean["count"], 3);
        let phase = clean["phase"].as_str().unwrap();
        assert!(phase.starts_with(&format!("{} [redacted:github-pat:", "a".repeat(180))), "{phase}");
        let signed = serde_json::json!({ "phase": long, "checksum": "x" }).to_string();
        assert_eq!(without_secrets(Some(&redactor), "c.json", signed.as_bytes()), None);
        assert_eq!(without_secrets(None, "state.json", text.as_bytes()), None);
    }
}
