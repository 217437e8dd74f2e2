//! What an agent says bit by bit: looked at as one text before any of it is recorded.
//!
//! A key that is printed line by line is in no single line, and a token that is streamed is in no single piece. So texts
//! that belong together are redacted together, and each is recorded on its own, under its own key. What is held back for
//! its rest is still in the capture: after a crash it is read again.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use segno_agents::AgentEvent;
use segno_agents::TextFlow;
use segno_core::EventKey;
use segno_core::Fact;
use segno_core::Timestamp;
use segno_redact::Pieces;
use segno_redact::Redactor;
use serde_json::Value;

/// Most streams at once: each sub-agent has its own.
const STREAMS: usize = 64;

/// Most marks at once.
const MARKS: usize = 1_024;

/// Which texts follow each other: what kind, and of which sub-agent.
type Stream = (u8, Option<String>);

/// The texts of one run on their way to the record.
pub(super) struct Texts {
    flow: TextFlow,
    streams: BTreeMap<Stream, Pieces<u64>>,
    /// The message that each stream told of last.
    messages: BTreeMap<Stream, Option<String>>,
    /// In the order in which they came, which is the order of the record.
    waiting: VecDeque<Said>,
    count: u64,
    /// The last thing that the agent itself said, as it said it and as it is recorded.
    last: Option<(String, String)>,
}

/// A text with what is to be recorded of it.
pub(super) struct Said {
    number: u64,
    pub(super) key: EventKey,
    pub(super) at: Timestamp,
    pub(super) facts: Vec<Fact>,
    /// The text as it may be recorded, once that is known.
    text: Option<String>,
    /// The text as it was said, by the agent itself.
    raw: Option<String>,
}

/// How many texts had come when the output was read so far that nothing before that place is needed any more.
///
/// While texts come, the last of them is always held back for its rest. What is before it need not be kept.
#[derive(Debug, Default)]
pub(super) struct Marks(VecDeque<(u64, u64)>);

impl Marks {
    /// The last place before the first text that is held back.
    pub(super) fn before_held(&mut self, progress: (u64, Option<u64>), safe: u64) -> u64 {
        let (count, held) = progress;
        if self.0.back() != Some(&(count, safe)) {
            self.0.push_back((count, safe));
        }
        let Some(held) = held else {
            self.0.clear();
            return safe;
        };
        while self.0.get(1).is_some_and(|(count, _)| *count < held) {
            self.0.pop_front();
        }
        // Places between that are of no use: the first is the only answer until a later text is released.
        if self.0.len() > MARKS {
            let thinned = self.0.iter().copied().step_by(2).collect();
            self.0 = thinned;
        }
        self.0.front().filter(|(count, _)| *count < held).map_or(0, |(_, safe)| *safe)
    }
}

impl Texts {
    pub(super) fn new(flow: TextFlow) -> Self {
        Self {
            flow,
            streams: BTreeMap::new(),
            messages: BTreeMap::new(),
            waiting: VecDeque::new(),
            count: 0,
            last: None,
        }
    }

    /// Takes a text that is one of several. Anything else is given back.
    pub(super) fn take(
        &mut self,
        event: &AgentEvent,
        key: EventKey,
        at: Timestamp,
        facts: Vec<Fact>,
        redactor: &Redactor,
    ) -> Option<(EventKey, Vec<Fact>)> {
        let (stream, text, joint, message) = match event {
            AgentEvent::Text { text, parent, message_id } if self.flow != TextFlow::Whole => {
                ((0, parent.clone()), text, self.joint(), message_id.clone())
            }
            AgentEvent::Thinking { text, parent, message_id } if self.flow != TextFlow::Whole => {
                ((1, parent.clone()), text, self.joint(), message_id.clone())
            }
            // What is no event of the agent's is printed line by line, whatever the agent.
            AgentEvent::Noise { text } => ((2, None), text, "\n", None),
            _ => return Some((key, facts)),
        };
        if self.streams.len() >= STREAMS && !self.streams.contains_key(&stream) {
            let given: Vec<_> =
                self.streams.values_mut().flat_map(|pieces| pieces.finish(redactor)).collect();
            self.know(given);
            self.streams.clear();
            self.messages.clear();
        }
        // A message that is over has no rest.
        if self.messages.insert(stream.clone(), message.clone()).is_some_and(|before| before != message)
            && let Some(pieces) = self.streams.get_mut(&stream)
        {
            let given = pieces.finish(redactor);
            self.know(given);
        }
        self.count += 1;
        let raw = (stream == (0, None)).then(|| text.clone());
        self.waiting.push_back(Said { number: self.count, key, at, facts, text: None, raw });
        self.streams.entry(stream).or_default().push(text, joint, self.count);
        None
    }

