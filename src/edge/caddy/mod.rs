//! Caddy.
