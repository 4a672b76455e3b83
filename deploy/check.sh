#!/usr/bin/env bash
# Format, lints and documentation, each with warnings denied. Runs no test.

# shellcheck source=deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$repository"

ensure_packages build
ensure_rust
use_build_cache

run_stage 'format' cargo fmt --check
run_stage 'lint' cargo clippy --locked --all-targets -- -D warnings
RUSTDOCFLAGS='-D warnings' \
    run_stage 'documentation' cargo doc --locked --no-deps --document-private-items
