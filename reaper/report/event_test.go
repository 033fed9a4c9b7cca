package report

import "testing"

// sandboxFailed is how the kubelet and containerd begin the message of an event.
const sandboxFailed = `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "5f0c": `

// The plugins' own words, in events as the kubelet writes them. Those of the pinned plugins are recorded by
// integration/whereabouts, calico and hostlocal, too.
func TestPluginSays(t *testing.T) {
	const full = "Could not allocate IP in range: ip: 10.0.0.1 / - 10.0.0.6 / range: 10.0.0.0/29 / excludeRanges: []"
	const strict = "failed to request IPv4 addresses: Assigned 0 out of 1 requested IPv4 addresses; No more free affine blocks and strict affinity enabled"
	const noAttachment = "Multus: [shop/web/u1]: error loading k8s delegates k8s args: TryLoadPodDelegates: error in getting k8s network for pod: " +
		"GetNetworkDelegates: failed getting the delegate: getKubernetesDelegate: cannot find a network-attachment-definition (lan) in namespace (shop): " +
		`network-attachment-definitions.k8s.cni.cncf.io "lan" not found`
	for name, tt := range map[string]struct{ message, want string }{
		"Whereabouts under Multus": {
			sandboxFailed + `plugin type="multus" name="multus-cni-network" failed (add): [shop/web/u1:lan]: error adding container to network "lan": ` + full,
			full,
		},
		"Whereabouts after two minutes without its API server": { // recorded, with 0.9.4
			sandboxFailed + `plugin type="multus" name="multus-cni-network" failed (add): [shop/web/u1:lan]: error adding container to network "lan": ` +
				"error at storage engine: time limit exceeded while waiting to become leader",
			"error at storage engine: time limit exceeded while waiting to become leader",
		},
		"combined by the kubelet": {
			"(combined from similar events): " + sandboxFailed + `plugin type="multus" name="multus-cni-network" failed (add): [shop/web/u1:lan]: error adding container to network "lan": ` + full,
			full,
		},
		"Whereabouts under Multus as a daemon": {
			sandboxFailed + `plugin type="multus-shim" name="multus-cni-network" failed (add): CmdAdd (shim): CNI request failed with status 400: ` +
				`'ContainerID:"5f0c" Netns:"/var/run/netns/cni-1" IfName:"eth0" Args:"K8S_POD_NAME=web" Path:"" ERRORED: error configuring pod [shop/web] networking: ` +
				`[shop/web/u1:lan]: error adding container to network "lan": error at storage engine: ` + full + "\n': StdinData: {\"cniVersion\":\"0.3.1\"}",
			"error at storage engine: " + full,
		},
		"Whereabouts under Multus 3": {
			`Failed create pod sandbox: rpc error: code = Unknown desc = [failed to set up sandbox container "5f0c" network for pod "web": networkPlugin cni failed to set up pod ` +
				`"web_shop" network: [shop/web:lan]: error adding container to network "lan": delegateAdd: error invoking DelegateAdd - "macvlan": error in getting result from AddNetwork: ` +
				full + `, failed to clean up sandbox container "5f0c" network for pod "web"]`,
			full,
		},
		"Whereabouts under an older Multus": {
			`Failed create pod sandbox: rpc error: code = Unknown desc = networkPlugin cni failed to set up pod "web_shop" network: Multus: error in invoke Delegate add - "macvlan": ` + full,
			full,
		},
		"Calico without a free block": {
			sandboxFailed + `plugin type="calico" failed (add): error adding host side routes: ` + strict,
			"error adding host side routes: " + strict,
		},
		"Calico under Multus": {
			sandboxFailed + `plugin type="multus" name="multus-cni-network" failed (add): [shop/web/u1:k8s-pod-network]: error adding container to network "k8s-pod-network": ` +
				`plugin type="calico" failed (add): ` + strict,
			strict,
		},
		"host-local": {
			sandboxFailed + `plugin type="bridge" failed (add): failed to allocate for range 0: no IP addresses available in range set: 10.1.0.1-10.1.0.254`,
			"failed to allocate for range 0: no IP addresses available in range set: 10.1.0.1-10.1.0.254",
		},
		"Multus without the attachment": {
			sandboxFailed + `plugin type="multus" name="multus-cni-network" failed (add): ` + noAttachment,
			noAttachment,
		},
		"Azure CNS": {
			sandboxFailed + `plugin type="azure-vnet" failed (add): IPAM Invoker Add failed with error: Failed to get IP address from CNS: http response StatusCode: 500`,
			"IPAM Invoker Add failed with error: Failed to get IP address from CNS: http response StatusCode: 500",
		},
		"a plugin that containerd does not name": {sandboxFailed + "error getting ClusterInformation: connection is unauthorized: Unauthorized", "error getting ClusterInformation: connection is unauthorized: Unauthorized"},
		"cri-dockerd": {
			`Failed to create pod sandbox: rpc error: code = Unknown desc = [failed to set up sandbox container "5f0c" network for pod "web": networkPlugin cni failed to set up pod ` +
				`"web_shop" network: IP 10.1.0.9 is not in a configured pool, failed to clean up sandbox container "5f0c" network for pod "web"]`,
			"IP 10.1.0.9 is not in a configured pool",
		},
		// What no plugin said is quoted whole.
		"a timeout": {
			"Failed to create pod sandbox: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
			"Failed to create pod sandbox: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
		},
		"the scheduler":   {"0/3 nodes are available: 3 Insufficient cpu.", "0/3 nodes are available: 3 Insufficient cpu."},
		"nothing":         {"", ""},
		"only the caller": {sandboxFailed + `plugin type="x" failed (add): `, ""},
		"another order":   {"StdinData: {}: failed (add): what\x1b[31m\u202e", "what\x1b[31m\u202e"}, // it is made printable where it is printed
	} {
		t.Run(name, func(t *testing.T) {
			if got := PluginSays(tt.message); got != tt.want {
				t.Errorf("PluginSays:\n%q, want\n%q", got, tt.want)
			}
		})
	}
}

