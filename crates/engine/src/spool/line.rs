//! One file of the spool: facts that belong together, and a checksum over them.

use segno_core::EventKey;
use segno_core::RunId;
use segno_core::SessionId;
use segno_core::StoreId;
use segno_core::Timestamp;
use serde::Deserialize;
use serde::Serialize;

use crate::watch::Beginning;

/// How a file with a checksum begins. The checksum is over everything behind it but the last line break. Programs that
/// know of none skip it as a member that they do not know.
const BEFORE: &str = "{\"checksum\":\"";
const BEHIND: &str = "\",";
const DIGITS: usize = 64;

/// What a file holds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Line {
    /// For which store it is meant. Earlier programs did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) store: Option<StoreId>,
    pub(crate) session: SessionId,
    pub(super) key: EventKey,
    pub(super) at: Timestamp,
    pub(crate) run: Option<RunId>,
    pub(super) epoch: Option<u64>,
    /// How the conversation began, if no store knew it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) begins: Option<Box<Beginning>>,
    pub(super) events: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) kind: String,
    pub(super) version: u32,
    pub(super) body: serde_json::Value,
    /// Texts that were set aside, whole: the spool has no blobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) blobs: Vec<String>,
}

impl Line {
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let json = serde_json::to_vec(self)?;
        let members = json.get(1..).unwrap_or_default();
        let checksum = blake3::hash(members).to_hex();
        let mut text = [BEFORE, checksum.as_str(), BEHIND].concat().into_bytes();
        text.extend_from_slice(members);
        text.push(b'\n');
        Ok(text)
    }

    /// Reads a file, or says what is wrong with it.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let checksum = bytes.strip_prefix(BEFORE.as_bytes()).and_then(|rest| rest.split_at_checked(DIGITS));
        let checked = match checksum {
            Some((digits, rest)) => {
                let members = rest.strip_prefix(BEHIND.as_bytes()).unwrap_or_default();
                if blake3::hash(members).to_hex().as_bytes() != digits {
                    return Err("it is not what was written: its checksum differs".to_owned());
                }
                true
            }
            None => false,
        };
        let line: Self = serde_json::from_slice(bytes).map_err(|why| why.to_string())?;
        // Only programs that knew neither wrote files without a checksum.
        if line.store.is_some() && !checked {
            return Err("it is not what was written: its checksum is missing".to_owned());
        }
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        Line {
            store: Some(StoreId::new(uuid::Uuid::from_u128(7))),
            session: "session_20260116_100000_000000".parse().unwrap(),
            key: "k".parse().unwrap(),
            at: Timestamp::EPOCH,
            run: None,
            epoch: None,
            begins: None,
            events: vec![Entry {
                kind: "tokens_recorded".to_owned(),
                version: 1,
                body: serde_json::json!({ "input": 777 }),
                blobs: Vec::new(),
            }],
        }
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let bytes = line().to_bytes().unwrap();
        assert_eq!(Line::read(&bytes).unwrap().store, line().store);
        for index in 0..bytes.len() - 1 {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[index] ^= 1 << bit;
                assert!(Line::read(&changed).is_err(), "byte {index}, bit {bit}");
            }
        }
    }

    #[test]
    fn files_of_earlier_programs_are_read() {
        let old = Line { store: None, ..line() };
        let text = serde_json::to_vec(&old).unwrap();
        assert_eq!(Line::read(&text).unwrap().store, None);
        // And they read ours.
        let value: serde_json::Value = serde_json::from_slice(&line().to_bytes().unwrap()).unwrap();
        assert_eq!(value["key"], "k");
    }
}
