#!/usr/bin/env bash
# Measures what the design promises about speed and size, and prints a table (docs/BENCHMARKS.md).
#
#   deploy/bench.sh                  every row
#   deploy/bench.sh idle look        these rows
#   deploy/bench.sh --json           for machines
#   deploy/bench.sh --list           the rows' names

# shellcheck source=deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$repository"

{
    ensure_packages run
    ensure_rust
    ensure_engine
    use_build_cache
} >&2
# Standard output is the table alone (or the JSON); everything else goes to standard error.
cargo bench --locked --bench bench -- "$@" </dev/null || die "bench failed [$SECONDS s]"
