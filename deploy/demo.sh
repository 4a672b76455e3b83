#!/usr/bin/env bash
# Shows the main job with real parts on this machine: a Git repository, the Docker Engine, Caddy
# and the daemon. Everything lives in one private directory and on loopback ports of its own; a
# Caddy or a trueup that this host already runs is left alone. May be run twice: it begins anew.
#
#   deploy/demo.sh           runs it, and leaves everything running to look at
#   deploy/demo.sh --stop    stops and removes everything
#   deploy/demo.sh --stop --keep    the same, but keeps the directory with its logs
#
# Environment: TRUEUP_BIN (a binary to use instead of building one), TRUEUP_DEMO_DIR.

# shellcheck source=deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly directory=${TRUEUP_DEMO_DIR:-/var/lib/trueup-demo}
readonly project=demo-shop
readonly target=prod
readonly host=shop.localhost
readonly wait_seconds=60

# Nobody's own settings, signatures or hooks.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1

config=$directory/config
shop=$directory/shop
results=$directory/requests
http_port='' admin_port='' good_sha='' bad_sha=''

# ── Stopping ────────────────────────────────────────────────────────────────────────────────────

# stop_process FILE SECONDS: ends the process of a pid file, if it is still the one that we
# started: its command line or its environment names our directory.
stop_process() {
    local pid until=$((SECONDS + $2))
    pid=$(cat "$directory/run/$1" 2>/dev/null) || return 0
    if [[ -r /proc/$pid/environ ]] && grep -q -a -F "TRUEUP_DEMO=$directory" "/proc/$pid/environ"; then
        kill "$pid" 2>/dev/null || true
        while kill -0 "$pid" 2>/dev/null && [[ $SECONDS -lt $until ]]; do sleep 0.1; done
        kill -9 "$pid" 2>/dev/null || true
    fi
    rm -f "$directory/run/$1"
}

engine() {
    local method=$1 path=$2
    curl -fsS --noproxy '*' --max-time 30 --unix-socket "$engine_socket" -X "$method" "http://localhost$path"
}

remove_containers() {
    engine_answers || return 0
    local slot image
    for slot in a b; do
        engine DELETE "/containers/$project.$target.$slot?force=true" >/dev/null 2>&1 || true
    done
    engine DELETE "/networks/$project.$target" >/dev/null 2>&1 || true
    # The images' tags, as the engine lists them: huta-build/demo-shop:<12 hex>.
    for image in $(engine GET /images/json 2>/dev/null | grep -o "huta-build/$project:[0-9a-f]*" | sort -u); do
        engine DELETE "/images/$image?force=true" >/dev/null 2>&1 || true
    done
}

stop_everything() {
    [[ -d $directory ]] || return 0
    [[ -e $directory/.trueup-demo || -z $(ls -A "$directory") ]] ||
        die "$directory is not one that this demo made" 'set TRUEUP_DEMO_DIR to a new directory'
    stop_process client.pid 2
    # The target's own way out also takes away its firewall rules; what is left goes by name.
    if [[ -x $directory/bin/trueup && -S $directory/run/trueup.sock ]]; then
        timeout 30 "$directory/bin/trueup" remove "$project" "$target" --yes --config "$config" \
            >>"$directory/log/remove.log" 2>&1 || true
    fi
    stop_process trueup.pid 15
    stop_process caddy.pid 5
    remove_containers
    [[ ${1:-} == --keep ]] || rm -rf "$directory"
}

# An engine that these scripts started is stopped with the demo, unless something else runs on it.
stop_own_engine() {
    local pid
    pid=$(cat "$engine_pid_file" 2>/dev/null) || return 0
    if [[ $(cat "/proc/$pid/comm" 2>/dev/null) != dockerd ]]; then
        rm -f "$engine_pid_file"
    elif [[ $(engine GET /containers/json 2>/dev/null) == '[]' ]]; then
        kill "$pid" && rm -f "$engine_pid_file"
        say "Stopped the Docker Engine that these scripts had started."
    else
        say "Left the Docker Engine running (pid $pid): other containers run on it."
    fi
}

# ── Starting ────────────────────────────────────────────────────────────────────────────────────

