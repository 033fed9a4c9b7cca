#!/bin/bash
# Lays the CNI plugins and their configuration on all nodes, for any node image. A
# node keeps them when it is restarted.
set -euo pipefail
. "$(dirname "$0")/names.sh"
export KUBECONFIG=$kubeconfig

server=https://$cluster-control-plane:6443
token=
for _ in $(seq 100); do
	token=$(kubectl --namespace kube-system get secret cni-plugins -o jsonpath='{.data.token}')
	[ -z "$token" ] || break
	sleep 0.2
done
[ -n "$token" ] || die "the service account cni-plugins got no token: see the kube-controller-manager's logs"
authority=$(kubectl --namespace kube-system get secret cni-plugins -o jsonpath='{.data.ca\.crt}')

files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
mkdir -p "$files"/{opt/cni/bin,etc/cni/net.d,var/lib/calico}
cp "$build"/cni/* "$assets/whereabouts" "$files/opt/cni/bin"
# One program that goes by the name it is called by.
cp "$assets/calico-ipam" "$files/opt/cni/bin/calico"
cp "$assets/calico-ipam" "$files/opt/cni/bin/calico-ipam"
echo '{}' >"$files/etc/cni/whereabouts.conf"
cat >"$files/etc/cni/plugins.kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: cni
contexts: [{name: cni, context: {cluster: cni, user: cni, namespace: kube-system}}]
clusters: [{name: cni, cluster: {server: "$server", certificate-authority-data: $authority}}]
users: [{name: cni, user: {token: $(base64 -d <<<"$token")}}]
END

# Calico's main plugin rather than ptp, which wants a gateway: calico-ipam gives none.
for node in $(nodes); do
	printf %s "$node" >"$files/var/lib/calico/nodename"
	jq -n --arg pods "$(pods_of "$node")" '{
		cniVersion: "1.0.0", name: "multus", type: "multus",
		kubeconfig: "/etc/cni/plugins.kubeconfig",
		logFile: "/var/log/multus.log", logLevel: "verbose",
		delegates: [{
			cniVersion: "1.0.0", name: "k8s-pod-network", type: "calico",
			datastore_type: "kubernetes", kubernetes: {kubeconfig: "/etc/cni/plugins.kubeconfig"},
			policy: {type: "k8s"}, mtu: 1400, log_file_path: "/var/log/calico-cni.log",
			ipam: {type: "calico-ipam", ipv4_pools: [$pods]}
		}]
	}' >"$files/etc/cni/net.d/00-multus.conf"
	tar -C "$files" -c --owner=0 --group=0 . | docker cp - "$node:/" >/dev/null
done
