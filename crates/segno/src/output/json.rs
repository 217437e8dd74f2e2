//! JSON on the way out: one document, or one per line.
//!
//! JSON escapes C0 by itself; here everything else that a terminal might obey is escaped too, because people do look
//! at JSON in terminals. The escaped form means the same to every JSON reader.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;

use super::sanitize::is_unsafe;
use crate::error::CommandError;

/// One value as an indented document, without a final newline.
///
/// # Errors
/// If the value cannot be written as JSON, which is a defect of ours.
pub fn document(value: &impl Serialize) -> Result<String, CommandError> {
    serde_json::to_string_pretty(value)
        .map(|text| escape(&text).into_owned())
        .map_err(|error| CommandError::internal(format!("cannot write JSON: {error}")))
}

/// One value on one line, without a final newline.
///
/// # Errors
/// If the value cannot be written as JSON, which is a defect of ours.
pub fn compact(value: &impl Serialize) -> Result<String, CommandError> {
    serde_json::to_string(value)
        .map(|text| escape(&text).into_owned())
        .map_err(|error| CommandError::internal(format!("cannot write JSON: {error}")))
}

/// A JSON value on one line; this cannot fail.
pub fn line(value: &serde_json::Value) -> String {
    escape(&value.to_string()).into_owned()
}

/// JSON with everything escaped that a terminal might obey. Outside strings JSON has only ASCII and newlines, so
/// whatever is found here is inside a string.
pub(super) fn escape(json: &str) -> Cow<'_, str> {
    // Printable ASCII needs no closer look, and a list of many sessions is megabytes of it.
    let plain = json.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~' | b'\n' | b'\t'));
    if plain || !json.contains(is_unsafe) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 32);
    for c in json.chars() {
        if is_unsafe(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
