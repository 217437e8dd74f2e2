//! The replay itself.

use std::collections::HashMap;
use std::collections::HashSet;

use super::Doubt;
use super::Origin;
use super::align::Fate;
use super::align::fates;
use super::lines::Id;
use super::lines::Texts;
use super::lines::says;
use super::lines::without_marks;

/// A line and where it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: Id,
    pub(super) origin: Origin,
}

/// What a call that wrote a whole file said of the file before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Created {
    /// There was none.
    Yes,
    /// There was one.
    No,
    /// Nothing.
    #[default]
    Unsaid,
}

/// One text put in the place of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replacement {
    /// What stood there; empty to make a file.
    pub old: String,
    /// What stands there now.
    pub new: String,
    /// Wherever it stood.
    pub all: bool,
    /// Whole lines, and nothing of the lines around them.
    pub whole_lines: bool,
}

/// What is known of the file's present content.
#[derive(Clone, Debug, Default)]
enum Known {
    /// Nothing.
    #[default]
    Nothing,
    /// There is no file.
    Absent,
    /// These lines.
    Lines(Vec<Line>),
}

/// What a conversation was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The file.
    File,
    /// Something of the file.
    Part,
    /// Anything: lines of the file may be among it.
    Anything,
}

/// What a conversation was shown since the file was last seen.
#[derive(Debug, Default)]
struct Shown {
    /// Outputs that may have held lines of the file.
    texts: Vec<String>,
    /// Whether one of them was the file itself.
    file: bool,
    /// Whether something was not recorded.
    blind: bool,
}

/// How a call wrote, which says how sure it is that it did not write what it had seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// One text in the place of another: what stood there is told.
    InPlace,
    /// A whole file: what it wrote again, and what is new, look the same.
    Whole,
}

/// Replays what happened to one file. Groups are the conversations that share what they were told and shown.
#[derive(Debug, Default)]
pub struct Replay {
    texts: Texts,
    now: Known,
    /// Words that stood in the file, or in what the session was shown of it, and are no call's.
    foreign: HashSet<Id>,
    /// Lines that calls wrote at a place that is not known: by which call and how often.
    floating: HashMap<Id, (usize, usize)>,
    told: HashMap<usize, Vec<String>>,
    shown: HashMap<usize, Shown>,
    /// Calls that may have written since the file was last seen.
    open: Vec<usize>,
    /// Contents that were seen, by their numbers.
    seen: HashMap<usize, Vec<Line>>,
    /// The content that the file was brought back to.
    back_to: Option<usize>,
}

impl Replay {
    /// The file as it was seen, at this point of time; none if there was none. `covered_by` is the one call that was at work
    /// all the time since the file was seen before, if there was such a call.
    pub fn content(&mut self, number: usize, text: Option<&str>, covered_by: Option<(usize, usize)>) {
        let back_to = self.back_to.take().and_then(|number| self.seen.get(&number));
        let after = text.map(|text| self.texts.split(text));
        if let (Some(after), Some(lines)) = (&after, back_to)
            && lines.iter().map(|line| line.text).eq(after.iter().copied())
        {
            self.now = Known::Lines(lines.clone());
        } else {
            let first = matches!(self.now, Known::Nothing);
            let before = self.lines();
            self.now = match after {
                None => Known::Absent,
                Some(after) => Known::Lines(self.observed(number, &before, &after, first, covered_by)),
            };
            self.settle();
        }
        let lines = self.lines();
        self.seen.insert(number, lines);
        self.floating.clear();
        self.shown.clear();
        self.open.clear();
    }

    /// A call wrote the whole file.
    pub fn write(&mut self, call: usize, group: usize, content: &str, created: Created) {
        let after = self.texts.split(content);
        let before = match (&self.now, created) {
            (_, Created::Yes) | (Known::Absent, Created::Unsaid) => Some(Vec::new()),
            (Known::Lines(lines), _) => Some(lines.clone()),
            // What stood there is what the session was shown of it, if that was recorded.
            (Known::Absent, Created::No) | (Known::Nothing, _) => {
                self.shown.get(&group).filter(|shown| shown.file).map(|_| Vec::new())
            }
        };
        let lines = match before {
            Some(before) => self.rewritten(&before, &after, call, group, How::Whole),
            None => {
                after.iter().map(|text| self.other(*text, Doubt::NothingBefore, Some(call), None)).collect()
            }
        };
        self.now = Known::Lines(lines);
        self.settle();
    }

    /// A call put texts in the place of others.
    pub fn replace(&mut self, call: usize, group: usize, replacements: &[Replacement]) {
        for one in replacements {
            let empty = match &self.now {
                Known::Absent => true,
                Known::Lines(lines) => {
                    lines.len() <= 1 && lines.iter().all(|line| self.texts.text(line.text).is_empty())
                }
                Known::Nothing => false,
            };
            if one.old.is_empty() && empty {
                self.write(call, group, &one.new, Created::Unsaid);
            } else if !self.put_in_place(call, group, one) {
                self.float(call, group, one);
            }
        }
    }

