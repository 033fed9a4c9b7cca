#!/bin/sh
# Gathers the changes in docs/changes under a version, and writes CHANGELOG.md, in the
# working directory: ./changelog.sh CHANGIE VERSION DATE
set -eu
changie=$1 version=$2 date=$3

if ! printf '%s\n' "$version" | grep -Eqx 'v(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}'; then
	echo "VERSION: \"$version\" is no version: give one such as VERSION=v1.2.3" >&2
	exit 2
fi
export CHANGIE_CONFIG_PATH=docs/changes/changie.yaml CHANGELOG_DATE="$date"
if [ -e "docs/changes/$version.md" ]; then
	echo "docs/changes/$version.md is there already, and is taken as it is"
else
	mkdir -p docs/changes/unreleased # git keeps no empty folder
	"$changie" batch "$version"
fi
"$changie" merge
