//! The redactor: finds the secrets of a text and puts tags in their place.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use crate::announced;
use crate::assign;
use crate::columns;
use crate::exact;
use crate::islands;
use crate::named;
use crate::prefilter::Added;
use crate::prefilter::Hits;
use crate::prefilter::Meaning;
use crate::rule::Rule;
use crate::rule::RuleError;
use crate::rule::{self};
use crate::spec::RuleSpec;
use crate::tag;
use crate::unwrap::View;

/// How often a text is looked at again after a replacement; each time finds less, the limit only makes it certain
/// that this ends.
const ROUNDS: usize = 6;
/// No secret together with what gives it away is shorter, and most strings of an event are.
const SHORTEST: usize = 8;
/// A match at the end of its window is followed at most this far.
const WINDOW_MOST: usize = 64 * 1024;

/// What a redactor is made of.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Rules besides the built-in ones.
    pub extra_rules: Vec<RuleSpec>,
    /// Names and values of known secrets, such as those of the environment. Values that are short or common are
    /// ignored.
    pub exact: Vec<(String, String)>,
    /// Key of the hash in the tags: keep it from those who read the redacted text.
    pub tag_key: [u8; 32],
}

/// Finds and replaces secrets.
///
/// Making one costs next to nothing, and so does the first text: the keywords of the built-in rules are a table of the
/// program, and a rule's pattern is compiled when something first looks like the beginning of a match.
#[derive(Debug)]
pub struct Redactor {
    extra: Vec<Rule>,
    /// The words that call for the extra rules, each with the index of its rule.
    words: Vec<(String, usize)>,
    /// The extra rules that no word calls for: they are looked for in every text.
    always: Vec<usize>,
    options: Options,
    added: OnceLock<Added>,
}

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) range: Range<usize>,
    /// Lower wins when secrets overlap: an exact value, then the rules in their order.
    rank: usize,
    pub(crate) tag: String,
}

impl Redactor {
    /// A redactor with the built-in rules and those of the options. A broken extra rule never matches; use
    /// [`Redactor::try_new`] for rules that a person has written.
    pub fn new(mut options: Options) -> Self {
        options.exact.retain(|(_, value)| exact::usable(value));
        let mut extra = Vec::new();
        let mut words = Vec::new();
        let mut always = Vec::new();
        for spec in &options.extra_rules {
            let index = rule::builtin().len() + extra.len();
            words.extend(spec.words().iter().map(|word| (word.clone(), index)));
            if spec.words().is_empty() {
                always.push(index);
            }
            extra.push(Rule::new(spec.clone().into()));
        }
        Self { extra, words, always, options, added: OnceLock::new() }
    }

    /// One that also knows these secrets, by name and value; `None` if this one knows them all.
    pub fn knowing(&self, secrets: impl IntoIterator<Item = (String, String)>) -> Option<Self> {
        let known = &self.options.exact;
        let is_new = |secret: &(String, String)| {
            exact::usable(&secret.1) && !known.iter().any(|(_, v)| *v == secret.1)
        };
        let new: Vec<_> = secrets.into_iter().filter(is_new).collect();
        if new.is_empty() {
            return None;
        }
        let mut options = self.options.clone();
        options.exact.extend(new);
        Some(Self::new(options))
    }

    /// Like [`Redactor::new`], but checks the extra rules first.
    ///
    /// # Errors
    /// Names the first rule that cannot be used, and why.
    pub fn try_new(options: Options) -> Result<Self, RuleError> {
        for spec in &options.extra_rules {
            spec.check().map_err(|reason| RuleError { id: spec.id.clone(), reason })?;
        }
        Ok(Self::new(options))
    }

    /// Whether the text is worth a closer look. When this is `false`, [`Redactor::text`] changes nothing.
    ///
    /// Works on serialised JSON as well as on what it says.
    pub fn suspects(&self, text: &str) -> bool {
        let view = View::unescaped(text);
        let text = &view.text;
        self.keyword_in(text)
            || islands::percent_words(text)
                .into_iter()
                .any(|r| self.keyword_in(&View::percent_decoded(&text[r]).text))
            || islands::base64_runs(text).into_iter().any(|run| {
                match islands::decode(&text.as_bytes()[run.clone()]) {
                    Some(inner) => self.keyword_in(&inner),
                    None => announced::token(text, run).is_some(),
                }
            })
    }

