#!/bin/bash
# Deletes the cluster, and what was stored in it.
set -euo pipefail
. "$(dirname "$0")/names.sh"
kind delete cluster --quiet --name "$cluster" --kubeconfig "$kubeconfig"
