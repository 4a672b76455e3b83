//! Records of the store (see `store`).
