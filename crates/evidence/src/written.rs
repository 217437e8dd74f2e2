//! Tests as they stand in files, for those that nobody could run.
//!
//! What does not build or import tells of no tests, so nobody would miss them. How many there are is read from the text: a
//! rough number, good for seeing that some are gone.

/// Endings of the sources of each language that is known.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("cargo", &["rs"]),
    ("pytest", &["py"]),
    ("unittest", &["py"]),
    ("go test", &["go"]),
    ("jest", &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"]),
    ("vitest", &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"]),
    ("mocha", &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"]),
    ("node", &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"]),
];

/// Whether a runner of this name, or one of several, may run a file; one that nobody here knows may run any.
pub fn may_run(runners: &str, path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default();
    let mut known = LANGUAGES.iter().filter(|(name, _)| runners.contains(name)).peekable();
    known.peek().is_none() || known.any(|(_, endings)| endings.contains(&ending))
}

/// How many tests are written in a file, if it is one of tests by its name.
pub fn written_tests(path: &str, text: &str) -> Option<u64> {
    let marks = marks(path)?;
    let lines = text.lines().map(str::trim_start);
    Some(lines.filter(|line| marks(line)).count() as u64)
}

/// Whether a line begins a test, in a language.
type Marks = fn(&str) -> bool;

fn marks(path: &str) -> Option<Marks> {
    let file = path.rsplit('/').next().unwrap_or(path);
    let (stem, ending) = file.rsplit_once('.')?;
    let below = |names: &[&str]| path.split('/').rev().skip(1).any(|part| names.contains(&part));
    let is_test = |marks: &[&str]| marks.iter().any(|mark| stem.starts_with(mark) || stem.ends_with(mark));
    let javascript = ["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"].contains(&ending);
    match ending {
        "py" if is_test(&["test", "_test"]) => Some(in_python),
        "rs" if below(&["tests"])
            || is_test(&["test_", "_test", "_tests"])
            || ["test", "tests"].contains(&stem) =>
        {
            Some(in_rust)
        }
        "go" if stem.ends_with("_test") => Some(in_go),
        _ if javascript
            && (below(&["__tests__", "test", "tests", "spec"]) || is_test(&[".test", ".spec", "test"])) =>
        {
            Some(in_javascript)
        }
        "rb" if is_test(&["_spec", "_test", "test_"]) => Some(in_ruby),
        "java" | "kt" | "groovy" | "scala" if is_test(&["Test", "Tests", "IT", "Spec"]) => Some(in_java),
        "php" if is_test(&["Test"]) => Some(in_php),
        _ => None,
    }
}

fn in_python(line: &str) -> bool {
    line.starts_with("def test") || line.starts_with("async def test")
}

/// `#[test]`, `#[tokio::test]`, `#[test_case(1)]`, `#[rstest]`.
fn in_rust(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("#[") else { return false };
    let path = rest.split(['(', ']', ' ']).next().unwrap_or_default();
    let last = path.rsplit("::").next().unwrap_or_default();
    ["test", "rstest", "test_case", "quickcheck"].contains(&last)
}

fn in_go(line: &str) -> bool {
    ["func Test", "func Fuzz", "func Example"].iter().any(|mark| line.starts_with(mark))
}

fn in_javascript(line: &str) -> bool {
    let line = line.strip_prefix("await ").unwrap_or(line);
    let marks = [
        "it(",
        "test(",
        "specify(",
        "it.each",
        "test.each",
        "it.only(",
        "test.only(",
        "it.concurrent",
        "test.concurrent",
    ];
    marks.iter().any(|mark| line.starts_with(mark))
}

fn in_ruby(line: &str) -> bool {
    ["it ", "it(", "specify ", "example ", "def test_", "test \"", "test '"]
        .iter()
        .any(|mark| line.starts_with(mark))
}

fn in_java(line: &str) -> bool {
    ["@Test", "@ParameterizedTest", "@RepeatedTest"].iter().any(|mark| line.starts_with(mark))
}

fn in_php(line: &str) -> bool {
    line.contains("function test") || line.starts_with("#[Test")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_in_files_of_tests_alone() {
        let python =
            "import feature\n\nclass N(TestCase):\n    def test_a(self):\n        pass\n    # def test_b\n";
        let rust = "#[test]\nfn a() {}\n#[tokio::test]\nasync fn b() {}\n// #[test]\n#[testing]\n";
        for (path, text, wanted) in [
            ("test_new.py", python, Some(1)),
            ("pkg/new_test.py", "async def test_a():\n", Some(1)),
            ("feature.py", python, None),
            ("tests/b.rs", rust, Some(2)),
            ("src/words/tests.rs", rust, Some(2)),
            ("src/lib.rs", rust, None),
            ("a_test.go", "func TestA(t *testing.T) {\n}\nfunc helper() {}\n", Some(1)),
            ("src/a.test.ts", "it('a', () => {});\n  test('b', () => {});\n  it.skip('c')\n", Some(2)),
            ("src/a.ts", "it('a', () => {});\n", None),
            ("spec/a_spec.rb", "it \"works\" do\n", Some(1)),
            ("src/ATest.java", "  @Test\n  void a() {}\n", Some(1)),
            ("test_data.json", "{}", None),
        ] {
            assert_eq!(written_tests(path, text), wanted, "{path}");
        }
    }

    #[test]
    fn a_runner_runs_its_own_language() {
        assert!(may_run("cargo test", "tests/a.rs") && !may_run("cargo test", "test_a.py"));
        assert!(may_run("pytest + cargo nextest", "tests/a.rs"));
        assert!(may_run("TAP", "test_a.py") && may_run("", "a.test.js"));
        assert!(may_run("go test", "a_test.go") && !may_run("go test", "tests/a.rs"));
    }
}
