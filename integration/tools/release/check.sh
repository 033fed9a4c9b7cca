#!/bin/sh
# Refuses the release in dist/ of the working directory, unless it is whole, has nothing else,
# and another machine made the same bytes: ./check.sh AGAIN
#
# AGAIN is a folder with the checksums and the provenance of that machine. AGAIN_SUMS in the
# environment is what sums.sh printed there: every job of a workflow can replace the folder, and
# none the output of another job. Signatures may be missing unless SIGNED is set, but none may be
# wrong.
set -eu
here=$(cd "$(dirname "$0")" && pwd) again=$1
refuse() { echo "the release in dist/ is refused: $1" >&2; exit 1; }

# key prints the public key that a page names.
key() { sed -n 's|.*\(RW[A-Za-z0-9+/]\{54\}\).*|\1|p' "$1" | head -n 1; }
key=$(key SECURITY.md)
[ "$key" = "$(key docs/install.md)" ] || refuse "SECURITY.md and docs/install.md name different keys"

for name in checksums.txt provenance.intoto.json; do
	cmp "dist/$name" "$again/$name" || refuse "two machines made a different $name"
done
[ -z "${AGAIN_SUMS+set}" ] || [ "$AGAIN_SUMS" = "$("$here/sums.sh" "$again")" ] || refuse "$again has not what the other machine made"
cd dist
sha256sum --check --strict --quiet checksums.txt || refuse "a file is not what checksums.txt says"
signatures=$(find . -name '*.minisig')
listed=$({
	cut -c 67- checksums.txt
	printf '%s\n' checksums.txt provenance.intoto.json
	[ -z "$signatures" ] || printf '%s\n' checksums.txt.minisig provenance.intoto.json.minisig
} | sed 's|^|./|' | sort)
[ "$listed" = "$(find . ! -name . | sort)" ] || refuse "it has other files than these:
$listed"
[ -z "$(find . ! -name . ! -type f)" ] || refuse "not all of it are files"

digest=$(tar -xO -f ./*_image.tar index.json | sed -n 's/.*"digest": "\(sha256:[0-9a-f]*\)".*/\1/p')
grep -q "@$digest\$" ./*_notes.md || refuse "the notes do not name its image, $digest"

if [ -z "$signatures" ]; then
	[ -z "${SIGNED-}" ] || refuse "it is not signed"
	exit 0
fi
[ -n "$key" ] || refuse "it is signed, and SECURITY.md and docs/install.md name no key to verify that"
for name in checksums.txt provenance.intoto.json; do
	(cd "$here" && CGO_ENABLED=0 go run aead.dev/minisign/cmd/minisign -V -q -P "$key" -m "$OLDPWD/$name") ||
		refuse "$name is not signed by the key of SECURITY.md"
done
