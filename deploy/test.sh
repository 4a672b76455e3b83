#!/usr/bin/env bash
# Runs all tests, with the real parts that they need: Docker Engine, Caddy, git, an SSH server, nftables,
# a Kubernetes API server (built once a machine, which takes about nine minutes).
# Installs what is missing, says what it does, and may be run twice. Arguments go to `cargo test`.
#
# Environment: CARGO_TARGET_DIR (default ~/.cache/trueup/target), RUST_TEST_THREADS (default: the
# number of processors, at most 4: the live tests start containers and web servers).

# shellcheck source=deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$repository"

ensure_packages test
ensure_rust
ensure_engine
ensure_cluster_api
use_build_cache

# A snapshot that differs is a failure, not a new file in the checkout.
export INSTA_UPDATE=no
processors=$(nproc)
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((processors < 4 ? processors : 4))}

# The live tests make bridges and firewall rules: their binaries run as root, the compiler does not.
if [[ $EUID -ne 0 ]]; then
    host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
    export "CARGO_TARGET_${host}_RUNNER=sudo --preserve-env --"
fi

run_stage 'build' cargo test --locked --no-run
run_stage 'test' cargo test --locked "$@"
