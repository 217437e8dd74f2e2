//! The checksum of a checkpoint file. The documents leave open what it is over, since it stands in the file itself; here it
//! is over the file without the members that change later, as JSON with sorted names and no blanks.

use serde_json::Map;
use serde_json::Value;

use crate::packed::sha256;

/// Members that are no part of it.
const LEFT_OUT: [&str; 5] = ["checksum", "valid", "invalidated_by", "corrupted_at", crate::EXTENSION];

/// `sha256:` and the hash.
pub(super) fn checksum(members: &Map<String, Value>) -> String {
    let kept: Map<String, Value> = members
        .iter()
        .filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    // The names of a map are sorted.
    format!("sha256:{}", sha256(Value::Object(kept).to_string().as_bytes()))
}
