//! How random a value looks.

/// Shannon entropy of the bytes, in bits per byte. Empty input has none.
pub(crate) fn bits(bytes: &[u8]) -> f32 {
    if bytes.is_empty() {
        return 0.0;
    }
    let mut counts = [0u32; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let total = bytes.len() as f32;
    counts
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| {
            let share = count as f32 / total;
            -share * share.log2()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::bits;

    #[test]
    fn even_distribution_is_log2_of_the_alphabet() {
        assert_eq!(bits(b""), 0.0);
        assert_eq!(bits(b"aaaaaaaa"), 0.0);
        assert!((bits(b"abcdabcd") - 2.0).abs() < 1e-6);
    }
}
