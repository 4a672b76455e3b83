//! What the journal says: where to go on after a crash, and what there is to roll back to.
