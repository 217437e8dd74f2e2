//! Keys that come from outside.

use std::str::FromStr;

use super::BadId;
use super::EventKey;

/// A key that a user or an agent chose for what they record, so that recording it again changes nothing.
///
/// Such keys have a namespace of their own: whatever is chosen, it is no key that segno itself makes, and no part of
/// another key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserKey(EventKey);

impl UserKey {
    /// The key under which it is recorded.
    pub fn event_key(&self) -> EventKey {
        let mut text = String::from("user:");
        for c in self.0.as_str().chars() {
            match c {
                // What follows a slash is a part of a key.
                '/' => text.push_str("%2F"),
                '%' => text.push_str("%25"),
                other => text.push(other),
            }
        }
        EventKey(super::fit_key(text, "user:".len()))
    }

    /// The key under which earlier versions recorded it, as it was typed: what they recorded is not recorded again.
    pub fn former(&self) -> EventKey {
        self.0.clone()
    }
}

impl FromStr for UserKey {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        text.parse().map(Self)
    }
}
