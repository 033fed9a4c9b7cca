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

// play plays the outage and its end on a cluster of its own.
func play(ctx context.Context, out io.Writer, reaper *reap.Reaper) (err error) {
	began := time.Now()
	s := &stage{out: out, reaper: reaper, cast: newCast()}
	s.step("A cluster of our own")
	s.say("Starting a real etcd and a real API server. There is no kubelet and no controller\n" +
		"here: this program plays them, and Multus. Addresses are given by the real\n" +
		"whereabouts plugin.")
	if s.cluster, err = cluster.Start(ctx, cluster.Options{}); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, s.cluster.Stop())
		if err == nil {
			s.say("API server and etcd are stopped, %s is removed. That took %.0f seconds.",
				s.cluster.Dir, time.Since(began).Seconds())
		}
	}()
	s.say("It keeps everything in %s.", s.cluster.Dir)
	return s.perform(ctx)
}

// perform plays on the stage's cluster, which is empty.
func (s *stage) perform(ctx context.Context) (err error) {
	if s.plugin, err = plugin.New(s.cluster.Dir, s.cluster.Kubeconfig); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	s.command("export KUBECONFIG=" + s.cluster.Kubeconfig)
	for _, act := range []func(context.Context) error{
		s.fill, s.crash, s.exhaust, s.dryRun, s.release, s.recover,
	} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	s.say("\nEvery step turned out as told.")
	return nil
}

// fill lets five pods take five addresses.
func (s *stage) fill(ctx context.Context) error {
	s.step("Five pods take the five addresses of a network")
	s.say("The network hands out %s to %s of %s.\n", network.RangeStart, network.RangeEnd, network.Range)
	if err := s.cluster.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	for _, node := range []string{"worker-1", "worker-2"} {
		if err := s.cluster.CreateNode(ctx, node, true); err != nil {
			return err
		}
	}
	for _, a := range slices.Concat(s.survivors, s.victims) {
		if err := errors.Join(s.enter(ctx, a), s.add(ctx, a)); err != nil {
			return err
		}
	}
	s.say("\nThe pool keeps them by their distance from %s:\n", strings.TrimSuffix(network.Range, "/27"))
	if err := s.kubectl(ctx, "-n", cluster.PoolNamespace, "get", "ippools.whereabouts.cni.cncf.io", pool, "-o", "yaml"); err != nil {
		return err
	}
	return s.checkOffsets(ctx, "4", "5", "6", "7", "8")
}

// crash takes a node down, with its pods, and brings it back without them.
func (s *stage) crash(ctx context.Context) error {
	s.step("worker-2 crashes")
	s.say("Its kubelet is gone, so nobody calls CNI DEL. The operator deletes its two pods by\n" +
		"force; worker-2 reboots and knows nothing of them.\n")
	if err := s.cluster.SetNodeReady(ctx, "worker-2", false); err != nil {
		return err
	}
	force := []string{"-n", namespace, "delete", "pod", "--force", "--grace-period=0"}
	for _, a := range s.victims {
		force = append(force, a.name)
	}
	if err := s.kubectl(ctx, force...); err != nil {
		return err
	}
	return s.cluster.SetNodeReady(ctx, "worker-2", true)
}

// exhaust lets the deployment make new pods, for which nothing is left.
func (s *stage) exhaust(ctx context.Context) error {
	s.step("The pool is exhausted")
	s.say("The deployment replaces the two pods. The first of them asks for its address:\n")
	for _, a := range s.understudies {
		if err := s.enter(ctx, a); err != nil {
			return err
		}
	}
	first := s.understudies[0]
	err := s.add(ctx, first)
	if err == nil {
		return fmt.Errorf("ADD for %s gives %s, want that no address is left", first.name, first.ip)
	}
	var refused *plugin.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Msg, "Could not allocate IP in range") {
		return fmt.Errorf("want that no address is left: %w", err)
	}
	s.say("\nBoth hang, though only three addresses are in use:\n")
	if err := s.kubectl(ctx, "-n", namespace, "get", "pods", "-o", "wide"); err != nil {
		return err
	}
	return s.checkOffsets(ctx, "4", "5", "6", "7", "8")
}

// dryRun shows what ip-reaper would do, and that it did nothing.
func (s *stage) dryRun(ctx context.Context) error {
	s.step("What would ip-reaper do?")
	s.say("A policy that does not say dryRun: false is a dry run.\n")
	if err := s.write("policy.yaml", policy); err != nil {
		return err
	}
	before, err := s.cluster.Versions(ctx)
	if err != nil {
		return err
	}
	report, err := s.reap(ctx, "policy.yaml")
	if err != nil {
		return err
	}
	for _, a := range s.victims {
		if !strings.Contains(report, a.ip.String()) {
			return fmt.Errorf("the report does not name %s, which is %s's", a.ip, a.name)
		}
	}
	after, err := s.cluster.Versions(ctx)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(before, after); diff != "" {
		return fmt.Errorf("the dry run wrote (-before +after):\n%s", diff)
	}
	s.say("\nNothing was written: of %d objects in the cluster each has the version it had.", len(after))
	return nil
}

// release lets ip-reaper do it.
func (s *stage) release(ctx context.Context) error {
	s.step("Now for real")
	before, err := s.allocations(ctx)
	if err != nil {
		return err
	}
	if err := s.write("release.yaml", policy+"dryRun: false\n"); err != nil {
		return err
	}
	if _, err := s.reap(ctx, "release.yaml"); err != nil {
		return err
	}
	s.say("\nThe pool has room:\n")
	if err := s.kubectl(ctx, "-n", cluster.PoolNamespace, "get", "ippools.whereabouts.cni.cncf.io", pool, "-o", entries); err != nil {
		return err
	}
	for _, a := range s.victims {
		delete(before, offset(a.ip))
	}
	after, err := s.allocations(ctx)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(before, after); diff != "" {
		return fmt.Errorf("the pool is not what it was without the dead pods' entries (-want +got):\n%s", diff)
	}
	return s.checkReserved(ctx, s.survivors...)
}

// recover lets the new pods ask again, and looks at the old ones.
func (s *stage) recover(ctx context.Context) error {
	s.step("The new pods start, the old ones noticed nothing")
	before, err := s.allocations(ctx)
	if err != nil {
		return err
	}
	for _, a := range s.understudies {
		if err := s.add(ctx, a); err != nil {
			return err
		}
	}
	all := slices.Concat(s.survivors, s.understudies)
	if err := errors.Join(s.checkRunning(ctx, all...), s.checkReserved(ctx, all...)); err != nil {
		return err
	}
	after, err := s.allocations(ctx)
	if err != nil {
		return err
	}
	s.say("\nThe three pods that ran all the time still hold their addresses, in the pool and in\n" +
		"their status, and nobody else does:\n")
	for _, a := range s.survivors {
		key := offset(a.ip)
		if before[key] != after[key] || after[key].PodRef != namespace+"/"+a.name {
			return fmt.Errorf("entry %s is %+v and was %+v, want it unchanged and %s's", key, after[key], before[key], a.name)
		}
		s.show(fmt.Sprintf("%s  %s\n", a.ip, a.name))
	}
	return s.checkOffsets(ctx, "4", "5", "6", "7", "8")
}

// write writes a file and shows it.
func (s *stage) write(name, text string) error {
	if err := os.WriteFile(filepath.Join(s.cluster.Dir, name), []byte(text), 0o600); err != nil {
		return err
	}
	s.command("cat " + name)
	s.show(text)
	fmt.Fprintln(s.out)
	return nil
}
