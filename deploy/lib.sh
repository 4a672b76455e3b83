# shellcheck shell=bash
# What the scripts in this directory share: saying what happens, installing what is missing,
# finding Rust, and having a Docker Engine answer. Sourced, never run.

set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly repository

# Where an engine that these scripts started themselves keeps its pid and its log.
readonly engine_pid_file=/run/trueup-dockerd.pid
readonly engine_log=/var/log/trueup-dockerd.log
readonly engine_socket=/var/run/docker.sock
readonly engine_wait_seconds=60

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
    bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
else
    bold='' dim='' red='' green='' plain=''
fi

say() { printf '%s\n' "$*"; }
note() { printf '%s    %s%s\n' "$dim" "$*" "$plain"; }
good() { printf '    %s✓%s %s\n' "$green" "$plain" "$*"; }

# A numbered step; the time is counted from the start of the script.
step_number=0
step() {
    step_number=$((step_number + 1))
    printf '\n%s%d. %s%s %s[%d s]%s\n' "$bold" "$step_number" "$*" "$plain" "$dim" "$SECONDS" "$plain"
}

# die WHAT DO: says what is wrong and what to do, and ends.
die() {
    printf '%serror:%s %s\n' "$red" "$plain" "$1" >&2
    [[ $# -lt 2 ]] || printf 'do:    %s\n' "$2" >&2
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [[ $EUID -eq 0 ]]; then
        "$@"
    else
        has sudo || die "this needs root, and there is no sudo" "run it as root, or install sudo"
        sudo "$@"
    fi
}

# Daemons live in the sbin directories, which an ordinary user's PATH may lack.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# need COMMAND-OR-FILE PACKAGE: prints the package unless the thing is there already.
need() {
    case $1 in
        /*) [[ -e $1 ]] || printf '%s\n' "$2" ;;
        *) has "$1" || printf '%s\n' "$2" ;;
    esac
}

# The static busybox is the demo's and the tests' web server inside containers that have nothing else.
static_busybox() {
    local path
    for path in /bin/busybox /usr/bin/busybox; do
        if [[ -x $path ]] && ! grep -q -a -m1 '/ld-linux' "$path"; then
            printf '%s\n' "$path"
            return
        fi
    done
    return 1
}

missing_packages() {
    need cc gcc
    need gcc gcc
    need /usr/include/stdio.h libc6-dev
    need pkg-config pkg-config
    need /etc/ssl/certs/ca-certificates.crt ca-certificates
    need curl curl
    need git git
    [[ $1 != build ]] || return 0
    need dockerd docker.io
    need caddy caddy
    need nft nftables
    need iptables iptables
    # An engine that is not started by systemd needs its control groups mounted; and where the
    # kernel enforces AppArmor, it loads its profile with this parser.
    grep -q ' cgroup2\{0,1\} ' /proc/mounts || need cgroupfs-mount cgroupfs-mount
    [[ $(cat /sys/module/apparmor/parameters/enabled 2>/dev/null) != Y ]] || need apparmor_parser apparmor
    static_busybox >/dev/null || printf 'busybox-static\n'
    # Git over SSH is tested against a real server, which the tests start on a loopback port.
    [[ $1 != test ]] || need sshd openssh-server
    # The tests that need hosts or engines of their own make them with this.
    [[ $1 != test ]] || need ip iproute2
}

# ensure_packages build|run|test: installs what is missing to build, to run the demo as well, or to
# run the live tests as well; asks apt for nothing when nothing is missing.
ensure_packages() {
    local -a missing
    mapfile -t missing < <(missing_packages "$1" | sort -u)
    [[ ${#missing[@]} -gt 0 ]] || return 0
    has apt-get || die "missing here: ${missing[*]} (names of Debian packages)" \
        "install them with this system's package manager, then run this again"
    say "Installing with apt-get: ${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null
    local is_ssh_new=false
    [[ ! -d /run/systemd/system || " ${missing[*]} " != *' openssh-server '* ]] || is_ssh_new=true
    # Only the program is wanted: this machine shall not begin to listen for logins.
    ! $is_ssh_new || as_root systemctl --quiet mask ssh.service ssh.socket
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${missing[@]}" </dev/null
    ! $is_ssh_new || as_root systemctl --quiet unmask ssh.service ssh.socket
    ! $is_ssh_new || as_root systemctl --quiet disable ssh.service ssh.socket
    mapfile -t missing < <(missing_packages "$1" | sort -u)
    [[ ${#missing[@]} -eq 0 ]] || die "still missing after apt-get install: ${missing[*]}" \
        "install them by hand, then run this again"
}

# Finds cargo, and checks it against `rust-version` in Cargo.toml.
ensure_rust() {
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$repository/Cargo.toml")
    has cargo || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
    found=$(cargo --version 2>/dev/null | cut -d' ' -f2 || true)
    if [[ -z $found || $(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n1) != "$wanted" ]]; then
        die "Rust $wanted or newer is needed to build trueup, and here is ${found:-none} (Debian's own rustc is too old)" \
            "install rustup (https://rustup.rs; on Debian 13 also 'apt-get install rustup'), run 'rustup default stable', then run this again"
    fi
}

engine_answers() {
    as_root curl -fsS --noproxy '*' --max-time 5 --unix-socket "$engine_socket" \
        http://localhost/_ping >/dev/null 2>&1
}

# ensure_engine: has a Docker Engine answer on its socket; starts one where nothing does.
ensure_engine() {
    engine_answers && return 0
    if [[ -d /run/systemd/system ]]; then
        say "Starting the Docker Engine: systemctl start docker"
        as_root systemctl start docker
    elif [[ $(cat "/proc/$(cat /var/run/docker.pid 2>/dev/null || echo none)/comm" 2>/dev/null) == dockerd ]]; then
        say "Waiting for the Docker Engine, which something else has just started"
    else
        say "Starting the Docker Engine as a plain process: nothing else starts it here (log: $engine_log)"
        grep -q ' cgroup2\{0,1\} ' /proc/mounts || as_root cgroupfs-mount
        # What a killed engine left: its number may be another process's by now, and a new one would refuse to start.
        as_root rm -f /var/run/docker.pid
        # shellcheck disable=SC2016 # expanded by the inner shell, which runs as root
        as_root sh -c 'setsid dockerd >>"$1" 2>&1 </dev/null & echo $! >"$2"' \
            sh "$engine_log" "$engine_pid_file"
    fi
    local until=$((SECONDS + engine_wait_seconds))
    until engine_answers; do
        if [[ $SECONDS -ge $until ]]; then
            as_root tail -n 5 "$engine_log" >&2 2>/dev/null || true
            die "the Docker Engine does not answer on $engine_socket after $engine_wait_seconds s" \
                "look at $engine_log, or at 'journalctl -u docker'"
        fi
        sleep 0.2
    done
}

# ensure_cluster_api: has a real Kubernetes API server answer, for the tests that ask one about our objects.
# Building it takes about nine minutes once a machine; after that, starting it takes seconds.
ensure_cluster_api() {
    as_root "$repository/deploy/cluster" api ||
        die "no Kubernetes API server can be started" "look at /run/trueup-cluster/*.log, then run 'deploy/cluster api'"
}

# Where cargo builds: outside of the checkout, kept between runs. Cargo takes a file for unchanged
# when it is older than what was built from it, even if that was built from another folder; so what
# was built of the crate itself goes when the folder is another one, and always in CI.
use_build_cache() {
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/trueup/target}
    export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}
    export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}
    local mark=$CARGO_TARGET_DIR/.trueup-checkout
    mkdir -p "$CARGO_TARGET_DIR"
    if [[ -n ${CI:-} || $(cat "$mark" 2>/dev/null) != "$repository" ]]; then
        cargo clean --quiet --locked -p trueup
    fi
    printf '%s\n' "$repository" >"$mark"
}

# run_stage NAME COMMAND…: says what runs and how long everything before it took, and runs it without input.
run_stage() {
    local name=$1
    shift
    printf '%s==> %s%s [%d s] %s\n' "$bold" "$name" "$plain" "$SECONDS" "$*"
    "$@" </dev/null || die "$name failed [$SECONDS s]"
}
