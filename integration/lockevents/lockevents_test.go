// Package lockevents_test proves on a real API server what reaper/cluster does
// beside judging and releasing: one run at a time gets the lock, and what a run
// did is told by events.
package lockevents_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// patience is how long a test waits for what has to come.
const patience = 30 * time.Second

// A scene is a cluster with a namespace of the test's own.
type scene struct {
	*testing.T
	*cluster.Cluster
	namespace string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	c := cluster.StartT(t)
	return &scene{t, c, c.Namespace(t)}
}

// must ends the test at an error.
func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// client is a client like the program's: in protobuf.
func (s *scene) client(config *rest.Config) kubernetes.Interface {
	s.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	s.must(err)
	return client
}

// watched is such a client with a proxy between it and the API server.
func (s *scene) watched() (kubernetes.Interface, *proxy.Proxy) {
	s.Helper()
	p, err := proxy.Start(s.Config)
	s.must(err)
	s.Cleanup(p.Stop)
	return s.client(p.Config(s.Config)), p
}

// as is the client of a service account that has the rights of these rules: in
// the test's namespace, or in all of them.
func (s *scene) as(everywhere bool, rules ...rbacv1.PolicyRule) kubernetes.Interface {
	s.Helper()
	config, err := s.ServiceAccount(s.Context(), s.namespace, "reaper")
	s.must(err)
	name := metav1.ObjectMeta{Name: s.namespace}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: "reaper"}}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: s.namespace}
	rbac := s.Kube.RbacV1()
	_, err = rbac.ClusterRoles().Create(s.Context(), &rbacv1.ClusterRole{ObjectMeta: name, Rules: rules}, metav1.CreateOptions{})
	s.must(err)
	if everywhere {
		_, err = rbac.ClusterRoleBindings().Create(s.Context(),
			&rbacv1.ClusterRoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: role}, metav1.CreateOptions{})
	} else {
		_, err = rbac.RoleBindings(s.namespace).Create(s.Context(),
			&rbacv1.RoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: role}, metav1.CreateOptions{})
	}
	s.must(err)
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), patience)
		defer cancel()
		s.must(rbac.ClusterRoles().Delete(ctx, s.namespace, metav1.DeleteOptions{}))
		if everywhere {
			s.must(rbac.ClusterRoleBindings().Delete(ctx, s.namespace, metav1.DeleteOptions{}))
		}
	})
	client := s.client(config)
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			s.waitUntilAllowed(client, verb, rule.APIGroups[0], rule.Resources[0])
		}
	}
	return client
}

// waitUntilAllowed returns when the API server goes by a right that was given.
func (s *scene) waitUntilAllowed(client kubernetes.Interface, verb, group, resource string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	question := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: s.namespace},
	}}
	for {
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, question, metav1.CreateOptions{})
		s.must(err)
		if answer.Status.Allowed {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// rights is a rule.
func rights(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// A clock shows what the test sets. It may be used concurrently.
type clock struct {
	mu   sync.Mutex
	time time.Time
}

// newClock shows noon, to the microsecond, which is as precise as leases are.
func newClock() *clock { return &clock{time: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time
}

// pass puts the clock forward, or back.
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time = c.time.Add(d)
}

// A logbook is a log whose lines a test receives.
type logbook chan slog.Record

func newLogbook() logbook { return make(logbook, 100) }

func (l logbook) Enabled(context.Context, slog.Level) bool { return true }
func (l logbook) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l logbook) WithGroup(string) slog.Handler            { return l }

func (l logbook) Handle(_ context.Context, r slog.Record) error {
	l <- r
	return nil
}

// next returns the next line that is written: its level, its message, and the
// value of one attribute.
func (l logbook) next(t *testing.T, attribute string) string {
	t.Helper()
	select {
	case r := <-l:
		text := r.Level.String() + " " + r.Message
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == attribute {
				text += ": " + a.Value.String()
			}
			return true
		})
		return text
	case <-time.After(patience):
		t.Fatal("nothing was logged")
		return ""
	}
}

// wantEmpty checks that nothing else was written.
func (l logbook) wantEmpty(t *testing.T) {
	t.Helper()
	if len(l) > 0 {
		t.Errorf("logged: %s", l.next(t, "err"))
	}
}
