//! What a tool call is about, from what it was given.

use serde_json::Value;

/// Members that say it best, the best first.
const NAMES: &[&str] = &[
    "command",
    "cmd",
    "file_path",
    "notebook_path",
    "path",
    "pattern",
    "query",
    "url",
    "description",
    "prompt",
];

/// Members that name a file.
const FILES: &[&str] = &["file_path", "notebook_path", "path"];

/// What a call is about, in one text: its command, its file, what it looks for, or else all of its input.
pub fn subject(input: &Value) -> String {
    match NAMES.iter().find_map(|name| input.get(*name)) {
        Some(found) => words(found),
        None => match input {
            Value::Object(fields) if fields.is_empty() => String::new(),
            Value::Null => String::new(),
            other @ (Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_)) => words(other),
        },
    }
}

/// What makes one command line out of several, or lets it write elsewhere.
const JOINTS: &[char] = &[';', '&', '|', '<', '>', '\n', '\r', '`', '$'];

/// Programs of which "any arguments" would be anything at all: they remove, overwrite, or run what they are told.
const EXACT: &[&str] = &[
    "bash", "chmod", "chown", "curl", "dd", "doas", "env", "eval", "find", "kill", "killall", "mkfs", "mv",
    "node", "perl", "pkill", "python", "python3", "rm", "rmdir", "rsync", "ruby", "scp", "sh", "shred",
    "ssh", "su", "sudo", "tee", "truncate", "wget", "xargs", "zsh",
];

/// The narrowest rule that would let this call and others like it run, as `Tool(pattern)`: a command with any further
/// arguments, or one file.
pub fn allow_rule(tool: &str, input: &Value) -> String {
    if let Some(path) = file(input) {
        return format!("{tool}({path})");
    }
    let command = ["command", "cmd"].iter().find_map(|name| input.get(*name)).map(words);
    let Some(command) = command.filter(|command| !command.trim().is_empty()) else { return tool.to_owned() };
    let command = command.trim();
    if command.contains(JOINTS) {
        // A pattern covers one command: this line is allowed as it is, or not at all.
        return format!("{tool}({command})");
    }
    let is_name =
        |word: &&str| word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
    let is_verb = |word: &&str| word.chars().all(|c| c.is_alphanumeric() || c == '_') && !word.is_empty();
    let all: Vec<&str> = command.split_whitespace().collect();
    let mut known: Vec<&str> = all.iter().copied().take(1).filter(is_name).collect();
    known.extend(all.get(1).copied().filter(|word| !known.is_empty() && is_verb(word)));
    let is_any =
        known.first().is_some_and(|first| EXACT.contains(&first.rsplit('/').next().unwrap_or(first)));
    match known.len() {
        _ if is_any => format!("{tool}({command})"),
        0 => format!("{tool}({command})"),
        same if same == all.len() => format!("{tool}({command})"),
        _ => format!("{tool}({} *)", known.join(" ")),
    }
}

/// A longer word is neither the name of a program nor a verb.
const LONGEST_WORD: usize = 60;

/// What kind of call it is: the tool and, of a command line, the program that it begins with and its verb. Calls of one kind
/// succeed and fail for alike reasons.
pub fn head(tool: &str, input: &Value) -> String {
    let command = ["command", "cmd"].iter().find_map(|name| input.get(*name)).map(words);
    let Some(command) = command else { return tool.to_owned() };
    let shell = command.split_once("sh -lc ").or_else(|| command.split_once("sh -c "));
    // A command line for a shell is that command line.
    let command = match shell {
        Some((before, line)) if !before.contains(' ') => line.trim_matches(['"', '\'']),
        _ => command.as_str(),
    };
    let is_setting = |word: &str| {
        let name = word.split('=').next().unwrap_or_default();
        name.len() < word.len() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    // Where it is done, and with which settings, says nothing of what is done.
    let parts = command.split([';', '&', '|', '\n']).map(str::trim);
    let mut said = parts.filter(|part| !part.is_empty() && !part.starts_with("cd "));
    let mut all = said.next().unwrap_or_default().split_whitespace().skip_while(|word| is_setting(word));
    let is_name = |word: &&str| {
        word.len() <= LONGEST_WORD
            && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
    };
    let is_verb = |word: &&str| {
        word.len() <= LONGEST_WORD
            && !word.starts_with('-')
            && word.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '_' | '-' | ':'))
    };
    let Some(program) = all.next().filter(is_name) else { return tool.to_owned() };
    match all.next().filter(is_verb) {
        Some(verb) => format!("{tool} {program} {verb}"),
        None => format!("{tool} {program}"),
    }
}

