//! How the matches of a pattern begin, and where in such a beginning the keyword is.
//!
//! Reads as much of the pattern's syntax as the rules use. Whatever it does not know makes it give up on the pattern,
//! which is then simply searched for every time; what it does know it may only weaken, never strengthen.

use crate::put;
use crate::spec::RuleSpec;

/// A pattern that may begin in more ways than this is cut off where they part.
const WAYS_MOST: usize = 16;
/// So much of a beginning is enough to tell.
const RUNS_MOST: usize = 40;
/// A match that may begin in more places around its keyword than this is better searched for.
const PLACES_MOST: u16 = 64;

type Set = [u64; 4];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Edge {
    Any,
    Word,
    Start,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    edge: Edge,
    /// How many bytes come before the keyword, at least and at most.
    before: (u16, u16),
    /// Index of the set, least and most.
    runs: Vec<(usize, u16, u16)>,
}

/// One byte of a shape, or a run of uncertain length, which is no place for a keyword and has no set here.
struct Byte {
    set: Option<Set>,
    /// How many bytes are before it, at least and at most.
    before: (u16, u16),
    /// Its run, and how much of that is before it.
    place: (usize, u16),
}

/// The shapes of all rules and the sets they are made of.
pub(crate) struct Shapes {
    sets: Vec<Set>,
    pub(crate) rules: Vec<Vec<Shape>>,
}

impl Shapes {
    pub(crate) fn of(rules: &[RuleSpec]) -> Self {
        let mut this = Self { sets: Vec::new(), rules: Vec::new() };
        for rule in rules {
            let shapes = this.shapes(rule).unwrap_or_default();
            this.rules.push(shapes);
        }
        this
    }

    pub(crate) fn write_sets(&self, out: &mut String) {
        put(
            out,
            format_args!("pub(crate) static SETS: [[u64; 4]; {}] = {:?};\n", self.sets.len(), self.sets),
        );
    }

    /// All ways in which a match may begin, unless one of them is not known or may do without a keyword.
    fn shapes(&mut self, rule: &RuleSpec) -> Option<Vec<Shape>> {
        let mut shapes = Vec::new();
        for way in Parser::ways(&rule.regex)? {
            let mut shape = self.shape(&way)?;
            if rule.near.is_empty() {
                shape = self.around_keyword(shape, &rule.keywords)?;
            }
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        Some(shapes)
    }

    /// The shape with the place that one of the keywords has in it. Where that place is too uncertain, what comes
    /// before the keyword is left out.
    fn around_keyword(&self, mut shape: Shape, keywords: &[String]) -> Option<Shape> {
        let mut bytes: Vec<Byte> = Vec::new();
        let (mut least, mut most) = (0u16, 0u16);
        for (run, &(set, at_least, at_most)) in shape.runs.iter().enumerate() {
            if at_least == at_most {
                bytes.extend((0..at_least).map(|i| Byte {
                    set: Some(self.sets[set]),
                    before: (least.saturating_add(i), most.saturating_add(i)),
                    place: (run, i),
                }));
            } else {
                bytes.push(Byte { set: None, before: (least, most), place: (run, 0) });
            }
            (least, most) = (least.saturating_add(at_least), most.saturating_add(at_most));
        }
        let spread = |byte: &Byte| byte.before.1 - byte.before.0;
        let found = (0..bytes.len())
            .filter(|&from| keyword_at(&bytes[from..], keywords, &mut Vec::new()))
            .min_by_key(|&from| spread(&bytes[from]))
            .map(|from| &bytes[from])?;
        if spread(found) <= PLACES_MOST {
            shape.before = found.before;
            return Some(shape);
        }
        let (run, inside) = found.place;
        shape.edge = Edge::Any;
        shape.runs.drain(..run);
        if let Some(first) = shape.runs.first_mut() {
            first.1 -= inside;
            first.2 -= inside;
        }
        Some(shape)
    }

    fn shape(&mut self, way: &Way) -> Option<Shape> {
        let edge = match way.parts.first()? {
            Part::Edge(edge) => *edge,
            Part::Run { .. } => Edge::Any,
        };
        let runs: Vec<(Set, u32, Option<u32>)> = way
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Edge(_) => None,
                Part::Run { set, least, most } => Some((*set, *least, *most)),
            })
            .collect();
        let mut shape = Shape { edge, before: (0, 0), runs: Vec::new() };
        for (index, &(set, least, most)) in runs.iter().enumerate() {
            let next = runs.get(index + 1);
            // The length is certain only when what follows cannot be part of the run.
            let certain = most == Some(least)
                || next.is_some_and(|next| next.1 > 0 && (0..4).all(|i| set[i] & next.0[i] == 0));
            let most = if certain { most } else { Some(least) };
            let number = |n: u32| u16::try_from(n).ok().filter(|n| *n < u16::MAX);
            let (Some(least), Some(most)) = (number(least), most.map_or(Some(u16::MAX), number)) else {
                break;
            };
            if most > 0 {
                let set = self.set(set);
                match shape.runs.last_mut() {
                    Some(last) if last.0 == set && last.1 == last.2 && least == most && last.1 < 1000 => {
                        last.1 += least;
                        last.2 += least;
                    }
                    _ => shape.runs.push((set, least, most)),
                }
            }
            if !certain || shape.runs.len() == RUNS_MOST {
                break;
            }
        }
        // A last run of uncertain length would say nothing about what follows.
        while shape.runs.last().is_some_and(|last| last.1 == 0) {
            shape.runs.pop();
        }
        (!shape.runs.is_empty()).then_some(shape)
    }

    fn set(&mut self, set: Set) -> usize {
        self.sets.iter().position(|known| *known == set).unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        })
    }
}

