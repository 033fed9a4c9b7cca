#!/bin/sh
# Refuses what is no version of a release: ./version.sh VERSION
set -eu
printf '%s\n' "$1" | grep -Eqx 'v(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}' && exit
echo "VERSION: \"$1\" is no version: give one such as VERSION=v1.2.3" >&2
exit 2
