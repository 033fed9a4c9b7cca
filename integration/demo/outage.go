package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// owners prints the pods that have addresses of a pool.
const owners = `go-template={{range .spec.allocations}}{{println .podref}}{{end}}`

// run shows the outage and its end on its own cluster. It keeps the cluster until the channel is closed,
// or not at all if that is nil.
func run(ctx context.Context, out io.Writer, reaper *reap.Reaper, keep <-chan struct{}) (err error) {
	began := time.Now()
	d := &demo{out: out, reaper: reaper, deployment: newPods()}
	d.step("Start a cluster")
	d.say("Starting a real etcd and a real API server. There are no kubelets and no\n" +
		"controllers: this program stands in for them and for Multus. The real\n" +
		"whereabouts plugin hands out the addresses.")
	attachments, err := cluster.NetworkAttachmentCRD()
	if err != nil {
		return err
	}
	if d.cluster, err = cluster.Start(ctx, cluster.Options{CRDs: []string{attachments}}); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, d.cluster.Stop())
		if err == nil {
			d.say("Stopped the API server and etcd, and removed their files. The demo took %.0f s.",
				time.Since(began).Seconds())
		}
	}()
	d.say("All files are in %s.", d.cluster.Dir)
	if err := d.outage(ctx); err != nil || keep == nil {
		return err
	}
	if err := d.leave(ctx); err != nil {
		return err
	}
	<-keep
	return nil
}

// leave lets two pods vanish, and says what to type.
func (d *demo) leave(ctx context.Context) error {
	d.step("Your turn")
	d.say("The two replacements vanish as the first pods did, and leave their addresses:\n")
	force := []string{"-n", namespace, "delete", "pod", "--force", "--grace-period=0"}
	for _, a := range d.replacements {
		force = append(force, a.name)
	}
	if err := d.kubectl(ctx, force...); err != nil {
		return err
	}
	kubectl, err := assets.Path("kubectl")
	if err != nil {
		return err
	}
	d.say("\nThe API server stays until you press Ctrl-C here. In another terminal, type:\n")
	for _, line := range []string{
		"export KUBECONFIG=" + d.cluster.Kubeconfig,
		"export PATH=" + strings.Join(slices.Compact([]string{filepath.Dir(d.reaper.Path), filepath.Dir(kubectl)}), ":") + ":$PATH",
		"ip-reaper status",
		"ip-reaper",
		"ip-reaper explain " + d.replacements[0].ip.String(),
		"ip-reaper --context " + cluster.ContextName + " --grace-period=0s --min-age=0s --dry-run=false",
		"ip-reaper history",
	} {
		fmt.Fprintln(d.out, "    $ "+line)
	}
	return nil
}

// outage shows the outage on the demo's empty cluster.
func (d *demo) outage(ctx context.Context) (err error) {
	if d.plugin, err = plugin.New(d.cluster.Dir, d.cluster.Kubeconfig); err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	d.command("export KUBECONFIG=" + d.cluster.Kubeconfig)
	for _, part := range []func(context.Context) error{
		d.fill, d.crash, d.exhaust, d.dryRun, d.release, d.recover, d.duplicate,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	d.say("\nAll steps behaved as expected.")
	return nil
}

// fill lets five pods take five addresses.
func (d *demo) fill(ctx context.Context) error {
	d.step("Five pods take all five addresses of a network")
	d.say("The network hands out %s to %s.\n", network.RangeStart, network.RangeEnd)
	config := fmt.Sprintf(`{"cniVersion":"1.0.0","name":%q,"type":"macvlan","ipam":{"type":"whereabouts","range":%q,"range_start":%q,"range_end":%q}}`,
		network.Name, network.Range, network.RangeStart, network.RangeEnd)
	if err := errors.Join(
		d.cluster.CreateNamespace(ctx, stateNamespace),
		d.cluster.CreateNamespace(ctx, namespace),
	); err != nil {
		return err
	}
	if err := d.cluster.CreateNetwork(ctx, namespace, network.Name, config); err != nil {
		return err
	}
	for _, node := range []string{"worker-1", "worker-2"} {
		if err := d.cluster.CreateNode(ctx, node, true); err != nil {
			return err
		}
	}
	for _, a := range slices.Concat(d.survivors, d.victims) {
		if err := errors.Join(d.create(ctx, a), d.add(ctx, a)); err != nil {
			return err
		}
	}
	d.say("\nThe pool stores each one under its offset from %s:\n", strings.TrimSuffix(network.Range, "/27"))
	if err := d.kubectl(ctx, "-n", cluster.PoolNamespace, "get", "ippools", pool, "-o", "yaml"); err != nil {
		return err
	}
	return d.checkOffsets(ctx, "4", "5", "6", "7", "8")
}

// crash takes a node down, with its pods, and brings it back without them.
func (d *demo) crash(ctx context.Context) error {
	d.step("worker-2 crashes")
	d.say("Its kubelet is gone, so nothing calls CNI DEL. The operator force-deletes its\n" +
		"two pods. When worker-2 is back, it knows nothing of them.\n")
	if err := d.cluster.SetNodeReady(ctx, "worker-2", false); err != nil {
		return err
	}
	force := []string{"-n", namespace, "delete", "pod", "--force", "--grace-period=0"}
	for _, a := range d.victims {
		force = append(force, a.name)
	}
	if err := d.kubectl(ctx, force...); err != nil {
		return err
	}
	return d.cluster.SetNodeReady(ctx, "worker-2", true)
}

// exhaust lets the deployment make new pods, for which nothing is left.
func (d *demo) exhaust(ctx context.Context) error {
	d.step("The pool is exhausted")
	d.say("The deployment replaces the two pods. The first replacement asks for an address:\n")
	for _, a := range d.replacements {
		if err := d.create(ctx, a); err != nil {
			return err
		}
	}
	first := d.replacements[0]
	err := d.add(ctx, first)
	if err == nil {
		return fmt.Errorf("ADD for %s gives %s, want that no address is left", first.name, first.ip)
	}
	var refused *plugin.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Msg, "Could not allocate IP in range") {
		return fmt.Errorf("want that no address is left: %w", err)
	}
	d.say("\nBoth replacements hang, although only three addresses are in use:\n")
	if err := d.kubectl(ctx, "-n", namespace, "get", "pods"); err != nil {
		return err
	}
	return d.checkOffsets(ctx, "4", "5", "6", "7", "8")
}

