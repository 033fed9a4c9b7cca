package calico

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// commandTimeout ends a calicoctl that hangs.
const commandTimeout = 2 * time.Minute

// Command returns calicoctl and all arguments that it needs.
func (d *Datastore) Command(args ...string) (program string, all []string) {
	return d.calicoctl, append(args, "--config="+d.configFile, "--allow-version-mismatch")
}

// Calicoctl runs calicoctl on the datastore and returns what it printed.
func (d *Datastore) Calicoctl(ctx context.Context, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	program, all := d.Command(args...)
	cmd := exec.CommandContext(ctx, program, all...)
	cmd.Dir, cmd.Env = d.dir, []string{"HOME=" + d.dir}
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return out.String(), fmt.Errorf("calicoctl %s: %w\n%s", strings.Join(args, " "), err, out.String())
	}
	return out.String(), nil
}

// Apply makes calicoctl create or change a resource.
func (d *Datastore) Apply(ctx context.Context, kind string, metadata map[string]string, spec map[string]any) error {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "projectcalico.org/v3", "kind": kind, "metadata": metadata, "spec": spec,
	})
	if err != nil {
		return fmt.Errorf("apply %s: %w", kind, err)
	}
	_, err = d.Calicoctl(ctx, string(text), "apply", "--filename=-")
	return err
}

// ApplyEndpoint applies the workload endpoint that tells Calico in etcd who has the addresses. In
// Kubernetes, the pod tells it, by the annotations that it then gets.
func (d *Datastore) ApplyEndpoint(ctx context.Context, s Sandbox, ips ...netip.Addr) error {
	if d.Etcd == nil {
		return d.Cluster.UpdatePod(ctx, s.Namespace, s.Pod, s.annotations(ips)...)
	}
	var networks []string
	for _, ip := range ips {
		networks = append(networks, single(ip))
	}
	escape := strings.NewReplacer("-", "--")
	name := escape.Replace(s.Node) + "-k8s-" + escape.Replace(s.Pod) + "-eth0"
	return d.Apply(ctx, "WorkloadEndpoint", map[string]string{"namespace": s.Namespace, "name": name}, map[string]any{
		"node": s.Node, "orchestrator": "k8s", "pod": s.Pod, "endpoint": "eth0", "containerID": s.ContainerID,
		"interfaceName": "cali" + s.ContainerID[:11], "ipNetworks": networks,
		"profiles": []string{"kns." + s.Namespace},
	})
}

// CreatePod creates the pod of a sandbox with its PodOptions, its namespace if necessary, and in
// etcd its endpoint.
func (d *Datastore) CreatePod(ctx context.Context, s Sandbox, ips []netip.Addr, more ...cluster.PodOption) error {
	if err := d.Cluster.CreateNamespace(ctx, s.Namespace); err != nil {
		return err
	}
	_, err := d.Cluster.CreatePod(ctx, s.Namespace, s.Pod, append(s.PodOptions(ips...), more...)...)
	if err != nil || d.Etcd == nil {
		return err
	}
	return d.ApplyEndpoint(ctx, s, ips...)
}

// Lock makes calicoctl lock the datastore: then kube-controllers releases nothing, and the half of
// Calico's CNI plugin that makes interfaces fails. The half that runs here, which gives addresses,
// does not check the lock.
func (d *Datastore) Lock(ctx context.Context) error {
	_, err := d.Calicoctl(ctx, "", "datastore", "migrate", "lock")
	return err
}

// Unlock undoes Lock.
func (d *Datastore) Unlock(ctx context.Context) error {
	_, err := d.Calicoctl(ctx, "", "datastore", "migrate", "unlock")
	return err
}
