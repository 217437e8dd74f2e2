//! One pass over the text that says which rules are worth a closer look, and where.
//!
//! Every place of the text is looked up by its last three bytes in a bitmap, which settles most of them, and then by
//! its last four; the few keywords that end with such bytes are compared. The table for the built-in rules is a
//! constant of the program, so that nothing has to be built before the first text; what a redactor adds to it is next
//! to nothing.
//!
//! Looking at ends instead of beginnings gives the keywords in the order of their ends, and the opening of a tag
//! before the words within the tag.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::table::SLOT_BITS;
use crate::table::SMALL;
use crate::table::slot;
use crate::table::slot_of_four;
use crate::table::slots;
use crate::tables;

/// How many places one load of eight bytes serves, each with the two bytes before it.
const LANES: usize = 6;

/// One bit for every slot.
pub(crate) type Bits = [u64; (1 << SLOT_BITS) / 64];

/// What a keyword stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning<'p> {
    /// The opening of a tag that an earlier redaction left.
    Tag,
    /// The exact value with this index.
    Exact(usize),
    /// The rules with these indices.
    Rules(&'p [usize]),
}

/// A keyword found in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit<'p> {
    pub(crate) meaning: Meaning<'p>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A keyword of the built-in rules: numbers only, so that a program starts without touching it.
#[derive(Debug)]
pub(crate) struct Keyword {
    /// The last eight bytes, or all of them and zeros before, as a big-endian number.
    pub(crate) tail: u64,
    /// Which bits of `tail` count.
    pub(crate) mask: u64,
    /// Where the word is in the text of all words.
    pub(crate) start: u16,
    pub(crate) length: u8,
    /// Where the rules of the keyword are in the list of all; none for the opening of a tag.
    pub(crate) rules: (u16, u16),
}

impl Keyword {
    /// The keyword itself.
    pub(crate) fn word(&self) -> &'static str {
        let start = usize::from(self.start);
        &tables::WORDS[start..start + usize::from(self.length)]
    }

    /// The indices of its rules, in order.
    pub(crate) fn rules(&self) -> &'static [usize] {
        &tables::LISTS[usize::from(self.rules.0)..usize::from(self.rules.1)]
    }

    /// Whether it ends here; `tail` are the eight bytes up to `end`, in lower case.
    fn ends_at(&self, text: &[u8], end: usize, tail: u64) -> bool {
        let length = usize::from(self.length);
        tail & self.mask == self.tail
            && length <= end
            && (length <= 8
                || text[end - length..end - 8].eq_ignore_ascii_case(&self.word().as_bytes()[..length - 8]))
    }

    fn hit(&self, end: usize) -> Hit<'static> {
        let rules = self.rules();
        let meaning = if rules.is_empty() { Meaning::Tag } else { Meaning::Rules(rules) };
        Hit { meaning, start: end - usize::from(self.length), end }
    }
}

/// What a redactor looks for besides the built-in keywords: those of extra rules, and exact values.
#[derive(Debug)]
pub(crate) struct Added {
    /// The slots of the built-in keywords and of these words.
    all: Box<Bits>,
    /// The slots of these words only.
    own: Box<Bits>,
    words: Vec<String>,
    /// The rules of each keyword; the exact values come after those.
    rules: Vec<Vec<usize>>,
    /// Slots and the words that are found there, longer ones first.
    slots: Vec<(usize, usize)>,
}

impl Added {
    /// `keywords` come with the index of their rule. Empty words say nothing and are never found.
    pub(crate) fn new<'r>(
        keywords: impl Iterator<Item = (&'r str, usize)>,
        exact: impl Iterator<Item = &'r str>,
    ) -> Self {
        let mut words: Vec<String> = Vec::new();
        let mut rules: Vec<Vec<usize>> = Vec::new();
        let mut numbers = HashMap::new();
        for (keyword, rule) in keywords {
            let at = *numbers.entry(keyword).or_insert_with(|| {
                words.push(keyword.to_owned());
                rules.push(Vec::new());
                rules.len() - 1
            });
            if rules[at].last() != Some(&rule) {
                rules[at].push(rule);
            }
        }
        words.extend(exact.map(str::to_owned));
        let mut all = Box::new(tables::BITS);
        let mut own = Box::new([0; (1 << SLOT_BITS) / 64]);
        let mut slots: Vec<(usize, usize)> = words
            .iter()
            .enumerate()
            .flat_map(|(index, word)| slots(word.as_bytes()).map(move |slot| (slot, index)))
            .collect();
        slots.sort_by_key(|&(slot, index)| (slot, Reverse(words[index].len()), index));
        slots.dedup();
        for (slot, _) in &slots {
            all[slot / 64] |= 1 << (slot % 64);
            own[slot / 64] |= 1 << (slot % 64);
        }
        Self { all, own, words, rules, slots }
    }

