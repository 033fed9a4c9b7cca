#!/bin/sh
# Gathers the licences and notices of all that the programs link, and fails where one may
# not be linked: $stage/THIRD_PARTY_NOTICES.
set -eu
"$tools/release" notices "$stage/THIRD_PARTY_NOTICES" "$stage"/bin/*/ip-reaper
