//! Characters and numbers of an expression, from left to right.

use super::SECOND;
use super::error::Problem;

/// Digits of a fraction of a second that are kept; the next one rounds.
const FRACTION_DIGITS: usize = 6;
/// Where something is wrong, in bytes, and what.
pub(super) type Refusal = (usize, Problem);

/// Reads an expression from left to right.
pub(super) struct Reader<'t> {
    pub(super) text: &'t [u8],
    pub(super) at: usize,
}

impl Reader<'_> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(super) fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.take(b' ') {}
    }

    pub(super) fn is_at_end_or_blank(&self) -> bool {
        matches!(self.peek(), None | Some(b' '))
    }

    pub(super) fn refuse<T>(&self, problem: Problem) -> Result<T, Refusal> {
        Err((self.at, problem))
    }

    pub(super) fn expected<T>(&self, expected: &'static str) -> Result<T, Refusal> {
        self.refuse(Problem::Expected { expected })
    }

    pub(super) fn take_dots(&mut self) -> bool {
        let is_there = self.rest().starts_with(b"..");
        self.at += if is_there { 2 } else { 0 };
        is_there
    }

    /// Reads a number in multiples of `unit`; seconds may have a fraction.
    pub(super) fn number(&mut self, unit: i32, expected: &'static str) -> Result<i32, Refusal> {
        let at = self.at;
        let whole = self.digits(expected)?;
        let mut fraction = 0;
        if unit == SECOND && self.peek() == Some(b'.') && !self.rest().starts_with(b"..") {
            self.at += 1;
            fraction = self.fraction()?;
        }
        let whole = whole.and_then(|whole| i32::try_from(whole).ok());
        let value = whole.and_then(|whole| whole.checked_mul(unit)?.checked_add(fraction));
        value.ok_or((at, Problem::TooLarge))
    }

    /// Reads digits; `None` if the number is larger than any machine word.
    pub(super) fn digits(&mut self, expected: &'static str) -> Result<Option<u64>, Refusal> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return self.expected(expected);
        }
        let mut value = Some(0_u64);
        while let Some(digit) = self.digit() {
            value = value.and_then(|value| value.checked_mul(10)?.checked_add(u64::from(digit)));
        }
        Ok(value)
    }

    fn digit(&mut self) -> Option<u8> {
        let digit = self.peek().filter(u8::is_ascii_digit)?;
        self.at += 1;
        Some(digit - b'0')
    }

    /// Reads the digits after the decimal point as microseconds, rounded half up.
    fn fraction(&mut self) -> Result<i32, Refusal> {
        let mut microseconds = 0;
        let mut places = 0;
        while let Some(digit) = self.digit() {
            places += 1;
            if places <= FRACTION_DIGITS {
                microseconds = microseconds * 10 + i32::from(digit);
            } else if places == FRACTION_DIGITS + 1 && digit >= 5 {
                microseconds += 1;
            }
        }
        if places == 0 {
            return self.expected("digits after the decimal point");
        }
        for _ in places..FRACTION_DIGITS {
            microseconds *= 10;
        }
        Ok(microseconds)
    }
}
