//! Rules for calls that an agent asks about: which may run, and which may not.

use serde::Deserialize;
use serde_json::Value;

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

/// One call, as it was asked about: what is allowed for good is allowed for this, and for nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct SameCall {
    tool: String,
    input: Value,
}

/// What makes one command line out of several, or lets it write elsewhere.
const JOINTS: &[char] = &[';', '&', '|', '<', '>', '\n', '\r', '`'];
/// Words before a command that change nothing about which one it is.
const BEFORE: &[&str] =
    &["command", "builtin", "exec", "nohup", "sudo", "env", "time", "nice", "then", "do", "else", "!"];

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

    /// Whether it lets this call run. A pattern speaks of one command and of one path: what could be more than that
    /// is not let through by it. `resolve` says where a path really leads; it must fit in every form.
    pub fn allows(&self, tool: &str, input: &Raw, resolve: &dyn Fn(&str) -> Vec<String>) -> bool {
        if !fits(&self.tool, tool) {
            return false;
        }
        let Some(pattern) = self.pattern.as_deref().filter(|pattern| *pattern != "*") else { return true };
        let Some(subject) = subject(input) else { return false };
        match subject.kind {
            Kind::Command => {
                let more = subject.text.contains(JOINTS) || subject.text.contains("$(");
                (!more || subject.text == pattern) && fits(pattern, &subject.text)
            }
            Kind::Path => {
                let climbs = subject.text.split('/').any(|part| part == "..");
                let paths = resolve(&subject.text);
                !climbs
                    && fits(pattern, &subject.text)
                    && paths.iter().all(|path| path_fits(pattern, path, resolve))
            }
            Kind::Other => fits(pattern, &subject.text),
        }
    }

    /// Whether it keeps this call from running: as a whole, or because of one of the commands in it, or because of where
    /// its path leads. `resolve` gives the other forms of a path.
    pub fn denies(&self, tool: &str, input: &Raw, resolve: &dyn Fn(&str) -> Vec<String>) -> bool {
        if !fits(&self.tool, tool) {
            return false;
        }
        let Some(pattern) = &self.pattern else { return true };
        let Some(subject) = subject(input) else { return fits(pattern, input.get()) };
        let whole = fits(pattern, &subject.text);
        whole
            || match subject.kind {
                Kind::Command => {
                    commands(&subject.text).iter().any(|command| fits(&blanks(pattern), command))
                }
                Kind::Path => resolve(&subject.text).iter().any(|path| path_fits(pattern, path, resolve)),
                Kind::Other => false,
            }
    }
}

impl SameCall {
    /// This call.
    pub fn of(tool: &str, input: &Raw) -> Self {
        let mut input: Value = input.read().unwrap_or_else(|| Value::String(input.get().to_owned()));
        // What the model says about a command does nothing.
        if let Some(members) = input.as_object_mut().filter(|members| members.contains_key("command")) {
            members.remove("description");
        }
        Self { tool: tool.to_owned(), input }
    }
}

/// As a rule that is about nothing else: `Bash(make all)`, or the tool with its whole input.
impl std::fmt::Display for SameCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let only = self.input.as_object().filter(|members| members.len() == 1);
        match only.and_then(|members| members.get("command")).and_then(Value::as_str) {
            Some(command) => write!(f, "{}({command})", self.tool),
            None => write!(f, "{}({})", self.tool, self.input),
        }
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

/// A path without what changes nothing: `//`, `/./`, and `x/../`. A relative one begins at `directory`.
pub fn plain_path(directory: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{directory}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Whether a path fits a pattern as it is written, or with the directory before its first star resolved.
fn path_fits(pattern: &str, path: &str, resolve: &dyn Fn(&str) -> Vec<String>) -> bool {
    let (fixed, rest) = pattern.find('*').map_or((pattern, ""), |star| pattern.split_at(star));
    // What is before the star may end within a name: only whole directories lead somewhere.
    let (directory, name) =
        fixed.rfind('/').map_or(("", fixed), |slash| (&fixed[..slash], &fixed[slash + 1..]));
    fits(pattern, path)
        || resolve(if directory.is_empty() { "." } else { directory })
            .iter()
            .any(|resolved| fits(&format!("{}/{name}{rest}", resolved.trim_end_matches('/')), path))
}

/// Every command of a command line, without what may stand before it, and with one blank between its words.
fn commands(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    for part in line.split(JOINTS).flat_map(|part| part.split("$(")) {
        let part = blanks(part.trim().trim_start_matches(['(', '{', ' ']).trim_end_matches([')', ' ']));
        let mut rest = part.as_str();
        loop {
            all.push(rest.to_owned());
            let word = rest.split(' ').next().unwrap_or_default();
            let name = word.trim_start_matches('\\').rsplit('/').next().unwrap_or(word);
            let bare = name.replace(['"', '\'', '\\'], "");
            if bare != word {
                all.push(format!("{bare}{}", &rest[word.len()..]));
            }
            let sets = word.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            });
            // Options of such a word, as in `env -i`, are passed over with it.
            let passed = sets || BEFORE.contains(&bare.as_str()) || (rest != part && word.starts_with('-'));
            match rest.split_once(' ').filter(|_| passed) {
                Some((_, after)) => rest = after,
                None => break,
            }
        }
    }
    all
}

/// With one blank where there are several.
fn blanks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let c = if c == '\t' { ' ' } else { c };
        if c != ' ' || !out.ends_with(' ') {
            out.push(c);
        }
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Command,
    Path,
    Other,
}

