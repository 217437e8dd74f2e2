//! The words of a command line, as a shell takes them apart.

/// The words; quotes and backslashes are taken away, nothing is expanded.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_default();
                word.extend(chars.by_ref().take_while(|c| *c != '\''));
            }
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => word.extend(chars.next()),
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// What a shell was given to run, for a command line that begins with a shell; else the line as it is.
pub(super) fn without_shell(line: &str) -> String {
    let words = split(line);
    let shell = words.first().and_then(|first| first.rsplit('/').next());
    let runs = words.get(1).is_some_and(|flag| matches!(flag.as_str(), "-c" | "-lc"));
    match words.get(2) {
        Some(script) if words.len() == 3 && runs && matches!(shell, Some("bash" | "sh" | "zsh")) => {
            script.clone()
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_before_a_command_is_taken_away() {
        for (line, bare) in [
            ("/bin/bash -lc 'echo hi'", "echo hi"),
            ("bash -lc ls", "ls"),
            (r#"/bin/bash -lc "echo 'a b'; cat \"x\"""#, r#"echo 'a b'; cat "x""#),
            (r#"/bin/zsh -c 'it'"'"'s'"#, "it's"),
            ("cargo test", "cargo test"),
            ("bash script.sh", "bash script.sh"),
            ("", ""),
        ] {
            assert_eq!(without_shell(line), bare, "{line}");
        }
    }
}
