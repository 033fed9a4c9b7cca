# Has the node call a plugin after Multus for each pod that starts: chain.sh PLUGIN. A DEL
# calls it first, and Multus only where it did not fail. containerd takes the first file of
# the folder; without this one, all is as before.
jq --arg plugin "$1" '{cniVersion, name, plugins: [., {type: $plugin}]}' \
	/etc/cni/net.d/00-multus.conf >/etc/cni/net.d/new
mv /etc/cni/net.d/new /etc/cni/net.d/00-chain.conflist
