//! How to find out whether an agent is installed, as data.

/// What to look up and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Program names to look for in `PATH`, best first.
    pub programs: Vec<String>,
    /// Arguments that make it print its version and exit.
    pub version_args: Vec<String>,
    /// What to tell a person who does not have it.
    pub install_hint: String,
}

/// Finds a version in what a program printed: the first word of the form `1.2` or `1.2.3-x`.
pub fn parse_version(output: &str) -> Option<String> {
    output.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',')).find_map(|word| {
        let word = word.strip_prefix('v').unwrap_or(word);
        let mut parts = word.split('.');
        let major = parts.next()?;
        let minor = parts.next()?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let starts_with_digit = minor.starts_with(|c: char| c.is_ascii_digit());
        (is_number(major) && starts_with_digit).then(|| word.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::parse_version;

    #[test]
    fn versions() {
        for (output, version) in [
            ("2.1.325 (Claude Code)\n", Some("2.1.325")),
            ("codex-cli 0.166.0", Some("0.166.0")),
            ("tool v1.2.3-beta.1", Some("1.2.3-beta.1")),
            ("WARNING: proceeding\ncodex-cli 0.5.0\n", Some("0.5.0")),
            ("command not found", None),
            ("", None),
        ] {
            assert_eq!(parse_version(output).as_deref(), version, "{output}");
        }
    }
}
