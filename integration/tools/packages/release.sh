#!/bin/sh
# Writes what package managers read: krew's manifest, which krew's validator has to accept,
# and Homebrew's formula, which Ruby has to parse, if it is there.
set -eu
cd integration/tools/packages
export GOFLAGS="$GOFLAGS -trimpath" # as the program is built, so that compiled packages serve again
go run . "$version" "$dist"
go tool validate-krew-manifest -skip-install -manifest "$dist/ip-reaper.yaml"
! command -v ruby >/dev/null || ruby -c "$dist/ip-reaper.rb"
