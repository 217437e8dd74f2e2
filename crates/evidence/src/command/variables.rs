//! Variables that a shell text sets itself, as far as their values stand there.

use super::MOST_WORDS;
use super::Need;
use super::wrappers::is_assignment;
use super::wrappers::is_system;

/// How many variables are known at a time.
const MOST: usize = 64;
/// How long a word may become by what is put in.
const LONGEST: usize = 4_096;

/// What is known of the variables of a text.
#[derive(Default)]
pub(super) struct Variables {
    known: Vec<(String, String)>,
    /// Directories that programs are looked for in before the usual ones.
    path: Vec<String>,
}

impl Variables {
    /// Words with the values put in that are known.
    pub(super) fn filled(&self, words: &[String]) -> Vec<String> {
        words.iter().map(|word| self.fill(word)).collect()
    }

    fn fill(&self, word: &str) -> String {
        let mut filled = word.to_owned();
        for (name, value) in &self.known {
            if !filled.contains('$') || filled.len() > LONGEST {
                break;
            }
            filled = filled.replace(&format!("${{{name}}}"), value);
            filled = put_in(&filled, name, value);
        }
        filled
    }

    /// Remembers what a command sets; answers with the scripts that may be reached by it.
    pub(super) fn take_in(&mut self, words: &[String]) -> Vec<Need> {
        let mut needs = Vec::new();
        if let [first, name, within, rest @ ..] = words
            && first == "for"
            && within == "in"
        {
            let literal = rest.iter().filter(|word| !word.contains(['*', '?', '$']));
            let literal: Vec<&String> = literal.take(MOST_WORDS).collect();
            match literal.as_slice() {
                [only] => self.set(name, only),
                all => needs.extend(all.iter().map(|word| Need::Perhaps((*word).clone()))),
            }
            return needs;
        }
        let exports = ["export", "readonly", "local", "declare"];
        let skip = usize::from(words.first().is_some_and(|word| exports.contains(&word.as_str())));
        let assigned = |word: &&String| is_assignment(word);
        let sets = words.get(skip..).unwrap_or_default();
        let lasting = sets.iter().all(|word| assigned(&word));
        let mut once = Vec::new();
        for (name, value) in words.iter().filter(assigned).filter_map(|word| word.split_once('=')) {
            if name == "PATH" {
                let own = |place: &&str| {
                    !place.is_empty() && !place.contains('$') && !is_system(&format!("{place}/"))
                };
                let places = value.split(':').filter(own);
                once.extend(places.map(ToOwned::to_owned));
            } else if lasting && !value.contains('$') {
                self.set(name, value);
            }
        }
        for place in self.path.iter().chain(&once).take(MOST) {
            let programs =
                words.iter().filter(|word| !word.contains(['/', '=', ' ']) && !word.starts_with('-'));
            needs.extend(programs.take(MOST_WORDS).map(|word| Need::Given(format!("{place}/{word}"))));
        }
        if lasting && self.path.len() < MOST {
            self.path.extend(once);
        }
        needs
    }

    fn set(&mut self, name: &str, value: &str) {
        self.known.retain(|(known, _)| known != name);
        if self.known.len() < MOST {
            self.known.push((name.to_owned(), value.to_owned()));
        }
    }
}

/// Puts a value in for `$NAME`, where no longer name stands.
fn put_in(text: &str, name: &str, value: &str) -> String {
    let wanted = format!("${name}");
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(&wanted) {
        let (before, from) = rest.split_at(at);
        let behind = from.get(wanted.len()..).unwrap_or_default();
        let longer = behind.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        out.push_str(before);
        out.push_str(if longer { &wanted } else { value });
        rest = behind;
    }
    out.push_str(rest);
    out
}
