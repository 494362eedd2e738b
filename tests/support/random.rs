//! Reproducible chance: the same seed, the same stream, the same failure.

/// xorshift64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % limit.max(1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// The bytes cut at up to `most` places, in order; now and then a piece is empty.
    pub fn pieces<'a>(&mut self, bytes: &'a [u8], most: usize) -> Vec<&'a [u8]> {
        let mut cuts: Vec<usize> = (0..self.below(most + 1))
            .map(|_| self.below(bytes.len() + 1))
            .collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect()
    }
}
