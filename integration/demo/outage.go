package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

const policy = `apiVersion: ip-reaper/v1alpha1
kind: ReapPolicy
gracePeriod: 0s   # the operator knows that the node is gone; a CronJob waits 15m
minAge: 0s        # and that no pod is starting; a CronJob spares what is younger than 5m
`

const entries = `go-template={{range $offset, $e := .spec.allocations}}{{$offset}}  {{$e.podref}}{{"\n"}}{{end}}`

// run shows the outage and its end on a cluster of its own.
func run(ctx context.Context, out io.Writer, reaper *reap.Reaper) (err error) {
	began := time.Now()
	d := &demo{out: out, reaper: reaper, deployment: newPods()}
	d.step("A cluster of our own")
	d.say("Starting a real etcd and a real API server. There is no kubelet and no controller\n" +
		"here: this program acts as them and as Multus. Addresses are given by the real\n" +
		"whereabouts plugin.")
	if d.cluster, err = cluster.Start(ctx, cluster.Options{}); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, d.cluster.Stop())
		if err == nil {
			d.say("API server and etcd are stopped, %s is removed. That took %.0f seconds.",
				d.cluster.Dir, time.Since(began).Seconds())
		}
	}()
	d.say("It keeps everything in %s.", d.cluster.Dir)
	return d.outage(ctx)
}

// outage shows it on the demo's cluster, which is empty.
func (d *demo) outage(ctx context.Context) (err error) {
	if d.plugin, err = plugin.New(d.cluster.Dir, d.cluster.Kubeconfig); err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	d.command("export KUBECONFIG=" + d.cluster.Kubeconfig)
	for _, part := range []func(context.Context) error{
		d.fill, d.crash, d.exhaust, d.dryRun, d.release, d.recover,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	d.say("\nEvery step turned out as told.")
	return nil
}

// fill lets five pods take five addresses.
func (d *demo) fill(ctx context.Context) error {
	d.step("Five pods take the five addresses of a network")
	d.say("The network hands out %s to %s of %s.\n", network.RangeStart, network.RangeEnd, network.Range)
	if err := d.cluster.CreateNamespace(ctx, namespace); err != nil {
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
	d.say("\nThe pool keeps them by their distance from %s:\n", strings.TrimSuffix(network.Range, "/27"))
	if err := d.kubectl(ctx, "-n", cluster.PoolNamespace, "get", "ippools.whereabouts.cni.cncf.io", pool, "-o", "yaml"); err != nil {
		return err
	}
	return d.checkOffsets(ctx, "4", "5", "6", "7", "8")
}

// crash takes a node down, with its pods, and brings it back without them.
func (d *demo) crash(ctx context.Context) error {
	d.step("worker-2 crashes")
	d.say("Its kubelet is gone, so no CNI DEL is called. The operator deletes its two pods by\n" +
		"force; worker-2 reboots and knows nothing of them.\n")
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
	d.say("The deployment replaces the two pods. The first of them asks for its address:\n")
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
	d.say("\nBoth hang, though only three addresses are in use:\n")
	if err := d.kubectl(ctx, "-n", namespace, "get", "pods", "-o", "wide"); err != nil {
		return err
	}
	return d.checkOffsets(ctx, "4", "5", "6", "7", "8")
}

// dryRun shows what ip-reaper would do, and that it did nothing.
func (d *demo) dryRun(ctx context.Context) error {
	d.step("What would ip-reaper do?")
	d.say("A policy that does not say dryRun: false is a dry run.\n")
	if err := d.write("policy.yaml", policy); err != nil {
		return err
	}
	before, err := d.cluster.Versions(ctx)
	if err != nil {
		return err
	}
	report, err := d.reap(ctx, "policy.yaml")
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
	d.say("\nNothing was written: of %d objects in the cluster each has the version it had.", len(after))
	return nil
}

// release lets ip-reaper do it.
func (d *demo) release(ctx context.Context) error {
	d.step("Now for real")
	before, err := d.allocations(ctx)
	if err != nil {
		return err
	}
	if err := d.write("release.yaml", policy+"dryRun: false\n"); err != nil {
		return err
	}
	if _, err := d.reap(ctx, "release.yaml"); err != nil {
		return err
	}
	d.say("\nThe pool has room:\n")
	if err := d.kubectl(ctx, "-n", cluster.PoolNamespace, "get", "ippools.whereabouts.cni.cncf.io", pool, "-o", entries); err != nil {
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
	d.step("The new pods start, the old ones noticed nothing")
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
	d.say("\nThe three pods that ran all the time still hold their addresses, in the pool and in\n" +
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

// write writes a file and shows it.
func (d *demo) write(name, text string) error {
	if err := os.WriteFile(filepath.Join(d.cluster.Dir, name), []byte(text), 0o600); err != nil {
		return err
	}
	d.command("cat " + name)
	d.show(text)
	fmt.Fprintln(d.out)
	return nil
}