    /// The words that may end in these three bytes.
    fn candidates(&self, three: u32) -> &[(usize, usize)] {
        if listed(&self.own, three) == 0 {
            return &[];
        }
        let slot = slot(three);
        let from = self.slots.partition_point(|(other, _)| *other < slot);
        let to = self.slots.partition_point(|(other, _)| *other <= slot);
        &self.slots[from..to]
    }

    fn hit(&self, text: &[u8], end: usize, index: usize) -> Option<Hit<'_>> {
        let word = self.words[index].as_bytes();
        let start = end.checked_sub(word.len())?;
        let meaning = match self.rules.get(index) {
            Some(list) => Meaning::Rules(list),
            None => Meaning::Exact(index - self.rules.len()),
        };
        text[start..end].eq_ignore_ascii_case(word).then_some(Hit { meaning, start, end })
    }
}

/// Every keyword in the text, overlapping ones too, letter case ignored: in the order of their ends, and of those
/// with the same end the longer ones first.
#[derive(Debug)]
pub(crate) struct Hits<'p> {
    text: &'p [u8],
    added: Option<&'p Added>,
    bits: &'p Bits,
    /// The places from `base` on that remain of the last load, one bit for each.
    lanes: u32,
    base: usize,
    /// The first place that was not looked up yet.
    next: usize,
    /// The end of the keywords that are being compared, the bytes before it, and what remains to compare.
    end: usize,
    tail: u64,
    candidates: std::slice::Iter<'static, u16>,
    candidates_added: std::slice::Iter<'p, (usize, usize)>,
    /// A built-in keyword that was found but may be shorter than one that was added.
    found: Option<&'static Keyword>,
}

impl<'p> Hits<'p> {
    pub(crate) fn new(added: Option<&'p Added>, text: &'p str) -> Self {
        Self {
            text: text.as_bytes(),
            added,
            bits: added.map_or(&tables::BITS, |added| &added.all),
            lanes: 0,
            base: 0,
            next: 0,
            end: 0,
            tail: 0,
            candidates: [].iter(),
            candidates_added: [].iter(),
            found: None,
        }
    }

    /// The next place where a keyword may end, as the index of its last byte.
    fn seek(&mut self) -> Option<usize> {
        loop {
            while self.lanes != 0 {
                let at = self.base + self.lanes.trailing_zeros() as usize;
                self.lanes &= self.lanes - 1;
                if self.is_promising(at) {
                    return Some(at);
                }
            }
            if self.next >= self.text.len() {
                return None;
            }
            self.load();
        }
    }

    /// Looks up places until one of them is in the bitmap or a load ends.
    fn load(&mut self) {
        let (text, bits, mut at) = (self.text, self.bits, self.next);
        if at < 2 || text.len() < 8 {
            self.lanes = listed(bits, three(text, at));
            self.base = at;
            self.next = at + 1;
            return;
        }
        while let Some(eight) = text[at - 2..].first_chunk() {
            let lanes = listed_lanes(bits, eight);
            at += LANES;
            if lanes != 0 {
                self.lanes = lanes;
                self.base = at - LANES;
                self.next = at;
                return;
            }
        }
        self.next = text.len();
        if let Some(eight) = text.last_chunk()
            && at < text.len()
        {
            // The last load overlaps the one before it; what that has seen is not to be seen again.
            self.base = text.len() - LANES;
            let seen = at - self.base;
            self.lanes = listed_lanes(bits, eight) >> seen << seen;
        }
    }

    /// Whether one more byte than the bitmap is about speaks for a keyword, too.
    fn is_promising(&self, at: usize) -> bool {
        let Some(four) = self.text[..=at].last_chunk() else { return true };
        let four = u32::from_le_bytes(*four) | SMALL as u32;
        let three = four >> 8;
        listed(&tables::SHORT, three) | bit(&tables::FOURS, slot_of_four(four)) == 1
            || self.added.is_some_and(|added| listed(&added.own, three) == 1)
    }
}

