#!/bin/sh
# Prints what a machine says of the release that it made in the folder DIST: ./sums.sh DIST
set -eu
cd "$1"
all=$(sha256sum checksums.txt provenance.intoto.json)
printf '%s\n' "$all" | sha256sum | cut -c -64
