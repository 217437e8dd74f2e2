//! The stored forms of a state and of texts that were set aside.

use std::io::Read;

use segno_core::State;
use segno_core::text::BLOB_MEMBER;
use serde_json::Value;

use crate::error::Certainty;
use crate::error::Error;

/// A state as it is stored: JSON, and a digest that ties it to its place in the journal.
pub(crate) fn encode_state(state: &State, location: &str) -> Result<(String, [u8; 16]), Error> {
    let body = serde_json::to_string(state).map_err(|why| Error::Failed {
        location: location.to_owned(),
        what: format!("the state cannot be written: {why}"),
        certainty: Certainty::NotWritten,
    })?;
    let digest = state_digest(state.seq, &body);
    Ok((body, digest))
}

/// The state, if it is what was stored.
pub(crate) fn decode_state(seq: u64, body: &str, digest: &[u8]) -> Option<State> {
    if digest != state_digest(seq, body) {
        return None;
    }
    serde_json::from_str(body).ok().filter(|state: &State| state.seq == seq)
}

fn state_digest(seq: u64, body: &str) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key("segno state 1");
    hasher.update(&seq.to_le_bytes());
    hasher.update(body.as_bytes());
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}

/// The names of the texts that a body refers to.
pub fn references(body: &str) -> Vec<[u8; 32]> {
    let mut found = Vec::new();
    // Few events have one: reading all of them once more would cost.
    if body.contains(BLOB_MEMBER)
        && let Ok(value) = serde_json::from_str(body)
    {
        find_references(&value, &mut found);
    }
    found
}

fn find_references(value: &Value, found: &mut Vec<[u8; 32]>) {
    match value {
        Value::Object(members) => {
            let name = members.get(BLOB_MEMBER).and_then(Value::as_str);
            found
                .extend(name.and_then(|name| blake3::Hash::from_hex(name).ok()).map(|hash| *hash.as_bytes()));
            members.values().for_each(|member| find_references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| find_references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Texts are compressed lightly: they are written once, on a path where time counts.
pub(crate) fn compress(text: &str) -> std::io::Result<Vec<u8>> {
    zstd::bulk::compress(text.as_bytes(), 1)
}

/// The text, if its bytes are what the hash says. It is unpacked bit by bit and never beyond `bytes`: a damaged
/// length must not cost memory.
pub(crate) fn decompress(content: &[u8], bytes: u64, hash: &[u8]) -> Option<String> {
    let text = unpack(content, bytes)?;
    if blake3::hash(&text).as_bytes().as_slice() != hash {
        return None;
    }
    String::from_utf8(text).ok()
}

/// The bytes, whatever they are.
pub(crate) fn unpack(content: &[u8], bytes: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut packed = zstd::stream::read::Decoder::new(content).ok()?.take(bytes.saturating_add(1));
    packed.read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::compress;
    use super::decompress;

    #[test]
    fn long_texts_are_stored_compressed() {
        let text = "a line of a log that says much the same as the one before\n".repeat(2_000);
        let packed = compress(&text).unwrap();
        assert!(packed.len() * 20 < text.len(), "{} of {}", packed.len(), text.len());
        let hash = blake3::hash(text.as_bytes());
        assert_eq!(decompress(&packed, text.len() as u64, hash.as_bytes()), Some(text));
    }
}