// dryRun shows what ip-reaper would do, and checks that it did nothing.
func (d *demo) dryRun(ctx context.Context) error {
	d.step("What would ip-reaper do?")
	d.say("A run is a dry run unless it is told to release. The operator knows that\n" +
		"worker-2 was down, and skips the wait: by default, an address must have been\n" +
		"allocated for 5 minutes, and without an owner for 15.\n")
	before, err := d.cluster.Versions(ctx)
	if err != nil {
		return err
	}
	report, err := d.reap(ctx)
	if err != nil {
		return err
	}
	for _, a := range d.victims {
		if !strings.Contains(report, a.ip.String()) {
			return fmt.Errorf("the report does not name %s, which is %s's", a.ip, a.name)
		}
	}
	after, err := d.cluster.Versions(ctx)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(before, after); diff != "" {
		return fmt.Errorf("the dry run wrote (-before +after):\n%s", diff)
	}
	d.say("\nNothing was written: all %d objects in the cluster have the versions they had.", len(after))
	return nil
}

// release lets ip-reaper do it.
func (d *demo) release(ctx context.Context) error {
	d.step("Release them")
	before, err := d.allocations(ctx)
	if err != nil {
		return err
	}
	if _, err := d.reap(ctx, "--dry-run=false"); err != nil {
		return err
	}
	d.say("\nThe pool has room again:\n")
	if err := d.kubectl(ctx, "-n", cluster.PoolNamespace, "get", "ippools", pool, "-o", owners); err != nil {
		return err
	}
	for _, a := range d.victims {
		delete(before, offset(a.ip))
	}
	after, err := d.allocations(ctx)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(before, after); diff != "" {
		return fmt.Errorf("the pool is not what it was without the dead pods' entries (-want +got):\n%s", diff)
	}
	return nil
}

// recover lets the new pods ask again, and looks at the old ones.
func (d *demo) recover(ctx context.Context) error {
	d.step("The new pods start, and the old ones never noticed")
	before, err := d.allocations(ctx)
	if err != nil {
		return err
	}
	for _, a := range d.replacements {
		if err := d.add(ctx, a); err != nil {
			return err
		}
	}
	after, err := d.allocations(ctx)
	if err != nil {
		return err
	}
	d.say("\nThe three pods that never stopped still have their addresses, in the pool and in\n" +
		"their status:\n")
	for _, a := range d.survivors {
		key := offset(a.ip)
		if before[key] != after[key] || after[key].PodRef != namespace+"/"+a.name {
			return fmt.Errorf("entry %s is %+v and was %+v, want it unchanged and %s's", key, after[key], before[key], a.name)
		}
		d.show(fmt.Sprintf("%s  %s\n", a.ip, a.name))
	}
	return d.checkOffsets(ctx, "4", "5", "6", "7", "8")
}

// duplicate lets a script take away the entry of a pod that runs, so that its address is given out
// twice.
func (d *demo) duplicate(ctx context.Context) error {
	d.step("What no release mends")
	lost := d.survivors[0]
	d.say("A script that someone wrote for such outages takes away the entry of a pod that\n"+
		"runs, %s. The next pod gets the same address:\n", lost.name)
	if err := errors.Join(
		d.kubectl(ctx, "-n", cluster.PoolNamespace, "patch", "ippools", pool, "--type=json", "-p",
			fmt.Sprintf(`[{"op":"remove","path":"/spec/allocations/%s"}]`, offset(lost.ip))),
		d.kubectl(ctx, "-n", cluster.PoolNamespace, "delete", "overlappingrangeipreservations", lost.ip.String()),
		d.create(ctx, d.next), d.add(ctx, d.next),
	); err != nil {
		return err
	}
	d.say("\nip-reaper releases nothing of it, and names both:\n")
	report, err := d.reap(ctx)
	if err != nil {
		return err
	}
	for _, want := range []string{"findings: 1 duplicate", "both show " + lost.ip.String(), "the store has it for " + namespace + "/" + d.next.name} {
		if !strings.Contains(report, want) {
			return fmt.Errorf("the report does not say %q", want)
		}
	}
	return nil
}
