# Has the node make its pods' network of ptp and host-local, as kind's own kindnet and
# flannel do, in place of the configuration it has: host-local.sh NAME DATADIR RANGE [PLUGIN].
# An empty DATADIR is the plugin's default. PLUGIN is called after the others; it need not
# exist.
name=$1 data=$2 range=$3 plugin=${4-}
mkdir -p /etc/cni/put-aside
if [[ -e /etc/cni/net.d/00-multus.conf ]]; then
	mv /etc/cni/net.d/00-multus.conf /etc/cni/put-aside
fi
jq -n --arg name "$name" --arg data "$data" --arg range "$range" --arg plugin "$plugin" '{
	cniVersion: "0.3.1", name: $name,
	plugins: ([
		{type: "ptp", ipMasq: false, mtu: 1400, ipam: ({
			type: "host-local", routes: [{dst: "0.0.0.0/0"}], ranges: [[{subnet: $range}]]
		} + if $data == "" then {} else {dataDir: $data} end)},
		{type: "portmap", capabilities: {portMappings: true}}
	] + if $plugin == "" then [] else [{type: $plugin}] end)
}' >/etc/cni/net.d/new
# containerd does not notice a file that is moved in from elsewhere.
mv /etc/cni/net.d/new /etc/cni/net.d/10-host-local.conflist