/// Whether everything that these bytes can be, after what is there already, begins with a keyword.
fn keyword_at(bytes: &[Byte], keywords: &[String], there: &mut Vec<u8>) -> bool {
    if keywords.iter().any(|keyword| keyword.as_bytes() == there.as_slice()) {
        return true;
    }
    let Some((Byte { set: Some(set), .. }, rest)) = bytes.split_first() else { return false };
    if !keywords.iter().any(|keyword| keyword.as_bytes().starts_with(there)) {
        return false;
    }
    // Both cases of a letter lead to the same keywords.
    let mut bytes: Vec<u8> =
        (0..=u8::MAX).filter(|&byte| has(*set, byte)).map(|b| b.to_ascii_lowercase()).collect();
    bytes.sort_unstable();
    bytes.dedup();
    bytes.into_iter().all(|byte| {
        there.push(byte);
        let found = keyword_at(rest, keywords, there);
        there.pop();
        found
    })
}

/// The shapes as elements of a Rust array.
pub(crate) fn source(shapes: &[Shape]) -> String {
    let mut out = String::new();
    for shape in shapes {
        put(
            &mut out,
            format_args!("Shape {{ edge: Edge::{:?}, before: {:?}, runs: &[", shape.edge, shape.before),
        );
        for (set, least, most) in &shape.runs {
            put(&mut out, format_args!("Run {{ set: {set}, least: {least}, most: {most} }},"));
        }
        out.push_str("] },");
    }
    out
}

#[derive(Clone)]
enum Part {
    Edge(Edge),
    Run { set: Set, least: u32, most: Option<u32> },
}

/// One way through a pattern.
#[derive(Clone, Default)]
struct Way {
    parts: Vec<Part>,
    /// More follows of which nothing is known.
    cut: bool,
}

impl Way {
    fn of(part: Part) -> Self {
        Self { parts: vec![part], cut: false }
    }

    fn cut() -> Self {
        Self { parts: Vec::new(), cut: true }
    }
}

/// A reader of patterns; `None` from any of its methods means that it does not understand.
struct Parser<'r> {
    rest: &'r [u8],
    fold: bool,
}

