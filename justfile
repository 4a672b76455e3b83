# Short names for the scripts in deploy/; they work the same without `just`
# (Debian 13: apt-get install just; elsewhere: cargo install just).

# Lists what there is
default:
    @just --list

# Shows the main job with real parts; `just demo --stop` ends it
demo *arguments:
    deploy/demo.sh {{ arguments }}

# Runs all tests
test *arguments:
    deploy/test.sh {{ arguments }}

# Format, lints and documentation, warnings denied
check:
    deploy/check.sh

# Measures speed and size
bench *arguments:
    deploy/bench.sh {{ arguments }}

# What CI runs: check, then test
ci:
    .ci/run