# free_port FIRST: the first port from FIRST on where nobody listens; below the ephemeral range.
free_port() {
    local port
    for ((port = $1; port < $1 + 100; port++)); do
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            printf '%s\n' "$port"
            return 0
        fi
    done
    die "no free port between $1 and $port"
}

# start NAME COMMAND…: a background process with its own session, log and pid file.
start() {
    local name=$1
    shift
    TRUEUP_DEMO=$directory setsid "$@" >>"$directory/log/$name.log" 2>&1 </dev/null &
    printf '%s\n' "$!" >"$directory/run/$name.pid"
}

write_configuration() {
    local slot_a slot_b
    http_port=$(free_port 18080)
    admin_port=$(free_port 18180)
    slot_a=$(free_port 18280)
    slot_b=$(free_port $((slot_a + 1)))

    cat >"$directory/Caddyfile" <<EOF
{
	admin 127.0.0.1:$admin_port
	http_port $http_port
	default_bind 127.0.0.1
	auto_https off
}
import $directory/sites/*.caddy
EOF
    cat >"$config/huta.toml" <<EOF
schema = 1

[platform]
state_dir = "$directory/state"

[server]
socket = "$directory/run/trueup.sock"

[poll]
every = "1s"

[edge]
admin = "http://127.0.0.1:$admin_port"
sites = "$directory/sites"
caddyfile = "$directory/Caddyfile"
public_checks = "direct"
tls = "off"
EOF
    cat >"$config/projects.d/$project.toml" <<EOF
schema = 1
project = "$project"
repo = "file://$directory/shop.git"
app_toml = "deploy/app.toml"
uid = 20001

[image]
from = "build"

[targets.$target]
hosts = ["$host"]
slots = [$slot_a, $slot_b]
limits = { memory = "64m", cpus = 1, pids = 64 }
approve = "never"
require_ci = false
drain = 1
EOF
}

start_daemons() {
    start caddy env XDG_DATA_HOME="$directory/caddy" XDG_CONFIG_HOME="$directory/caddy" \
        caddy run --config "$directory/Caddyfile" --adapter caddyfile
    wait_for 'Caddy answers' curl -fsS --noproxy '*' "http://127.0.0.1:$admin_port/config/"
    start trueup "$directory/bin/trueup" serve --config "$config"
    wait_for 'the daemon answers' "$directory/bin/trueup" status --config "$config"
}

# The name of a process that we started and that has ended since, if there is one.
ended_process() {
    local file
    for file in "$directory"/run/*.pid; do
        [[ -d /proc/$(cat "$file") ]] || basename "$file" .pid
    done
}

# wait_for WHAT COMMAND…: until the command succeeds, a process of ours ends, or the bound is reached.
wait_for() {
    local what=$1 until=$((SECONDS + wait_seconds)) ended='' reason
    shift
    until "$@" >/dev/null 2>&1; do
        ended=$(ended_process)
        if [[ -n $ended || $SECONDS -ge $until ]]; then
            tail -n 15 "$directory/log/${ended:-trueup}.log" >&2 || true
            reason="${ended:+$ended has ended}"
            die "waited in vain: $what (${reason:-$wait_seconds s are over})" \
                "look at $directory/log; 'deploy/demo.sh --stop' ends what runs"
        fi
        sleep 0.1
    done
}

# ── What is shown ───────────────────────────────────────────────────────────────────────────────

trueup() {
    printf '    %s$ trueup %s%s\n' "$dim" "$*" "$plain"
    "$directory/bin/trueup" "$@" --config "$config" 2>&1 | sed 's/^/      /'
}

# ask PATH [CURL-OPTION…]: one GET through Caddy.
ask() {
    local path=$1
    shift
    curl -sS --noproxy '*' --max-time 10 --connect-to "$host::127.0.0.1:" "$@" "http://$host:$http_port$path"
}

serves() { ask /healthz | grep -q -F "\"sha\":\"$1\""; }
ended_as() { "$directory/bin/trueup" releases "$project" "$target" --json --config "$config" | grep -q -F "\"$1\""; }
page() { note "the page says: $(ask /cgi-bin/page | sed -n 's/.*<h1>\(.*\)<\/h1>.*/\1/p')"; }

in_shop() {
    git -C "$shop" -c user.name=Demo -c user.email=demo@localhost "$@"
}

# push MESSAGE: commits what changed, pushes it, and gives its sha.
push() {
    in_shop add -A
    in_shop commit -q -m "$1"
    in_shop push -q origin main
    in_shop rev-parse HEAD
}

make_repository() {
    git init -q --bare --initial-branch=main "$directory/shop.git"
    git init -q --initial-branch=main "$shop"
    in_shop remote add origin "file://$directory/shop.git"
    cp -R "$repository/deploy/demo/app/." "$shop/"
    cp "$(static_busybox)" "$shop/busybox"
    # Read by another user inside the container, whatever the umask here is.
    chmod -R u=rwX,go=rX "$shop/www" "$shop/start" "$shop/busybox"
    chmod 0755 "$shop/www/cgi-bin/page" "$shop/start" "$shop/busybox"
}

# One request after another until the stop file appears; one line each: status, then the heading.
client() {
    local answer heading
    while [[ ! -e $directory/run/client.stop ]]; do
        answer=$(ask /cgi-bin/page -w '\n%{http_code}' 2>/dev/null || true)
        heading=${answer#*<h1>}
        printf '%s %s\n' "${answer##*$'\n'}" "${heading%%</h1>*}" >>"$results"
    done
}

start_client() {
    rm -f "$directory/run/client.stop"
    : >"$results"
    TRUEUP_DEMO=$directory start client bash "${BASH_SOURCE[0]}" --client "$http_port"
    wait_for 'the client asks' grep -q 200 "$results"
}

# Ends the client, and counts: every request must have been answered with 200 by one of the pages.
stop_client() {
    touch "$directory/run/client.stop"
    local pid
    pid=$(cat "$directory/run/client.pid")
    wait "$pid" 2>/dev/null || true
    rm -f "$directory/run/client.pid"
}

count() { grep -c -- "$1" "$results" || true; }

# ── The demo ────────────────────────────────────────────────────────────────────────────────────

first_push() {
    step 'A first push goes live behind Caddy'
    local sha
    sha=$(push 'shop: opening hours')
    note "git push: ${sha:0:12} \"shop: opening hours\""
    wait_for "${sha:0:12} answers through Caddy" serves "$sha"
    good "live: the container itself says that it is ${sha:0:12}, asked through Caddy"
    page
    trueup status "$project" "$target"
}

second_push() {
    step 'A second push replaces it, while a client keeps asking'
    local sha all lost
    start_client
    sed -i "s/^heading=.*/heading='Open from seven to nine'/" "$shop/www/cgi-bin/page"
    sha=$(push 'shop: longer opening hours')
    note "git push: ${sha:0:12} \"shop: longer opening hours\""
    wait_for "${sha:0:12} answers through Caddy" serves "$sha"
    # Past the drain, so that the old slot's end is seen by the client as well.
    wait_for 'the old slot is stopped' old_slot_is_stopped
    stop_client
    all=$(count '^[0-9]')
    lost=$((all - $(count '^200 ')))
    [[ $lost -eq 0 && $all -gt 0 ]] || die "$all requests, $lost lost" "look at $results"
    good "$all requests, 0 lost: $(count 'eight to six') by the old page, then $(count 'seven to nine') by the new one"
    page
}

# One running container of the project: the old slot's is drained and stopped.
old_slot_is_stopped() {
    local running
    running=$(engine GET '/containers/json' | grep -o "\"/$project\.$target\.[ab]\"" | sort -u | wc -l)
    [[ $running -eq 1 ]]
}

third_push() {
    step 'A third push is broken behind the proxy only, and goes back by itself'
    cp "$repository/deploy/demo/broken-page" "$shop/www/cgi-bin/page"
    bad_sha=$(push 'shop: greet each client by its address')
    note "git push: ${bad_sha:0:12} \"shop: greet each client by its address\""
    note 'its smoke check is good on the idle slot, and fails through Caddy, after the switch'
    wait_for 'the release ends reverted' ended_as reverted
    wait_for "${good_sha:0:12} answers through Caddy" serves "$good_sha"
    good "reverted: ${good_sha:0:12} serves again, and ${bad_sha:0:12} is not tried a second time"
    page
}

explain() {
    step 'Why is my commit not live?'
    trueup why "$project" "$target" "$bad_sha"
}

revert() {
    step 'A git revert goes live like any commit'
    local sha
    in_shop revert --no-edit HEAD >/dev/null
    in_shop push -q origin main
    sha=$(in_shop rev-parse HEAD)
    note "git push: ${sha:0:12} $(in_shop log -1 --format=%s)"
    wait_for 'the revert is satisfied or live' revert_has_arrived "$sha"
    if serves "$sha"; then
        good "live: ${sha:0:12} answers through Caddy"
    else
        good "satisfied: the tree of ${sha:0:12} is the one that already runs, so nothing had to be replaced"
    fi
    page
    trueup releases "$project" "$target"
}

# A revert's tree equals the live one's: it is live either as its own release or as the one that
# already runs; in both ways the daemon knows its sha, and nothing is held.
revert_has_arrived() {
    serves "$1" || "$directory/bin/trueup" status "$project" "$target" --json --config "$config" | grep -q -F "$1"
}

closing_words() {
    printf '\n%sDone in %d s.%s Everything still runs, to look at:\n' "$bold" "$SECONDS" "$plain"
    say "  curl http://$host:$http_port/cgi-bin/page"
    say "  $directory/bin/trueup status --config $config"
    say "  git clone $directory/shop.git, change the page, push: it goes live"
    say "  logs: $directory/log"
    printf '\nTo stop and remove everything: %sdeploy/demo.sh --stop%s\n' "$bold" "$plain"
}

run_demo() {
    step 'Starting Caddy and trueup, each with its own ports, in one private directory'
    stop_everything
    install -d -m 0700 "$directory"
    touch "$directory/.trueup-demo"
    install -d -m 0755 "$directory"/{bin,config,config/projects.d,sites,log,run,caddy}
    install -d -m 0711 "$directory/state"
    install -m 0755 "$TRUEUP_BIN" "$directory/bin/trueup"
    write_configuration
    make_repository
    start_daemons
    note "directory $directory, site http://$host:$http_port, registry $config/projects.d/$project.toml"

    first_push
    second_push
    good_sha=$(in_shop rev-parse HEAD)
    third_push
    explain
    revert
    closing_words
}

build() {
    ensure_packages run
    ensure_engine
    if [[ -n ${TRUEUP_BIN:-} ]]; then
        [[ -x $TRUEUP_BIN ]] || die "TRUEUP_BIN is $TRUEUP_BIN, which is no program"
        TRUEUP_BIN=$(realpath "$TRUEUP_BIN")
        return 0
    fi
    ensure_rust
    use_build_cache
    say 'Building trueup (unoptimised; the first build takes some minutes, set TRUEUP_BIN to use another binary)'
    (cd "$repository" && run_stage 'build' cargo build --locked --bins)
    TRUEUP_BIN=$CARGO_TARGET_DIR/debug/trueup
}

case "${1:-} ${2:-}" in
    '--client '*)
        http_port=$2
        client
        ;;
    '--stop ' | '--stop --keep')
        [[ $EUID -eq 0 ]] || exec sudo --preserve-env=TRUEUP_DEMO_DIR bash "${BASH_SOURCE[0]}" "$@"
        stop_everything "${2:-}"
        stop_own_engine
        say "Stopped. $([[ -d $directory ]] && echo "Logs: $directory/log" || echo "Nothing is left of it but the build cache.")"
        ;;
    ' ')
        build
        export TRUEUP_BIN
        if [[ $EUID -ne 0 ]]; then
            # The engine's socket, firewall rules and the containers' users need root; the build did not.
            say 'The rest runs as root: sudo'
            exec sudo --preserve-env=TRUEUP_DEMO_DIR,TRUEUP_BIN,NO_COLOR bash "${BASH_SOURCE[0]}"
        fi
        SECONDS=0
        run_demo
        ;;
    *) die "unknown arguments: $*" "deploy/demo.sh, or deploy/demo.sh --stop [--keep]" ;;
esac
