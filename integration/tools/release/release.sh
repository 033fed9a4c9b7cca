#!/bin/sh
# Writes the release VERSION of the commit that is checked out to dist/:
# ./release.sh VERSION OS/ARCH...
#
# What is not committed is not in it. The same commit makes the same bytes, wherever the
# checkout lies: the sources are exported, paths are trimmed, and every time is that of the
# commit.
#
# Each step is a script of the commit, run in the exported sources. It finds in its environment:
#
#   version commit date       v1.2.3, the hash, and the day of the commit
#   SOURCE_DATE_EPOCH         the second of the commit
#   platforms                 linux/amd64 linux/arm64 ...
#   src                       the sources of the release: a step may change what later ones pack
#   tools                     the programs of this module (pack, changie, ...), built
#   stage                     what steps hand to each other:
#     bin/OS_ARCH/ip-reaper     the programs
#     common/                   what every archive has beside the program
#   dist                      what is handed out; it becomes dist/ if no step fails
set -eu
export version=$1
shift
export platforms="$*"

export LC_ALL=C TZ=UTC CGO_ENABLED=0
umask 022
commit=$(git rev-parse HEAD) || { echo "a release is that of a commit: check out one with git" >&2; exit 1; }
[ -z "$(git status --porcelain)" ] || echo "*** WHAT IS NOT COMMITTED IS NOT IN THE RELEASE ***" >&2
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
date=$(git log -1 --format=%cd --date=format-local:%F)

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
src=$stage/src tools=$stage/tools dist=$stage/dist
export commit date SOURCE_DATE_EPOCH stage src tools dist
mkdir "$src" "$tools" "$dist" "$stage/common"
git archive HEAD | tar --extract --directory="$src"
(cd "$src/integration/tools/release" && go build -trimpath -ldflags='-s -w' -o "$tools/" tool ./...)

step() { (cd "$src" && "./integration/tools/$1") || { echo "release: $1 failed" >&2; exit 1; }; }

step release/stamp.sh
step release/man.sh
step release/build.sh
step release/archives.sh
step release/sbom.sh
step release/checksums.sh

rm -rf dist
mv "$dist" dist
cat dist/checksums.txt
