//! The text of one iteration's prompt.

use super::observation::Observation;
use super::plan::GateRule;
use super::progress::things;
use super::state::LoopState;
use crate::limits;
use crate::text::shorten;

/// Texts that the state has only the beginning of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptTexts {
    /// What is to be done, all of it.
    pub work: String,
    /// What the phase tells the agent, all of it.
    pub phase: String,
    /// The notes of the operator, all of each.
    pub notes: Vec<String>,
    /// Where work was, for a conversation that knows nothing yet.
    pub brief: Option<String>,
    /// What the tracker says of the work item, all of it.
    pub item: Option<String>,
    /// What a review said that sent the work back: the end of its last words.
    pub review: Option<String>,
}

/// The prompt of the next iteration. `number` is its number in the phase.
///
/// Names in braces (`{work}`, `{phase}`, `{iteration}`, `{item}`, `{title}`, `{description}`) are put in once; what is put
/// in is not looked at again.
pub fn prompt(state: &LoopState, texts: &PromptTexts, number: u64) -> String {
    let mut parts = Vec::new();
    let told = texts.item.as_deref().unwrap_or_default();
    let work = fill(state, &texts.work, (&texts.work, told), number);
    let phase = fill(state, &texts.phase, (&work, told), number);
    let has_work = texts.phase.contains("{work}");
    if !has_work && !work.trim().is_empty() {
        parts.push(section("Work", work.trim()));
    }
    let named = [&texts.work, &texts.phase].iter().any(|text| text.contains("{description}"));
    if let Some(item) = state.item.as_ref().filter(|_| !named && texts.item.is_some()) {
        let text = format!("{}: {}\n\n{}", item.id, item.title, told.trim());
        parts.push(section("Item", text.trim()));
    }
    let of = state.phase_plan().and_then(|plan| plan.max_iterations);
    let of = of.map_or(String::new(), |of| format!(" of at most {of}"));
    let head = format!("Phase {}, iteration {number}{of}", state.phase);
    let told = if phase.trim().is_empty() { "Do the work above." } else { phase.trim() };
    parts.push(section(&head, told));
    parts.extend(texts.brief.as_deref().map(|brief| section("Where it was", brief.trim())));
    parts.extend(texts.review.as_deref().map(review));
    parts.extend(standing(state).map(|text| section("What was measured", &text)));
    parts.extend(state.last.as_deref().and_then(trouble).map(|text| section("What stood in the way", &text)));
    if !texts.notes.is_empty() {
        let notes: Vec<String> = texts.notes.iter().map(|note| format!("- {}", note.trim())).collect();
        parts.push(section("From the person you work for", &notes.join("\n")));
    }
    parts.push(section("At the end of your answer", &ending(state, number)));
    parts.join("\n\n")
}

/// The words of somebody who judged the work, marked as such on every line: they are no instructions of the user.
fn review(words: &str) -> String {
    let quoted: Vec<String> =
        words.trim().lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
    let told = "A review sent the work back. These are its words; look at each finding yourself, and mend what is true of it:";
    section("What the review found", &format!("{told}\n\n{}", quoted.join("\n")))
}

fn section(title: &str, text: &str) -> String {
    format!("## {title}\n\n{text}")
}

/// Puts values in, in a single pass.
fn fill(state: &LoopState, template: &str, (work, told): (&str, &str), number: u64) -> String {
    let (id, title) = state.item.as_ref().map_or(("", ""), |item| (item.id.as_str(), item.title.as_str()));
    let number = number.to_string();
    let values = [
        ("work", work),
        ("phase", &state.phase),
        ("iteration", &number),
        ("item", id),
        ("title", title),
        ("description", told),
    ];
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let known = values.iter().find(|(name, _)| {
            from.strip_prefix('{')
                .and_then(|from| from.strip_prefix(name))
                .is_some_and(|from| from.starts_with('}'))
        });
        let (value, used) = known.map_or(("{", 1), |(name, value)| (*value, name.len() + 2));
        out.push_str(value);
        rest = from.get(used..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// What the last iteration changed and measured, and which conditions are open.
fn standing(state: &LoopState) -> Option<String> {
    let mut lines = Vec::new();
    lines.extend(state.line.as_ref().map(|line| format!("- the last iteration: {line}")));
    if let Some(tests) = &state.tests {
        lines.push(format!("- tests: {} pass", tests.fraction()));
    }
    let open = state.gate.iter().flat_map(|gate| gate.conditions.iter()).filter(|one| !one.holds);
    for condition in open {
        let (name, wanted, value) = (&condition.name, &condition.wanted, &condition.value);
        lines.push(format!("- not yet: {name} is {value}, and should be {wanted}"));
    }
    if let Some(failing) =
        state.last.as_ref().map(|last| &last.changes.still_failing).filter(|one| !one.is_empty())
    {
        lines.push(format!("- still failing: {}", failing.names.join(", ")));
    }
    let warnings = state.gate.iter().flat_map(|gate| gate.warnings.iter());
    lines.extend(warnings.map(|warning| format!("- note: {warning}")));
    if state.breaker.no_progress > 0 {
        let n = u64::from(state.breaker.no_progress);
        lines.push(format!("- {} without progress: try another way", things(n, "iteration")));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// What kept the agent from going on, and what it may do about it.
fn trouble(last: &Observation) -> Option<String> {
    let mut lines = Vec::new();
    if let Some(error) = &last.error {
        lines.push(format!("- error: {}", one_line(&error.text)));
    }
    for denied in &last.denied {
        lines.push(format!("- denied: {}; do not try it again, find another way", one_line(denied)));
    }
    if let Some(question) = &last.question {
        let question = one_line(question);
        lines.push(format!("- you asked: {question} Nobody is there to answer: decide yourself and say why"));
    }
    if last.repeated.identical > 2 {
        lines.push("- you made the same call again and again with the same result".to_owned());
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn one_line(text: &str) -> String {
    shorten(&text.replace(['\n', '\r', '\t'], " "), limits::LOOP_TEXT)
}

/// The block that is asked for.
fn ending(state: &LoopState, number: u64) -> String {
    let signal = if state.plan.signal {
        "EXIT_SIGNAL is true only when everything that this phase asks for is done."
    } else {
        "Whether this phase is done is measured; EXIT_SIGNAL says what you think."
    };
    // What the gate of the phase reads of it.
    let asked = match state.phase_plan().map(|plan| &plan.gate) {
        Some(GateRule::Qa) => "VERDICT: APPROVE | REJECT\nBLOCKING_ISSUES: how many there are, 0 for none\n",
        Some(GateRule::Refactor { .. }) => "REFACTORING_COMPLETE: true | false\n",
        _ => "",
    };
    format!(
        "Write this block, with your values, as the last thing. {signal}\n\n\
         ---PRP_PHASE_STATUS---\n\
         PHASE: {}\n\
         STATUS: IN_PROGRESS | BLOCKED | COMPLETE\n\
         ITERATION: {number}\n\
         EXIT_SIGNAL: true | false\n\
         {asked}RECOMMENDATION: one line on what comes next\n\
         ---END_PRP_PHASE_STATUS---",
        state.phase
    )
}
