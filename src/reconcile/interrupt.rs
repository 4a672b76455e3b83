//! What may cut a release short, asked at its safe points.

use crate::model::{Reason, ReasonCode};

use super::ports::{Halt, Interrupt};
use super::run::Run;

impl Run {
    pub(super) fn is_shutdown(&self) -> bool {
        *self.interrupts.borrow() == Interrupt::Shutdown
    }

    /// Whether the release should end at this safe point, before the switch.
    pub(super) fn superseded(&self) -> Result<Option<Reason>, Halt> {
        match &*self.interrupts.borrow() {
            Interrupt::None => Ok(None),
            Interrupt::Superseded(sha) => Ok(Some(Reason::new(
                ReasonCode::Superseded,
                format!("{} is wanted now; nothing was switched", sha.short()),
            ))),
            Interrupt::Shutdown => Err(Halt::Shutdown),
        }
    }
}
