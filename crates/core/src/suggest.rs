//! "Did you mean": the nearest known word to one that is not known.

/// The candidate nearest to `word`, if it is near enough to be what was meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word this long is no slip of the finger, and comparing it would cost time.
    if word.len() > 128 {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.chars().count().max(3) / 3)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many single characters must be inserted, removed, replaced or swapped with their neighbour.
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("budget", "budgte"), 1);
        assert_eq!(distance("budget", "budget"), 0);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn near_enough_or_nothing() {
        let known = ["session.budget", "ls.limit", "ui.color"];
        assert_eq!(nearest("session.bugdet", known), Some("session.budget"));
        assert_eq!(nearest("ui.colour", known), Some("ui.color"));
        assert_eq!(nearest("completely.else", known), None);
    }
}
