//! What was measured, and how it is shown.

use std::time::Duration;

use serde::Serialize;

/// The same work done by something else, in the same run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Peer {
    /// Who, and what it did.
    pub(crate) who: String,
    /// In the figure's unit.
    pub(crate) value: f64,
}

/// One figure.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    row: &'static str,
    work: String,
    unit: &'static str,
    value: f64,
    /// At most so much; none where the design names no bound.
    to_reach: Option<f64>,
    peer: Option<Peer>,
    /// `value` by the peer's.
    ratio: Option<f64>,
    is_reached: Option<bool>,
    /// What else the run saw.
    note: String,
}

impl Figure {
    /// A figure without a bound.
    pub(crate) fn new(work: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            row: "",
            work: work.into(),
            unit,
            value,
            to_reach: None,
            peer: None,
            ratio: None,
            is_reached: None,
            note: String::new(),
        }
    }

    /// At most `bound`.
    pub(crate) fn at_most(self, bound: f64) -> Self {
        Self { to_reach: Some(bound), is_reached: Some(self.value <= bound), ..self }
    }

    /// Beside what something else took for the same.
    pub(crate) fn beside(self, who: impl Into<String>, value: f64) -> Self {
        let ratio = (value > 0.0).then(|| self.value / value);
        Self { peer: Some(Peer { who: who.into(), value }), ratio, ..self }
    }

    /// What else the run saw.
    pub(crate) fn noting(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// Of which row.
    pub(crate) fn of(self, row: &'static str) -> Self {
        Self { row, ..self }
    }
}

/// Seconds, milliseconds or microseconds as a plain number.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The middle one.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The largest.
pub(crate) fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::max)
}

fn number(value: f64) -> String {
    match value {
        value if value == 0.0 || value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 0.1 => format!("{value:.2}"),
        value => format!("{value:.4}"),
    }
}

/// A table for people, the notes below it.
pub(crate) fn text(figures: &[Figure]) -> String {
    let head = ["row", "work", "to reach", "measured", "peer in the same run", "ratio"].map(str::to_owned);
    let mut rows = vec![head];
    for figure in figures {
        let mark = match figure.is_reached {
            Some(true) => " ok",
            Some(false) => " MISSED",
            None => "",
        };
        rows.push([
            figure.row.to_owned(),
            figure.work.clone(),
            figure.to_reach.map_or("-".to_owned(), |bound| format!("<= {} {}", number(bound), figure.unit)),
            format!("{} {}{mark}", number(figure.value), figure.unit),
            figure
                .peer
                .as_ref()
                .map_or("-".to_owned(), |peer| format!("{}: {} {}", peer.who, number(peer.value), figure.unit)),
            figure.ratio.map_or("-".to_owned(), number),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    let line = |row: &[String; 6]| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        format!("{}\n", cells.join(" | ").trim_end())
    };
    let rule = widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join("-|-");
    let mut out = format!("{}{rule}\n", line(&rows[0]));
    rows[1..].iter().for_each(|row| out.push_str(&line(row)));
    out.push('\n');
    for figure in figures.iter().filter(|figure| !figure.note.is_empty()) {
        out.push_str(&format!("{}: {}: {}\n", figure.row, figure.work, figure.note));
    }
    out
}

/// The same for machines.
pub(crate) fn json(figures: &[Figure]) -> String {
    format!("{}\n", serde_json::to_string_pretty(figures).unwrap())
}
