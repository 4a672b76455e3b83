//! Colour on terminals, and tables that fit 100 columns.

use std::io::IsTerminal as _;

/// Columns of a screen that everything has to fit.
const WIDTH: usize = 100;

/// A colour with a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hue {
    Good,
    Bad,
    Waiting,
    Quiet,
    Strong,
}

/// Whether to colour: only on a terminal, and not where `NO_COLOR` is set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    is_on: bool,
}

impl Paint {
    /// For standard output.
    pub(super) fn for_stdout() -> Self {
        Self { is_on: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() }
    }

    /// For standard error.
    pub(super) fn for_stderr() -> Self {
        Self { is_on: std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() }
    }

    pub(super) fn is_terminal(self) -> bool {
        self.is_on
    }

    /// The text in its colour.
    pub(super) fn hue(self, hue: Hue, text: &str) -> String {
        let code = match hue {
            Hue::Good => "32",
            Hue::Bad => "31",
            Hue::Waiting => "33",
            Hue::Quiet => "2",
            Hue::Strong => "1",
        };
        if self.is_on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// The colour of a state's or an outcome's word.
    pub(super) fn state(self, word: &str, width: usize) -> String {
        let padded = format!("{word:width$}");
        let hue = match word {
            "live" => Hue::Good,
            "stuck" | "reverted" | "refused" | "nothing-activated" => Hue::Bad,
            "held" | "releasing" | "superseded" => Hue::Waiting,
            _ => Hue::Quiet,
        };
        self.hue(hue, &padded)
    }

    /// A unified difference, its lines coloured.
    pub(super) fn difference(self, text: &str) -> String {
        let line = |line: &str| match line.as_bytes().first() {
            Some(b'+') => self.hue(Hue::Good, line),
            Some(b'-') => self.hue(Hue::Bad, line),
            Some(b'@') => self.hue(Hue::Waiting, line),
            _ => line.to_owned(),
        };
        text.lines().map(|text| format!("{}\n", line(text))).collect()
    }
}

/// Lays rows out under a heading; the last column takes what is left and is wrapped, not cut.
pub(super) fn table(heading: &[&str], rows: &[Vec<String>], paint: Paint) -> String {
    let columns = heading.len();
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain([heading.get(column).map_or(0, |text| text.len())]).max().unwrap_or(0)
        })
        .collect();
    let fixed: usize = widths.iter().take(columns.saturating_sub(1)).map(|width| width + 2).sum();
    let rest = WIDTH.saturating_sub(fixed).max(20);
    let titles: Vec<String> = heading.iter().map(|title| (*title).to_owned()).collect();
    let mut text = String::new();
    let mut push = |cells: &[String], is_heading: bool| {
        let last = cells.last().map(String::as_str).unwrap_or_default();
        for (number, part) in wrap(last, rest).into_iter().enumerate() {
            let mut line = String::new();
            for (column, width) in widths.iter().enumerate().take(columns.saturating_sub(1)) {
                let cell = if number == 0 { cells.get(column).map(String::as_str).unwrap_or_default() } else { "" };
                let is_state = heading.get(column) == Some(&"STATE") && !is_heading;
                let cell = if is_state { paint.state(cell, *width) } else { format!("{cell:width$}") };
                line.push_str(&cell);
                line.push_str("  ");
            }
            line.push_str(&part);
            let line = line.trim_end();
            text.push_str(&if is_heading { paint.hue(Hue::Strong, line) } else { line.to_owned() });
            text.push('\n');
        }
    };
    push(&titles, true);
    for row in rows {
        push(row, false);
    }
    text
}

/// Breaks a text at blanks into lines of at most `width` characters; a longer word stands alone.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let used = lines.last().map_or(0, |line| line.chars().count());
        let needs = word.chars().count() + usize::from(used > 0);
        if used > 0 && used + needs > width {
            lines.push(word.to_owned());
        } else if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// How long ago, in one short word: `42s`, `7m`, `3h`, `12d`.
pub(super) fn ago(then: jiff::Timestamp, now: jiff::Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(then.as_second()).max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A time for people, in UTC, to the second.
pub(super) fn time(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_100_columns_and_wraps_its_last() {
        let rows = vec![vec!["shop/prod".to_owned(), "live".to_owned(), "word ".repeat(60)]];
        let text = table(&["TARGET", "STATE", "NOTE"], &rows, Paint { is_on: false });
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.matches("word").count(), 60);
    }

    #[test]
    fn without_a_terminal_nothing_is_coloured() {
        let paint = Paint { is_on: false };
        assert_eq!(paint.difference("+a\n-b\n"), "+a\n-b\n");
        assert_eq!(paint.state("live", 6), "live  ");
    }
}
