//! FNV-1a: a small hash that is the same on every machine and in every version. Not made against somebody who looks for two
//! equal ones.

/// Where a hash begins.
pub const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash of bytes.
pub fn hash(bytes: &[u8]) -> u64 {
    hash_from(BASIS, bytes)
}

/// The hash of bytes that begins elsewhere.
pub fn hash_from(basis: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(basis, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hashes() {
        assert_eq!(hash(b""), BASIS);
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
