#!/bin/bash
# Loads local images into all nodes: load.sh IMAGE...
set -euo pipefail
. "$(dirname "$0")/names.sh"
kind load docker-image --quiet --name "$cluster" "$@"
