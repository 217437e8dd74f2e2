//! Rules for calls that an agent asks about: which may run, and which may not.

use serde::Deserialize;

use crate::raw::Raw;

/// An answer to an agent that asks whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// It may, as it is.
    Allow,
    /// It may not, with a reason that the model reads.
    Deny(String),
}

/// Which calls a rule is about: `Tool`, or `Tool(pattern)` where `*` stands for anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRule {
    tool: String,
    pattern: Option<String>,
}

/// What makes one command line out of several, or lets it write elsewhere.
const JOINTS: &[char] = &[';', '&', '|', '<', '>', '\n', '\r', '`'];

impl PermissionRule {
    /// Reads a rule.
    ///
    /// # Errors
    /// What is wrong with it, as the second half of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (tool, pattern) = match text.split_once('(') {
            Some((tool, rest)) => {
                let pattern = rest.strip_suffix(')').ok_or("has an opening bracket and no closing one")?;
                (tool, Some(pattern.to_owned()))
            }
            None => (text, None),
        };
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '*');
        if tool.is_empty() || !tool.chars().all(fits) {
            return Err("must be a tool, or a tool and a pattern: Bash(git *)".to_owned());
        }
        Ok(Self { tool: tool.to_owned(), pattern })
    }

    /// The rule for calls like this one: the very same command; for other tools, the tool.
    pub fn like(tool: &str, input: &Raw) -> Self {
        let command = subject(input).filter(|subject| subject.is_command).map(|subject| subject.text);
        Self { tool: tool.to_owned(), pattern: command }
    }

    /// Whether the rule, made from a call, is about this one: letter by letter.
    pub fn is_same(&self, tool: &str, input: &Raw) -> bool {
        *self == Self::like(tool, input)
    }

    /// Whether it lets this call run. A pattern speaks of one command and of one place: what could be more than that
    /// is not let through by it.
    pub fn allows(&self, tool: &str, input: &Raw) -> bool {
        if !fits(&self.tool, tool) {
            return false;
        }
        let Some(pattern) = self.pattern.as_deref().filter(|pattern| *pattern != "*") else { return true };
        let Some(subject) = subject(input) else { return false };
        let more = match subject.is_command {
            true => subject.text.contains(JOINTS) || subject.text.contains("$("),
            false => subject.text.split('/').any(|part| part == ".."),
        };
        (!more || subject.text == pattern) && fits(pattern, &subject.text)
    }

    /// Whether it keeps this call from running: as a whole, or because of one of the commands in it.
    pub fn denies(&self, tool: &str, input: &Raw) -> bool {
        if !fits(&self.tool, tool) {
            return false;
        }
        let Some(pattern) = &self.pattern else { return true };
        let Some(subject) = subject(input) else { return fits(pattern, input.get()) };
        fits(pattern, &subject.text)
            || (subject.is_command
                && subject.text.split(JOINTS).flat_map(|part| part.split("$(")).any(|part| {
                    fits(pattern, part.trim().trim_start_matches(['(', '{', ' ']).trim_end_matches(')'))
                }))
    }
}

impl std::fmt::Display for PermissionRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.pattern {
            Some(pattern) => write!(f, "{}({pattern})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

struct Subject {
    text: String,
    is_command: bool,
}

/// What a call is about: its command, its file, its address.
fn subject(input: &Raw) -> Option<Subject> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Input {
        command: Option<String>,
        cmd: Option<String>,
        file_path: Option<String>,
        notebook_path: Option<String>,
        path: Option<String>,
        url: Option<String>,
        query: Option<String>,
    }
    let input: Input = input.read()?;
    if let Some(text) = input.command.or(input.cmd) {
        return Some(Subject { text, is_command: true });
    }
    let text = input.file_path.or(input.notebook_path).or(input.path).or(input.url).or(input.query)?;
    Some(Subject { text, is_command: false })
}

/// Whether a text fits a pattern in which `*` stands for anything. Linear in both but for the stars.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bash(command: &str) -> Raw {
        Raw::from_value(&json!({ "command": command }))
    }

    fn rule(text: &str) -> PermissionRule {
        PermissionRule::parse(text).unwrap()
    }

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("git *", "git status", true),
            ("git *", "git", false),
            ("git *", "gitk x", false),
            ("*", "", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("*ab", "aab", true),
            ("a*a", "a", false),
            ("", "", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn one_command_is_not_two() {
        let git = rule("Bash(git *)");
        assert!(git.allows("Bash", &bash("git status")));
        for command in [
            "git status; rm -rf /",
            "git log | sh",
            "git x && y",
            "git x\nrm y",
            "git $(rm y)",
            "git `x`",
            "git x > y",
        ] {
            assert!(!git.allows("Bash", &bash(command)), "{command}");
        }
        assert!(!git.allows("Write", &bash("git status")));
        assert!(rule("Bash").allows("Bash", &bash("a; b")) && rule("Bash(*)").allows("Bash", &bash("a; b")));
        assert!(rule("Bash(a; b)").allows("Bash", &bash("a; b")), "the very same is meant");
        assert!(rule("mcp__x__*").allows("mcp__x__y", &Raw::null()));
    }

    #[test]
    fn places_do_not_climb() {
        let write = |path: &str| Raw::from_value(&json!({ "file_path": path, "content": "x" }));
        let src = rule("Write(/w/src/*)");
        assert!(src.allows("Write", &write("/w/src/a.rs")));
        assert!(!src.allows("Write", &write("/w/src/../../etc/passwd")));
        assert!(!src.allows("Write", &Raw::null()), "without a place it is not there");
        assert!(src.denies("Write", &write("/w/src/../x")));
    }

    #[test]
    fn what_is_hidden_is_found() {
        let rm = rule("Bash(rm *)");
        for command in ["rm -rf x", "cd y; rm x", "true && rm x", "echo $(rm x)", "(rm x)", "a | rm x"] {
            assert!(rm.denies("Bash", &bash(command)), "{command}");
        }
        assert!(!rm.denies("Bash", &bash("echo rm")));
    }

    #[test]
    fn the_same_again() {
        let like = PermissionRule::like("Bash", &bash("make *"));
        assert!(like.is_same("Bash", &bash("make *")) && !like.is_same("Bash", &bash("make x")));
        let write = Raw::from_value(&json!({ "file_path": "/a" }));
        assert!(
            PermissionRule::like("Write", &write)
                .is_same("Write", &Raw::from_value(&json!({ "file_path": "/b" })))
        );
    }

    #[test]
    fn bad_rules() {
        for text in ["", "Bash(git", "a b", "(x)"] {
            assert!(PermissionRule::parse(text).is_err(), "{text}");
        }
        assert_eq!(rule(" Bash(git *) ").to_string(), "Bash(git *)");
    }
}