impl<'r> Parser<'r> {
    fn ways(regex: &'r str) -> Option<Vec<Way>> {
        let (fold, rest) = match regex.strip_prefix("(?i)") {
            Some(rest) => (true, rest),
            None => (false, regex),
        };
        let mut parser = Self { rest: rest.as_bytes(), fold };
        let ways = parser.alternatives()?;
        (parser.rest.is_empty() && rest.is_ascii()).then_some(ways)
    }

    fn alternatives(&mut self) -> Option<Vec<Way>> {
        let mut ways = self.sequence()?;
        while self.take(b"|") {
            ways.extend(self.sequence()?);
        }
        Some(if ways.len() > WAYS_MOST { vec![Way::cut()] } else { ways })
    }

    fn sequence(&mut self) -> Option<Vec<Way>> {
        let mut ways = vec![Way::default()];
        while let Some(first) = self.rest.first()
            && !matches!(first, b'|' | b')')
        {
            let atom = self.atom()?;
            let atom = self.repeated(atom)?;
            ways = join(ways, &atom);
        }
        Some(ways)
    }

    fn atom(&mut self) -> Option<Vec<Way>> {
        let part = match self.next()? {
            b'(' => {
                if self.rest.first() == Some(&b'?') && !self.take(b"?:") {
                    return None;
                }
                let ways = self.alternatives()?;
                return self.take(b")").then_some(ways);
            }
            b'[' => {
                let set = self.class()?;
                self.one(set)
            }
            b'.' => self.one(negated(single(b'\n'))),
            b'^' => Part::Edge(Edge::Start),
            b'$' => Part::Edge(Edge::Any),
            b'\\' => match self.next()? {
                b'b' => Part::Edge(Edge::Word),
                b'z' | b'B' => Part::Edge(Edge::Any),
                b'A' => Part::Edge(Edge::Start),
                letter => self.one(escaped(letter)?),
            },
            b'*' | b'+' | b'?' | b'{' | b'}' | b']' => return None,
            byte => self.one(single(byte)),
        };
        Some(vec![Way::of(part)])
    }

    fn one(&self, set: Set) -> Part {
        let set = if self.fold { folded(set) } else { set };
        Part::Run { set, least: 1, most: Some(1) }
    }

    /// The atom with the repetition that follows it, if one does.
    fn repeated(&mut self, atom: Vec<Way>) -> Option<Vec<Way>> {
        let (least, most) = match self.rest.first() {
            Some(b'?') => (0, Some(1)),
            Some(b'*') => (0, None),
            Some(b'+') => (1, None),
            Some(b'{') => {
                let end = self.rest.iter().position(|b| *b == b'}')?;
                let inner = std::str::from_utf8(&self.rest[1..end]).ok()?;
                self.rest = &self.rest[end..];
                match inner.split_once(',') {
                    None => (inner.parse().ok()?, Some(inner.parse().ok()?)),
                    Some((least, "")) => (least.parse().ok()?, None),
                    Some((least, most)) => (least.parse().ok()?, Some(most.parse().ok()?)),
                }
            }
            _ => return Some(atom),
        };
        self.next()?;
        // Whether it takes as little as it can makes no difference to what can match.
        self.take(b"?");
        if matches!(self.rest.first(), Some(b'?' | b'*' | b'+' | b'{')) {
            return None;
        }
        if (least, most) == (0, Some(1)) {
            return Some([vec![Way::default()], atom].concat());
        }
        if let [Way { parts, cut: false }] = atom.as_slice()
            && let [Part::Run { set, least: 1, most: Some(1) }] = parts.as_slice()
        {
            return Some(vec![Way::of(Part::Run { set: *set, least, most })]);
        }
        let mut ways = vec![Way::default()];
        for _ in 0..least.min(4) {
            ways = join(ways, &atom);
        }
        Some(if most == Some(least) && least <= 4 { ways } else { join(ways, &[Way::cut()]) })
    }

