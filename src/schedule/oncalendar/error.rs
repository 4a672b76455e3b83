//! Why a text is not a calendar expression.

/// Why a text is not a calendar expression: what is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{expression}` is not a calendar expression: {problem}")]
pub struct ParseError {
    pub(super) expression: String,
    pub(super) byte: usize,
    pub(super) problem: Problem,
}

impl ParseError {
    /// The text that was refused.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Where it goes wrong: bytes from the start, from 0 to the length of the text.
    #[must_use]
    pub const fn byte(&self) -> usize {
        self.byte
    }

    /// Where it goes wrong, for people: the first character is 1; one more than the number of
    /// characters is the end.
    #[must_use]
    pub fn character(&self) -> usize {
        self.expression.char_indices().take_while(|(at, _)| *at < self.byte).count() + 1
    }

    /// What is wrong there.
    #[must_use]
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }
}

/// What is wrong with a calendar expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Nothing, or nothing but a time zone.
    #[error("it is empty")]
    Empty,
    /// A blank before anything else.
    #[error("it begins with a blank")]
    LeadingBlank,
    /// Something where a number or `*` belongs.
    #[error("expected {expected}")]
    Expected {
        /// What would have been understood.
        expected: &'static str,
    },
    /// A weekday runs on into something else, such as `Mond`.
    #[error("a weekday ends with a blank, `,` or `..`")]
    WeekdayEnd,
    /// A weekday range without an end, with two ends, or out of order.
    #[error("a weekday range is `First..Last` and does not wrap around the week")]
    WeekdayRange,
    /// Days counted from the end of the month need the year and month, or the month, before.
    #[error("`~` stands only before the day")]
    MonthEnd,
    /// A number too large to be anything.
    #[error("the number is too large")]
    TooLarge,
    /// A repetition of nothing.
    #[error("a repetition needs a step above 0")]
    ZeroStep,
    /// More elements in one field than systemd takes.
    #[error("a field has at most {most} elements")]
    TooMany {
        /// The limit.
        most: usize,
    },
    /// A value outside its field.
    #[error("{field} are {from} to {to}")]
    OutOfRange {
        /// The field, in the plural.
        field: &'static str,
        /// Its least value.
        from: i32,
        /// Its greatest value.
        to: i32,
    },
    /// A range that ends before it begins, or a step that never fits.
    #[error("the range or step never reaches a second value within {field} {from} to {to}")]
    NeverRepeats {
        /// The field, in the plural.
        field: &'static str,
        /// Its least value.
        from: i32,
        /// Its greatest value.
        to: i32,
    },
    /// Something after the end.
    #[error("nothing may follow here")]
    Trailing,
    /// A last word that looks like a time zone and is none.
    #[error("`{zone}` is not a known time zone")]
    UnknownZone {
        /// The word.
        zone: String,
    },
}

impl Problem {
    /// Why that is refused, as a sentence.
    #[must_use]
    pub const fn why(&self) -> &'static str {
        match self {
            Self::Empty => "an empty expression names no time",
            Self::LeadingBlank => "systemd takes no blanks before an expression",
            Self::Expected { .. } => {
                "an expression is `[WEEKDAYS] [[YEAR-]MONTH-DAY] [HOUR:MINUTE[:SECOND]] [ZONE]`, or a word like `daily`"
            }
            Self::WeekdayEnd => "weekdays are English, whole or their first three letters",
            Self::WeekdayRange => "a week begins with Monday, and a range runs forward within it",
            Self::MonthEnd => "only days can be counted from the end of a month",
            Self::TooLarge => "no field has numbers that large",
            Self::ZeroStep => "a step of 0 would match the same moment for ever",
            Self::TooMany { .. } => "longer lists slow every search down and are always a mistake",
            Self::OutOfRange { .. } => "no such moment exists, or systemd's calendar does not reach it",
            Self::NeverRepeats { .. } => {
                "systemd refuses ranges and steps with a single value, since they are mistakes"
            }
            Self::Trailing => "a time ends with the seconds, and only a time zone may follow it",
            Self::UnknownZone { .. } => "zones are names of the time zone database, in its letter case, or `UTC`",
        }
    }

    /// What to do about it, as a sentence.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Empty => "write one, for example `daily` or `Mon..Fri 09:00`",
            Self::LeadingBlank => "remove the blank",
            Self::Expected { .. } => "complete it, for example `Mon..Fri *-*-* 09:00:00`",
            Self::WeekdayEnd => "write `Mon`, `Mon,Wed` or `Mon..Fri`, then a blank",
            Self::WeekdayRange => "list the days instead, for example `Fri..Sun,Mon`",
            Self::MonthEnd => "write `*-02~01` for the last day of February",
            Self::TooLarge | Self::OutOfRange { .. } => "write a number within the field's range",
            Self::ZeroStep => "write a step of at least 1, for example `*:0/15`",
            Self::TooMany { .. } => "use a range or a step, for example `0..59/2`",
            Self::NeverRepeats { .. } => "write a single value, or a range that holds the step",
            Self::Trailing => "remove what follows, or split it into two expressions",
            Self::UnknownZone { .. } => "write a name such as `Europe/Berlin`, or `UTC`",
        }
    }
}
