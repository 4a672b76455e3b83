use super::{FileName, MAX_BYTES, decode, form, net, read, shown_key};

const NAME: FileName<'static> = FileName { file: "deploy/app.toml", label: "app.toml" };

fn refused(bytes: &[u8]) -> String {
    let problems = decode(bytes, NAME).unwrap_err();
    assert_eq!(problems.list.len(), 1);
    problems.list[0].message.clone()
}

#[test]
fn one_byte_order_mark_and_carriage_returns_are_accepted() {
    let number = |text: &[u8]| read(text, NAME, |root| root.get("a")?.integer::<u8>(0..=9, "small"));
    assert_eq!(number("\u{feff}a = 1\r\n".as_bytes()), Ok(1));
    assert!(number("\u{feff}\u{feff}a = 1\n".as_bytes()).is_err());
    assert!(number(b"a = 1\rb = 2").is_err());
}

#[test]
fn a_column_does_not_count_the_byte_order_mark() {
    let problems = read("\u{feff}a = 10".as_bytes(), NAME, |root| root.get("a")?.integer::<u8>(0..=9, "small"));
    let place = problems.unwrap_err().list[0].place.unwrap();
    assert_eq!((place.line, place.column), (1, 5));
}

#[test]
fn an_invalid_byte_is_told_with_its_exact_offset() {
    let problems = decode(b"\xef\xbb\xbfa = 1\nb = \"\xc3\xa4\xff\"", NAME).unwrap_err();
    assert!(problems.list[0].message.contains("offset 16 "), "{problems:?}");
    let place = problems.list[0].place.unwrap();
    assert_eq!((place.line, place.column), (2, 7));
}

#[test]
fn other_encodings_are_called_by_their_names() {
    let wide = |order: fn(u16) -> [u8; 2], mark: bool| -> Vec<u8> {
        let text = if mark { "\u{feff}schema = 1" } else { "schema = 1" };
        text.encode_utf16().flat_map(order).collect()
    };
    for mark in [true, false] {
        assert!(refused(&wide(u16::to_le_bytes, mark)).contains("UTF-16 (little endian)"));
        assert!(refused(&wide(u16::to_be_bytes, mark)).contains("UTF-16 (big endian)"));
    }
    assert!(refused(b"\xff\xfe\0\0s\0\0\0").contains("UTF-32"));
}

#[test]
fn a_git_lfs_pointer_is_refused_by_name() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    assert!(refused(pointer).contains("Git LFS pointer"));
}

#[test]
fn a_file_of_256_kib_is_read_and_one_more_byte_is_not() {
    let text = "#".repeat(MAX_BYTES);
    assert!(decode(text.as_bytes(), NAME).is_ok());
    assert!(refused(format!("{text}#").as_bytes()).contains("262145 bytes"));
}

#[test]
fn deep_keys_and_deep_arrays_end_in_a_problem_and_not_in_the_stack() {
    for text in [
        format!("a{} = 1", ".a".repeat(100_000)),
        format!("[a{}]", ".a".repeat(100_000)),
        format!("a = {}", "[".repeat(200_000)),
        format!("a = {}", "{a=".repeat(80_000)),
        (0..2_000).map(|depth| format!("[a{}]\n", ".a".repeat(depth % 60))).collect(),
    ] {
        assert!(read(text.as_bytes(), NAME, |_| None::<()>).is_err());
    }
}

#[test]
fn a_file_full_of_problems_is_told_of_the_first_two_hundred() {
    let text: String = (0..5_000).map(|key| format!("k{key} = 10\n")).collect();
    let problems = read(text.as_bytes(), NAME, |root| {
        let _numbers: Vec<Option<u8>> = root.entries().iter().map(|(_, value)| value.integer(0..=9, "small")).collect();
        None::<()>
    })
    .unwrap_err();
    assert_eq!(problems.list.len(), 201);
    assert!(problems.list[200].message.contains("4800 more problems"));
}

#[test]
fn keys_that_look_like_secrets_are_not_shown() {
    assert_eq!(shown_key("cert-manager.io"), "cert-manager.io");
    for key in ["ghp_0123456789", "two words", "", "Abcdefgh12345678", &"a".repeat(65), "eyJhbGciOi"] {
        assert!(shown_key(key).starts_with("<a key of"), "{key}");
    }
}

#[test]
fn sizes_are_whole_numbers_with_a_unit() {
    for (text, bytes) in [("1k", 1024), ("64m", 64 << 20), ("2g", 2 << 30), ("1t", 1 << 40)] {
        assert_eq!(form::size(text, "1k", "1t"), Ok(bytes));
    }
    for text in ["", "m", "64", "64M", "64mb", "64 m", "-1m", "+1m", "1.5g", "0x1m", "99999999999999g", "1٣m"] {
        assert!(form::size(text, "1k", "1t").is_err(), "{text}");
    }
}

#[test]
fn cpus_are_counted_in_thousandths() {
    for (text, milli) in [("1", 1000), ("0.5", 500), ("0.010", 10), ("2.250", 2250), ("1024", 1_024_000)] {
        assert_eq!(form::cpus_milli(text), Ok(milli), "{text}");
    }
    for text in ["0", "0.0", "0.009", "1.0001", "1e3", "inf", "nan", "-1", "1025"] {
        assert!(form::cpus_milli(text).is_err(), "{text}");
    }
}

#[test]
fn egress_entries_have_five_forms() {
    for text in [
        "api.example.com:443",
        "*.cdn.example.net:443",
        "*:443",
        "203.0.113.7:8443",
        "[2001:db8::7]:443",
        "API.example.com:1",
        "db:65535",
    ] {
        assert_eq!(net::egress(text), Ok(text.to_ascii_lowercase()));
    }
    for text in [
        "",
        ":443",
        "api.example.com",
        "api.example.com:",
        "api.example.com:0",
        "api.example.com:65536",
        "api.example.com:https",
        "api.example.com:+1",
        "api.example.com:0443",
        "https://api.example.com:443",
        "*example.com:443",
        "api.*.com:443",
        "*.*.com:443",
        "*.:443",
        "2001:db8::7:443",
        "[2001:db8::7]",
        "[2001:db8::7:443",
        "[203.0.113.7]:443",
        "999.1.1.1:443",
        "a b:443",
        "a/b:443",
        "user@host:443",
    ] {
        assert!(net::egress(text).is_err(), "{text}");
    }
}

#[test]
fn host_names_are_those_of_rfc_1123() {
    let longest = format!("{}.{}.{}.{}", "a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61));
    for text in ["shop.example.org", "a.b", "xn--bcher-kva.example", "3com.example", longest.as_str()] {
        assert_eq!(net::host_name(text), Ok(text.to_owned()));
    }
    assert_eq!(net::host_name("Shop.Example.org"), Ok("shop.example.org".to_owned()));
    let label = "a".repeat(64);
    for text in [
        "",
        ".",
        "a..b",
        ".a",
        "a.",
        "-a.b",
        "a-.b",
        "a_b.c",
        "*.a.b",
        "a.b:80",
        "https://a.b",
        "a.b/c",
        "10.0.0.1",
        "[::1]",
        "bücher.example",
        "a b.c",
        format!("{longest}e").as_str(),
        label.as_str(),
    ] {
        assert!(net::host_name(text).is_err(), "{text}");
    }
}
