#!/usr/bin/env bash
# Measures what the design promises about speed and size. Arguments go to `cargo bench`.

# shellcheck source=deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$repository"

grep -q '^\[\[bench\]\]' Cargo.toml || die "this version has no benchmark yet"
ensure_packages run
ensure_rust
ensure_engine
use_build_cache
run_stage 'bench' cargo bench --locked --benches "$@"
