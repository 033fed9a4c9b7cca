package calico

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

// Add makes Calico's plugin give the sandbox its addresses, IPv4 first. It takes about a tenth of a
// second. If the plugin reports a failure, the error is a *plugin.Error.
func (d *Datastore) Add(ctx context.Context, s Sandbox) ([]netip.Addr, error) {
	call, err := d.call(s)
	if err != nil {
		return nil, err
	}
	return call.Add(ctx)
}

// Del makes Calico's plugin take back what has the sandbox's handle. It succeeds if there is
// nothing.
func (d *Datastore) Del(ctx context.Context, s Sandbox) error {
	call, err := d.call(s)
	if err != nil {
		return err
	}
	return call.Del(ctx)
}

func (d *Datastore) call(s Sandbox) (plugin.Call, error) {
	// The environment says which datastore it is and how to reach it: the plugin takes a password
	// only from there.
	config, err := json.Marshal(map[string]any{
		"cniVersion":     "0.3.1",
		"name":           DefaultNetwork,
		"type":           "calico",
		"nodename":       s.Node,
		"ipam_lock_file": d.lock + "-" + s.Node,
		"policy":         map[string]string{"type": "k8s"},
		"ipam": map[string]any{
			"type":        "calico-ipam",
			"assign_ipv4": strconv.FormatBool(s.IPv4 || !s.IPv6),
			"assign_ipv6": strconv.FormatBool(s.IPv6),
			"ipv4_pools":  s.Pools,
		},
	})
	if err != nil {
		return plugin.Call{}, fmt.Errorf("configure the plugin for %s/%s: %w", s.Namespace, s.Pod, err)
	}
	call := plugin.Call{
		Binary: d.ipam, Pod: plugin.Pod{Namespace: s.Namespace, Name: s.Pod},
		ContainerID: s.ContainerID, Interface: "eth0", Env: d.env, Config: config,
	}
	if s.IP.IsValid() {
		call.Args = []string{"IP=" + s.IP.String()}
	}
	return call, nil
}
