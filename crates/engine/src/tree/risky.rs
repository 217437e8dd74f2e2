//! Calls that may destroy something.

use std::path::Path;
use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;

/// What a risky command looks like, unless the configuration says otherwise. Each is a regular expression.
pub const DEFAULT: &[&str] = &[
    r"\brm\s+(-\S+\s+)*-\S*[rRf]",
    r"\bgit\s+(-\S+\s+)*reset\s.*--hard",
    r"\bgit\s+(-\S+\s+)*clean\s.*-\S*[fdxX]",
    r"\bgit\s+(-\S+\s+)*push\s.*(--force|-f\b|\+\S)",
    r"\bgit\s+(-\S+\s+)*(checkout|restore)\s+(.*\s)?(--|\.)(\s|$)",
    r"\bgit\s+(-\S+\s+)*stash\s+(drop|clear)",
    r"\bgit\s+(-\S+\s+)*(rebase|filter-branch|filter-repo)\b",
    r"(?i)\b(drop|truncate)\s+(table|database|schema|index|view|collection)\b",
    r"(?i)\bdelete\s+from\s",
    r"\bdocker\b.*\bprune\b",
    r"\bfind\b.*\s-(delete|exec\s+rm)\b",
    r"(?i)\bmigrat(e|ion|ions)\b",
    r"\b(mkfs\S*|shred|wipefs)\b",
    r"\bdd\b.*\bof=",
    r"\btruncate\s+-",
    r"\bxargs\b.*\brm\b",
    r"\b(kubectl|terraform|helm)\b.*\b(delete|destroy|uninstall)\b",
];

/// Words without which none of the usual patterns fits: looking for them is cheap.
const WORDS: &[&str] = &[
    "rm",
    "git",
    "drop",
    "truncate",
    "delete",
    "docker",
    "migrat",
    "mkfs",
    "shred",
    "wipefs",
    "dd",
    "kubectl",
    "terraform",
    "helm",
];

/// The usual patterns, made once. Nothing if they cannot be made, which a test of the shipped features looks after.
fn usual() -> Option<&'static [Regex]> {
    static USUAL: OnceLock<Option<Vec<Regex>>> = OnceLock::new();
    let made = USUAL.get_or_init(|| DEFAULT.iter().map(|pattern| Regex::new(pattern).ok()).collect());
    made.as_deref()
}

/// What is wrong with a pattern, if anything is.
pub fn check(pattern: &str) -> Result<(), String> {
    Regex::new(pattern).map(drop).map_err(|why| why.to_string())
}

/// Why a call is risky, if it is. `more` are further patterns; the configuration refuses those that are none.
pub fn why(tool: &str, input: &Value, project: &Path, more: &[String]) -> Option<String> {
    let command = ["command", "cmd", "script"].iter().find_map(|name| match input.get(*name) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(words)) => {
            Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    });
    if let Some(command) = command {
        let small = command.to_ascii_lowercase();
        if WORDS.iter().any(|word| small.contains(word)) {
            // Patterns that cannot be used must not make a command harmless.
            let Some(usual) = usual() else { return Some(shown(&command)) };
            if let Some(found) = usual.iter().find_map(|regex| regex.find(&command)) {
                return Some(shown(found.as_str()));
            }
        }
        for pattern in more {
            match Regex::new(pattern) {
                Ok(regex) => {
                    if let Some(found) = regex.find(&command) {
                        return Some(shown(found.as_str()));
                    }
                }
                Err(_) => return Some(shown(&command)),
            }
        }
    }
    let writes = ["write", "edit", "patch", "notebook"];
    if !writes.iter().any(|word| tool.to_ascii_lowercase().contains(word)) {
        return None;
    }
    let path = ["file_path", "notebook_path", "path"].iter().find_map(|name| input.get(*name)?.as_str())?;
    let path = Path::new(path);
    let outside = path.is_absolute() && !path.starts_with(project);
    let climbs = path.components().any(|part| part == std::path::Component::ParentDir);
    (outside || climbs)
        .then(|| format!("writes {}", segno_core::text::shorten(&path.display().to_string(), 60)))
}

fn shown(text: &str) -> String {
    segno_core::text::shorten(text.trim(), 60)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_may_destroy_something() {
        let project = Path::new("/home/ann/shop");
        let bash = |command: &str| why("Bash", &json!({ "command": command }), project, &[]).is_some();
        for risky in [
            "rm -rf build",
            "cd x && rm -r -f y",
            "git reset --hard HEAD~1",
            "git clean -fdx",
            "git push --force origin main",
            "git push origin +main",
            "git checkout -- .",
            "git restore .",
            "psql -c 'DROP TABLE users'",
            "sqlite3 a.db 'delete from users'",
            "docker system prune -af",
            "cargo sqlx migrate run",
            "find . -name '*.o' -delete",
            "ls | xargs rm",
            "terraform destroy -auto-approve",
        ] {
            assert!(bash(risky), "{risky}");
        }
        for harmless in [
            "ls -la",
            "git status",
            "git push origin main",
            "cargo test",
            "echo form",
            "rm a.txt",
            "git checkout main",
            "docker ps",
            "grep -rf patterns src",
        ] {
            assert!(!bash(harmless), "{harmless}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_used_makes_nothing_harmless() {
        assert!(check("(broken").is_err() && check(r"(?i)drop\s").is_ok());
        assert!(why("shell", &json!({ "cmd": "ls" }), Path::new("/p"), &["(broken".to_owned()]).is_some());
    }

    #[test]
    fn writing_outside_the_project() {
        let project = Path::new("/home/ann/shop");
        let write = |path: &str| why("Write", &json!({ "file_path": path }), project, &[]).is_some();
        assert!(write("/etc/hosts") && write("../other/x") && write("/home/ann/shopping/x"));
        assert!(!write("/home/ann/shop/src/x.rs") && !write("src/x.rs"));
        assert!(why("Read", &json!({ "file_path": "/etc/hosts" }), project, &[]).is_none());
    }

    #[test]
    fn rules_of_ones_own() {
        let input = json!({ "cmd": ["deploy", "--prod"] });
        let more = [r"(?i)DEPLOY\s+--prod".to_owned()];
        assert_eq!(why("shell", &input, Path::new("/p"), &more).as_deref(), Some("deploy --prod"));
    }
}