    /// A call removed the file.
    pub fn remove(&mut self) {
        self.now = Known::Absent;
    }

    /// A call may have written to the file, and nobody knows what.
    pub fn touch(&mut self, call: usize) {
        if !self.open.contains(&call) {
            self.open.push(call);
        }
    }

    /// A person told a conversation something.
    pub fn told(&mut self, group: usize, text: &str) {
        self.told.entry(group).or_default().push(text.to_owned());
    }

    /// A conversation was shown something.
    pub fn shown(&mut self, group: usize, text: &str, of: Of) {
        if of != Of::Anything {
            self.stood(text);
        }
        let shown = self.shown.entry(group).or_default();
        shown.file |= of == Of::File;
        shown.texts.push(text.to_owned());
    }

    /// A conversation may have been shown something of the file that was not recorded.
    pub fn unseen(&mut self, group: usize) {
        self.shown.entry(group).or_default().blind = true;
    }

    /// Files were brought back to how they were in a content that was seen.
    pub fn brought_back(&mut self, number: usize) {
        self.back_to = Some(number);
    }

    /// The lines as they are now, each with where it came from. Nothing if there is no file, or nothing is known of it.
    pub fn result(&self) -> Vec<(&str, Origin)> {
        let Known::Lines(lines) = &self.now else { return Vec::new() };
        let end = lines.last().is_some_and(|line| self.texts.text(line.text).is_empty());
        let shown = lines.len() - usize::from(end);
        lines.iter().take(shown).map(|line| (self.texts.text(line.text), line.origin)).collect()
    }

    fn lines(&self) -> Vec<Line> {
        match &self.now {
            Known::Lines(lines) => lines.clone(),
            Known::Nothing | Known::Absent => Vec::new(),
        }
    }

    /// The lines of something that was shown of the file: what is not known to be there was there before, and is no call's.
    fn stood(&mut self, text: &str) {
        let lines = self.lines();
        let mut known: HashSet<Id> = lines.iter().filter_map(|line| self.texts.words(line.text)).collect();
        known.extend(self.floating.keys().filter_map(|text| self.texts.words(*text)));
        for line in text.lines() {
            for words in without_marks(line).collect::<Vec<_>>() {
                let id = self.texts.id(words);
                self.foreign.extend(self.texts.words(id).filter(|words| !known.contains(words)));
            }
        }
    }

    fn observed(
        &mut self,
        number: usize,
        before: &[Line],
        after: &[Id],
        first: bool,
        covered_by: Option<(usize, usize)>,
    ) -> Vec<Line> {
        let fates = fates(before, after);
        let mut copies: HashMap<Id, usize> = HashMap::new();
        for text in after {
            *copies.entry(*text).or_default() += 1;
        }
        let near = self.open.last().copied();
        let mut lines = Vec::with_capacity(after.len());
        for (text, fate) in after.iter().zip(fates) {
            let line = match fate {
                Fate::Kept(origin) => Line { text: *text, origin },
                Fate::Either(_) => self.other(*text, Doubt::Unclear, near, Some(number)),
                Fate::New => {
                    let floating = self.floating.get(text).copied();
                    let once = |count: usize| copies.get(text).is_some_and(|copies| *copies <= count);
                    match (floating, covered_by) {
                        (Some((call, count)), _) if once(count) => self.credited(*text, call, None),
                        (_, Some((call, group))) => self.credited(*text, call, Some((group, How::Whole))),
                        _ if near.is_some() => self.other(*text, Doubt::Perhaps, near, Some(number)),
                        _ if first => self.other(*text, Doubt::First, None, Some(number)),
                        _ => self.other(*text, Doubt::Between, None, Some(number)),
                    }
                }
            };
            lines.push(line);
        }
        lines
    }

    fn rewritten(&mut self, before: &[Line], after: &[Id], call: usize, group: usize, how: How) -> Vec<Line> {
        let fates = fates(before, after);
        let mut lines = Vec::with_capacity(after.len());
        for (text, fate) in after.iter().zip(&fates) {
            lines.push(match fate {
                Fate::Kept(origin) => Line { text: *text, origin: *origin },
                // One of them is new, and may be somebody else's as every new line.
                Fate::Either(origin @ Origin::Call(_)) if self.doubt(*text, Some((group, how))).is_none() => {
                    Line { text: *text, origin: *origin }
                }
                Fate::Either(_) => self.other(*text, Doubt::Unclear, Some(call), None),
                Fate::New => self.credited(*text, call, Some((group, how))),
            });
        }
        lines
    }

