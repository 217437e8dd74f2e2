#!/bin/sh
# Installs segno from a release: a directory or a web address with archives and their SHA256SUMS.
#
# usage: install.sh [--from DIR|URL] [--to PREFIX] [--older] [--check]
#        install.sh --remove [--to PREFIX] [--keep-hooks]
#
#   --from    where the release is; an address has to be https, or http on this machine
#   --to      where to: PREFIX/bin, PREFIX/share (default: ~/.local)
#   --older   also install a version older than the one that is there
#   --check   say which version there is and whether another one is installed, and change nothing
#   --remove  remove what this script installed, and nothing else; hooks in the settings of agents first, unless
#             --keep-hooks
#
# The archive is checked against SHA256SUMS before anything of it is run or installed. That tells a damaged or exchanged
# archive from the one the list was made for; whether the list is genuine depends on where it came from.
#
# exit: 0 done · 1 failed, nothing was changed · 2 wrong usage · 3 refused, nothing was changed
set -eu
umask 022

# Filled in when a release is made for a known place.
default_from=''

say() { printf '%s\n' "$*" >&2; }
fail() { say "install.sh: $1"; shift; for hint in "$@"; do say "  hint: $hint"; done; exit 1; }
refuse() { say "install.sh: $1"; shift; for hint in "$@"; do say "  hint: $hint"; done; exit 3; }
wrong() { say "install.sh: $1"; say "  hint: sh install.sh --help"; exit 2; }

from=${SEGNO_INSTALL_FROM:-$default_from}
prefix=
task=install
older=no
hooks=remove
while [ $# -gt 0 ]; do
    case $1 in
        --from | --to)
            [ $# -ge 2 ] || wrong "$1 needs a value"
            if [ "$1" = --from ]; then from=$2; else prefix=$2; fi
            shift
            ;;
        --older) older=yes ;;
        --check) task=check ;;
        --remove) task=remove ;;
        --keep-hooks) hooks=keep ;;
        -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0"; exit 0 ;;
        *) wrong "unknown option $1" ;;
    esac
    shift
done
if [ -z "$prefix" ]; then
    [ -n "${HOME:-}" ] || wrong "HOME is not set; say where to with --to"
    prefix=$HOME/.local
