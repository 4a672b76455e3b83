//! The corpus: 179 expressions with what systemd 252 says of each.

use jiff::tz::TimeZone;

use super::super::OnCalendar;
use super::{elapses, instant};

/// What the corpus says of an expression, column for column.
fn row(expression: &str) -> [String; 5] {
    let Ok(spec) = OnCalendar::parse(expression) else {
        return ["0", "", "", "", ""].map(str::to_owned);
    };
    let found = elapses(&spec, instant("2026-03-01T00:00:00Z"), &TimeZone::UTC, 3);
    let next = |index: usize| match found.get(index) {
        Some(next) => next.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        None if index == 0 => "never".to_owned(),
        None => String::new(),
    };
    ["1".to_owned(), spec.to_string(), next(0), next(1), next(2)]
}

#[test]
fn every_row_of_the_corpus_is_answered_as_systemd_answers_it() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/schedule/oncalendar.tsv");
    let table = std::fs::read_to_string(path).unwrap();
    let mut rows = 0;
    for line in table.lines().skip(1) {
        let mut columns = line.split('\t');
        let expression = columns.next().unwrap().replace("\\t", "\t").replace("\\\\", "\\");
        let expected: Vec<&str> = columns.collect();
        assert_eq!(row(&expression).as_slice(), expected, "`{expression}`");
        rows += 1;
    }
    assert_eq!(rows, 179);
}
