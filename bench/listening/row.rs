//! What one round says of one thing, and the arithmetic of it.

/// What must be so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// At most nginx's figure and so much more.
    OverNginx(f64),
    /// At most so many times the figure beside it.
    Times(f64),
    /// Told, and not judged.
    None,
}

/// Two figures of one round: ours, and the one beside it.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    pub unit: &'static str,
    pub ours: f64,
    /// What `beside` is.
    pub than: &'static str,
    pub beside: f64,
    pub bar: Bar,
}

impl Bar {
    /// What is judged of a row: a difference or a ratio.
    pub fn figure(self, ours: f64, beside: f64) -> f64 {
        match self {
            Bar::OverNginx(_) => ours - beside,
            Bar::Times(_) | Bar::None => ours / beside,
        }
    }

    pub fn holds(self, figure: f64) -> bool {
        match self {
            Bar::OverNginx(most) | Bar::Times(most) => figure <= most,
            Bar::None => true,
        }
    }
}

/// The value below which a share of them lies; the nearest one that is there.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    assert!(!values.is_empty(), "a percentile of nothing");
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let below = sorted
        .iter()
        .enumerate()
        .find(|(n, _)| (n + 1) as f64 >= share * sorted.len() as f64);
    below.map_or(sorted[sorted.len() - 1], |(_, value)| *value)
}

pub fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}
