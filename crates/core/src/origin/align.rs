//! Which lines of a text are lines of the text before.

use std::collections::HashSet;

use similar::Algorithm;
use similar::DiffOp;
use similar::capture_diff_slices;

use super::Origin;
use super::replay::Line;

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was there before.
    Kept(Origin),
    /// It was not.
    New,
    /// It reads like a line that was there, and either may be the old one. That one was from here.
    Either(Origin),
}

/// For each line of `after`, what it was in `before`. Lines that read the same can be matched in more than one way: both
/// ends of what is possible are looked at, and what differs between them is not told apart.
pub(super) fn fates(before: &[Line], after: &[u32]) -> Vec<Fate> {
    let old: Vec<u32> = before.iter().map(|line| line.text).collect();
    let early = matched(&old, after);
    let turned = |lines: &[u32]| lines.iter().rev().copied().collect::<Vec<u32>>();
    let mut late: Vec<Option<usize>> = matched(&turned(&old), &turned(after));
    late.reverse();
    let late: Vec<Option<usize>> = late.iter().map(|at| at.map(|at| old.len() - 1 - at)).collect();
    let origin = |at: usize| before.get(at).map(|line| line.origin);
    let fate =
        |(one, other): (&Option<usize>, &Option<usize>)| match (one.and_then(origin), other.and_then(origin))
        {
            (Some(one), Some(other)) if one == other => Fate::Kept(one),
            (Some(Origin::Call(one)), Some(Origin::Call(_))) => Fate::Kept(Origin::Call(one)),
            (Some(one), Some(other)) => Fate::Either(if one.call().is_some() { other } else { one }),
            (Some(one), None) | (None, Some(one)) => Fate::Either(one),
            (None, None) => Fate::New,
        };
    early.iter().zip(&late).map(fate).collect()
}

/// For each line of `after`, the line of `before` that it is.
fn matched(before: &[u32], after: &[u32]) -> Vec<Option<usize>> {
    let mut found = vec![None; after.len()];
    let head = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    (0..head).for_each(|at| {
        if let Some(found) = found.get_mut(at) {
            *found = Some(at);
        }
    });
    let (old, new) = (before.get(head..).unwrap_or_default(), after.get(head..).unwrap_or_default());
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    for back in 1..=tail {
        if let Some(found) = found.get_mut(after.len() - back) {
            *found = Some(before.len() - back);
        }
    }
    // Lines that only one side has match nothing: without them a text that was written anew costs little.
    let old = numbered(old, tail, head);
    let new = numbered(new, tail, head);
    let (in_old, in_new): (HashSet<u32>, HashSet<u32>) =
        (old.iter().map(|(_, text)| *text).collect(), new.iter().map(|(_, text)| *text).collect());
    let old: Vec<(usize, u32)> = old.into_iter().filter(|(_, text)| in_new.contains(text)).collect();
    let new: Vec<(usize, u32)> = new.into_iter().filter(|(_, text)| in_old.contains(text)).collect();
    let texts = |lines: &[(usize, u32)]| lines.iter().map(|(_, text)| *text).collect::<Vec<u32>>();
    for op in capture_diff_slices(Algorithm::Myers, &texts(&old), &texts(&new)) {
        let DiffOp::Equal { old_index, new_index, len } = op else { continue };
        for step in 0..len {
            if let (Some((from, _)), Some((to, _))) = (old.get(old_index + step), new.get(new_index + step))
                && let Some(found) = found.get_mut(*to)
            {
                *found = Some(*from);
            }
        }
    }
    found
}

fn numbered(lines: &[u32], tail: usize, head: usize) -> Vec<(usize, u32)> {
    let middle = lines.len() - tail;
    lines.iter().take(middle).enumerate().map(|(at, text)| (at + head, *text)).collect()
}
