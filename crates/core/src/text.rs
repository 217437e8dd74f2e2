//! Text that may be long: kept in the event, or set aside as a blob with an excerpt.

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;

/// The member name that marks a blob reference wherever text or JSON may stand.
pub const BLOB_MEMBER: &str = "$blob";

/// Text inside an event: whole, or set aside because it was long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// All of it.
    Whole(String),
    /// The beginning of it, and where the rest is.
    Aside(Aside),
}

/// A reference to a blob of the store, with enough of it to read on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aside {
    /// The content's BLAKE3 hash in hexadecimal: the blob's name.
    #[serde(rename = "$blob")]
    pub hash: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// How it begins.
    pub excerpt: String,
    /// True if the blob holds JSON text in place of a JSON value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub json: bool,
}

impl Text {
    /// All of it, or how it begins.
    pub fn excerpt(&self) -> &str {
        match self {
            Self::Whole(text) => text,
            Self::Aside(aside) => &aside.excerpt,
        }
    }

    /// How many bytes the whole text has.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Whole(text) => text.len() as u64,
            Self::Aside(aside) => aside.bytes,
        }
    }

    /// Its beginning, at most `max` characters, cut with an ellipsis.
    pub fn short(&self, max: usize) -> String {
        shorten(self.excerpt(), max)
    }
}

/// The first `max` characters, the last of them an ellipsis if something was cut.
pub fn shorten(text: &str, max: usize) -> String {
    if text.chars().nth(max).is_none() {
        return text.to_owned();
    }
    text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}

impl Default for Text {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::Whole(text.to_owned())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::Whole(text)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Whole(text) => serializer.serialize_str(text),
            Self::Aside(aside) => aside.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, or a reference to a blob")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(text.into())
            }
            fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Text, E> {
                Ok(text.into())
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Text, A::Error> {
                Aside::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Text::Aside)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_survive_json() {
        let whole: Text = "a\nb".into();
        let aside = Text::Aside(Aside { hash: "ab".into(), bytes: 9_000, excerpt: "a".into(), json: false });
        for text in [whole, aside] {
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(serde_json::from_str::<Text>(&json).unwrap(), text, "{json}");
        }
    }

    #[test]
    fn shortening_counts_characters() {
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten("äöüß", 3), "äö…");
    }
}
