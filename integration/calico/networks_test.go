package calico_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// planOnly is a policy that releases nothing.
const planOnly = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\n"

// shown returns what "calicoctl ipam show --show-blocks" counts, by CIDR: all addresses,
// those in use, and the free ones.
func (s *fixture) shown() map[string][3]string {
	s.Helper()
	out, err := s.Calicoctl(s.Context(), "", "ipam", "show", "--show-blocks")
	s.must(err)
	all := make(map[string][3]string)
	for line := range strings.Lines(out) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || !strings.Contains(cells[2], "/") {
			continue
		}
		all[strings.TrimSpace(cells[2])] = [3]string{figure(cells[3]), figure(cells[4]), figure(cells[5])}
	}
	return all
}

// figure returns a number of calicoctl's, which has five digits, without its percentage.
func figure(cell string) string { return strings.Fields(cell)[0] }

// asShown returns a number as calicoctl prints it.
func asShown(n string) string {
	f, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return n
	}
	return fmt.Sprintf("%.5g", f)
}

// counted returns the same figures of a report.
func counted(r *reap.Report) map[string][3]string {
	all := make(map[string][3]string)
	for _, n := range r.Networks {
		all[n.Range] = [3]string{asShown(n.Capacity.String()), strconv.Itoa(n.Used), asShown(n.Free.String())}
	}
	for _, p := range r.Pools {
		all[p.Range] = [3]string{asShown(p.Capacity.String()), strconv.Itoa(p.Used), asShown(p.Free.String())}
	}
	return all
}

// Networks are as full as calicoctl says, with the addresses outside of blocks. A reserved
// address is not free, although this calicoctl counts it so. What is disabled is closed.
func TestNetworksAreAsFullAsCalicoctlSays(t *testing.T) {
	each(t, func(s *fixture) {
		small := netip.MustParsePrefix("10.33.0.0/29")
		s.must(s.ApplyPool(s.Context(), "small", small, 29))
		for n := range 5 {
			s.leak(fmt.Sprint("gone-", n))
		}
		s.live("live")
		report := s.mustReap(reap.ExitDone, planOnly)
		if diff := cmp.Diff(s.shown(), counted(report)); diff != "" {
			s.Errorf("addresses, in use, free (-calicoctl +report):\n%s", diff)
		}
		if len(report.Networks) != 3 || slices.ContainsFunc(report.Pools, func(p reap.Pool) bool {
			return !slices.ContainsFunc(report.Networks, func(n reap.Network) bool { return slices.Contains(n.Pools, p.Name) })
		}) {
			s.Errorf("networks %+v, want three with all of the pools %+v", report.Networks, report.Pools)
		}

		s.must(s.DisablePool(s.Context(), "four"))
		for n := range 7 {
			s.leak(fmt.Sprint("small-", n))
		}
		s.keep("mine", "10.33.0.6/31")
		report = s.mustReap(reap.ExitDone, planOnly)
		for _, n := range report.Networks {
			before := s.shown()[n.Range]
			switch n.Name {
			case "small":
				total, _ := strconv.Atoi(before[0])
				used, _ := strconv.Atoi(before[1])
				kept := 0 // of the two reserved addresses, those that are taken
				for _, e := range report.Entries {
					if e.IP == "10.33.0.6" || e.IP == "10.33.0.7" {
						kept++
					}
				}
				if want := [3]string{strconv.Itoa(total - 2), strconv.Itoa(used), strconv.Itoa(total - 2 - (used - kept))}; counted(report)[n.Range] != want {
					s.Errorf("with a reservation: %v, want %v", counted(report)[n.Range], want)
				}
				if used < 7 || kept == 0 {
					s.Errorf("%d addresses are taken, and %d of the reserved ones, want 7 and some", used, kept)
				}
			case "four":
				if n.Closed != "disabled" || n.Free != "0" {
					s.Errorf("the disabled IPPool is %+v, want it closed, with nothing free", n)
				}
			}
		}
	})
}

// An account may lack the right to list IPPools. It releases as before, a warning says
// what is unknown, and so does the pools command, which writes nothing (promises 5 and 9).
func TestAccountWithoutIPPoolsReleases(t *testing.T) {
	each(t, func(s *fixture) {
		if s.Etcd != nil {
			return // the rights are those of etcd
		}
		const name = "without-ippools"
		account, err := s.Cluster.ServiceAccount(s.Context(), cluster.PoolNamespace, "reaper")
		s.must(err)
		rbac := s.Cluster.Kube.RbacV1()
		_, err = rbac.ClusterRoles().Create(s.Context(), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{
				{Verbs: []string{"*"}, Resources: []string{"*"}, APIGroups: []string{"", "apps", "coordination.k8s.io", "events.k8s.io", "kubevirt.io", "apiextensions.k8s.io", "whereabouts.cni.cncf.io", "k8s.cni.cncf.io"}},
				{Verbs: []string{"*"}, Resources: []string{"ipamblocks", "ipamhandles", "ipreservations", "clusterinformations"}, APIGroups: []string{"crd.projectcalico.org", "projectcalico.org"}},
			},
		}, metav1.CreateOptions{})
		s.must(err)
		_, err = rbac.ClusterRoleBindings().Create(s.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: cluster.PoolNamespace, Name: "reaper"}},
		}, metav1.CreateOptions{})
		s.must(err)
		s.Cleanup(func() {
			ctx := context.WithoutCancel(s.Context())
			s.must(rbac.ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}))
			s.must(rbac.ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{}))
		})
		s.kubeconfig, err = s.Cluster.KubeconfigFor(account)
		s.must(err)
		_, gone := s.leak("gone")

		r, err := reap.New()
		s.must(err)
		before := s.state()
		got, err := r.Run(s.Context(), "pools", "--kubeconfig="+s.kubeconfig)
		s.must(err)
		s.wantSame(before)
		for _, want := range []string{"1 leaked: ", "pool 10.", "warning: calico: how full some networks are is unknown: list Calico's IPPools: "} {
			if got.ExitCode != reap.ExitDone || !strings.Contains(got.Stdout, want) {
				s.Errorf("pools exited with %d, and %q is missing:\n%s%s", got.ExitCode, want, got.Stdout, got.Stderr)
			}
		}

		report := s.mustReap(reap.ExitDone, releaseNow)
		s.wantOutcomes(report, map[netip.Addr]string{gone: "released"})
		if len(report.Networks) != 0 || len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], "ippools") {
			s.Errorf("networks %+v and warnings %q, want none, and one that names ippools", report.Networks, report.Warnings)
		}
	})
}
