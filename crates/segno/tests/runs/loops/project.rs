//! Small real projects that loops work on: what is there at first, and what an agent does in each phase.

use std::path::Path;
use std::path::PathBuf;

use super::mind::Act;
use super::mind::Mind;
use crate::lab::Lab;
use crate::lab::program;
use crate::lab::skip;
use crate::lab::variable;

/// Which project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Project {
    /// A crate without dependencies, made as `cargo init` does.
    Rust,
    /// A module with unittest, in no repository.
    Python,
}

const WORDS_PY: &str = "def shout(text):\n    return text.upper()\n";
const TEST_WORDS_PY: &str = "import unittest\n\nfrom words import shout\n\n\nclass Words(unittest.TestCase):\n    \
    def test_shout(self):\n        self.assertEqual(shout(\"a b\"), \"A B\")\n";
/// Tests of what is not there yet: they cannot be imported, as tests that are written first usually cannot.
pub(crate) const TEST_SLUG_PY: &str = "import unittest\n\nfrom words import slug\n\n\nclass Slug(unittest.TestCase):\n    \
    def test_spaces(self):\n        self.assertEqual(slug(\"a b\"), \"a-b\")\n\n    \
    def test_case(self):\n        self.assertEqual(slug(\"AB\"), \"ab\")\n";
/// Half of it: one of the tests passes.
pub(crate) const HALF_PY: &str =
    "def shout(text):\n    return text.upper()\n\n\ndef slug(text):\n    return text.replace(' ', '-')\n";
const GREEN_PY: &str = "cat > words.py <<'END'\ndef shout(text):\n    return text.upper()\n\n\ndef slug(text):\n    \
    return text.lower().replace(' ', '-')\nEND";
const REFACTOR_PY: &str = "cat > words.py <<'END'\n\"\"\"Words in other shapes.\"\"\"\n\n\ndef shout(text):\n    return text.upper()\n\n\n\
    def slug(text):\n    return \"-\".join(text.lower().split())\nEND";

const MANIFEST: &str = "[package]\nname = \"words\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
const WORDS_RS: &str = "pub fn shout(text: &str) -> String {\n    text.to_uppercase()\n}\n\n#[cfg(test)]\nmod tests {\n    \
    #[test]\n    fn shouts() {\n        assert_eq!(super::shout(\"a b\"), \"A B\");\n    }\n}\n";
const RED_RS: &str = "mkdir -p tests; cat > tests/slug.rs <<'END'\nuse words::slug;\n\n#[test]\nfn spaces() {\n    \
    assert_eq!(slug(\"a b\"), \"a-b\");\n}\n\n#[test]\nfn case() {\n    assert_eq!(slug(\"AB\"), \"ab\");\n}\nEND";
const GREEN_RS: &str = "cat >> src/lib.rs <<'END'\n\npub fn slug(text: &str) -> String {\n    \
    text.to_lowercase().replace(' ', \"-\")\n}\nEND";
const REFACTOR_RS: &str = "sed -i 's/^pub fn slug/\\/\\/\\/ Fit for an address.\\npub fn slug/' src/lib.rs";

const DOCUMENT: &str = "mkdir -p docs/adr; echo '# Words' > docs/use.md; echo '# How it is built' > docs/build.md; \
    echo '# 1: slugs are lower case' > docs/adr/0001-slugs.md";

impl Project {
    /// Puts it into the lab and answers with the command that measures it; none where the language is missing.
    pub(crate) fn install(self, lab: &mut Lab) -> Option<String> {
        match self {
            Self::Python => {
                found("python3")?;
                for (name, text) in [("words.py", WORDS_PY), ("test_words.py", TEST_WORDS_PY)] {
                    lab.write(lab.home.work().join(name), text);
                }
                Some("python3 -m unittest -v".to_owned())
            }
            Self::Rust => {
                let cargo = variable("CARGO").map(PathBuf::from);
                let tools = cargo.as_deref().and_then(Path::parent).filter(|bin| bin.join("rustc").exists());
                let Some(tools) = tools else {
                    skip("no cargo with its rustc beside it");
                    return None;
                };
                lab.put_on_path(tools);
                let files = [("Cargo.toml", MANIFEST), ("src/lib.rs", WORDS_RS), (".gitignore", "/target\n")];
                for (name, text) in files {
                    lab.write(lab.home.work().join(name), text);
                }
                let made = program("git").args(["init", "-q"]).current_dir(lab.home.work()).status();
                assert!(made.unwrap().success());
                Some("cargo test --offline".to_owned())
            }
        }
    }

    /// Writes tests that fail.
    pub(crate) fn red(self) -> String {
        if self == Self::Rust { RED_RS.to_owned() } else { write("test_slug.py", TEST_SLUG_PY) }
    }

    /// Makes them pass.
    pub(crate) fn green(self) -> &'static str {
        if self == Self::Rust { GREEN_RS } else { GREEN_PY }
    }

    /// Says the same better.
    pub(crate) fn refactor(self) -> &'static str {
        if self == Self::Rust { REFACTOR_RS } else { REFACTOR_PY }
    }

    /// Who does what each phase of `prp` asks for.
    pub(crate) fn mind(self) -> Mind {
        self.mind_with(|_, command| command.to_owned())
    }

    /// The same, with what `other` makes of the command of a phase.
    pub(crate) fn mind_with(self, other: impl Fn(&str, &str) -> String) -> Mind {
        let red = self.red();
        let phases = [
            ("RED", red.as_str(), "Two tests, and they fail.", ""),
            ("GREEN", self.green(), "They pass.", ""),
            ("REFACTOR", self.refactor(), "It is cleaner.", "REFACTORING_COMPLETE: true\n"),
            ("DOCUMENT", DOCUMENT, "Three documents.", ""),
        ];
        phases.into_iter().fold(Mind::default(), |mind, (phase, command, words, more)| {
            mind.phase(phase, Act { command: &other(phase, command), words, done: true, more })
        })
    }
}

/// A command that writes a file.
pub(crate) fn write(path: &str, text: &str) -> String {
    format!("cat > {path} <<'END'\n{text}END")
}

/// Whether a program is on the path; who asks for the agents asks for it too.
fn found(name: &str) -> Option<()> {
    let path = variable("PATH").unwrap_or_default();
    if path.split(':').any(|directory| Path::new(directory).join(name).exists()) {
        return Some(());
    }
    assert!(variable(segno_testkit::agents::REQUIRE).as_deref() != Some("1"), "{name} is missing");
    skip(&format!("{name} is missing"));
    None
}
