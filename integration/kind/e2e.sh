#!/bin/bash
# Runs the end-to-end tests on a new cluster, with the image ip-reaper:e2e in its
# nodes. The cluster goes down also if tests fail, unless KEEP is set.
set -euo pipefail
. "$(dirname "$0")/names.sh"

[ -n "${KEEP-}" ] || trap '"$here/down.sh"' EXIT
"$here/up.sh"
"$here/load.sh" ip-reaper:e2e
cd "$here/.."
IP_REAPER_KIND_KUBECONFIG=$kubeconfig go test -count=1 -timeout=40m -v ./kind/suite
