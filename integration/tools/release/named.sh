#!/bin/sh
# Refuses a commit that does not name the version of the release where stamp.sh puts it, or has
# no changes of it. What is deployed from git is that version.
set -eu
mkdir "$stage/named"
cp -R README.md docs deploy "$stage/named"
(cd "$stage/named" && "$src/integration/tools/release/stamp.sh" "$version")
for name in README.md docs deploy; do diff -r "$name" "$stage/named/$name" >&2 && continue; different=yes; done
[ -z "${different-}" ] && [ -e "docs/changes/$version.md" ] && grep -q "^## $version " CHANGELOG.md && exit
echo "the commit is not that of $version: run make changelog VERSION=$version, and commit" >&2
exit 1
