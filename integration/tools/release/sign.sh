#!/bin/sh
# Signs the release in dist/ of the working directory, if check.sh does not refuse it, and it is
# that of the commit, which is on main: ./sign.sh AGAIN
#
# MINISIGN_SECRET_KEY and MINISIGN_PASSWORD are the key. Only the program that signs gets them:
# not even the compiler that builds it does. Nothing of the release is built or run here.
set -eu
secret=${MINISIGN_SECRET_KEY:?is the key that signs, and is not set} password=${MINISIGN_PASSWORD-}
unset MINISIGN_SECRET_KEY MINISIGN_PASSWORD
here=$(cd "$(dirname "$0")" && pwd)

rm -f dist/*.minisig
"$here/check.sh" "$1"
commit=$(git rev-parse HEAD)
grep -q "\"gitCommit\": \"$commit\"" dist/provenance.intoto.json || { echo "dist/ is not the release of $commit" >&2; exit 1; }
git merge-base --is-ancestor "$commit" origin/main || { echo "$commit is not on main" >&2; exit 1; }
SOURCE_DATE_EPOCH=$(git -c log.showSignature=false log -1 --format=%ct)
export SOURCE_DATE_EPOCH

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
(cd "$here" && CGO_ENABLED=0 go build -trimpath -o "$tools/sign" ./sign)
MINISIGN_SECRET_KEY=$secret MINISIGN_PASSWORD=$password "$tools/sign" dist/checksums.txt dist/provenance.intoto.json
"$here/check.sh" "$1"
