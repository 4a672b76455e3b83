//! HTTP samples.