    /// The text with a tag in place of each secret; everything else stays byte for byte.
    ///
    /// Redacting redacted text changes nothing.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let spans = self.spans(text);
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for span in spans {
            out.push_str(&text[from..span.range.start]);
            out.push_str(&span.tag);
            from = span.range.end;
        }
        out.push_str(&text[from..]);
        Cow::Owned(out)
    }

    /// The secrets that are known by name and value.
    pub fn known(&self) -> &[(String, String)] {
        &self.options.exact
    }

    /// A number that stands for a secret, and tells nothing to others.
    pub fn fingerprint(&self, secret: &str) -> u64 {
        tag::fingerprint(&self.options.tag_key, secret)
    }

    /// The tag for a value that is secret for reasons outside its text.
    pub(crate) fn tag_for(&self, id: &str, secret: &str) -> String {
        tag::tag(&self.options.tag_key, id, secret.as_bytes())
    }

    /// The secrets of the text, in order and apart from each other, such that replacing them leaves none.
    pub(crate) fn spans(&self, text: &str) -> Vec<Span> {
        if text.len() < SHORTEST {
            return Vec::new();
        }
        let mut spans = merge(self.look(text));
        for _ in 0..ROUNDS {
            if spans.is_empty() {
                break;
            }
            // A replacement can bring other things together; look at the result until nothing is found.
            let view = View::replaced(text, spans.iter().map(|span| (span.range.clone(), span.tag.clone())));
            let more = self.look(&view.text);
            if more.is_empty() {
                break;
            }
            let more = more.into_iter().map(|span| Span { range: view.source(span.range), ..span });
            spans = merge(spans.into_iter().chain(more).collect());
        }
        spans
    }

    /// One look at the text through all wrappings.
    fn look(&self, text: &str) -> Vec<Span> {
        let view = View::unescaped(text);
        let seen: &str = &view.text;
        let mut spans = Vec::new();
        let tags = self.scan(seen, &mut spans);
        for word in islands::percent_words(seen) {
            let inner = View::percent_decoded(&seen[word.clone()]);
            let mut found = Vec::new();
            self.scan(&inner.text, &mut found);
            for span in found {
                let range = inner.source(span.range);
                let range = word.start + range.start..word.start + range.end;
                if !touches(&tags, &range) {
                    spans.push(Span { range, ..span });
                }
            }
        }
        for run in islands::base64_runs(seen) {
            if touches(&tags, &run) {
                continue;
            }
            if let Some(inner) = islands::decode(&seen.as_bytes()[run.clone()]) {
                let mut found = Vec::new();
                self.scan(&inner, &mut found);
                let best = found.into_iter().min_by_key(|span| (span.rank, span.range.start));
                spans.extend(best.map(|best| Span { range: islands::padded(seen, &run), ..best }));
            } else if let Some(range) = announced::token(seen, run) {
                let tag = self.tag_for(announced::ID, &seen[range.clone()]);
                spans.push(Span { range, rank: usize::MAX, tag });
            }
        }
        for span in &mut spans {
            span.range = view.source(span.range.clone());
        }
        spans
    }

    /// Finds secrets in decoded text; returns where tags are.
    fn scan(&self, text: &str, spans: &mut Vec<Span>) -> Vec<Range<usize>> {
        let bytes = text.as_bytes();
        let mut tags: Vec<Range<usize>> = Vec::new();
        let mut windows: Vec<(usize, usize, usize)> = Vec::new();
        // Where patterns may match at all; mostly nowhere.
        let mut likely: Vec<(usize, usize)> = Vec::new();
        // The table that was read last, from its names to its end.
        let mut table = 0..0;
        for hit in self.hits(text) {
            let in_tag = tags.last().is_some_and(|tag| hit.start < tag.end);
            match hit.meaning {
                Meaning::Rules(list) => {
                    for &index in list {
                        let rule = self.rule(index);
                        if !rule.terms.named {
                            // A keyword within a tag calls for no search, but may be part of what another one finds.
                            if rule.may_match(bytes, hit.start) {
                                likely.push((index, hit.start));
                            }
                            if !in_tag {
                                let start = hit.start.saturating_sub(rule.terms.before);
                                windows.push((index, start, (hit.end + rule.terms.after).min(bytes.len())));
                            }
                            continue;
                        }
                        let keyword = hit.start..hit.end;
                        if !in_tag && let Some(range) = named::value(rule, text, keyword.clone()) {
                            self.found(index, text, range, spans);
                        }
                        if rule.terms.column
                            && !in_tag
                            && !table.contains(&hit.start)
                            && let Some(column) = columns::below(text, &keyword)
                        {
                            table = bytes[hit.end..]
                                .iter()
                                .position(|b| *b == b'\n')
                                .map_or(hit.end, |at| hit.end + at)
                                ..column.end;
                            for cell in column.cells {
                                self.found(index, text, cell, spans);
                            }
                        }
                    }
                }
                Meaning::Tag | Meaning::Exact(_) if in_tag => {}
                Meaning::Tag => tags.extend(tag::at(bytes, hit.start)),
                Meaning::Exact(index) => {
                    let (name, value) = &self.options.exact[index];
                    if bytes[hit.start..hit.end] == *value.as_bytes() {
                        let tag = self.tag_for(&exact::id(name), value);
                        spans.push(Span { range: hit.start..hit.end, rank: 0, tag });
                    }
                }
            }
        }
        if !likely.is_empty() {
            self.search_windows(text, windows, likely, spans);
        }
        for &index in &self.always {
            self.search(index, text, 0..bytes.len(), spans);
        }
        if !tags.is_empty() {
            spans.retain(|span| !touches(&tags, &span.range));
        }
        tags
    }

    /// Searches the windows, given by rule, start and end, that have a likely place, given by rule and keyword.
    fn search_windows(
        &self,
        text: &str,
        mut windows: Vec<(usize, usize, usize)>,
        mut likely: Vec<(usize, usize)>,
        spans: &mut Vec<Span>,
    ) {
        windows.sort_unstable();
        likely.sort_unstable();
        let mut windows = windows.into_iter().peekable();
        while let Some((index, start, mut end)) = windows.next() {
            while let Some(&(_, _, further)) = windows.peek().filter(|next| next.0 == index && next.1 <= end)
            {
                end = end.max(further);
                windows.next();
            }
            // The keyword of a match is in the window when the match begins there.
            let first = likely.partition_point(|keyword| *keyword < (index, start));
            if likely.get(first).is_some_and(|keyword| *keyword < (index, end)) {
                self.search(index, text, start..end, spans);
            }
        }
    }

    /// Searches a rule's pattern in a window of the text.
    fn search(&self, index: usize, text: &str, window: Range<usize>, spans: &mut Vec<Span>) {
        let rule = self.rule(index);
        let bytes = text.as_bytes();
        let Some(regex) = rule.regex() else { return };
        let most = window.end + WINDOW_MOST;
        let mut end = window.end;
        let mut at = window.start;
        while at < end {
            // The text before the window stays visible for word borders.
            let Some(found) = regex.find_at(&bytes[..end], at) else { return };
            if found.end() == end && end < bytes.len() && end < most {
                end = (end + found.len().max(256)).min(bytes.len()).min(most);
                at = found.start();
                continue;
            }
            let mut range = found.range();
            if rule.terms.group > 0 {
                let captures = regex.captures_at(&bytes[..end], found.start());
                range = captures.and_then(|c| c.get(rule.terms.group).map(|g| g.range())).unwrap_or(range);
            }
            at = range.end.max(found.start() + 1);
            if range.is_empty() {
                continue;
            }
            let parts: Vec<Range<usize>> = match rule.each() {
                None => vec![range],
                Some(each) => each
                    .captures_iter(&bytes[range.clone()])
                    .filter_map(|c| c.get(1).map(|g| range.start + g.start()..range.start + g.end()))
                    .collect(),
            };
            for part in parts.into_iter().filter(|part| rule.accepts(&bytes[part.clone()])) {
                self.found(index, text, part, spans);
            }
        }
    }

    fn found(&self, index: usize, text: &str, range: Range<usize>, spans: &mut Vec<Span>) {
        // Patterns work on bytes and may end within a character.
        let start = (0..=range.start).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        let end = (range.end..text.len()).find(|&i| text.is_char_boundary(i)).unwrap_or(text.len());
        let tag = self.tag_for(&self.rule(index).terms.id, &text[start..end]);
        spans.push(Span { range: start..end, rank: index + 1, tag });
    }

    fn keyword_in(&self, text: &str) -> bool {
        let matches =
            |index: &usize| self.rule(*index).regex().is_some_and(|regex| regex.is_match(text.as_bytes()));
        if self.always.iter().any(matches) {
            return true;
        }
        self.hits(text).any(|hit| match hit.meaning {
            Meaning::Tag => false,
            Meaning::Exact(_) => true,
            // For named values the cheap tests come first: words such as "token" are everywhere.
            Meaning::Rules(list) => {
                let column = |index: &usize| {
                    self.rule(*index).terms.column && columns::below(text, &(hit.start..hit.end)).is_some()
                };
                list.iter().any(|&index| !self.rule(index).terms.named)
                    || assign::assigned(text.as_bytes(), hit.start..hit.end)
                        .is_some_and(|a| a.value.len() >= 5)
                    || list.iter().any(column)
            }
        })
    }

    /// What the text has that calls for a closer look.
    fn hits<'p>(&'p self, text: &'p str) -> Hits<'p> {
        let plain = self.words.is_empty() && self.options.exact.is_empty();
        let added = (!plain).then(|| {
            self.added.get_or_init(|| {
                let words = self.words.iter().map(|(word, rule)| (word.as_str(), *rule));
                Added::new(words, self.options.exact.iter().map(|(_, value)| value.as_str()))
            })
        });
        Hits::new(added, text)
    }

    fn rule(&self, index: usize) -> &Rule {
        let builtin = rule::builtin();
        builtin.get(index).unwrap_or_else(|| &self.extra[index - builtin.len()])
    }
}

/// Whether the range overlaps one of the tags, which are in order.
fn touches(tags: &[Range<usize>], range: &Range<usize>) -> bool {
    let near = tags.partition_point(|tag| tag.end <= range.start);
    tags.get(near).is_some_and(|tag| tag.start < range.end)
}

/// Joins overlapping spans; the best ranked gives the tag.
fn merge(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.range.start, span.rank));
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.range.start < last.range.end => {
                let range = last.range.start..last.range.end.max(span.range.end);
                if span.rank < last.rank {
                    *last = span;
                }
                last.range = range;
            }
            _ => merged.push(span),
        }
    }
    merged
}
