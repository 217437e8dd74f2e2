//! Redaction of text that arrives in pieces, cut anywhere.

use crate::redactor::Redactor;

/// A secret shorter than this is found wherever the pieces are cut.
const LOOK_BEHIND: usize = 4 * 1024;
/// No more than this is held back, whatever the text.
const MOST: usize = 64 * 1024;

/// One stream of text on its way to the record.
///
/// Holds back the end of what came so far, because the next piece may show that it is part of a secret, and keeps
/// some of what it gave out, because the name of a secret may stand before it.
#[derive(Debug, Default)]
pub struct Pieces {
    buffer: String,
    /// Up to here the buffer was given out already.
    done: usize,
    /// Nothing could be given when this much less was waiting; do not look again before it is here.
    patience: usize,
}

impl Pieces {
    /// A stream of which nothing has come yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece and gives what is now safe to record, often nothing.
    pub fn push(&mut self, redactor: &Redactor, piece: &str) -> String {
        self.buffer.push_str(piece);
        let mut out = String::new();
        // Waiting for twice the look-behind bounds the work: every byte is looked at a few times at most.
        if self.held() >= self.patience.max(2 * LOOK_BEHIND) {
            self.give(redactor, &mut out, false);
            let stuck = self.held() >= 2 * LOOK_BEHIND;
            self.patience = if stuck { (self.held() + LOOK_BEHIND).min(MOST) } else { 0 };
        }
        out
    }

    /// Gives what was held back; the stream is as new afterwards.
    pub fn finish(&mut self, redactor: &Redactor) -> String {
        let mut out = String::new();
        self.give(redactor, &mut out, true);
        self.buffer.clear();
        self.done = 0;
        self.patience = 0;
        out
    }

    /// How many bytes are held back.
    pub fn held(&self) -> usize {
        self.buffer.len() - self.done
    }

    fn give(&mut self, redactor: &Redactor, out: &mut String, all: bool) {
        let full = self.held() >= MOST;
        let last = floor(&self.buffer, self.buffer.len() - LOOK_BEHIND.min(self.buffer.len()));
        let wanted = if all { Some(self.buffer.len()) } else { border(&self.buffer, self.done, last) };
        let Some(mut cut) = wanted.or(full.then_some(last)) else { return };
        let spans = redactor.spans(&self.buffer);
        if !all && let Some(span) = spans.iter().find(|span| span.range.start < cut && span.range.end > cut) {
            // Inside a secret: give what comes before it, unless too much is waiting already.
            let left = self.buffer.len() - span.range.start;
            if span.range.start > self.done && left < MOST {
                cut = span.range.start;
            } else if !full {
                return;
            }
        }
        let mut from = self.done;
        for span in spans.iter().filter(|span| span.range.end > self.done && span.range.start < cut) {
            out.push_str(&self.buffer[from..span.range.start.max(from)]);
            out.push_str(&span.tag);
            from = span.range.end.min(cut);
        }
        out.push_str(&self.buffer[from..cut]);
        let keep = floor(&self.buffer, cut.saturating_sub(LOOK_BEHIND));
        self.buffer.drain(..keep);
        self.done = cut - keep;
    }
}

/// The last good place for a cut between `from` and `to`: after a line, else after a space.
fn border(text: &str, from: usize, to: usize) -> Option<usize> {
    let part = text.get(from..to)?;
    let place = part.rfind('\n').or_else(|| part.rfind([' ', '\t']))?;
    Some(from + place + 1)
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}
