//! `line_ends = "lf"`: CRLF and CR come out as LF, also where a pair is cut between two reads.

use bytes::Bytes;
use memchr::memchr;

/// Turns every line end into LF. Bytes without a CR pass without a copy.
#[derive(Clone, Debug, Default)]
pub struct ToLf {
    /// The last byte seen was a CR: a LF that follows belongs to it and has been written.
    after_cr: bool,
}

impl ToLf {
    pub fn apply(&mut self, bytes: Bytes) -> Bytes {
        let Some(&last) = bytes.last() else {
            return bytes;
        };
        let paired = self.after_cr && bytes.first() == Some(&b'\n');
        self.after_cr = last == b'\r';
        let rest = bytes.slice(usize::from(paired)..);
        match memchr(b'\r', &rest) {
            None => rest,
            Some(first) => Bytes::from(replaced(&rest, first)),
        }
    }
}

/// The bytes with every line end as LF; the first CR stands at `first`.
fn replaced(bytes: &[u8], first: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let (before, mut rest) = bytes.split_at(first);
    out.extend_from_slice(before);
    while let [b'\r', b'\n', after @ ..] | [b'\r', after @ ..] = rest {
        out.push(b'\n');
        let next = memchr(b'\r', after).unwrap_or(after.len());
        let (plain, from_cr) = after.split_at(next);
        out.extend_from_slice(plain);
        rest = from_cr;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_end_becomes_lf_wherever_the_bytes_are_cut() {
        let text = b"a\r\nb\rc\n\r\r\n\n\rd\r\r\n\r\n";
        let want = b"a\nb\nc\n\n\n\n\nd\n\n\n";
        for cut in 0..=text.len() {
            for second in cut..=text.len() {
                let mut to_lf = ToLf::default();
                let mut got = Vec::new();
                for piece in [&text[..cut], &text[cut..second], &text[second..]] {
                    got.extend_from_slice(&to_lf.apply(Bytes::copy_from_slice(piece)));
                }
                assert_eq!(got, want, "cut at {cut} and {second}");
            }
        }
    }

    #[test]
    fn bytes_without_a_cr_are_not_copied() {
        let bytes = Bytes::from_static(b"data: x\n\n");
        let out = ToLf::default().apply(bytes.clone());
        assert_eq!(out.as_ptr(), bytes.as_ptr());
    }
}
