//! The older content type: a form whose field `payload` holds the JSON.
//!
//! The signature covers the form as it was sent, so this runs after verification only.
//!
//! Source: URL standard, `application/x-www-form-urlencoded` parsing.

/// The bytes of the first field `payload`; none when there is none, or an escape is broken.
#[must_use]
pub fn payload(form: &[u8]) -> Option<Vec<u8>> {
    let mut fields = form.split(|byte| *byte == b'&');
    let value = fields.find_map(|field| field.strip_prefix(b"payload="))?;
    decoded(value)
}

fn decoded(value: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(value.len());
    let mut rest = value.iter();
    while let Some(byte) = rest.next() {
        plain.push(match byte {
            b'+' => b' ',
            b'%' => digit(*rest.next()?)?.checked_mul(16)?.checked_add(digit(*rest.next()?)?)?,
            other => *other,
        });
    }
    Some(plain)
}

fn digit(byte: u8) -> Option<u8> {
    u8::try_from(char::from(byte).to_digit(16)?).ok()
}

/// Encodes a payload as a sender would: for tests and for measuring.
#[must_use]
pub fn encoded(json: &[u8]) -> Vec<u8> {
    let mut form = b"payload=".to_vec();
    for byte in json {
        match byte {
            b' ' => form.push(b'+'),
            plain if plain.is_ascii_alphanumeric() || b"-._*".contains(plain) => form.push(*plain),
            other => form.extend_from_slice(format!("%{other:02X}").as_bytes()),
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_field_is_found_wherever_it_stands() {
        assert_eq!(payload(b"payload=%7B%7d").as_deref(), Some(&b"{}"[..]));
        assert_eq!(payload(b"a=1&payload=x+y%2B&payload=z").as_deref(), Some(&b"x y+"[..]));
        assert_eq!(payload(b"payload=").as_deref(), Some(&b""[..]));
    }

    #[test]
    fn a_broken_form_has_no_payload() {
        for form in [&b""[..], b"payload", b"xpayload=1", b"payload=%", b"payload=%7", b"payload=%7g", b"payload=%+1"] {
            assert_eq!(payload(form), None, "{}", String::from_utf8_lossy(form));
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_comes_back(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(payload(&encoded(&bytes)), Some(bytes));
        }

        #[test]
        fn no_form_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            drop(payload(&bytes));
        }
    }
}
