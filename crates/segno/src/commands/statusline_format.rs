//! What `segno statusline --format` understands.

use crate::output::Text;

/// Groups within groups, at most.
const DEEPEST: usize = 8;

/// A value that a line can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The session, shortened.
    Session,
    /// What it is about.
    Topic,
    /// Where it stands.
    Status,
    /// Which agent works.
    Agent,
    /// With which model.
    Model,
    /// How much of its context is used.
    Context,
    /// The phase and step.
    Phase,
    /// The iteration of a loop.
    Iteration,
    /// Tokens used.
    Tokens,
    /// Tokens used and allowed.
    Budget,
    /// Money used, and allowed.
    Cost,
    /// The windows of the plan.
    Limits,
    /// The breaker, unless it is closed.
    Breaker,
    /// The last checkpoint and its age.
    Checkpoint,
    /// Calls in doubt.
    Doubt,
}

const NAMES: &[(&str, Part)] = &[
    ("session", Part::Session),
    ("topic", Part::Topic),
    ("status", Part::Status),
    ("agent", Part::Agent),
    ("model", Part::Model),
    ("context", Part::Context),
    ("phase", Part::Phase),
    ("iteration", Part::Iteration),
    ("tokens", Part::Tokens),
    ("budget", Part::Budget),
    ("cost", Part::Cost),
    ("limits", Part::Limits),
    ("breaker", Part::Breaker),
    ("checkpoint", Part::Checkpoint),
    ("doubt", Part::Doubt),
];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value(Part),
    Group(Vec<Piece>),
}

/// A line with places for values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format(Vec<Piece>);

impl Format {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text.chars();
        let pieces = pieces(&mut rest, 0)?;
        Ok(Self(pieces))
    }

    /// The line with its values.
    pub fn fill(&self, value: &dyn Fn(Part) -> Option<Text>) -> Text {
        fill(&self.0, value).0
    }
}

fn pieces(rest: &mut std::str::Chars<'_>, depth: usize) -> Result<Vec<Piece>, String> {
    if depth > DEEPEST {
        return Err("there are too many [ in each other".to_owned());
    }
    let (mut pieces, mut text) = (Vec::new(), String::new());
    loop {
        let next = rest.next();
        if matches!(next, Some('{' | '[' | ']') | None) && !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        match next {
            Some('{') => pieces.push(Piece::Value(name(rest)?)),
            Some('[') => pieces.push(Piece::Group(self::pieces(rest, depth + 1)?)),
            Some(']') if depth > 0 => return Ok(pieces),
            Some(']') => return Err("a ] has no [ before it".to_owned()),
            Some('}') => return Err("a } has no { before it".to_owned()),
            Some('\\') => text.push(rest.next().ok_or("it ends with a backslash")?),
            Some(other) => text.push(other),
            None if depth > 0 => return Err("a [ has no ] after it".to_owned()),
            None => return Ok(pieces),
        }
    }
}

fn name(rest: &mut std::str::Chars<'_>) -> Result<Part, String> {
    let (name, after) = rest.as_str().split_once('}').ok_or("a { has no } after it")?;
    let found = NAMES.iter().find(|(known, _)| *known == name).map(|(_, part)| *part);
    *rest = after.chars();
    found.ok_or_else(|| {
        let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        format!("{{{name}}} is none of {}", known.join(", "))
    })
}

/// The text, and whether any value in it is known.
fn fill(pieces: &[Piece], value: &dyn Fn(Part) -> Option<Text>) -> (Text, bool) {
    let (mut line, mut knows) = (Text::new(), false);
    for piece in pieces {
        match piece {
            Piece::Text(text) => line = line.plain(text.clone()),
            Piece::Value(part) => {
                if let Some(text) = value(*part).filter(|text| !text.is_empty()) {
                    (line, knows) = (line.then(text), true);
                }
            }
            Piece::Group(inner) => {
                let (text, known) = fill(inner, value);
                if known {
                    (line, knows) = (line.then(text), true);
                }
            }
        }
    }
    (line, knows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: &str) -> String {
        let value = |part| match part {
            Part::Session => Some(Text::from("…123456")),
            Part::Phase => Some(Text::from("RED")),
            _ => None,
        };
        Format::parse(format).unwrap().fill(&value).to_line()
    }

    #[test]
    fn what_is_not_known_goes_with_its_group() {
        assert_eq!(line("{session}[ · {phase}][ · {doubt}]!"), "…123456 · RED!");
        assert_eq!(line("[a {doubt} b [c {phase}]]"), "a  b c RED");
        assert_eq!(line("\\[{phase}\\] \\{x\\} \\\\"), "[RED] {x} \\");
        assert_eq!(line(""), "");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (format, wrong) in [
            ("{sesion}", "{sesion} is none of session, topic"),
            ("{session", "a { has no } after it"),
            ("[x", "a [ has no ] after it"),
            ("x]", "a ] has no [ before it"),
            ("x}", "a } has no { before it"),
            ("x\\", "it ends with a backslash"),
        ] {
            assert!(Format::parse(format).unwrap_err().starts_with(wrong), "{format}");
        }
        assert!(Format::parse(&"[".repeat(20)).unwrap_err().contains("too many"));
    }
}
