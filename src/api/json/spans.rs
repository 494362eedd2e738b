//! Runs of bytes within JSON: how far a plain piece of a string goes, what a number or literal is made of.

use super::number::Number;

/// The bytes that numbers and literals are made of.
const BARE: [bool; 256] = {
    let mut bare = [false; 256];
    let mut byte = 0u8;
    while byte < 128 {
        bare[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        byte += 1;
    }
    bare
};

pub fn is_bare(byte: u8) -> bool {
    BARE.get(usize::from(byte)) == Some(&true)
}

pub fn is_json(raw: &[u8]) -> bool {
    matches!(raw, b"true" | b"false" | b"null") || Number::of(raw).is_some()
}

/// How many bytes come before the first quote, backslash or control character: eight at a time.
pub fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zero_in = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut run = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        let quote = zero_in(word ^ (ONES * u64::from(b'"')));
        let backslash = zero_in(word ^ (ONES * u64::from(b'\\')));
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let special = quote | backslash | control;
        if special != 0 {
            return run + special.trailing_zeros() as usize / 8;
        }
        run += 8;
    }
    let special = |b: &u8| matches!(b, b'"' | b'\\' | 0..0x20);
    run + rest.iter().position(special).unwrap_or(rest.len())
}
