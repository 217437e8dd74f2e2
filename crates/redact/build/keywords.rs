//! The table of keywords: which three bytes end one, and which those are.

use std::collections::BTreeMap;
use std::collections::HashMap;

use crate::put;
use crate::put_list;
use crate::spec::RuleSpec;
use crate::table::SLOT_BITS;
use crate::table::SMALL;
use crate::table::TAG_OPENING;
use crate::table::slot_of_four;
use crate::table::slots;

pub(crate) fn write(out: &mut String, rules: &[RuleSpec]) -> Result<(), String> {
    let words = words(rules);
    let mut text = String::new();
    let mut lists: Vec<usize> = Vec::new();
    let mut keywords = Vec::new();
    let (mut short, mut fours) = (vec![0u64; (1 << SLOT_BITS) / 64], vec![0u64; (1 << SLOT_BITS) / 64]);
    let mut entries: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, (word, rules)) in words.iter().enumerate() {
        let start = text.len();
        text.push_str(word);
        let first = lists.len();
        lists.extend(rules);
        let bytes = word.as_bytes();
        let last = &bytes[bytes.len().saturating_sub(8)..];
        let tail = last.iter().fold(0u64, |sum, &b| sum << 8 | u64::from(b));
        let mask = u64::MAX >> (64 - 8 * last.len());
        keywords.push(format!(
            "Keyword {{ tail: {tail:#x}, mask: {mask:#x}, start: {start}, length: {}, rules: ({first}, {}) }}",
            bytes.len(),
            lists.len()
        ));
        match bytes.last_chunk() {
            Some(four) => set(&mut fours, slot_of_four(u32::from_le_bytes(*four) | SMALL as u32)),
            None => slots(bytes).for_each(|slot| set(&mut short, slot)),
        }
        for slot in slots(bytes) {
            let candidates = entries.entry(slot).or_default();
            if !candidates.contains(&index) {
                candidates.push(index);
            }
        }
    }
    let mut bits = vec![0u64; (1 << SLOT_BITS) / 64];
    let mut starts = vec![0];
    let mut candidates = Vec::new();
    for (slot, mut list) in entries {
        set(&mut bits, slot);
        // Longer ones first, as an automaton reports them.
        list.sort_by_key(|&index| std::cmp::Reverse(words[index].0.len()));
        candidates.extend(list);
        starts.push(candidates.len());
    }
    let ranks: Vec<u32> = bits
        .iter()
        .scan(0, |sum, word| {
            let rank = *sum;
            *sum += word.count_ones();
            Some(rank)
        })
        .collect();
    if [text.len(), lists.len(), words.len(), candidates.len()].iter().any(|&n| n > usize::from(u16::MAX)) {
        return Err("rules.toml: the keywords are too many for the tables".to_owned());
    }
    put(out, format_args!("pub(crate) static WORDS: &str = {text:?};\n"));
    put_list(out, "LISTS", "usize", &lists);
    put_list(out, "KEYWORDS", "Keyword", &keywords);
    put(out, format_args!("pub(crate) static BITS: Bits = {bits:?};\n"));
    put(out, format_args!("pub(crate) static SHORT: Bits = {short:?};\n"));
    put(out, format_args!("pub(crate) static FOURS: Bits = {fours:?};\n"));
    put_list(out, "RANKS", "u16", &ranks);
    put_list(out, "STARTS", "u16", &starts);
    put_list(out, "CANDIDATES", "u16", &candidates);
    Ok(())
}

/// Each keyword once, with its rules in order. The opening of a tag has none.
fn words(rules: &[RuleSpec]) -> Vec<(&str, Vec<usize>)> {
    let mut words = vec![(TAG_OPENING, Vec::new())];
    let mut places = HashMap::new();
    for (index, rule) in rules.iter().enumerate() {
        for word in rule.words() {
            let place = *places.entry(word.as_str()).or_insert_with(|| {
                words.push((word, Vec::new()));
                words.len() - 1
            });
            let list = &mut words[place].1;
            if list.last() != Some(&index) {
                list.push(index);
            }
        }
    }
    words
}

fn set(bits: &mut [u64], slot: usize) {
    bits[slot / 64] |= 1 << (slot % 64);
}