impl<'p> Iterator for Hits<'p> {
    type Item = Hit<'p>;

    fn next(&mut self) -> Option<Hit<'p>> {
        loop {
            if self.found.is_none() {
                let (text, end, tail) = (self.text, self.end, self.tail);
                self.found = self
                    .candidates
                    .by_ref()
                    .map(|&index| &tables::KEYWORDS[usize::from(index)])
                    .find(|keyword| keyword.ends_at(text, end, tail));
            }
            if let Some(added) = self.added
                && let Some(&(_, index)) = self.candidates_added.as_slice().first()
                && self.found.is_none_or(|found| usize::from(found.length) < added.words[index].len())
            {
                self.candidates_added.next();
                if let Some(hit) = added.hit(self.text, self.end, index) {
                    return Some(hit);
                }
                continue;
            }
            if let Some(found) = self.found.take() {
                return Some(found.hit(self.end));
            }
            let last = self.seek()?;
            let three = three(self.text, last);
            self.end = last + 1;
            self.tail = lower(tail(self.text, self.end));
            self.candidates = candidates(three).iter();
            self.candidates_added = self.added.map_or(&[][..], |added| added.candidates(three)).iter();
        }
    }
}

/// The byte at `at` and the two before it, as [`slot`] wants them; there is nothing before the text.
fn three(text: &[u8], at: usize) -> u32 {
    let byte = |back: usize| at.checked_sub(back).map_or(0, |at| u32::from(text[at]));
    (byte(0) << 16 | byte(1) << 8 | byte(2)) | SMALL as u32
}

/// The eight bytes before `end`; zeros where there is nothing before the text.
fn tail(text: &[u8], end: usize) -> u64 {
    match text[..end].last_chunk() {
        Some(eight) => u64::from_be_bytes(*eight),
        None => text[..end].iter().fold(0, |sum, &b| sum << 8 | u64::from(b)),
    }
}

/// Eight bytes with ASCII capitals made small.
fn lower(eight: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let seven = eight & (0x7f * ONES);
    // The high bit of each byte tells: at least `A`, more than `Z`, ASCII.
    let from_a = seven + u64::from(0x80 - b'A') * ONES;
    let past_z = seven + u64::from(0x7f - b'Z') * ONES;
    let capital = from_a & !past_z & !eight & (0x80 * ONES);
    eight | capital >> 2
}

/// Which of the last six bytes are in the bitmap with the two before them, one bit for each.
fn listed_lanes(bits: &Bits, eight: &[u8; 8]) -> u32 {
    let eight = u64::from_le_bytes(*eight) | SMALL;
    (0..LANES).fold(0, |lanes, lane| lanes | listed(bits, (eight >> (8 * lane)) as u32) << lane)
}

fn listed(bits: &Bits, three: u32) -> u32 {
    bit(bits, slot(three))
}

fn bit(bits: &Bits, slot: usize) -> u32 {
    u32::from(bits[slot / 64] & (1 << (slot % 64)) != 0)
}

