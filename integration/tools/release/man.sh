#!/bin/sh
# Writes the man pages to what every archive has.
set -eu
make --no-print-directory --silent man VERSION="$version" MAN_DIR="$stage/common/man" >/dev/null
