//! JSON kept exactly as it came.

use std::fmt;

use serde::Deserialize;
use serde::Serialize;
use serde::Serializer;
use serde_json::value::RawValue;

/// A piece of valid JSON whose bytes are never touched: number formats, key order and repeated keys survive.
///
/// Tool inputs and outputs can be megabytes; keeping the text also avoids building a tree nobody walks.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Raw(Box<RawValue>);

impl Raw {
    /// Takes text that must be one valid JSON value.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<&RawValue>(text).map(|raw| Self(raw.to_owned()))
    }

    /// The JSON `null`.
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// A JSON string holding `text`.
    pub fn string(text: &str) -> Self {
        serde_json::value::to_raw_value(text).map_or_else(|_| Self::null(), Self)
    }

    /// Any serialisable value; what cannot be written as JSON becomes `null`.
    pub fn from_value(value: &impl Serialize) -> Self {
        serde_json::value::to_raw_value(value).map_or_else(|_| Self::null(), Self)
    }

    /// The text as it came.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The value read into a type of the caller's choice, if it has that shape.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(self.get()).ok()
    }

    /// Whether this is the JSON `null`.
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }
}

impl Serialize for Raw {
    /// Events are written one per line. In valid JSON a line break can only stand between values, never inside of a
    /// string, so it may become a space.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = self.get().as_bytes();
        if !bytes.contains(&b'\n') && !bytes.contains(&b'\r') {
            return self.0.serialize(serializer);
        }
        match RawValue::from_string(self.get().replace(['\n', '\r'], " ")) {
            Ok(line) => line.serialize(serializer),
            Err(_) => self.0.serialize(serializer),
        }
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::Raw;

    #[test]
    fn nothing_changes_but_line_breaks() {
        let text = "{\"b\": 1.50,\n\"a\":[1e3 , \"x\\ny\"],\"a\":2}";
        let raw = Raw::parse(text).unwrap();
        assert_eq!(raw.get(), text);
        assert_eq!(serde_json::to_string(&raw).unwrap(), text.replace('\n', " "));
    }
}
