# Sourced by scripts/demo and scripts/test: makes .venv in the checkout from nothing but Python 3.11.
# shellcheck shell=bash

say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit 2; }

# The interpreter to build on: $PYTHON, else one on PATH that is 3.11, the version constraints/ is tried on.
find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3 python; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    die "Python 3.11 is needed and not on PATH. Install it, or name it: PYTHON=/path/to/python3.11 $0"
}

# What an environment made from these files would hold; compared with what .venv was made from.
fingerprint() { cat "constraints/$1.txt" constraints/tools.txt pyproject.toml | sha256sum | cut -d' ' -f1; }

# Builds take the build tools of constraints/tools.txt, which are in .venv by then: some packages come as
# source only, and what pip or uv would fetch to build them is not pinned.
# uv installs in seconds what takes pip a minute. Where it doesn't run, or doesn't see the index that pip
# was set to, pip does the same work from the same files.
install_hashed() {
    local python=.venv/bin/python
    "$python" -m pip install --quiet --require-hashes -r constraints/tools.txt || return
    UV_HTTP_TIMEOUT=180 .venv/bin/uv --system-certs pip install --quiet --python "$python" \
        --no-build-isolation --require-hashes -r "$1" && return
    say "uv could not install; trying the same with pip"
    "$python" -m pip install --quiet --no-build-isolation --require-hashes -r "$1"
}

# make_environment run|dev: .venv holds what constraints/$1.txt names, and the project itself, editable.
# An environment made from the same files is taken as it is; dev holds all that run does.
make_environment() {
    local set=$1 python stamp covering
    for covering in "$set" dev; do
        stamp=.venv/.made-from-$covering
        if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint "$covering")" ]; then
            return
        fi
    done
    python=$(find_python)
    if [ ! -x .venv/bin/python ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        say "making .venv"
        "$python" -m venv .venv || die "$python can't make an environment: its venv module is missing (Debian: apt-get install python3.11-venv)"
    fi
    rm -f .venv/.made-from-*
    say "installing constraints/$set.txt into .venv"
    install_hashed "constraints/$set.txt" || die "the packages that constraints/$set.txt names could not be installed"
    .venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable . \
        || die "the project could not be installed into .venv"
    fingerprint "$set" >".venv/.made-from-$set"
}
