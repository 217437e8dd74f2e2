//! Files that a phase protects by name: whoever changes them does not get through its gate without a person's word.

use std::path::Path;

use segno_core::looping::ProtectedMark;

use super::fingerprint::file_hash;

/// How deep directories are looked through.
const DEEPEST: usize = 32;

/// The files of a project that match one of these patterns. Nothing if there are no patterns.
pub(crate) fn protected(patterns: &[String], root: &Path) -> Option<ProtectedMark> {
    if patterns.is_empty() {
        return None;
    }
    let mut mark = ProtectedMark::default();
    for pattern in patterns {
        let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
        // A directory that is named stands for all in it.
        let whole = root.join(pattern).is_dir().then(|| format!("{pattern}/**"));
        let pattern = whole.as_deref().unwrap_or(pattern);
        let literal: Vec<&str> = pattern.split('/').take_while(|part| !is_wild(part)).collect();
        let depth = literal.len().min(pattern.split('/').count().saturating_sub(1));
        walk(root, &literal[..depth].join("/"), pattern, 0, &mut mark);
    }
    mark.count = mark.files.len() as u64;
    let mut hasher = blake3::Hasher::new();
    for (name, hash) in &mark.files {
        hasher.update(format!("{name}\0{hash}\0").as_bytes());
    }
    mark.hash = hasher.finalize().to_hex()[..32].to_owned();
    Some(mark)
}

/// Which protected files differ.
pub(crate) fn changed(before: &ProtectedMark, now: &ProtectedMark) -> Vec<String> {
    let names = before.files.keys().chain(now.files.keys());
    let mut names: Vec<String> =
        names.filter(|name| before.files.get(*name) != now.files.get(*name)).cloned().collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn is_wild(part: &str) -> bool {
    part.contains(['*', '?'])
}

fn walk(root: &Path, directory: &str, pattern: &str, depth: usize, mark: &mut ProtectedMark) {
    if depth > DEEPEST {
        return;
    }
    let entries = std::fs::read_dir(root.join(directory)).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = if directory.is_empty() { name.into_owned() } else { format!("{directory}/{name}") };
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            if path != ".git" {
                walk(root, &path, pattern, depth + 1, mark);
            }
        } else if matches(pattern, &path) {
            // A link is what it points to by name: what lies there may be outside.
            let hash = match std::fs::read_link(root.join(&path)) {
                Ok(target) => format!("link {}", target.display()),
                Err(_) => file_hash(&root.join(&path)).unwrap_or_else(|| "unreadable".to_owned()),
            };
            mark.files.insert(path, hash);
        }
    }
}

/// Whether a path is one that a pattern means: `*` and `?` stay within a name, `**` is any number of directories.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    parts_match(&pattern, &path)
}

fn parts_match(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => (0..=path.len()).any(|skip| parts_match(rest, &path[skip..])),
        (Some((part, rest)), Some((name, more))) => name_matches(part, name) && parts_match(rest, more),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn name_matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // Row by row: which beginnings of the name the pattern so far can stand for.
    let mut can = vec![false; name.len() + 1];
    can[0] = true;
    for wanted in pattern {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            next[at] = match wanted {
                '*' => can[at] || (at > 0 && next[at - 1]),
                '?' => at > 0 && can[at - 1],
                wanted => at > 0 && can[at - 1] && name[at - 1] == wanted,
            };
        }
        can = next;
    }
    can[name.len()]
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("tests/**", "tests/a.py", true)]
    #[case("tests/**", "tests/deep/er/a.py", true)]
    #[case("tests/**", "src/tests/a.py", false)]
    #[case("**/*_test.go", "a_test.go", true)]
    #[case("**/*_test.go", "pkg/x/a_test.go", true)]
    #[case("**/*_test.go", "pkg/x/a.go", false)]
    #[case("tests/*.sh", "tests/a.sh", true)]
    #[case("tests/*.sh", "tests/x/a.sh", false)]
    #[case("spec?.md", "spec1.md", true)]
    #[case("spec?.md", "spec.md", false)]
    #[case("Makefile", "Makefile", true)]
    #[case("**", "anything/at/all", true)]
    #[case("a*b*c", "aXbYc", true)]
    #[case("a*b*c", "aXbY", false)]
    fn patterns(#[case] pattern: &str, #[case] path: &str, #[case] fits: bool) {
        assert_eq!(matches(pattern, path), fits, "{pattern} {path}");
    }

    #[test]
    fn what_is_protected_is_seen_to_change() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("tests/a.sh", "one");
        write("tests/deep/b.sh", "one");
        write("src/c.sh", "one");
        let seen = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            protected(&patterns, dir.path())
        };
        assert_eq!(seen(&[]), None);
        let before = seen(&["tests/", "./expected.txt"]).unwrap();
        assert_eq!(before.files.keys().collect::<Vec<_>>(), ["tests/a.sh", "tests/deep/b.sh"]);
        write("src/c.sh", "two");
        assert_eq!(seen(&["tests/", "./expected.txt"]).unwrap(), before);
        write("tests/deep/b.sh", "two");
        write("expected.txt", "new");
        std::fs::remove_file(dir.path().join("tests/a.sh")).unwrap();
        let now = seen(&["tests/", "./expected.txt"]).unwrap();
        assert_ne!(now.hash, before.hash);
        assert_eq!(changed(&before, &now), ["expected.txt", "tests/a.sh", "tests/deep/b.sh"]);
    }
}
