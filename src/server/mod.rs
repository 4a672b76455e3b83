//! The faces: what people and machines can ask over the socket. They enqueue and read, they never apply.

pub mod api;
pub mod listen;
pub mod socket;
pub mod views;
pub mod webhook;
