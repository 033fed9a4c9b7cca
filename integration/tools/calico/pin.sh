#!/bin/sh
# Pins github.com/projectcalico/calico in this module: ./pin.sh VERSION
#
# The repository tags its releases as no module version that Go accepts, so
# VERSION is a pseudo-version of the proxy's. Its replace lines are copied, for
# go reads those of the main module alone, except for two: its API module is a
# folder of the repository there, and is taken as it is published here; and it
# requires a version of hcsshim that is not published.
set -eu
version=${1:?usage: ./pin.sh VERSION}
calico=github.com/projectcalico/calico
cd "$(dirname "$0")"

rm -f go.mod go.sum
go mod init github.com/ip-reaper/ip-reaper/integration/tools/calico
gomod=$(go mod download -json "$calico@$version" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
sed -n 's/^\t\(.*\) => \([^.].*\) \(v.*\)$/\1=\2@\3/p' "$gomod" | while read -r replace; do
	go mod edit -replace "$replace"
done
go mod edit -replace github.com/projectcalico/api=github.com/projectcalico/api@v0.0.0-20240708202104-e3f70b269c2c
go mod edit -replace github.com/Microsoft/hcsshim=github.com/Microsoft/hcsshim@v0.11.7
for program in cni-plugin/cmd/calico calicoctl/calicoctl kube-controllers/cmd/kube-controllers; do
	go get -tool "$calico/$program@$version"
done
go mod tidy