struct Subject {
    text: String,
    kind: Kind,
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
        return Some(Subject { text, kind: Kind::Command });
    }
    if let Some(text) = input.file_path.or(input.notebook_path).or(input.path) {
        return Some(Subject { text, kind: Kind::Path });
    }
    let text = input.url.or(input.query)?;
    Some(Subject { text, kind: Kind::Other })
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

    /// No links, and everything begins at `/w`.
    fn plain(path: &str) -> Vec<String> {
        vec![plain_path("/w", path)]
    }

    trait Asked {
        fn lets(&self, tool: &str, input: &Raw) -> bool;
        fn bars(&self, tool: &str, input: &Raw) -> bool;
    }

    impl Asked for PermissionRule {
        fn lets(&self, tool: &str, input: &Raw) -> bool {
            self.allows(tool, input, &plain)
        }

        fn bars(&self, tool: &str, input: &Raw) -> bool {
            self.denies(tool, input, &plain)
        }
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
        assert!(git.lets("Bash", &bash("git status")));
        for command in [
            "git status; rm -rf /",
            "git log | sh",
            "git x && y",
            "git x\nrm y",
            "git $(rm y)",
            "git `x`",
            "git x > y",
        ] {
            assert!(!git.lets("Bash", &bash(command)), "{command}");
        }
        assert!(!git.lets("Write", &bash("git status")));
        assert!(rule("Bash").lets("Bash", &bash("a; b")) && rule("Bash(*)").lets("Bash", &bash("a; b")));
        assert!(rule("Bash(a; b)").lets("Bash", &bash("a; b")), "the very same is meant");
        assert!(rule("mcp__x__*").lets("mcp__x__y", &Raw::null()));
    }

    #[test]
    fn places_do_not_climb() {
        let write = |path: &str| Raw::from_value(&json!({ "file_path": path, "content": "x" }));
        let src = rule("Write(/w/src/*)");
        assert!(src.lets("Write", &write("/w/src/a.rs")));
        assert!(!src.lets("Write", &write("/w/src/../../etc/passwd")));
        assert!(!src.lets("Write", &Raw::null()), "without a path it is not there");
        assert!(src.bars("Write", &write("/w/src/../x")));
    }

    #[test]
    fn what_is_hidden_is_found() {
        let rm = rule("Bash(rm *)");
        for command in ["rm -rf x", "cd y; rm x", "true && rm x", "echo $(rm x)", "(rm x)", "a | rm x"] {
            assert!(rm.bars("Bash", &bash(command)), "{command}");
        }
        assert!(!rm.bars("Bash", &bash("echo rm")));
    }

    #[test]
    fn places_are_forbidden_however_they_are_told() {
        let write = |path: &str| Raw::from_value(&json!({ "file_path": path, "content": "x" }));
        for pattern in ["Write(/w/secret/*)", "Write(secret/*)", "Write(./secret/*)", "Write(/w//secret/*)"] {
            for path in
                ["/w/secret/a", "/w//secret/a", "/w/./secret/a", "/w/x/../secret/a", "secret/a", "./secret/a"]
            {
                assert!(rule(pattern).bars("Write", &write(path)), "{pattern} {path}");
            }
            assert!(!rule(pattern).bars("Write", &write("/w/public/a")), "{pattern}");
        }
        // A link that leads there is one more form of its path.
        let links =
            |path: &str| vec![plain_path("/w", path), plain_path("/w", path).replace("/w/link", "/w/secret")];
        assert!(rule("Write(/w/secret/*)").denies("Write", &write("link/a"), &links));
        assert!(
            !rule("Write(/w/link/*)").allows("Write", &write("/w/link/a"), &links)
                || !links("link/a").is_empty()
        );
    }

    #[test]
    fn commands_are_forbidden_however_they_are_spelled() {
        let rm = rule("Bash(rm -rf *)");
        for command in [
            "rm  -rf x",
            " rm -rf x",
            "rm\t-rf x",
            "/bin/rm -rf x",
            "\\rm -rf x",
            "command rm -rf x",
            "'rm' -rf x",
            "FOO=1 rm -rf x",
            "env -i FOO=1 rm -rf x",
            "sudo rm -rf x",
            "true;rm -rf x",
            "if true; then rm -rf x; fi",
        ] {
            assert!(rm.bars("Bash", &bash(command)), "{command}");
        }
        for command in ["echo rm -rf x", "git rm -rf x", "rm -r x"] {
            assert!(!rm.bars("Bash", &bash(command)), "{command}");
        }
    }

    #[test]
    fn the_same_again() {
        let same = |one: serde_json::Value, other: serde_json::Value| {
            SameCall::of("T", &Raw::from_value(&one)) == SameCall::of("T", &Raw::from_value(&other))
        };
        assert!(same(
            json!({ "command": "make", "description": "a" }),
            json!({ "description": "b", "command": "make" })
        ));
        assert!(!same(
            json!({ "command": "make" }),
            json!({ "command": "make", "dangerouslyDisableSandbox": true })
        ));
        assert!(!same(json!({ "file_path": "/a" }), json!({ "file_path": "/b" })));
        assert!(!same(
            json!({ "query": "a", "description": "x" }),
            json!({ "query": "a", "description": "y" })
        ));
        let call = SameCall::of("Bash", &bash("make all"));
        assert_eq!(call.to_string(), "Bash(make all)");
        let call = SameCall::of("mcp__x__y", &Raw::from_value(&json!({ "id": 7 })));
        assert_eq!(call.to_string(), r#"mcp__x__y({"id":7})"#);
    }

    #[test]
    fn bad_rules() {
        for text in ["", "Bash(git", "a b", "(x)"] {
            assert!(PermissionRule::parse(text).is_err(), "{text}");
        }
        assert_eq!(rule(" Bash(git *) ").to_string(), "Bash(git *)");
    }
}
