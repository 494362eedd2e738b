//! Which known word a misspelt one was meant to be.

/// The candidate fewest edits away, if that is few enough for a slip.
pub(super) fn nearest<'c>(word: &str, known: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let slips = 1 + word.chars().count() / 5;
    known
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(edits, _)| *edits <= slips)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Letters put in, left out, replaced, or swapped with their neighbour; `-` and `_` and the case count as the same.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (letters(a), letters(b));
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |line: &[usize], k: usize| line.get(k).copied().unwrap_or(usize::MAX / 2);
            let replaced = at(&above, j) + usize::from(x != y);
            let mut edits = replaced.min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            if swapped(&a, i, &b, j) {
                edits = edits.min(at(&before, j - 1) + 1);
            }
            row.push(edits);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(0)
}

fn swapped(a: &[char], i: usize, b: &[char], j: usize) -> bool {
    i > 0 && j > 0 && a.get(i) == b.get(j - 1) && a.get(i - 1) == b.get(j)
}

fn letters(word: &str) -> Vec<char> {
    word.chars()
        .map(|c| {
            if c == '-' {
                '_'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["threads", "max_body", "heartbeat", "h2"];

    #[test]
    fn a_slip_finds_the_word_that_was_meant() {
        for (slip, meant) in [
            ("threds", "threads"),
            ("thraeds", "threads"),
            ("hartbeat", "heartbeat"),
            ("max-body", "max_body"),
            ("maxBody", "max_body"),
            ("H2", "h2"),
        ] {
            assert_eq!(nearest(slip, KNOWN.into_iter()), Some(meant), "{slip}");
        }
    }

    #[test]
    fn another_word_finds_none() {
        for word in ["", "colour", "max_streams", "keepalive"] {
            assert_eq!(nearest(word, KNOWN.into_iter()), None, "{word}");
        }
    }
}
