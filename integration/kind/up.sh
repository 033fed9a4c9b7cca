#!/bin/bash
# Brings the cluster up, of the image that is built here or of KIND_NODE_IMAGE,
# and writes build/kubeconfig. An older cluster of the same name goes first.
set -euo pipefail
. "$(dirname "$0")/names.sh"

image=${KIND_NODE_IMAGE:-$("$here/image/tag.sh")}
"$here/packages.sh" jq=jq
"$here/runtime.sh" "$image"
"$here/down.sh"

# The nodes' volumes take overlayfs even where the daemon's own storage does not,
# which kind would conclude from.
if [ "$(docker info --format '{{.Driver}}')" = fuse-overlayfs ]; then
	export KIND_EXPERIMENTAL_CONTAINERD_SNAPSHOTTER=overlayfs
fi
kind create cluster --config "$here/cluster.yaml" --kubeconfig "$kubeconfig" --image "$image"
export KUBECONFIG=$kubeconfig

whereabouts=$(module_dir whereabouts github.com/k8snetworkplumbingwg/whereabouts)/doc/crds
calico=$(module_dir calico github.com/projectcalico/calico)/libcalico-go/config/crd
kubectl apply --server-side --filename "$calico" \
	--filename "$here/../kit/cluster/network-attachments.yaml" \
	--filename "$whereabouts/whereabouts.cni.cncf.io_ippools.yaml" \
	--filename "$whereabouts/whereabouts.cni.cncf.io_nodeslicepools.yaml" \
	--filename "$whereabouts/whereabouts.cni.cncf.io_overlappingrangeipreservations.yaml" \
	--filename "$here/cni.yaml" >/dev/null
kubectl wait --for=condition=Established --timeout=60s crd --all >/dev/null
kubectl apply --server-side --filename "$here/networks.yaml" >/dev/null
"$here/plugins.sh"
"$here/network.sh"

docker rmi --force "$workload" >/dev/null 2>&1 || true
tar -C "$build/bin" -c workload |
	docker import --change 'ENTRYPOINT ["/workload"]' --change 'USER 65532:65532' - "$workload" >/dev/null
"$here/load.sh" "$workload"
kubectl wait --for=condition=Ready --timeout=120s node --all
kubectl --namespace kube-system rollout status --timeout=120s deployment/coredns
