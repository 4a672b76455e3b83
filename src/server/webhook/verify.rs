//! Whether a body is the sender's: HMAC-SHA256 over the raw bytes, in constant time, with each secret.
//!
//! Pure, and fed piece by piece, so that a body is hashed while it arrives. It knows nothing of what the
//! bytes mean, and nothing may ask what they mean before it said yes.
//!
//! Source: GitHub, "Validating webhook deliveries": `X-Hub-Signature-256` is `sha256=` and the lower-case hex
//! of HMAC-SHA256 with the hook's secret as key.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use crate::model::Secret;

/// The header's prefix.
const PREFIX: &str = "sha256=";

/// What a sender claims: 32 bytes out of `X-Hub-Signature-256`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; 32]);

impl Signature {
    /// Reads the header's value; none when it is not `sha256=` and 64 hex digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0_u8; 32];
        hex::decode_to_slice(text.strip_prefix(PREFIX)?, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// As the header has it.
    #[must_use]
    pub fn header(&self) -> String {
        format!("{PREFIX}{}", hex::encode(self.0))
    }
}

/// Signs a body as a sender would: for tests and for measuring.
#[must_use]
pub fn sign(secret: &Secret, body: &[u8]) -> Signature {
    let mut bytes = [0_u8; 32];
    if let Some(mut mac) = keyed(secret) {
        mac.update(body);
        bytes = mac.finalize().into_bytes().into();
    }
    Signature(bytes)
}

/// The secrets in force, in the order of `webhook_secret_files`. They never print.
#[derive(Clone, Default)]
pub struct Keys {
    macs: Vec<Hmac<Sha256>>,
}

impl Keys {
    /// Keys from secrets: normally one, two while one replaces the other.
    #[must_use]
    pub fn new(secrets: &[Secret]) -> Self {
        Self { macs: secrets.iter().filter_map(keyed).collect() }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.macs.len()
    }

    /// Whether there is none: the provider is off then.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.macs.is_empty()
    }

    /// Begins with an empty body.
    #[must_use]
    pub fn begin(&self) -> Checking {
        Checking { macs: self.macs.clone() }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[{} secrets]", self.count())
    }
}

/// HMAC takes a key of any length, so there always is one.
fn keyed(secret: &Secret) -> Option<Hmac<Sha256>> {
    Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).ok()
}

/// A body on its way.
#[derive(Clone)]
pub struct Checking {
    macs: Vec<Hmac<Sha256>>,
}

impl Checking {
    /// The next piece of the body.
    pub fn update(&mut self, piece: &[u8]) {
        for mac in &mut self.macs {
            mac.update(piece);
        }
    }

    /// The slot of the secret that made `signature` over all pieces, counted from 1; none when no secret did.
    ///
    /// Every secret is tried and compared in full: how long it takes tells nothing of which one fits, or how far.
    #[must_use]
    pub fn finish(self, signature: &Signature) -> Option<u8> {
        let mut fitting = 0_u8;
        for (slot, mac) in (1_u8..).zip(self.macs) {
            let made: [u8; 32] = mac.finalize().into_bytes().into();
            let fits: Choice = made.ct_eq(&signature.0);
            fitting.conditional_assign(&slot, fits);
        }
        (fitting != 0).then_some(fitting)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text.to_owned())
    }

    fn slot(keys: &Keys, body: &[u8], header: &str) -> Option<u8> {
        let mut checking = keys.begin();
        checking.update(body);
        checking.finish(&Signature::parse(header)?)
    }

    const VECTOR: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    #[test]
    fn the_published_test_vector_is_accepted_and_made() {
        let published = secret("It's a Secret to Everybody");
        assert_eq!(slot(&Keys::new(&[published.clone()]), b"Hello, World!", VECTOR), Some(1));
        assert_eq!(sign(&published, b"Hello, World!").header(), VECTOR);
    }

    #[test]
    fn two_secrets_are_accepted_during_a_rotation_and_the_slot_is_named() {
        let (old, new) = (secret("the old one, still in use"), secret("the new one, not everywhere yet"));
        let keys = Keys::new(&[new.clone(), old.clone()]);
        assert_eq!(slot(&keys, b"{}", &sign(&new, b"{}").header()), Some(1));
        assert_eq!(slot(&keys, b"{}", &sign(&old, b"{}").header()), Some(2));
        assert_eq!(slot(&keys, b"{}", &sign(&secret("neither"), b"{}").header()), None);
        assert_eq!(slot(&Keys::default(), b"{}", &sign(&old, b"{}").header()), None, "no secret accepts nothing");
    }

    #[test]
    fn a_header_of_another_form_is_no_signature() {
        let cut = &VECTOR[..VECTOR.len() - 1];
        let sha1 = VECTOR.replace("sha256=", "sha1=");
        let bad = ["", "sha256=", cut, &sha1, &format!("{VECTOR}0"), &VECTOR.replace('7', "x"), &VECTOR[7..]];
        for header in bad {
            assert_eq!(Signature::parse(header), None, "{header}");
        }
    }

    #[test]
    fn keys_never_print() {
        let keys = Keys::new(&[secret("canary-91c2")]);
        assert_eq!(format!("{keys:?}"), "[1 secrets]");
    }

    proptest! {
        #[test]
        fn a_body_in_pieces_is_the_same_body_and_one_changed_bit_is_another(
            body in proptest::collection::vec(any::<u8>(), 1..300),
            cut in any::<prop::sample::Index>(),
            bit in 0..8_u8,
        ) {
            let key = secret("a secret of the property test");
            let keys = Keys::new(&[secret("another"), key.clone()]);
            let signature = sign(&key, &body);
            let at = cut.index(body.len());
            let mut checking = keys.begin();
            checking.update(&body[..at]);
            checking.update(&body[at..]);
            prop_assert_eq!(checking.finish(&signature), Some(2));
            let mut changed = body.clone();
            changed[at] ^= 1 << bit;
            prop_assert_eq!(slot(&keys, &changed, &signature.header()), None);
            let mut forged = signature;
            forged.0[at % 32] ^= 1 << bit;
            prop_assert_eq!(slot(&keys, &body, &forged.header()), None);
        }
    }
}
