//! Exact secret values that the caller knows, such as those of its environment.

/// Whether a value is worth looking for: long enough, and nothing that any text may contain.
pub(crate) fn usable(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let common = [
        "localhost",
        "127.0.0.1",
        "development",
        "production",
        "undefined",
        "disabled",
        "password",
        "changeme",
    ];
    let word = value.bytes().all(|b| b.is_ascii_lowercase()) && value.len() < 12;
    let number = value.bytes().all(|b| b.is_ascii_digit()) && value.len() < 12;
    let path =
        value.starts_with('/') || value.starts_with("./") || value.starts_with("~/") || value.contains(":\\");
    let same = value.bytes().all(|b| Some(b) == value.bytes().next());
    value.len() >= 8
        && !common.contains(&lower.as_str())
        && !word
        && !number
        && !path
        && !same
        && value.trim() == value
}

/// The rule id for the value of this name.
pub(crate) fn id(name: &str) -> String {
    let mut id = String::from("known");
    for part in name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).take(8) {
        id.push('-');
        id.push_str(&part.to_ascii_lowercase());
    }
    id.truncate(64);
    id
}

#[cfg(test)]
mod tests {
    use super::id;
    use super::usable;

    #[test]
    fn common_values_are_no_secrets() {
        for value in [
            "true",
            "short",
            "localhost",
            "/usr/local/bin",
            "12345678",
            "xterm",
            "aaaaaaaaaaaa",
            "development",
        ] {
            assert!(!usable(value), "{value}");
        }
        assert!(usable("q8Zt4Lm2"));
        assert!(usable("correct horse battery"));
        assert_eq!(id("MY_Token"), "known-my-token");
    }
}
