#!/bin/sh
# Sums up all that the commit alone decides: checksums.txt is the same for every builder.
set -eu
cd "$dist"
sha256sum -- * >../checksums.txt
mv ../checksums.txt .
