//! Values that never print (invariant I9, promise P10).

use std::fmt;

/// A secret value. It has no `Display`, its `Debug` shows nothing, and it is not serialisable.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: String) -> Self {
        Self(value)
    }

    /// The value, for the one call that must send it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_prints_its_value() {
        let secret = Secret::new("canary-7f3a".to_owned());
        let nested = format!("{secret:?} {:#?} {:?}", Some(&secret), (&secret, 1));
        assert!(!nested.contains("canary"), "{nested}");
        assert_eq!(secret.expose(), "canary-7f3a");
    }
}
