#!/bin/sh
# Pushes the image of a release, or its chart, and prints the digest as a workflow reads it:
# ./publish.sh CRANE ARCHIVE REPOSITORY:TAG
#
# A published version stays what it is: another image under its tag is refused. So is a push to a
# registry that does not say whether the tag is there.
set -eu
crane=$1 archive=$2 image=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
case $archive in
*.tgz)
	go build -C "$(dirname "$0")" -o "$folder/" .
	"$folder/image" chart "$archive" "$folder/layout"
	;;
*)
	mkdir "$folder/layout"
	tar -x -f "$archive" -C "$folder/layout"
	;;
esac
digest=$(sed -n 's/.*"digest": "\(sha256:[0-9a-f]*\)".*/\1/p' "$folder/layout/index.json")
if published=$("$crane" digest "$image" 2>"$folder/error"); then
	[ "$published" = "$digest" ] || { echo "$image is published already, as $published: $digest is another image" >&2; exit 1; }
elif ! tail -n 1 "$folder/error" | grep -Eq ': (MANIFEST_UNKNOWN|NAME_UNKNOWN|unexpected status code 404 )'; then
	cat "$folder/error" >&2
	echo "nothing is pushed: it is not known whether $image is published already" >&2
	exit 1
fi
"$crane" push "$folder/layout" "$image" >&2
echo "digest=$digest"
