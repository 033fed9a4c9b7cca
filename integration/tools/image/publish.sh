#!/bin/sh
# Pushes the image of a release, and prints its name with its digest:
# ./publish.sh CRANE ARCHIVE REPOSITORY:TAG
#
# A published version stays what it is: another image under its tag is refused.
set -eu
crane=$1 archive=$2 image=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tar -x -f "$archive" -C "$folder"
digest=$(sed -n 's/.*"digest": "\(sha256:[0-9a-f]*\)".*/\1/p' "$folder/index.json")
if published=$("$crane" digest "$image" 2>/dev/null) && [ "$published" != "$digest" ]; then
	echo "$image is published already, as $published: $digest is another image" >&2
	exit 1
fi
"$crane" push "$folder" "$image"