fi
case $prefix in /*) ;; *) prefix=$(pwd)/$prefix ;; esac
receipt=$prefix/share/segno-install/receipt

# What an earlier installation put here: "version 0.1.0", "from …", then a line "file …" for each file below PREFIX.
receipt_says() { [ -f "$receipt" ] || return 0; sed -n "s/^$1 //p" "$receipt"; }

# A name in a receipt is one of ours: below the prefix, without a way out of it.
is_ours() {
    case $1 in
        *..* | /* | '') return 1 ;;
        bin/segno | share/man/man1/segno*.1 | share/doc/segno/* | share/bash-completion/completions/segno | \
            share/zsh/site-functions/_segno | share/fish/vendor_completions.d/segno.fish | share/segno-install/*) return 0 ;;
        *) return 1 ;;
    esac
}

remove() {
    [ -f "$receipt" ] || refuse "nothing in $prefix was installed by this script" "say where it is with --to PREFIX"
    if [ "$hooks" = remove ] && [ -x "$prefix/bin/segno" ]; then
        # Hooks of a program that is gone would do nothing, but they would stay in the agents' settings.
        if ! "$prefix/bin/segno" uninit --yes >/dev/null 2>&1; then
            say "warning: the hooks in the agents' settings could not be taken out; they do nothing without the program"
        fi
    fi
    receipt_says file | while IFS= read -r name; do
        if is_ours "$name"; then rm -f -- "$prefix/$name"; fi
    done
    rm -f -- "$receipt"
    # Directories that are empty now, from the inside out; one that holds anything stays.
    for name in share/segno-install share/doc/segno share/doc share/man/man1 share/man \
        share/bash-completion/completions share/bash-completion share/zsh/site-functions share/zsh \
        share/fish/vendor_completions.d share/fish share bin; do
        rmdir -- "$prefix/$name" 2>/dev/null || :
    done
    say "segno is removed from $prefix"
    say "  your sessions and settings stay: ${XDG_DATA_HOME:-${HOME:-~}/.local/share}/segno, ${XDG_STATE_HOME:-${HOME:-~}/.local/state}/segno, ${XDG_CONFIG_HOME:-${HOME:-~}/.config}/segno"
}

target() {
    system=$(uname -s)
    machine=$(uname -m)
    case $machine in x86_64 | amd64) machine=x86_64 ;; aarch64 | arm64) machine=aarch64 ;; esac
    case $system in
        Linux) printf '%s\n' "$machine-unknown-linux-gnu" ;;
        Darwin) printf '%s\n' "$machine-apple-darwin" ;;
        *) fail "there is no archive for $system" "build it: cargo build --release -p segno" ;;
    esac
}

fetch() { # name, file
    case $from in
        https://* | http://127.0.0.1[:/]* | http://localhost[:/]*)
            if command -v curl >/dev/null 2>&1; then
                curl --fail --silent --show-error --location --proto '=https,http' --proto-redir '=https' \
                    --output "$2" -- "${from%/}/$1"
            elif command -v wget >/dev/null 2>&1; then
                wget -q -O "$2" -- "${from%/}/$1"
            else
                fail "curl or wget is needed to fetch $1" "fetch the release yourself: sh install.sh --from DIR"
            fi
            ;;
        http://*) fail "$from is not encrypted, so nothing of it can be trusted" "use https, or a directory" ;;
        *) cp -- "$from/$1" "$2" ;;
    esac
}

sum_of() {
    if command -v sha256sum >/dev/null 2>&1; then sha256sum <"$1"
    elif command -v shasum >/dev/null 2>&1; then shasum -a 256 <"$1"
    else fail "sha256sum or shasum is needed to check the archive"; fi | cut -d ' ' -f 1
}

# 0 if the first version is older than the second. Numbers are compared as numbers.
is_older() {
    printf '%s\n%s\n' "$1" "$2" | awk -F '[.+-]' '
        NR == 1 { for (i = 1; i <= 3; i++) first[i] = $i + 0 }
        NR == 2 { for (i = 1; i <= 3; i++) if (first[i] != $i + 0) { exit(first[i] < $i + 0 ? 0 : 1) } exit 1 }'
}

if [ "$task" = remove ]; then
    remove
    exit 0
fi

[ -n "$from" ] || wrong "where is the release? --from DIR|URL, or SEGNO_INSTALL_FROM"
target=$(target)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/segno-install-XXXXXX")
trap 'rm -rf -- "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
fetch SHA256SUMS "$scratch/SHA256SUMS" || fail "cannot read $from/SHA256SUMS; nothing was changed"

# One line of the list is for this machine: "<sum>  segno-<version>-<target>.tar.gz".
line=$(grep -E "^[0-9a-f]{64}  segno-[0-9][0-9A-Za-z.+-]*-$target\.tar\.gz\$" "$scratch/SHA256SUMS" || :)
[ -n "$line" ] || fail "the release has nothing for $target" "build it: cargo build --release -p segno"
[ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || fail "the release has more than one archive for $target; nothing was changed"
sum=${line%% *}
archive=${line##* }
version=${archive#segno-}
version=${version%-"$target".tar.gz}
here=$(receipt_says version)

if [ "$task" = check ]; then
    if [ -z "$here" ]; then say "there is segno $version; nothing in $prefix was installed by this script"
    elif [ "$here" = "$version" ]; then say "segno $here is installed, and is what there is"
    else say "there is segno $version; segno $here is installed"; fi
    printf '%s\n' "$version"
    exit 0
fi
if [ -n "$here" ] && [ "$older" = no ] && is_older "$version" "$here"; then
    refuse "segno $version is older than segno $here, which is installed in $prefix; nothing was changed" \
        "an older program may be unable to read what a newer one recorded; it then refuses, and changes nothing" \
        "install it all the same: --older"
fi
if [ -z "$here" ] && [ -e "$prefix/bin/segno" ]; then
    refuse "$prefix/bin/segno was not installed by this script; nothing was changed" "choose another place: --to PREFIX"
fi

say "segno $version for $target, from $from"
fetch "$archive" "$scratch/archive" || fail "cannot read $from/$archive; nothing was changed"
got=$(sum_of "$scratch/archive")
[ "$got" = "$sum" ] || fail "$archive is not what SHA256SUMS says; nothing was changed" "expected $sum" "got      $got"
mkdir "$scratch/unpacked"
tar -xzf "$scratch/archive" -C "$scratch/unpacked" || fail "cannot unpack $archive; nothing was changed"
new=$scratch/unpacked/segno-$version-$target
said=$("$new/segno" --version 2>&1) || fail "the program does not start on this machine; nothing was changed" "it said: $said"
[ "$said" = "segno $version" ] || fail "the program in $archive says it is \"$said\"; nothing was changed"

# What goes where: in the archive, below the prefix.
{
    printf '%s\n' "segno bin/segno" \
        "completions/segno.bash share/bash-completion/completions/segno" \
        "completions/_segno share/zsh/site-functions/_segno" \
        "completions/segno.fish share/fish/vendor_completions.d/segno.fish"
    for page in "$new"/man/man1/*.1; do printf '%s\n' "man/man1/${page##*/} share/man/man1/${page##*/}"; done
    for page in README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE LICENSES-OF-OTHERS.txt segno.cdx.json; do
        printf '%s\n' "$page share/doc/segno/$page"
    done
} >"$scratch/places"

# Each file appears whole: processes of an older version go on with the file they have open. The program is the last.
put() { # source, destination
    mkdir -p -- "$(dirname -- "$2")"
    cp -- "$1" "$2.segno-new-$$"
    chmod "$3" "$2.segno-new-$$"
    mv -f -- "$2.segno-new-$$" "$2"
}
# What is about to be there is written down first: what is cut short can still be removed.
{
    printf '%s\n' "version $version" "from $from"
    { cut -d ' ' -f 2 "$scratch/places"; receipt_says file; } | sort -u | sed 's/^/file /'
} >"$scratch/receipt"
put "$scratch/receipt" "$receipt" 644
while read -r inside outside; do
    [ "$outside" = bin/segno ] || put "$new/$inside" "$prefix/$outside" 644
done <"$scratch/places"
put "$new/segno" "$prefix/bin/segno" 755
sync 2>/dev/null || :

# Files that only the version before had.
receipt_says file | while IFS= read -r name; do
    if is_ours "$name" && ! cut -d ' ' -f 2 "$scratch/places" | grep -qxF -- "$name"; then rm -f -- "$prefix/$name"; fi
done
{ printf '%s\n' "version $version" "from $from"; cut -d ' ' -f 2 "$scratch/places" | sort | sed 's/^/file /'; } >"$scratch/receipt"
put "$scratch/receipt" "$receipt" 644

if [ -z "$here" ]; then say "installed $prefix/bin/segno"; else say "updated $prefix/bin/segno from $here"; fi
case ":${PATH:-}:" in
    *:"$prefix/bin":*) say "  try it: segno demo" ;;
    *)
        say "  $prefix/bin is not in PATH: export PATH=\"$prefix/bin:\$PATH\""
        say "  try it: $prefix/bin/segno demo"
        ;;
esac
