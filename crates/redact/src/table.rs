//! What the build script and the crate have to agree on about the table of keywords.

/// What every tag begins with. It is a keyword too, so that tags are known while scanning.
pub(crate) const TAG_OPENING: &str = "[redacted:";

/// There are two to this power slots: few enough for the fastest memory, many enough to leave most of them empty.
pub(crate) const SLOT_BITS: u32 = 16;

/// The bit that tells small letters from capitals, in every byte. Setting it also mixes up a few other characters;
/// that only leads to some comparisons in vain, and is one instruction for many bytes.
pub(crate) const SMALL: u64 = 0x2020_2020_2020_2020;

/// The slot for the last three bytes of a keyword, which have [`SMALL`] set; the last byte is the third lowest of the
/// argument and the highest one does not count.
pub(crate) const fn slot(three: u32) -> usize {
    slot_of_four(three << 8)
}

/// The slot for the last four bytes, the last being the highest of the argument. Many words share their last three
/// bytes with a keyword, few their last four.
pub(crate) const fn slot_of_four(four: u32) -> usize {
    (four.wrapping_mul(0x9e37_79b1) >> (32 - SLOT_BITS)) as usize
}

/// The slots in which a keyword has to be entered: one for its last three bytes; for a shorter one, which may have
/// anything before it, many.
pub(crate) fn slots(word: &[u8]) -> impl Iterator<Item = usize> {
    let last = |back: usize| word.len().checked_sub(back).map(|at| u32::from(word[at]));
    let any = |byte: Option<u32>| byte.map_or(0..256, |byte| byte..byte + 1);
    let (one, two, three) = (last(1), any(last(2)), any(last(3)));
    one.into_iter().flat_map(move |one| {
        let three = three.clone();
        two.clone().flat_map(move |two| {
            three.clone().map(move |three| slot((one << 16 | two << 8 | three) | SMALL as u32))
        })
    })
}
