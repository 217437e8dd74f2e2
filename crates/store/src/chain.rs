//! The hash chain: each event's hash covers the event and the hash before it.

use segno_core::Uid;

/// The fields that a hash covers.
pub struct Link<'a> {
    /// The event's number.
    pub seq: u64,
    /// When it happened, in microseconds since 1970.
    pub at_us: i64,
    /// The writer's key.
    pub key: &'a str,
    /// The run it belongs to.
    pub run: Option<&'a str>,
    /// The driver's epoch.
    pub epoch: Option<u64>,
    /// Its kind.
    pub kind: &'a str,
    /// The version of its form.
    pub version: u32,
    /// Its body.
    pub body: &'a str,
}

/// What the first event is chained to.
pub fn start(uid: &Uid) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("segno journal 1");
    hasher.update(uid.as_bytes());
    *hasher.finalize().as_bytes()
}

/// The hash of an event that follows one with the hash `before`.
pub fn next(before: &[u8; 32], link: &Link<'_>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(before);
    hasher.update(&link.seq.to_le_bytes());
    hasher.update(&link.at_us.to_le_bytes());
    hasher.update(&link.version.to_le_bytes());
    hasher.update(&link.epoch.map_or(u64::MAX, |epoch| epoch).to_le_bytes());
    hasher.update(&[u8::from(link.run.is_some()), u8::from(link.epoch.is_some())]);
    for text in [link.key, link.run.unwrap_or(""), link.kind, link.body] {
        // The length goes first, so that no two lists of fields look the same.
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// The seal of an event that a text was taken out of. The event keeps `hash`, which what follows is chained to; the seal
/// covers that, and the event as it is now, in the place of the hash that its content does not have any more.
pub fn seal(before: &[u8; 32], hash: &[u8; 32], link: &Link<'_>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("segno forgotten 1");
    hasher.update(hash);
    hasher.update(&next(before, link));
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link<'a>(key: &'a str, body: &'a str) -> Link<'a> {
        Link { seq: 1, at_us: 2, key, run: None, epoch: None, kind: "k", version: 1, body }
    }

    #[test]
    fn every_field_counts() {
        let zero = [0; 32];
        let base = next(&zero, &link("a", "b"));
        let others = [
            next(&[1; 32], &link("a", "b")),
            next(&zero, &link("ab", "")),
            next(&zero, &link("a", "c")),
            next(&zero, &Link { seq: 2, ..link("a", "b") }),
            next(&zero, &Link { at_us: 3, ..link("a", "b") }),
            next(&zero, &Link { run: Some(""), ..link("a", "b") }),
            next(&zero, &Link { epoch: Some(u64::MAX), ..link("a", "b") }),
            next(&zero, &Link { version: 2, ..link("a", "b") }),
            next(&zero, &Link { kind: "l", ..link("a", "b") }),
        ];
        for other in others {
            assert_ne!(base, other);
        }
    }
}
