//! Whatever happens to an output, reading it neither panics nor finds a success that is not there.

use proptest::collection::vec;
use proptest::prelude::*;
use segno_evidence::Exit;
use segno_evidence::Verdict;

use super::invariants::check;
use super::invariants::claims;
use super::recordings::RECORDINGS;

/// Every beginning of every recording, cut at every line and somewhere in it.
#[test]
fn the_beginning_of_an_output_is_no_success() {
    for recording in RECORDINGS {
        let mut at = 0;
        for line in recording.text.split_inclusive('\n') {
            for cut in
                [at, at + line.char_indices().nth(line.chars().count() / 2).map_or(0, |(middle, _)| middle)]
            {
                let text = &recording.text[..cut];
                for exit in [Exit::TimedOut, Exit::Signal(15), Exit::Unknown] {
                    if let Some(report) = check(text, exit) {
                        assert_ne!(report.verdict(), Verdict::Passed, "{} at {cut}", recording.name);
                    }
                }
                let report = check(text, Exit::Code(recording.exit)).unwrap();
                if recording.exit != 0 {
                    assert_ne!(report.verdict(), Verdict::Passed, "{} at {cut}", recording.name);
                }
            }
            at += line.len();
        }
    }
}

/// A test that began and has no result yet: its run is not complete, even if the command says that all is well.
#[test]
fn a_run_that_announced_itself_is_complete_only_with_its_result() {
    for name in ["cargo_passing.txt", "nextest_passing.txt", "pytest_passing.txt", "vitest_passing.txt"] {
        let recording = RECORDINGS.iter().find(|recording| recording.name == name).unwrap();
        let first = ["running ", "Starting ", "= test session starts", " RUN "];
        let begin = first.iter().find_map(|first| recording.text.find(first)).unwrap();
        let line_end = begin + recording.text[begin..].find('\n').unwrap();
        let last = ["test result: ok.", "Summary [", "= 4 passed", "      Tests  "];
        let end = last.iter().find_map(|last| recording.text.find(last)).unwrap();
        for cut in line_end..end {
            if recording.text.is_char_boundary(cut) {
                let report = check(&recording.text[..cut], Exit::Code(0)).unwrap();
                assert_eq!(report.verdict(), Verdict::Incomplete, "{name} at {cut}");
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Change {
    Cut(usize),
    Drop(usize),
    Double(usize),
    Insert(usize, String),
    Swap(usize, usize),
    Splice(usize, usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = || 0_usize..400;
    let bits = prop_oneof![
        "\\PC{0,12}",
        Just("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out".to_owned()),
        Just("running 18446744073709551615 tests".to_owned()),
        Just("99999999999999999999 passed in 1s".to_owned()),
        Just("18446744073709551615 passed, 18446744073709551615 failed in 1s".to_owned()),
        Just("1..18446744073709551615".to_owned()),
        Just("\u{1b}[".to_owned()),
        Just("===  ===".to_owned()),
        Just("=== é ===".to_owned()),
        Just("<![CDATA[".to_owned()),
        Just("ok 1 - é # ské".to_owned()),
        Just("FAILED a::b[".to_owned()),
        Just("x::y SKIPPED (é)".to_owned()),
        Just("✓ ".to_owned()),
    ];
    let change = prop_oneof![
        at().prop_map(Change::Cut),
        at().prop_map(Change::Drop),
        at().prop_map(Change::Double),
        (at(), bits).prop_map(|(at, text)| Change::Insert(at, text)),
        (at(), at()).prop_map(|(a, b)| Change::Swap(a, b)),
        (at(), 0..RECORDINGS.len()).prop_map(|(at, other)| Change::Splice(at, other)),
    ];
    vec(change, 0..6)
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for change in changes {
        let n = lines.len().max(1);
        match change {
            Change::Cut(at) => lines.truncate(at % n),
            Change::Drop(at) => {
                lines.splice((at % n).min(lines.len())..(at % n + 1).min(lines.len()), []);
            }
            Change::Double(at) => {
                let line = lines.get(at % n).cloned().unwrap_or_default();
                lines.insert((at % n).min(lines.len()), line);
            }
            Change::Insert(at, text) => lines.insert((at % n).min(lines.len()), text.clone()),
            Change::Swap(a, b) if !lines.is_empty() => lines.swap(a % n, b % n),
            Change::Swap(..) => {}
            Change::Splice(at, other) => {
                let other = RECORDINGS[*other].text.lines().take(40).map(str::to_owned);
                let at = (at % n).min(lines.len());
                lines.splice(at..at, other);
            }
        }
    }
    lines.join("\n")
}

proptest! {
    #[test]
    fn changed_output_is_read_without_harm(which in 0..RECORDINGS.len(), changes in changes(), code in 0..2) {
        let text = changed(RECORDINGS[which].text, &changes);
        check(&text, Exit::Code(code));
        check(&text, Exit::TimedOut);
        check(&text, Exit::Unknown);
    }

    #[test]
    fn any_text_is_read_without_harm(text in "(\\PC{0,30}\n){0,30}", code in 0..2) {
        check(&text, Exit::Code(code));
        check(&text, Exit::Unknown);
    }

    #[test]
    fn any_claim_is_read_without_harm(text in "((---|> )?(END_)?(RALPH_STATUS|PRP_PHASE_STATUS)(---|:)?\n|[ ]{0,3}(TESTS|STATUS|EXIT_SIGNAL|BLOCKERS|é)?:? ?(true|-|\\[|\\{|\"|`|#|COMPLETE|\\PC{0,6})\n){0,20}") {
        claims(&text);
    }

    #[test]
    fn any_list_is_read_without_harm(text in "(#{0,3} ?(Optional|é)\n|[ \t]{0,4}[-*1]\\.? \\[[ xé]\\] ?(a|é|a 2)?\n|```\n|<!--\n|-->\n|\\[|\\{\"id\":\"a\"\\}|\\]|,|\n){0,30}") {
        claims(&text);
    }
}
