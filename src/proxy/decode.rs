//! Bodies that an upstream compressed although it was asked not to: read, counted and passed on without the compression.

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use std::io::{self, Write};

/// What one read may grow to. A stream that grows by more is a bomb, not an answer.
const GROWN_MAX: usize = 16 * 1024 * 1024;

/// Undoes one content coding (RFC 9110, section 8.4).
pub enum Decoder {
    Gzip(Box<MultiGzDecoder<Grown>>),
    Brotli(Box<brotli::DecompressorWriter<Grown>>),
}

/// What a read has grown to so far.
#[derive(Default)]
pub struct Grown(Vec<u8>);

impl Write for Grown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > GROWN_MAX {
            return Err(io::Error::other("a read grew too large"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// The decoder of a `Content-Encoding`; nothing where there is none that is known.
    pub fn of(coding: &[u8]) -> Option<Decoder> {
        let coding = coding.trim_ascii().to_ascii_lowercase();
        match coding.as_slice() {
            b"gzip" | b"x-gzip" => Some(Decoder::Gzip(Box::new(MultiGzDecoder::new(
                Grown::default(),
            )))),
            b"br" => Some(Decoder::Brotli(Box::new(brotli::DecompressorWriter::new(
                Grown::default(),
                4096,
            )))),
            _ => None,
        }
    }

    /// What a piece decodes to, as far as it can be told by now.
    pub fn feed(&mut self, piece: &[u8]) -> Result<Bytes, &'static str> {
        let (written, grown) = match self {
            Decoder::Gzip(gzip) => (
                gzip.write_all(piece).and_then(|()| gzip.flush()),
                gzip.get_mut(),
            ),
            Decoder::Brotli(br) => (br.write_all(piece).and_then(|()| br.flush()), br.get_mut()),
        };
        match written {
            Ok(()) => Ok(Bytes::from(std::mem::take(&mut grown.0))),
            Err(_) => Err("the upstream's compressed answer cannot be decoded"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    #[test]
    fn each_flushed_event_decodes_at_once_in_any_split() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let mut decoder = Decoder::of(b"GZIP").unwrap();
        for event in ["data: a\n\n", "data: 北\n\n"] {
            encoder.write_all(event.as_bytes()).unwrap();
            encoder.flush().unwrap();
            let packed = std::mem::take(encoder.get_mut());
            let plain: Vec<u8> = packed
                .chunks(3)
                .flat_map(|piece| decoder.feed(piece).unwrap())
                .collect();
            assert_eq!(plain, event.as_bytes());
        }
    }

    #[test]
    fn what_is_not_compressed_as_it_says_is_an_error_and_a_bomb_is_too() {
        assert!(
            Decoder::of(b"gzip")
                .unwrap()
                .feed(b"data: plain text\n\n")
                .is_err()
        );
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&vec![0; GROWN_MAX + 1]).unwrap();
        let packed = encoder.finish().unwrap();
        assert!(Decoder::of(b"gzip").unwrap().feed(&packed).is_err());
    }

    #[test]
    fn brotli_decodes_too() {
        let mut packed = Vec::new();
        let mut encoder = brotli::CompressorWriter::new(&mut packed, 4096, 5, 20);
        encoder.write_all(b"data: a\n\n").unwrap();
        encoder.flush().unwrap();
        drop(encoder);
        let plain = Decoder::of(b"br").unwrap().feed(&packed).unwrap();
        assert_eq!(plain.as_ref(), b"data: a\n\n");
    }

    #[test]
    fn an_unknown_coding_has_no_decoder() {
        assert!(Decoder::of(b"zstd").is_none());
        assert!(Decoder::of(b"identity").is_none());
    }
}