    /// The rest of a class whose bracket was taken.
    fn class(&mut self) -> Option<Set> {
        let negative = self.take(b"^");
        let mut set = [0; 4];
        // A bracket that comes first is no end; no rule needs that.
        if self.rest.first() == Some(&b']') {
            return None;
        }
        while !self.take(b"]") {
            // Classes within classes, and what is done with two of them.
            if self.rest.first() == Some(&b'[')
                || [b"&&", b"--", b"~~"].iter().any(|op| self.rest.starts_with(*op))
            {
                return None;
            }
            let (first, plain) = self.member()?;
            let ranged = self.rest.first() == Some(&b'-') && self.rest.get(1) != Some(&b']');
            if !ranged {
                set = union(set, first);
                continue;
            }
            self.next()?;
            if self.rest.first() == Some(&b'[') || self.rest.first() == Some(&b'-') {
                return None;
            }
            let (_, last) = self.member()?;
            let (from, to) = (plain?, last?);
            for byte in from..=to {
                set = union(set, single(byte));
            }
        }
        let set = if self.fold { folded(set) } else { set };
        Some(if negative { negated(set) } else { set })
    }

    /// A member of a class, and the byte that it is when it is one.
    fn member(&mut self) -> Option<(Set, Option<u8>)> {
        match self.next()? {
            b'\\' => {
                let letter = self.next()?;
                let plain = match letter {
                    b'n' => Some(b'\n'),
                    b'r' => Some(b'\r'),
                    b't' => Some(b'\t'),
                    letter if letter.is_ascii_alphanumeric() => None,
                    sign => Some(sign),
                };
                Some((escaped(letter)?, plain))
            }
            byte => Some((single(byte), Some(byte))),
        }
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take(&mut self, what: &[u8]) -> bool {
        match self.rest.strip_prefix(what) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

/// Each of the first ways followed by each of the second.
fn join(first: Vec<Way>, second: &[Way]) -> Vec<Way> {
    let open = first.iter().filter(|way| !way.cut).count();
    if first.len() - open + open * second.len() > WAYS_MOST {
        return first.into_iter().map(|way| Way { cut: true, ..way }).collect();
    }
    let mut ways = Vec::new();
    for way in first {
        if way.cut {
            ways.push(way);
            continue;
        }
        for next in second {
            ways.push(Way { parts: [way.parts.as_slice(), next.parts.as_slice()].concat(), cut: next.cut });
        }
    }
    ways
}

/// What a backslash and this character stand for, where that is a set of bytes.
fn escaped(letter: u8) -> Option<Set> {
    let all = |wanted: fn(&u8) -> bool| {
        (0..=u8::MAX).filter(wanted).fold([0; 4], |set, byte| union(set, single(byte)))
    };
    let space = |b: &u8| matches!(b, b'\t'..=b'\r' | b' ');
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    Some(match letter {
        b'd' => all(u8::is_ascii_digit),
        b'D' => negated(all(u8::is_ascii_digit)),
        b's' => all(space),
        b'S' => negated(all(space)),
        b'w' => all(word),
        b'W' => negated(all(word)),
        b'n' => single(b'\n'),
        b'r' => single(b'\r'),
        b't' => single(b'\t'),
        letter if letter.is_ascii_alphanumeric() => return None,
        sign => single(sign),
    })
}

fn single(byte: u8) -> Set {
    let mut set = [0; 4];
    set[usize::from(byte >> 6)] = 1 << (byte & 63);
    set
}

fn has(set: Set, byte: u8) -> bool {
    set[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
}

fn union(a: Set, b: Set) -> Set {
    [a[0] | b[0], a[1] | b[1], a[2] | b[2], a[3] | b[3]]
}

fn negated(set: Set) -> Set {
    set.map(|part| !part)
}

/// The set with both cases of every letter in it. Letters are all in the second part, their cases 32 places apart.
fn folded(set: Set) -> Set {
    const CAPITALS: u64 = 0x03ff_ffff << 1;
    let letters = (set[1] | set[1] >> 32) & CAPITALS;
    [set[0], set[1] | letters | letters << 32, set[2], set[3]]
}
