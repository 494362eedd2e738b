//! What an input of the fuzzer stands for: a call, the options of its answer, a way to cut it, and the stream itself.

use crate::api::{Answer, AnswerOptions, Call, Shape, native};
use crate::budget::Units;
use crate::config::LineEnds;

const HEADER: usize = 4;

/// The first four bytes choose; as digits they read well in a seed. The first is the call, in the order of
/// `Call::ALL`; the second sums 1 for hidden usage, 2 for LF line ends, 4 for a whole document; the others seed the
/// cuts.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub call: Call,
    pub shape: Shape,
    pub options: AnswerOptions,
    pub seed: u64,
    pub stream: &'a [u8],
}

impl Case<'_> {
    pub fn of(input: &[u8]) -> Option<Case<'_>> {
        let (header, stream) = input.split_at_checked(HEADER)?;
        let digits: Vec<u8> = header.iter().map(|b| b.wrapping_sub(b'0')).collect();
        let flag = |bit: u8| digits[1] & bit != 0;
        Some(Case {
            call: Call::ALL[usize::from(digits[0]) % Call::ALL.len()],
            shape: if flag(4) { Shape::Whole } else { Shape::Events },
            options: AnswerOptions {
                hide_usage: flag(1),
                line_ends: if flag(2) {
                    LineEnds::Lf
                } else {
                    LineEnds::Keep
                },
                bytes_per_unit: 4,
            },
            seed: u64::from(digits[2]) << 8 | u64::from(digits[3]),
            stream,
        })
    }

    pub fn answer(&self) -> Answer {
        if self.call != Call::Native {
            return Answer::new(self.call, self.shape, self.options);
        }
        let about = native::About {
            request_id: "r-1".to_owned(),
            model: "m".to_owned(),
            input_estimate: Units(3),
        };
        Answer::native(self.shape, self.options, about)
    }

    /// The client gets the upstream's own events.
    pub fn passes_events(&self) -> bool {
        self.shape == Shape::Events && self.call != Call::Native
    }

    /// The stream in pieces, now and then an empty one.
    pub fn pieces(&self) -> Vec<&[u8]> {
        let mut random = Random::new(self.seed);
        let most = [1, 2, 5, 40, 4096][random.below(5)];
        let mut pieces = Vec::new();
        let mut rest = self.stream;
        while !rest.is_empty() {
            let length = random.below(most + 1).min(rest.len());
            let (piece, after) = rest.split_at(length);
            pieces.push(piece);
            rest = after;
        }
        pieces
    }
}

/// Reproducible chance: xorshift64.
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
}
