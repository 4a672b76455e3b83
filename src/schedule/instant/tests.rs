use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::parse_instant;

const NOW: &str = "2026-07-15T10:20:30.5Z";

#[test]
fn every_form_means_what_systemd_takes_it_for() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/schedule/instants.tsv");
    let table = std::fs::read_to_string(path).unwrap();
    let mut rows = 0;
    for line in table.lines().skip(1) {
        let [text, zone, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("three columns: {line}");
        };
        let local = TimeZone::get(zone).unwrap();
        let found = parse_instant(text, NOW.parse().unwrap(), &local);
        let found = found.map_or("refused".to_owned(), |instant| instant.to_string());
        assert_eq!(found, expected, "`{text}` in {zone}");
        rows += 1;
    }
    assert!(rows > 50);
}

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>(), form in "[-+@0-9:. a-zUTC]{0,24}", second in any::<i32>()) {
        let now = Timestamp::from_second(second.into()).unwrap();
        for text in [text, form] {
            if let Ok(instant) = parse_instant(&text, now, &TimeZone::get("Europe/Berlin").unwrap()) {
                prop_assert!(instant >= Timestamp::UNIX_EPOCH);
            }
        }
    }
}