// An event names a network by what only that network has. A tenant can write anything else, too: see addAsking.
func TestEventNamesANetwork(t *testing.T) {
	lan := NetworkReport{Range: "10.0.0.0/29", Name: "10.0.0.0-29", Attachments: []string{"shop/lan", "cart/lan"}}
	pool := NetworkReport{Range: "10.30.0.0/24", Name: "default-ipv4-ippool", Default: true}
	six := NetworkReport{Range: "fd00::/124", Name: "fd00---124"}
	for _, tt := range []struct {
		of   NetworkReport
		says string
		want bool
	}{
		{lan, "Could not allocate IP in range: ip: 10.0.0.1 / - 10.0.0.6 / range: 10.0.0.0/29 / excludeRanges: []", true},
		{lan, "Could not allocate IP in range: ip: 10.0.0.1 / - 10.0.0.6 / range: net.IPNet{} / excludeRanges: []", true},
		{lan, "Could not allocate IP in range: ip: 10.0.0.2 / - 10.0.0.3 / range: 10.0.0.5/29", true},
		{lan, "failed to allocate for range 0: no IP addresses available in range set: 10.0.0.1-10.0.0.6", true},
		{lan, "cannot find a network-attachment-definition (lan) in namespace (shop): not found", true},
		{six, "Could not allocate IP in range: ip: fd00::1 / - fd00::f / range: fd00::/124 / excludeRanges: []", true},
		{pool, "Assigned 0 out of 1 requested IPv4 addresses; No IPs available in pools: [10.30.0.0/24]", true},
		{pool, `error getting IPPool "default-ipv4-ippool": not found`, true},

		{lan, "Could not allocate IP in range: ip: 10.1.0.1 / - 10.1.0.6 / range: 10.1.0.0/24 / excludeRanges: [10.0.0.0/29]", false},
		{lan, "Could not allocate IP in range: ip: 10.0.0.1 / - 10.0.0.14 / range: 10.0.0.0/28", false}, // a larger range
		{lan, "range: 10.0.0.0/291", false},
		{lan, "range: 10.0.0.0/", false},
		{lan, "range set: 10.0.0.1-x", false},
		{lan, "cannot find a network-attachment-definition (lan) in namespace (other): not found", false},
		{lan, `error adding container to network "10.0.0.0-29"`, false}, // a network of Whereabouts has no name of its own
		{lan, "lan is full", false},
		{pool, "the pool default-ipv4-ippool is full", false}, // no quotes
		{pool, "Assigned 0 out of 1 requested IPv4 addresses; No more free affine blocks and strict affinity enabled", false},
		{NetworkReport{Name: "(no IPPool)", Default: true}, "10.30.0.0/24", false},
		{NetworkReport{}, `"" 10.0.0.0/29`, false},
		{lan, "", false},
	} {
		if got := (Event{Says: tt.says}).names(tt.of); got != tt.want {
			t.Errorf("%q names %s: %v, want %v", tt.says, tt.of.Name, got, tt.want)
		}
	}
}
