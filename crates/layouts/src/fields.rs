//! Reading the members of an object that somebody else wrote: what is not what it should be is left out and said, and what
//! nobody asked for is kept.

use segno_core::Timestamp;
use serde_json::Map;
use serde_json::Value;

use crate::files::Damage;
use crate::files::kind;

/// Clocks of machines differ a little; a moment further ahead than this is wrong.
const AHEAD_SECONDS: i64 = 300;

/// The members of one object, taken out one after the other.
pub(crate) struct Fields<'a> {
    file: &'a str,
    /// Where the object is in its file, such as `state.`; empty at the top.
    within: String,
    left: Map<String, Value>,
    now: Timestamp,
    warnings: Vec<String>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(file: &'a str, members: Map<String, Value>, now: Timestamp) -> Self {
        Self { file, within: String::new(), left: members, now, warnings: Vec::new() }
    }

    /// Whether there is such a member, whatever it is.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.left.contains_key(name)
    }

    fn unfit(&mut self, name: &str, value: &Value, wanted: &str) {
        let within = &self.within;
        self.warnings.push(format!(
            "{}: {within}{name} is {}, not {wanted}; left out",
            self.file,
            kind(value)
        ));
    }

    /// A member that is damage if it is not what it should be.
    pub(crate) fn damage(&self, name: &str, value: &Value, wanted: &str) -> Damage {
        Damage::new(self.file, format!("Invalid {}{name}: {} is not {wanted}", self.within, shown(value)))
    }

    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        match self.left.remove(name)? {
            Value::Null => None,
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            other => {
                self.unfit(name, &other, "text");
                None
            }
        }
    }

    pub(crate) fn number(&mut self, name: &str) -> Option<u64> {
        match self.left.remove(name)? {
            Value::Null => None,
            Value::Number(number) if number.as_u64().is_some() => number.as_u64(),
            Value::Number(number)
                if number.as_f64().is_some_and(|n| n >= 0.0 && n.fract() == 0.0 && n < 1e15) =>
            {
                number.as_f64().map(|n| n as u64)
            }
            Value::String(text) if text.parse::<u64>().is_ok() => text.parse().ok(),
            other => {
                self.unfit(name, &other, "a whole number from 0 up");
                None
            }
        }
    }

    pub(crate) fn flag(&mut self, name: &str) -> Option<bool> {
        match self.left.remove(name)? {
            Value::Null => None,
            Value::Bool(flag) => Some(flag),
            other => {
                self.unfit(name, &other, "true or false");
                None
            }
        }
    }

    pub(crate) fn list(&mut self, name: &str) -> Vec<Value> {
        match self.left.remove(name) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.unfit(name, &other, "a list");
                Vec::new()
            }
        }
    }

    /// A list of texts; what is no text in it is left out.
    pub(crate) fn texts(&mut self, name: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for item in self.list(name) {
            match item {
                Value::String(text) => texts.push(text),
                other => self.unfit(name, &other, "text"),
            }
        }
        texts
    }

    /// An object, to be read in the same way. What is left of it must be given back with [`Self::put_back`].
    pub(crate) fn object(&mut self, name: &str) -> Option<Fields<'a>> {
        match self.left.remove(name)? {
            Value::Null => None,
            Value::Object(members) => Some(Fields {
                file: self.file,
                within: format!("{}{name}.", self.within),
                left: members,
                now: self.now,
                warnings: Vec::new(),
            }),
            other => {
                self.unfit(name, &other, "an object");
                None
            }
        }
    }

    /// The objects of a list, each to be read in the same way.
    pub(crate) fn objects(&mut self, name: &str) -> Vec<Fields<'a>> {
        let mut objects = Vec::new();
        for (index, item) in self.list(name).into_iter().enumerate() {
            match item {
                Value::Object(members) => objects.push(Fields {
                    file: self.file,
                    within: format!("{}{name}[{index}].", self.within),
                    left: members,
                    now: self.now,
                    warnings: Vec::new(),
                }),
                other => self.unfit(&format!("{name}[{index}]"), &other, "an object"),
            }
        }
        objects
    }

    pub(crate) fn value(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }

    /// A moment; one that is none, or lies in the future, is damage.
    pub(crate) fn moment(&mut self, name: &str) -> Result<Option<Timestamp>, Damage> {
        let Some(value) = self.left.remove(name) else { return Ok(None) };
        let text = match &value {
            Value::Null => return Ok(None),
            Value::String(text) => text.clone(),
            other => return Err(self.damage(name, other, "a date and time")),
        };
        let at = moment(&text).ok_or_else(|| self.damage(name, &value, "a date and time"))?;
        if at > self.now.plus_seconds(AHEAD_SECONDS) {
            return Err(Damage::new(self.file, format!("Future timestamp: {}{name} is {text}", self.within)));
        }
        Ok(Some(at))
    }

    /// A moment of something small: one that is none is left out and said.
    pub(crate) fn some_moment(&mut self, name: &str) -> Option<Timestamp> {
        match self.moment(name) {
            Ok(at) => at,
            Err(damage) => {
                self.warnings.push(format!("{damage}; left out"));
                None
            }
        }
    }

    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(format!("{}: {}", self.file, text.into()));
    }

    /// What an inner object had to say; what is left of it goes back to where it was.
    pub(crate) fn put_back(&mut self, name: &str, inner: Self) {
        let (left, warnings) = inner.rest();
        self.warnings.extend(warnings);
        if !left.is_empty() {
            self.left.insert(name.to_owned(), Value::Object(left));
        }
    }

    /// Only what an inner object had to say.
    pub(crate) fn hear(&mut self, inner: Self) {
        self.warnings.extend(inner.warnings);
    }

    /// What nobody asked for, and what was said on the way.
    pub(crate) fn rest(self) -> (Map<String, Value>, Vec<String>) {
        (self.left, self.warnings)
    }
}

/// A moment with an offset, or without one, which then counts as UTC; a blank may stand for the T.
pub(crate) fn moment(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse().ok().or_else(|| format!("{text}Z").parse().ok())
}

fn shown(value: &Value) -> String {
    segno_core::text::shorten(&value.to_string(), 80)
}
