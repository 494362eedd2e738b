//! The Prometheus text format, read back.

/// One line of a scrape.
#[derive(Debug, PartialEq)]
pub struct Series<'a> {
    pub name: &'a str,
    pub labels: Vec<(&'a str, &'a str)>,
    pub value: f64,
}

impl Series<'_> {
    /// Whether it has all these labels with these values.
    pub fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels.iter().all(|label| self.labels.contains(label))
    }
}

/// The series of a scrape. Label values with a comma or a quote in them are not ours.
pub fn parse(text: &str) -> impl Iterator<Item = Series<'_>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let labels = labels.trim_end_matches('}').split(',').filter_map(|label| {
                let (key, value) = label.split_once('=')?;
                Some((key, value.trim_matches('"')))
            });
            Some(Series {
                name,
                labels: labels.collect(),
                value: value.parse().ok()?,
            })
        })
}

/// The types a scrape declares: (name, type).
pub fn types(text: &str) -> Vec<(&str, &str)> {
    text.lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect()
}
