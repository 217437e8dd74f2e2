//! What the tool calls of a run looked like: how many, which were denied, and whether it went round in circles.

use segno_core::List;
use segno_core::State;
use segno_core::call::allow_rule;
use segno_core::call::subject;
use segno_core::rows::ToolRow;
use segno_core::text::shorten;
use segno_store::Page;

use crate::Engine;
use crate::Error;

/// How many of the newest calls are looked at.
const MOST: usize = 2_000;
/// How many are read at once.
const PAGE: usize = 200;
/// How many denied calls are named.
const NAMED: usize = 5;
/// The longest round that is looked for, in calls.
const LONGEST_ROUND: usize = 4;

/// The calls of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallFacts {
    /// How many there were, as far as they were looked at.
    pub(crate) calls: u64,
    /// How many were denied.
    pub(crate) denials: u64,
    /// The first of those, in words.
    pub(crate) denied: Vec<String>,
    /// Rules that would allow them.
    pub(crate) allow: Vec<String>,
    /// The most times that the same call had the same result without another call between.
    pub(crate) identical: u32,
    /// The most calls in a row that only went round in a circle of two to four, with the same results.
    pub(crate) cycle: u32,
}

impl Engine {
    /// Looks at the calls of the newest run of a session.
    pub(crate) fn call_facts(&self, state: &State) -> Result<CallFacts, Error> {
        let Some(run) = &state.run else { return Ok(CallFacts::default()) };
        let mut rows: Vec<ToolRow> = Vec::new();
        let mut after = None;
        while rows.len() < MOST {
            let page = Page { after, limit: PAGE, newest_first: true };
            let items = self.store().page(state.session_id, List::Tools, &page)?;
            let Some(last) = items.last() else { break };
            after = Some(segno_store::ItemPosition { seq: last.seq, key: last.key.clone() });
            let before = rows.len();
            let of_run = items.iter().map(segno_store::Item::row::<ToolRow>);
            rows.extend(of_run.filter(|row| row.run.as_deref() == Some(run.id.as_str())));
            if rows.len() == before {
                break;
            }
        }
        rows.reverse();
        Ok(facts(&rows))
    }
}

fn facts(rows: &[ToolRow]) -> CallFacts {
    let denied: Vec<&ToolRow> = rows.iter().filter(|row| row.state == "denied").collect();
    let seen: Vec<u64> = rows.iter().map(same).collect();
    CallFacts {
        calls: rows.len() as u64,
        denials: denied.len() as u64,
        denied: named(&denied, in_words),
        allow: named(&denied, rule),
        identical: longest(&seen, 1).map_or(0, |equal| equal + 1).max(u32::from(!seen.is_empty())),
        cycle: (2..=LONGEST_ROUND).filter_map(|round| circle(&seen, round)).max().unwrap_or(0),
    }
}

/// What these say, each once, the first few.
fn named(rows: &[&ToolRow], say: impl Fn(&ToolRow) -> String) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for row in rows {
        let said = say(row);
        if !said.is_empty() && !all.contains(&said) && all.len() < NAMED {
            all.push(said);
        }
    }
    all
}

/// The rule that would allow a call; nothing if it would be longer than anybody types.
fn rule(row: &ToolRow) -> String {
    let rule = allow_rule(&row.tool, row.input.as_ref().unwrap_or(&serde_json::Value::Null));
    if rule.len() > 120 { String::new() } else { rule }
}

/// A call in a few words: the tool and what it was about.
fn in_words(row: &ToolRow) -> String {
    let about = row.input.as_ref().map(subject).unwrap_or_default();
    shorten(format!("{} {about}", row.tool).trim(), 120)
}

/// Equal for calls with the same tool, input and result: a poll whose answer changes is no repetition.
fn same(row: &ToolRow) -> u64 {
    let output = row.output.as_ref().map(|text| text.short(2_000));
    let all = (row.tool.as_str(), row.input.as_ref().map(ToString::to_string), output, row.output_bytes);
    let hash = blake3::hash(format!("{all:?}").as_bytes());
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap_or_default())
}

/// The longest stretch in which each call is the same as the one `apart` before it.
fn longest(seen: &[u64], apart: usize) -> Option<u32> {
    let (mut best, mut now) = (0_u32, 0_u32);
    for index in apart..seen.len() {
        now = if seen[index] == seen[index - apart] { now + 1 } else { 0 };
        best = best.max(now);
    }
    (best > 0).then_some(best)
}

/// How many calls in a row only went round in a circle of this length, if it is one and not one call again and again.
fn circle(seen: &[u64], length: usize) -> Option<u32> {
    let (mut best, mut now) = (0_usize, 0_usize);
    for index in length..seen.len() {
        let differs = seen[index + 1 - length..=index].windows(2).any(|pair| pair[0] != pair[1]);
        now = if seen[index] == seen[index - length] && differs { now + 1 } else { 0 };
        best = best.max(now);
    }
    (best >= length).then(|| u32::try_from(best + length).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn call(tool: &str, output: &str) -> ToolRow {
        ToolRow {
            tool: tool.to_owned(),
            input: Some(json!({ "command": format!("do {tool}") })),
            state: if output == "no" { "denied" } else { "completed" }.to_owned(),
            output: Some(output.into()),
            ..ToolRow::default()
        }
    }

    fn told(calls: &str) -> CallFacts {
        let rows: Vec<ToolRow> = calls
            .split_whitespace()
            .map(|word| {
                let (tool, output) = word.split_once('=').unwrap_or((word, "ok"));
                call(tool, output)
            })
            .collect();
        facts(&rows)
    }

    #[rstest]
    #[case("", 0, 0)]
    #[case("a", 1, 0)]
    #[case("a b c", 1, 0)]
    #[case("a a a b", 3, 0)]
    #[case("a=1 a=2 a=3", 1, 0)]
    #[case("a b a b a b", 1, 6)]
    #[case("x a b a b y", 1, 4)]
    #[case("a b c a b c a b c", 1, 9)]
    #[case("a=1 b a=2 b a=3 b", 1, 0)]
    #[case("a a b b a a b b", 2, 8)]
    fn repetitions(#[case] calls: &str, #[case] identical: u32, #[case] cycle: u32) {
        let facts = told(calls);
        assert_eq!((facts.identical, facts.cycle), (identical, cycle), "{calls}");
    }

    #[test]
    fn denied_calls_are_named() {
        let facts = told("Bash=no Write Bash=no");
        assert_eq!((facts.calls, facts.denials), (3, 2));
        assert_eq!(facts.denied, ["Bash do Bash"], "each once");
        assert_eq!(facts.allow, ["Bash(do Bash)"]);
    }
}
