#!/bin/sh
# Gathers the changes in docs/changes under a version, writes CHANGELOG.md, and has all that
# names a version name this one, in the working directory: ./changelog.sh CHANGIE VERSION DATE
set -eu
changie=$1 version=$2 date=$3

"$(dirname "$0")/version.sh" "$version"
export CHANGIE_CONFIG_PATH=docs/changes/changie.yaml CHANGELOG_DATE="$date"
if [ -e "docs/changes/$version.md" ]; then
	echo "docs/changes/$version.md is there already, and is taken as it is"
else
	mkdir -p docs/changes/unreleased # git keeps no empty folder
	"$changie" batch "$version"
fi
"$changie" merge
"$(dirname "$0")/stamp.sh" "$version"
