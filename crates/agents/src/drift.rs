//! Agents change every week. Which version of each was tested, and whether another one is newer.

use std::cmp::Ordering;

/// The versions that the tests run for real; the list of the tests and this one are held equal.
const TESTED: &[(&str, &str)] =
    &[("claude", "2.1.325"), ("codex", "0.166.0"), ("gemini", "0.61.0"), ("opencode", "1.18.33")];

/// The version of an agent that was tested.
pub fn tested(agent: &str) -> Option<&'static str> {
    TESTED.iter().find(|(name, _)| *name == agent).map(|(_, version)| *version)
}

/// Whether a version of an agent is newer than the one that was tested. What cannot be compared is not called newer.
pub fn is_newer(agent: &str, version: &str) -> bool {
    tested(agent).is_some_and(|tested| compare(version, tested) == Some(Ordering::Greater))
}

/// By numbers, part by part. What comes before a version (`v`, the name of a program) and behind it (`-beta`, ` (Claude
/// Code)`) does not count.
fn compare(one: &str, other: &str) -> Option<Ordering> {
    Some(numbers(one)?.cmp(&numbers(other)?))
}

fn numbers(version: &str) -> Option<Vec<u64>> {
    let begins = version.find(|letter: char| letter.is_ascii_digit())?;
    let rest = &version[begins..];
    let ends = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
    let parts = rest[..ends].split('.').filter(|part| !part.is_empty());
    parts.map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_are_those_that_tests_run() {
        let pinned: Vec<(&str, &str)> = include_str!("../../testkit/agents.txt")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                Some((words.next()?, words.next()?))
            })
            .collect();
        assert_eq!(TESTED, pinned);
    }

    #[test]
    fn newer_is_by_numbers() {
        for (version, newer) in [
            ("2.1.325", false),
            ("2.1.325 (Claude Code)", false),
            ("2.1.99", false),
            ("2.1.326", true),
            ("2.10.0", true),
            ("v3", true),
            ("2.1.325.1", true),
            ("unknown", false),
            ("", false),
            ("99999999999999999999.0", false),
        ] {
            assert_eq!(is_newer("claude", version), newer, "{version}");
        }
        assert!(!is_newer("mine", "9"));
        assert!(is_newer("codex", "codex-cli 0.167.0-alpha.1"));
    }
}