/// The built-in keywords that may end in these three bytes, longer ones first.
fn candidates(three: u32) -> &'static [u16] {
    let slot = slot(three);
    let (word, bit) = (tables::BITS[slot / 64], 1 << (slot % 64));
    if word & bit == 0 {
        return &[];
    }
    let rank = usize::from(tables::RANKS[slot / 64]) + (word & (bit - 1)).count_ones() as usize;
    &tables::CANDIDATES[usize::from(tables::STARTS[rank])..usize::from(tables::STARTS[rank + 1])]
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use aho_corasick::AhoCorasick;
    use proptest::prelude::*;

    use super::Added;
    use super::Hits;
    use super::Keyword;
    use super::Meaning;
    use super::lower;
    use crate::tables;

    /// Words that run into built-in keywords, into each other, and into what a short word is.
    const ADDED: [&str; 9] =
        ["k", "hk_", "TOKEN", "my api_key", "ey", "rd", "Zz9plural", "ZZ9PLURAL", "x-secret_access_key"];

    static WITH: LazyLock<(Added, AhoCorasick)> = LazyLock::new(|| {
        let keywords = ADDED[..6].iter().enumerate().map(|(index, word)| (*word, 900 + index));
        (Added::new(keywords, ADDED[6..].iter().copied()), automaton(&ADDED))
    });
    static WITHOUT: LazyLock<AhoCorasick> = LazyLock::new(|| automaton(&[]));

    /// An automaton for the same words: slow to build, but known to be right.
    fn automaton(added: &[&'static str]) -> AhoCorasick {
        let words = tables::KEYWORDS.iter().map(Keyword::word).chain(added.iter().copied());
        AhoCorasick::builder().ascii_case_insensitive(true).build(words).unwrap()
    }

    /// What is found, by start, end and number of the word, both ways.
    fn both(text: &str, with: bool) -> [Vec<(usize, usize, usize)>; 2] {
        let number = |meaning: Meaning<'_>, start: usize, end: usize| match meaning {
            Meaning::Rules([rule]) if *rule >= 900 => tables::KEYWORDS.len() + rule - 900,
            Meaning::Exact(index) => tables::KEYWORDS.len() + 6 + index,
            Meaning::Rules(_) | Meaning::Tag => tables::KEYWORDS
                .iter()
                .position(|keyword| keyword.word().eq_ignore_ascii_case(&text[start..end]))
                .unwrap(),
        };
        let hits = Hits::new(with.then(|| &WITH.0), text);
        let seen = if with { &WITH.1 } else { &WITHOUT }.find_overlapping_iter(text);
        [
            hits.map(|hit| (hit.start, hit.end, number(hit.meaning, hit.start, hit.end))).collect(),
            seen.map(|found| (found.start(), found.end(), found.pattern().as_usize())).collect(),
        ]
    }

    #[test]
    fn every_keyword_is_found_wherever_it_stands() {
        for (index, keyword) in tables::KEYWORDS.iter().enumerate() {
            let word = keyword.word();
            for before in 0..20 {
                for after in [0, 1, 7] {
                    let text = format!("{}{word}{}", "~".repeat(before), "~".repeat(after));
                    for text in [text.to_ascii_uppercase(), text] {
                        let [ours, theirs] = both(&text, false);
                        assert!(ours.contains(&(before, before + word.len(), index)), "{text}");
                        assert_eq!(ours, theirs, "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn tags_are_told_from_keywords() {
        let first = Hits::new(None, "a [Redacted:x:0000]").find(|hit| hit.meaning == Meaning::Tag);
        assert_eq!(first.map(|hit| hit.start..hit.end), Some(2..12));
    }

    #[test]
    fn a_word_of_several_rules_is_found_once() {
        let words = [("zz_key", 900), ("zz_key", 901), ("", 902)];
        let added = Added::new(words.into_iter(), std::iter::empty());
        let hits: Vec<_> = Hits::new(Some(&added), "a ZZ_key").collect();
        assert!(hits.iter().any(|hit| hit.meaning == Meaning::Rules(&[900, 901]) && hit.start == 2));
        assert!(hits.iter().all(|hit| hit.start < hit.end));
    }

    /// Keywords whole, cut and run into each other, in either case, among other things.
    fn dense() -> impl Strategy<Value = String> {
        let count = tables::KEYWORDS.len() + 4 * ADDED.len();
        let word =
            (0..count, 0usize..40, 0usize..40, any::<bool>()).prop_map(|(index, from, to, capital)| {
                let word =
                    tables::KEYWORDS.get(index).map_or_else(|| ADDED[index % ADDED.len()], Keyword::word);
                let part = word.get(from % word.len()..).unwrap_or(word);
                let part = if to < 20 { part.get(..to % word.len()).unwrap_or(part) } else { word };
                if capital { part.to_uppercase() } else { part.to_owned() }
            });
        let other = prop_oneof!["[ -~]{0,3}", "\\PC{0,2}", "[@\\[`{_\\x00-\\x1f\\x7f]{1,3}"];
        prop::collection::vec(prop_oneof![3 => word, 1 => other], 0..40).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_tables_find_what_an_automaton_finds(texts in prop::collection::vec(
            prop_oneof![dense(), any::<String>(), "[ -~\\n]{0,200}"], 8,
        )) {
            for text in texts {
                for with in [false, true] {
                    let [ours, theirs] = both(&text, with);
                    prop_assert_eq!(ours, theirs, "{:?}", text);
                }
            }
        }

        #[test]
        fn eight_bytes_become_small_as_one_does(bytes in any::<[u8; 8]>()) {
            prop_assert_eq!(lower(u64::from_be_bytes(bytes)).to_be_bytes(), bytes.map(|b| b.to_ascii_lowercase()));
        }
    }
}
