//! What can go wrong below the trait, told apart by what the caller does next.

use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use crate::model::{Class, Reason, ReasonCode};
use crate::source::SourceError;

use super::place::Remote;

/// How many characters of a lower layer's text are repeated.
const WHY_CHARS: usize = 600;

/// Why a piece of work ended early.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// The remote did not give it: our mirror is not to blame and is left alone (promise P7).
    Remote {
        /// What it said.
        why: String,
        /// What a person can do.
        todo: &'static str,
        /// Whether waiting helps.
        class: Class,
    },
    /// Our own mirror lacks or garbles something: repaired, then cloned again.
    Mirror(String),
    /// The abort was raised.
    Stopped,
    /// A finished answer, passed on as it is.
    Final(Box<SourceError>),
}

impl Fault {
    /// The remote did not answer as hoped, and may do so later.
    pub(super) fn remote(why: impl std::fmt::Display) -> Self {
        Self::Remote { why: short(&why.to_string()), todo: "it is tried again by itself", class: Class::Transient }
    }

    /// The remote will go on refusing until a person acts.
    pub(super) fn refused(why: impl std::fmt::Display, todo: &'static str) -> Self {
        Self::Remote { why: short(&why.to_string()), todo, class: Class::Stalled }
    }

    /// The mirror failed; every cause in one line.
    pub(super) fn mirror(why: impl std::fmt::Debug) -> Self {
        Self::Mirror(short(&format!("{why:?}")))
    }

    /// The commit's own content breaks a rule.
    pub(super) fn content(code: ReasonCode, message: impl Into<String>) -> Self {
        Self::Final(Box::new(SourceError { reason: Reason::new(code, message), class: Class::Stalled }))
    }
}

/// Puts a text on one line and cuts it.
pub(super) fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(WHY_CHARS) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

/// Says what could not be done and where, with the fault's own why and what to do.
pub(super) fn told(what: &str, place: &Remote, fault: Fault) -> SourceError {
    let unavailable = |why: &str, todo: &str, class| SourceError {
        reason: Reason::new(ReasonCode::GitUnavailable, format!("{what} (at {place}): {why}; {todo}")),
        class,
    };
    match fault {
        Fault::Remote { why, todo, class } => unavailable(&why, todo, class),
        Fault::Mirror(why) if is_full(&why) => SourceError {
            reason: Reason::new(
                ReasonCode::DiskFull,
                format!("{what} (at {place}): the disk of the state directory is full ({why}); free space there"),
            ),
            class: Class::Transient,
        },
        Fault::Mirror(why) => unavailable(
            &format!("the mirror of it could not be used ({why})"),
            "it is cloned again by itself; if this repeats, check the disk of the state directory",
            Class::Transient,
        ),
        Fault::Stopped => unavailable("it was stopped", "it is tried again by itself", Class::Transient),
        Fault::Final(error) => *error,
    }
}

/// Whether a text of a lower layer says that the disk is full: gix keeps no kind that could be asked instead.
///
/// Source: strerror(3), `ENOSPC` and `EDQUOT`.
pub(super) fn is_full(why: &str) -> bool {
    let why = why.to_ascii_lowercase();
    [
        "no space left on device",
        "no storage space",
        "disk quota exceeded",
        "quota exceeded",
        "storagefull",
        "quotaexceeded",
    ]
    .iter()
    .any(|mark| why.contains(mark))
}

/// Locks a mutex whose content is whole between any two statements, so that a panic elsewhere does not matter.
pub(super) fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
