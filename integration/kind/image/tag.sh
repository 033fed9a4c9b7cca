#!/bin/bash
# Prints the name of the node image: its tag is a hash of what it is made from.
set -euo pipefail
cd "$(dirname "$0")/../.."

hash=$(cat kind/image/*.sh kind/pause/main.go tools/coredns/main.go \
	tools/{containerd,coredns,cri,etcd,kind,kubernetes}/go.{mod,sum} | sha256sum)
echo "ip-reaper-node:${hash:0:12}"
