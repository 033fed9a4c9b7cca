# Has the plugin of the node give addresses to pods that do not exist, as a node does that loses their
# sandboxes: leak.sh NAMESPACE COUNT.
conf=$(jq '.delegates[0]' /etc/cni/net.d/00-multus.conf)
for i in $(seq "$2"); do
	CNI_COMMAND=ADD CNI_CONTAINERID=$(sha256sum <<<"$1 $i $EPOCHREALTIME" | head -c 64) CNI_NETNS=/var/run/netns/none CNI_IFNAME=eth0 \
		CNI_PATH=/opt/cni/bin CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=$1;K8S_POD_NAME=gone-$i" \
		/opt/cni/bin/calico-ipam <<<"$conf" >/dev/null
done