    /// Lines that read the same are either all of calls or none of them is. Which of them went where is only how one of several
    /// alignments has it: a person who moves a copy past a call's line would get the call's place, and the call theirs.
    fn settle(&mut self) {
        let mut lines = self.lines();
        let others: HashSet<Id> =
            lines.iter().filter(|line| line.origin.call().is_none()).map(|line| line.text).collect();
        for line in &mut lines {
            if let Origin::Call(call) = line.origin
                && others.contains(&line.text)
            {
                *line = self.other(line.text, Doubt::Unclear, Some(call), None);
            }
        }
        if let Known::Lines(now) = &mut self.now {
            *now = lines;
        }
    }

    /// A line that a call wrote, if nothing says that it is somebody else's.
    fn credited(&mut self, text: Id, call: usize, by: Option<(usize, How)>) -> Line {
        match self.doubt(text, by) {
            Some(doubt) => self.other(text, doubt, Some(call), None),
            None => Line { text, origin: Origin::Call(call) },
        }
    }

    fn doubt(&self, text: Id, by: Option<(usize, How)>) -> Option<Doubt> {
        // A bracket looks like every other.
        let Some(words) = self.texts.words(text) else { return Some(Doubt::Signs) };
        if self.foreign.contains(&words) {
            return Some(Doubt::Stood);
        }
        let (group, how) = by?;
        let said = self.texts.text(words);
        if self.told.get(&group).is_some_and(|told| told.iter().any(|text| says(text, said))) {
            return Some(Doubt::Prompt);
        }
        let shown = self.shown.get(&group).filter(|_| how == How::Whole)?;
        if shown.texts.iter().any(|text| text.contains(said)) {
            return Some(Doubt::Shown);
        }
        shown.blind.then_some(Doubt::Blind)
    }

    fn other(&mut self, text: Id, doubt: Doubt, near: Option<usize>, seen: Option<usize>) -> Line {
        self.foreign.extend(self.texts.words(text));
        Line { text, origin: Origin::Other { doubt, near, seen } }
    }

    /// Says whether the place is known.
    fn put_in_place(&mut self, call: usize, group: usize, one: &Replacement) -> bool {
        let Known::Lines(lines) = &self.now else { return false };
        let text = lines.iter().map(|line| self.texts.text(line.text)).collect::<Vec<_>>().join("\n");
        let old = one.old.replace("\r\n", "\n");
        let new = one.new.replace("\r\n", "\n");
        if old.is_empty() {
            return false;
        }
        let bounded = |at: usize| {
            let end = at + old.len();
            let (before, after) = (text.get(..at).unwrap_or_default(), text.get(end..).unwrap_or_default());
            let begins = before.is_empty() || before.ends_with('\n');
            let ends = after.is_empty() || after.starts_with('\n');
            !one.whole_lines || (begins && ends)
        };
        let places: Vec<usize> =
            text.match_indices(&old).map(|(at, _)| at).filter(|at| bounded(*at)).collect();
        if places.is_empty() || (places.len() > 1 && !one.all) {
            return false;
        }
        let lines = lines.clone();
        self.now = Known::Lines(match places.as_slice() {
            [at] => {
                let (head, rest) = text.split_at(*at);
                let rest = rest.get(old.len()..).unwrap_or_default();
                let first = head.matches('\n').count();
                let last = first + old.matches('\n').count();
                let head = head.rsplit_once('\n').map_or(head, |(_, head)| head);
                let tail = rest.split_once('\n').map_or(rest, |(tail, _)| tail);
                let after = self.texts.split(&format!("{head}{new}{tail}"));
                let before = lines.get(first..=last).unwrap_or_default();
                let between = self.rewritten(before, &after, call, group, How::InPlace);
                let (above, below) =
                    (lines.get(..first).unwrap_or_default(), lines.get(last + 1..).unwrap_or_default());
                [above, &between, below].concat()
            }
            _ => {
                let after = self.texts.split(&text.replace(&old, &new));
                self.rewritten(&lines, &after, call, group, How::InPlace)
            }
        });
        self.settle();
        true
    }

    /// What a call wrote at a place that is not known: it is credited when the file is seen with it.
    fn float(&mut self, call: usize, group: usize, one: &Replacement) {
        let old: Vec<String> = one.old.lines().map(str::to_owned).collect();
        let mut before: HashSet<Id> = HashSet::new();
        for line in &old {
            let id = self.texts.id(line);
            before.extend(self.texts.words(id));
        }
        // What is told to have stood there, stood there.
        self.stood(&one.old);
        for line in one.new.lines() {
            let text = self.texts.id(line);
            if self.texts.words(text).is_none_or(|words| before.contains(&words)) {
                continue;
            }
            if self.doubt(text, Some((group, How::InPlace))).is_none() {
                let entry = self.floating.entry(text).or_insert((call, 0));
                *entry = (call, entry.1 + 1);
            }
        }
    }
}
