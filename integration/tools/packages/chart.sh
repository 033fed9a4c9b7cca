#!/bin/sh
# Tells Artifact Hub, in the chart, of the changes and the image of this version.
set -eu
cd integration/tools/packages
export GOFLAGS="$GOFLAGS -trimpath" # as the program is built, so that compiled packages serve again
go run . chart "$version" "$src"
