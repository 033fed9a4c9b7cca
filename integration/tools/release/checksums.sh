#!/bin/sh
# Sums up all that is handed out.
set -eu
cd "$dist"
sha256sum ip-reaper* >checksums.txt
