//! The loop over whole stories: what is released, what is put back, and what is never done.

mod crash;
mod drift;
mod failures;
mod git;
mod people;
mod queue;
mod registry;
mod releases;
mod surroundings;
mod why;
