//! What an agent says of itself in its last words. None of it is evidence.

use segno_core::looping::Claims;
use segno_core::text::shorten;
use segno_evidence::WorkStatus;

/// How much of a question is kept.
const QUESTION: usize = 300;

/// What its last complete status block claims; nothing if there is none.
pub(crate) fn claims(text: &str) -> Claims {
    let Some(mut block) = segno_evidence::last_complete(text) else { return Claims::default() };
    let mut metrics = block.metrics.clone();
    // A check tells its numbers in a group of its own.
    for (key, value) in &block.metrics {
        if let Some(key) = key.strip_prefix("qa_metrics.") {
            metrics.entry(key.to_owned()).or_insert(*value);
        }
    }
    // What is true or false counts as one or nothing, for conditions that ask for it.
    for key in block.fields.keys().filter(|key| !metrics.contains_key(*key)).cloned().collect::<Vec<_>>() {
        if let Some(flag) = block.flag(&key) {
            metrics.insert(key, f64::from(u8::from(flag)));
        }
    }
    let contradiction = block.contradictions.first().cloned();
    if contradiction.is_some() {
        // What stands for the work is not heard; what stands against it is.
        metrics.clear();
        block.exit_signal = block.exit_signal.filter(|signal| !signal);
        block.verdict = block.verdict.filter(|verdict| !verdict.starts_with("APPROVE"));
    }
    Claims {
        exit_signal: block.exit_signal,
        status: block.status.map(|status| {
            let word = match status {
                WorkStatus::InProgress => "IN_PROGRESS",
                WorkStatus::Blocked => "BLOCKED",
                WorkStatus::Complete => "COMPLETE",
            };
            word.to_owned()
        }),
        verdict: block.verdict,
        metrics,
        problems: block.problems,
        contradiction,
        recommendation: block.recommendation,
    }
}

/// The question that it ends with, if it does.
pub(crate) fn question(text: &str) -> Option<String> {
    let asked = text.lines().rev().map(str::trim).find(|line| line.ends_with('?'));
    segno_evidence::asks_question(text).then(|| shorten(asked.unwrap_or("it asks something"), QUESTION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_is_read_and_words_are_not() {
        let text = "All done, project complete!\n\n---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n\
                    REFACTORING_COMPLETE: true\nDOCS_GENERATED: 3\n---END_RALPH_STATUS---\n";
        let claims = claims(text);
        assert_eq!((claims.exit_signal, claims.status.as_deref()), (Some(true), Some("COMPLETE")));
        assert_eq!(claims.metrics.get("refactoring_complete"), Some(&1.0));
        assert_eq!(claims.metrics.get("docs_generated"), Some(&3.0));
        assert_eq!(super::claims("All done, project complete!"), Claims::default());
    }

    #[test]
    fn what_contradicts_itself_says_nothing_in_its_favour() {
        let text = "---PRP_PHASE_STATUS---\nSTATUS: BLOCKED\nVERDICT: APPROVE\nEXIT_SIGNAL: true\n\
                    REFACTORING_COMPLETE: true\n---END_PRP_PHASE_STATUS---\n";
        let none = claims(text);
        assert_eq!((none.exit_signal, none.verdict, none.metrics.len()), (None, None, 0));
        assert_eq!(none.contradiction.as_deref(), Some("STATUS is BLOCKED, and EXIT_SIGNAL is true"));
        let rejects = claims(&text.replace("APPROVE", "REJECT"));
        assert_eq!((rejects.exit_signal, rejects.verdict.as_deref()), (None, Some("REJECT")));
    }

    #[test]
    fn the_numbers_of_a_check_are_read_from_its_group() {
        let text = "PRP_PHASE_STATUS:\n  PHASE: QA\n  STATUS: COMPLETE\n  QA_METRICS:\n    BLOCKING_ISSUES: 0\n  \
                    VERDICT: APPROVE\n  EXIT_SIGNAL: true\n";
        let claims = claims(text);
        assert_eq!(claims.metrics.get("blocking_issues"), Some(&0.0));
        assert_eq!((claims.exit_signal, claims.verdict.as_deref()), (Some(true), Some("APPROVE")));
    }

    #[test]
    fn a_question_is_kept_in_its_own_words() {
        let text = "I looked at it.\n\nShall I use oak or pine?";
        assert_eq!(question(text).as_deref(), Some("Shall I use oak or pine?"));
        assert_eq!(question("I used oak."), None);
    }
}
