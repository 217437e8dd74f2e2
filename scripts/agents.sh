#!/bin/sh
# Installs the real agents that tests run offline, in the versions crates/testkit/agents.txt pins.
#
# usage: scripts/agents.sh [--all] [NAME…]
#
# Without names: the default ones; --all adds the optional ones. Each goes to
#   ${SEGNO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/segno}/agents/<name>-<version>/bin/<name>
# and that path is printed, one per line. What is there is left alone. An installation appears whole or not at all.
#
# exit: 0 all there · 1 an installation failed · 2 wrong usage · 3 npm is missing or its registry cannot be reached
set -eu

say() { printf '%s\n' "agents.sh: $*" >&2; }

list=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)/crates/testkit/agents.txt
if [ -z "${SEGNO_CACHE:-}" ] && [ -z "${XDG_CACHE_HOME:-}" ] && [ -z "${HOME:-}" ]; then
    say "no place to install to: set SEGNO_CACHE"
    exit 2
fi
root=${SEGNO_CACHE:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/segno}/agents

all=no
names=
for arg in "$@"; do
    case $arg in
        --all) all=yes ;;
        -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0"; exit 0 ;;
        -*) say "unknown option $arg"; exit 2 ;;
        *)
            if ! grep -q "^$arg " "$list"; then
                say "unknown agent $arg; known are: $(sed -n 's/^\([a-z]*\) .*/\1/p' "$list" | tr '\n' ' ')"
                exit 2
            fi
            names="$names $arg"
            ;;
    esac
done

wanted() { # name, kind
    if [ -n "$names" ]; then
        case " $names " in *" $1 "*) return 0 ;; *) return 1 ;; esac
    fi
    [ "$2" = default ] || [ "$all" = yes ]
}

# The program itself, without the launcher script around it where there is one: it needs no node to run.
native() { # name, the directory of an installation
    case $(uname -m) in x86_64 | amd64) cpu=x64 ;; aarch64 | arm64) cpu=arm64 ;; *) cpu=$(uname -m) ;; esac
    system=$(uname -s | tr '[:upper:]' '[:lower:]')
    modules=node_modules
    case $1 in
        claude) set -- "$2" "$modules/@anthropic-ai/claude-code-$system-$cpu/claude" ;;
        codex) set -- "$2" "$modules/@openai/codex-$system-$cpu/vendor/"*"/bin/codex" \
            "$modules/@openai/codex/vendor/"*"/bin/codex" ;;
        opencode) set -- "$2" "$modules/opencode-$system-$cpu/bin/opencode" ;;
        *) set -- "$2" "$modules/.bin/$1" ;;
    esac
    base=$1
    shift
    for pattern in "$@"; do
        # Unquoted on purpose: the middle of some paths names the platform.
        for path in "$base"/$pattern; do
            if [ -x "$path" ]; then
                printf '%s\n' "${path#"$base"/}"
                return 0
            fi
        done
    done
    return 1
}

scratch=
trap '[ -z "$scratch" ] || rm -rf -- "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

install() { # name, version, package
    target=$root/$1-$2
    if [ -x "$target/bin/$1" ]; then
        printf '%s\n' "$target/bin/$1"
        return 0
    fi
    if ! command -v npm >/dev/null 2>&1; then
        say "npm is needed to install $3@$2 and is not there; install Node.js, then run this again"
        exit 3
    fi
    mkdir -p -- "$root"
    # What a killed installation left behind a day ago or more.
    find "$root" -maxdepth 1 -name '.new-*' -mtime +0 -exec rm -rf {} +
    scratch=$(mktemp -d "$root/.new-$1-XXXXXX")
    say "installing $3@$2"
    # Install scripts are not needed: the platform's own package brings the program.
    if ! npm install --prefix "$scratch" --no-audit --no-fund --no-save --ignore-scripts --loglevel=error \
        --fetch-retries=1 --fetch-timeout=120000 "$3@$2" >"$scratch/npm.log" 2>&1; then
        sed 's/^/    /' "$scratch/npm.log" >&2
        if grep -Eq 'ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ENOTCACHED|ERR_SOCKET_TIMEOUT|network' \
            "$scratch/npm.log"; then
            say "npm cannot reach its registry, so $3@$2 is not installed"
            exit 3
        fi
        say "npm could not install $3@$2"
        exit 1
    fi
    if ! program=$(native "$1" "$scratch"); then
        say "$3@$2 has no program for $(uname -s) on $(uname -m)"
        exit 1
    fi
    mkdir "$scratch/bin"
    ln -s "../$program" "$scratch/bin/$1"
    chmod 755 "$scratch"
    # A rename that refuses to go into a directory that is there, which mv does not promise everywhere.
    if node -e 'require("fs").renameSync(process.argv[1], process.argv[2])' "$scratch" "$target" 2>/dev/null; then
        scratch=
    elif [ ! -x "$target/bin/$1" ]; then
        say "$target is in the way; remove it and run this again"
        exit 1
    else
        rm -rf -- "$scratch"
        scratch=
    fi
    printf '%s\n' "$target/bin/$1"
}

while read -r name version package kind; do
    case $name in '' | '#'*) continue ;; esac
    # npm must not read the rest of the list.
    if wanted "$name" "$kind"; then install "$name" "$version" "$package" </dev/null; fi
done <"$list"