/// The file that a call is about.
pub fn file(input: &Value) -> Option<&str> {
    FILES.iter().find_map(|name| input.get(*name)?.as_str())
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(words) if words.iter().all(Value::is_string) => {
            words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        }
        // A long text that was set aside.
        Value::Object(aside) if aside.contains_key(crate::text::BLOB_MEMBER) => {
            aside.get("excerpt").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            other.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[rstest::rstest]
    #[case("Bash", json!({ "command": "cargo test --all" }), "Bash(cargo test *)")]
    #[case("Bash", json!({ "command": "cargo test" }), "Bash(cargo test)")]
    #[case("Bash", json!({ "command": "rm -rf build" }), "Bash(rm -rf build)")]
    #[case("Bash", json!({ "command": "/bin/rm x" }), "Bash(/bin/rm x)")]
    #[case("Bash", json!({ "command": "python3 tool.py a" }), "Bash(python3 tool.py a)")]
    #[case("Bash", json!({ "command": "ls -la src" }), "Bash(ls *)")]
    #[case("Bash", json!({ "command": "make" }), "Bash(make)")]
    #[case("Bash", json!({ "command": "./check.sh all now" }), "Bash(./check.sh all *)")]
    #[case("Bash", json!({ "command": "cat a | sh" }), "Bash(cat a | sh)")]
    #[case("Bash", json!({ "command": "X=1 make all" }), "Bash(X=1 make all)")]
    #[case("Write", json!({ "file_path": "/w/a.txt", "content": "x" }), "Write(/w/a.txt)")]
    #[case("shell", json!({ "command": ["git", "push", "origin"] }), "shell(git push *)")]
    #[case("WebFetch", json!({ "url": "http://x" }), "WebFetch")]
    #[case("mcp__x__y", json!(null), "mcp__x__y")]
    fn the_narrowest_rule_that_helps(#[case] tool: &str, #[case] input: Value, #[case] rule: &str) {
        assert_eq!(allow_rule(tool, &input), rule);
    }

    #[rstest::rstest]
    #[case("Bash", json!({ "command": "cargo test --all" }), "Bash cargo test")]
    #[case("Bash", json!({ "command": "cd /w/shop && RUST_LOG=debug cargo test auth | tail" }), "Bash cargo test")]
    #[case("Bash", json!({ "command": "ls -l" }), "Bash ls")]
    #[case("Bash", json!({ "command": "./check.sh" }), "Bash ./check.sh")]
    #[case("Bash", json!({ "command": "npm run build:all" }), "Bash npm run")]
    #[case("Bash", json!({ "command": "\"$X\" y" }), "Bash")]
    #[case("shell", json!({ "command": ["git", "push", "origin"] }), "shell git push")]
    #[case("shell", json!({ "command": ["bash", "-lc", "cd x && cargo test"] }), "shell cargo test")]
    #[case("shell", json!({ "command": "/bin/sh -c 'make all'" }), "shell make all")]
    #[case("Edit", json!({ "file_path": "/w/a.rs" }), "Edit")]
    #[case("mcp__x__y", json!(null), "mcp__x__y")]
    fn kinds_of_calls(#[case] tool: &str, #[case] input: Value, #[case] kind: &str) {
        assert_eq!(head(tool, &input), kind);
    }

    #[test]
    fn the_best_member_is_taken() {
        assert_eq!(subject(&json!({ "description": "tests", "command": "cargo test" })), "cargo test");
        assert_eq!(subject(&json!({ "cmd": ["ls", "-l"], "workdir": "/" })), "ls -l");
        assert_eq!(subject(&json!({ "file_path": "a.txt", "content": "x" })), "a.txt");
        assert_eq!(
            subject(&json!({ "command": { "$blob": "00", "bytes": 9000, "excerpt": "cat <<" } })),
            "cat <<"
        );
        assert_eq!(subject(&json!({ "todos": [1] })), "{\"todos\":[1]}");
        assert_eq!(subject(&json!("free text")), "free text");
        assert_eq!((subject(&json!({})), subject(&Value::Null)), (String::new(), String::new()));
        assert_eq!(file(&json!({ "notebook_path": "n.ipynb" })), Some("n.ipynb"));
        assert_eq!(file(&json!({ "command": "x" })), None);
    }
}
