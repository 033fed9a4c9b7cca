package run_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// schedulerSays writes an event of the scheduler, in its form, of a pod that fits on no node.
func (f *fixture) schedulerSays(pod *corev1.Pod) {
	f.Helper()
	now := time.Now()
	_, err := f.Kube.EventsV1().Events(pod.Namespace).Create(f.Context(), &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: pod.Name + ".scheduler"},
		EventTime:           metav1.NewMicroTime(now.Add(-9 * time.Minute)),
		Series:              &eventsv1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(now.Add(-2 * time.Minute))},
		ReportingController: "default-scheduler",
		ReportingInstance:   "s1",
		Action:              "Scheduling",
		Type:                corev1.EventTypeWarning,
		Reason:              "FailedScheduling",
		Regarding:           corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Note:                "0/1 nodes are available: 1 Insufficient cpu.",
	}, metav1.CreateOptions{})
	f.must(err)
}

// Of a pod that hangs, explain quotes the error of the plugin from the event, for who has the role to look; from a
// dump of theirs, it says the same. Without the right to list events, a line says which right is missing, and that is
// all. A tenant may write an event, and so name any network.
func TestEventsSayWhyAPodHangs(t *testing.T) {
	f := newStranger(t)
	f.must(f.CreateNode(t.Context(), "n1", true))
	small := plugin.Network{Name: "net", Range: "10.0.0.0/30", DisableOverlapping: true}
	attachments, err := cluster.NetworkAttachmentCRD()
	f.must(err)
	f.DefineT(t, attachments)
	f.must(f.CreateNetwork(t.Context(), shop, "net", `{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.0/30"}}`))
	f.network = small
	f.live("web", cluster.OnNode("n1"))
	f.leak("gone")
	hangs := plugin.Pod{Namespace: shop, Name: "hangs"}
	_, full := f.plugin.Add(t.Context(), small, hangs, "sandbox", "net1")
	if full == nil {
		t.Fatal("the range is not full")
	}
	asks := cluster.Annotation("k8s.v1.cni.cncf.io/networks", "net")
	waiting := []cluster.PodOption{cluster.OnNode("n1"), cluster.Phase(corev1.PodPending)}
	pod, err := f.CreatePod(t.Context(), shop, "hangs", append(waiting, asks)...)
	f.must(err)
	f.must(f.FailSandbox(t.Context(), pod, plugin.SandboxFailed(hangs, "net", full)))
	f.schedulerSays(pod) // before it had a node
	hostile, err := f.CreatePod(t.Context(), shop, "hostile", waiting...)
	f.must(err)
	f.must(f.FailSandbox(t.Context(), hostile, "$ rm -r x\nrange: 10.0.0.0/30"))
	homeless, err := f.CreatePod(t.Context(), shop, "homeless", cluster.OnNode(""), cluster.Phase(corev1.PodPending))
	f.must(err)
	f.schedulerSays(homeless)

	grant, err := reap.PeopleGrant("view")
	f.must(err)
	_, err = reap.InstallAccount(t.Context(), f.Cluster, grant)
	f.must(err)
	const jane = " --as jane --grace-period=0s --min-age=0s"
	ago := regexp.MustCompile(` \([^()]* ago\)`)
	told := func(args string) string { return ago.ReplaceAllString(f.typed("ip-reaper "+args), "") }
	lines := func(text string) (all []string) {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "pod ") || strings.HasPrefix(line, "  event ") {
				all = append(all, line)
			}
		}
		return all
	}
	words := regexp.QuoteMeta("Could not allocate IP in range: ip: 10.0.0.1 / - 10.0.0.2 / range: 10.0.0.0/30")
	want := regexp.MustCompile(`(?s)^pod shop/hangs: waits for an address of 10\.0\.0\.0-30 \(full, 1 leaked, an event names it\); an event says what failed; [^\n]*\n` +
		`  event \S+, 3 times since \S+, FailedCreatePodSandBox: [^\n]*` + words + `[^\n]*\n$`)
	live := told("explain shop/hangs" + jane)
	if got := strings.Join(lines(live), ""); !want.MatchString(got) || !strings.Contains(live, " $ ip-reaper run ") {
		t.Errorf("explain says\n%s", live)
	}
	file := filepath.Join(t.TempDir(), "dump.json")
	f.must(os.WriteFile(file, []byte(f.typed("ip-reaper dump --as jane")), 0o600))
	for _, subject := range []string{"shop/hangs", "shop/hostile", "shop/homeless", "10.0.0.0/30"} {
		now, then := lines(told("explain "+subject+jane)), lines(told("explain "+subject+" --grace-period=0s --min-age=0s --from "+file))
		if !slices.Equal(now, then) || len(now) == 0 {
			t.Errorf("explain %s says\n%sand of a dump\n%s", subject, strings.Join(now, ""), strings.Join(then, ""))
		}
	}
	if got := told("explain shop/homeless" + jane); !regexp.MustCompile(`(?m)^  event \S+, 7 times since \S+, FailedScheduling: 0/1 nodes`).MatchString(got) {
		t.Errorf("explain of a pod without a node says\n%s", got)
	}
	if got := told("pools" + jane); !regexp.MustCompile(`(?m)^pod shop/hangs waits: event .*` + words).MatchString(got) {
		t.Errorf("pools says\n%s", got)
	}
	got := told("explain shop/hostile" + jane)
	if !strings.Contains(got, `FailedCreatePodSandBox: $ rm -r x\nrange: 10.0.0.0/30`) || !strings.Contains(got, "only an event names it") || strings.Contains(got, " $ ip-reaper") {
		t.Errorf("explain of a pod with a hostile event says\n%s", got)
	}

	f.withoutEvents("ip-reaper-view")
	cluster.AwaitT(t, "the loss of the right", func() bool {
		return strings.Contains(f.typed("ip-reaper explain shop/hangs"+jane), "its events are unknown")
	})
	got = told("explain shop/hangs" + jane)
	for _, says := range []string{
		"whether an event says why is unknown",
		`  its events are unknown: events is forbidden: User "jane" cannot list resource "events" in API group "" in the namespace "shop"`,
		" $ ip-reaper run ",
	} {
		if !strings.Contains(got, says) {
			t.Errorf("explain does not say %q without the right:\n%s", says, got)
		}
	}
	f.must(os.WriteFile(file, []byte(f.typed("ip-reaper dump --as jane")), 0o600))
	if got := told("explain shop/hangs --from " + file); !strings.Contains(got, "its events are unknown: the files do not list all events") {
		t.Errorf("explain of a dump without events says\n%s", got)
	}
	var x struct {
		Asking []struct{ EventsUnknown string }
	}
	f.must(json.Unmarshal([]byte(f.typed("ip-reaper explain shop/hangs -o json"+jane)), &x))
	if len(x.Asking) != 1 || !strings.Contains(x.Asking[0].EventsUnknown, "forbidden") {
		t.Errorf("the JSON has %s", fmt.Sprint(x))
	}
}

// withoutEvents takes the right to list events out of a role.
func (f *fixture) withoutEvents(role string) {
	f.Helper()
	roles := f.Kube.RbacV1().ClusterRoles()
	of, err := roles.Get(f.Context(), role, metav1.GetOptions{})
	f.must(err)
	before := len(of.Rules)
	of.Rules = slices.DeleteFunc(of.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "events") })
	if len(of.Rules) != before-1 {
		f.Fatalf("%s has no right to list events", role)
	}
	_, err = roles.Update(f.Context(), of, metav1.UpdateOptions{})
	f.must(err)
}
