//! The middle of some figures.

use std::borrow::Borrow;

/// The middle one, or between the two in the middle.
pub fn median(values: impl IntoIterator<Item: Borrow<f64>>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().map(|v| *v.borrow()).collect();
    assert!(!sorted.is_empty(), "a median of nothing");
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    }
}
