# Sourced by the other scripts: where things are kept between runs, and tools that are not part of Rust.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
SEGNO_CACHE="${SEGNO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/segno}"
export SEGNO_CACHE
export PATH="$SEGNO_CACHE/tools/bin:$PATH"

# How SQLite is built into what is shipped. Without the first it also makes durable when the log was last written, which nobody asks,
# and that takes another journal commit. The others are parts that nothing here uses, and that each process would set up anew.
SQLITE_SHIPPED="-DHAVE_FDATASYNC=1 -USQLITE_ENABLE_FTS3 -USQLITE_ENABLE_FTS3_PARENTHESIS -USQLITE_ENABLE_RTREE"
SQLITE_SHIPPED+=" -USQLITE_ENABLE_DBSTAT_VTAB -USQLITE_ENABLE_STAT4 -USQLITE_SOUNDEX"

say() { printf '\n== %s\n' "$*" >&2; }

# A cargo tool of a fixed version, built once and kept in the cache.
need_tool() { # name version
    if command -v "$1" >/dev/null 2>&1; then return; fi
    say "installing $1 $2 (once)"
    cargo install --locked --root "$SEGNO_CACHE/tools" --target-dir "$SEGNO_CACHE/tools/target" "$1@$2"
}

# Programs of the system that tests use when they are there. Only root can install them.
need_packages() { # program:package ...
    local missing=() pair
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null 2>&1 || missing+=("${pair##*:}")
    done
    if [ ${#missing[@]} -eq 0 ]; then return; fi
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing ${missing[*]}"
        apt-get update -qq >&2 && apt-get install -y -qq "${missing[@]}" >&2
    else
        say "not installed: ${missing[*]}; the tests that need them say so and are skipped"
    fi
}

# A Prometheus for the tests that ask one: taken out of its package, so that none is installed and started.
need_prometheus() {
    local there="$SEGNO_CACHE/prometheus"
    if [ -x "$there/usr/bin/prometheus" ]; then return; fi
    command -v apt-get >/dev/null 2>&1 || { say "there is no apt-get to fetch prometheus; the test that asks one is skipped"; return; }
    say "fetching prometheus (once)"
    mkdir -p "$there"
    if [ "$(id -u)" -eq 0 ]; then apt-get update -qq >&2 || true; fi
    (cd "$there" && apt-get download -qq prometheus >&2 && dpkg-deb -x prometheus_*.deb . && rm -f prometheus_*.deb) ||
        say "prometheus could not be fetched; the test that asks one is skipped"
}

# The types that OpenTelemetry publishes, as an independent reader of what is sent.
need_otel_reader() {
    local there="$SEGNO_CACHE/otel"
    if [ -e "$there/done" ]; then return; fi
    say "installing opentelemetry-proto 1.45.2 (once)"
    rm -rf "$there"
    python3 -m venv "$there" >&2 && "$there/bin/pip" install --quiet opentelemetry-proto==1.45.2 >&2 && touch "$there/done" ||
        { rm -rf "$there"; say "opentelemetry-proto could not be installed; the test that reads by it is skipped"; }
}

# What looks for barriers in pages, for the tests in a browser. Without npm those tests say so.
need_axe() {
    local axe="$SEGNO_CACHE/axe"
    if [ -e "$axe/node_modules/axe-core/axe.min.js" ]; then return; fi
    command -v npm >/dev/null 2>&1 || { say "npm is not installed; pages are not looked through by axe"; return; }
    say "installing axe-core 4.10.3 (once)"
    mkdir -p "$axe" && npm install --prefix "$axe" --silent --no-audit --no-fund axe-core@4.10.3 >&2 ||
        say "axe-core could not be installed; pages are not looked through by it"
}
