#!/bin/sh
# Builds the reconciler with one change: ./reconciler.sh OUTPUT
#
# Whereabouts v0.9.4 looks for the pod of each allocation by going through all pods of a
# map. Its pull request 599 asks the map instead, and so does this build. The rest is as
# it was published. It fails if the text that it replaces is not there.
set -eu
output=${1:?usage: ./reconciler.sh OUTPUT}
module=github.com/k8snetworkplumbingwg/whereabouts
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dir=$(go list -m -f '{{.Dir}}' "$module")
cp -r "$dir" "$work/module"
chmod -R u+w "$work/module"
loop=$work/module/pkg/reconciler/iploop.go
sed -i '/^\tfor livePodRef, livePod := range rl.liveWhereaboutsPods {$/{
N
s/.*\n\t\tif podRef == livePodRef {$/\tlivePodRef := podRef\n\tif livePod, found := rl.liveWhereaboutsPods[podRef]; found {\n\t\t{/
}' "$loop"
grep -q 'livePod, found := rl.liveWhereaboutsPods\[podRef\]' "$loop" || { echo "$loop is not as expected: its scan was not replaced" >&2; exit 1; }
cp go.mod go.sum "$work"
go mod edit -replace "$module=$work/module" "$work/go.mod"
CGO_ENABLED=0 go build -modfile="$work/go.mod" -trimpath -ldflags '-s -w' -o "$output" .