    fn joint(&self) -> &'static str {
        if self.flow == TextFlow::Lines { "\n" } else { "" }
    }

    /// How many texts there were, and the first of them that is held back.
    pub(super) fn progress(&self) -> (u64, Option<u64>) {
        (self.count, self.waiting.front().map(|said| said.number))
    }

    /// What may be recorded now, in order.
    pub(super) fn give(&mut self, redactor: &Redactor) -> Vec<Said> {
        let given: Vec<_> = self.streams.values_mut().flat_map(|pieces| pieces.give(redactor)).collect();
        self.know(given);
        let ready = self.waiting.iter().take_while(|said| said.text.is_some()).count();
        self.release(ready)
    }

    /// All of it: nothing more comes that belongs to it.
    pub(super) fn finish(&mut self, redactor: &Redactor) -> Vec<Said> {
        let given: Vec<_> = self.streams.values_mut().flat_map(|pieces| pieces.finish(redactor)).collect();
        self.know(given);
        self.release(self.waiting.len())
    }

    /// The last words of the agent as they are recorded, if these are they.
    pub(super) fn recorded(&self, text: &str) -> Option<&str> {
        self.last.as_ref().filter(|(raw, _)| raw == text).map(|(_, recorded)| recorded.as_str())
    }

    fn know(&mut self, given: Vec<(u64, String)>) {
        for (number, text) in given {
            let at = self.waiting.partition_point(|said| said.number < number);
            if let Some(said) = self.waiting.get_mut(at).filter(|said| said.number == number) {
                said.text = Some(text);
            }
        }
    }

    fn release(&mut self, count: usize) -> Vec<Said> {
        let mut released: Vec<Said> = self.waiting.drain(..count).collect();
        for said in &mut released {
            let Some(text) = said.text.take() else { continue };
            if let Some(raw) = said.raw.take() {
                self.last = Some((raw, text.clone()));
            }
            said.facts.iter_mut().for_each(|fact| put_text(fact, &text));
        }
        released
    }
}

fn put_text(fact: &mut Fact, redacted: &str) {
    match fact {
        Fact::Said { text, .. } => *text = redacted.into(),
        Fact::Reported { body, .. } => {
            if let Some(text) = body.get_mut("text") {
                *text = Value::String(redacted.to_owned());
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_before_the_first_text_that_is_held_back_need_not_be_kept() {
        let mut marks = Marks::default();
        assert_eq!(marks.before_held((0, None), 10), 10, "nothing is held back");
        assert_eq!(
            marks.before_held((1, Some(1)), 20),
            0,
            "the first text is, and no place before it is known"
        );
        assert_eq!(marks.before_held((2, Some(2)), 30), 20, "the first was released");
        assert_eq!(marks.before_held((5, Some(2)), 60), 20);
        assert_eq!(marks.before_held((6, Some(6)), 70), 60);
        assert_eq!(marks.before_held((6, None), 70), 70);
    }

    #[test]
    fn marks_are_bounded() {
        let mut marks = Marks::default();
        for count in 1..10_000 {
            assert_eq!(marks.before_held((count, Some(1)), count * 10), 0);
        }
        assert!(marks.0.len() <= MARKS);
    }
}
