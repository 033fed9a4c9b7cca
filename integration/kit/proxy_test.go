package kit_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// startProxy returns a proxy before the cluster.
func startProxy(t *testing.T) (*cluster.Cluster, *proxy.Proxy) {
	t.Helper()
	c := cluster.StartT(t)
	p, err := proxy.Start(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return c, p
}

func clientOf(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestProxyCountsByVerbAndResource(t *testing.T) {
	for _, tt := range []struct{ name, contentType string }{
		{"JSON", "application/json"},
		{"protobuf", "application/vnd.kubernetes.protobuf"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, p := startProxy(t)
			ctx := t.Context()
			cfg := p.Config(c.Config)
			cfg.ContentType = tt.contentType
			configs := clientOf(t, cfg).CoreV1().ConfigMaps(c.Namespace(t))
			made, err := configs.Create(ctx, configMap("a"), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			made.Data = map[string]string{"key": "value"}
			if _, err := configs.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := configs.Create(ctx, configMap("b"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Fatal(err)
			}
			list, err := configs.List(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 1 || list.Items[0].Data["key"] != "value" {
				t.Errorf("listed %v, want what was written", list.Items)
			}
			counts := map[string]int{"create configmaps": 2, "update configmaps": 1, "list configmaps": 1}
			if diff := cmp.Diff(counts, p.Counts()); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			mutations := map[string]int{"create configmaps": 1, "update configmaps": 1}
			if diff := cmp.Diff(mutations, p.Mutations()); diff != "" {
				t.Errorf("mutations (-want +got):\n%s", diff)
			}
			if update := p.Requests()[1]; update.Mutation != 2 || !bytes.Contains(update.Body, []byte("value")) {
				t.Errorf("mutation %d with body %q, want the second with the value", update.Mutation, update.Body)
			}
		})
	}
}

func TestProxyKeepsTheIdentityOfAToken(t *testing.T) {
	c, p := startProxy(t)
	namespace := c.Namespace(t)
	account, err := c.ServiceAccount(t.Context(), namespace, "reaper")
	if err != nil {
		t.Fatal(err)
	}
	_, err = clientOf(t, p.Config(account)).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("list pods with a token that has no rights: %v, want forbidden", err)
	}
}

func TestInjectedAnswersLookLikeTheServers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		action proxy.Action
		is     func(error) bool
	}{
		{"conflict", proxy.Conflict(), apierrors.IsConflict},
		{"invalid", proxy.Invalid(), apierrors.IsInvalid},
		{"forbidden", proxy.Forbidden(), apierrors.IsForbidden},
		{"too many requests", proxy.TooManyRequests(0), apierrors.IsTooManyRequests},
		{"internal error", proxy.InternalError(), apierrors.IsInternalError},
		{"broken connection", proxy.Drop(), func(err error) bool {
			var status apierrors.APIStatus
			return err != nil && !errors.As(err, &status)
		}},
	} {
		for _, when := range []struct {
			name   string
			add    func(*proxy.Proxy, proxy.Match, proxy.Hook)
			stored bool
		}{
			{"before", (*proxy.Proxy).Before, false},
			{"after", (*proxy.Proxy).After, true},
		} {
			t.Run(tt.name+" "+when.name, func(t *testing.T) {
				c, p := startProxy(t)
				namespace := c.Namespace(t)
				when.add(p, proxy.Nth(1, proxy.Mutating), proxy.Always(tt.action))
				configs := clientOf(t, p.Config(c.Config)).CoreV1().ConfigMaps(namespace)
				if _, err := configs.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); !tt.is(err) {
					t.Errorf("create: %v", err)
				}
				_, err := c.Kube.CoreV1().ConfigMaps(namespace).Get(t.Context(), "a", metav1.GetOptions{})
				if stored := err == nil; stored != when.stored {
					t.Errorf("stored: %t (%v), want %t", stored, err, when.stored)
				}
				// The second mutation is let through.
				if _, err := configs.Create(t.Context(), configMap("b"), metav1.CreateOptions{}); err != nil {
					t.Errorf("second create: %v", err)
				}
			})
		}
	}
}

func TestClientComesBackAfterRetryAfter(t *testing.T) {
	c, p := startProxy(t)
	p.Before(proxy.First(1, proxy.On("list pods")), proxy.Always(proxy.TooManyRequests(time.Second)))
	began := time.Now()
	if _, err := clientOf(t, p.Config(c.Config)).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < time.Second || p.Counts()["list pods"] != 2 {
		t.Errorf("%d lists in %v, want 2 in no less than a second", p.Counts()["list pods"], took)
	}
}

func TestGateHoldsARequestWhileOthersWrite(t *testing.T) {
	c, p := startProxy(t)
	ctx := t.Context()
	namespace := c.Namespace(t)
	made, err := c.Kube.CoreV1().ConfigMaps(namespace).Create(ctx, configMap("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gate := proxy.NewGate()
	p.Before(proxy.On("update configmaps"), gate.Hook)
	result := make(chan error, 1)
	go func() {
		_, err := clientOf(t, p.Config(c.Config)).CoreV1().ConfigMaps(namespace).Update(ctx, made, metav1.UpdateOptions{})
		result <- err
	}()
	if r := <-gate.Arrived(); r.Name != "a" {
		t.Errorf("held back %v of %q, want that of a", r, r.Name)
	}
	other := made.DeepCopy()
	other.Data = map[string]string{"written": "meanwhile"}
	if _, err := c.Kube.CoreV1().ConfigMaps(namespace).Update(ctx, other, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	gate.Open()
	if err := <-result; !apierrors.IsConflict(err) {
		t.Errorf("update: %v, want a conflict", err)
	}
}

func TestHookKillsTheClient(t *testing.T) {
	for _, tt := range []struct {
		name   string
		add    func(*proxy.Proxy, proxy.Match, proxy.Hook)
		action proxy.Action
		stored bool
	}{
		{"before its write", (*proxy.Proxy).Before, proxy.Drop(), false},
		{"while its write is under way", (*proxy.Proxy).Before, proxy.Pass(), true},
		{"after its write", (*proxy.Proxy).After, proxy.Drop(), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, p := startProxy(t)
			namespace := c.Namespace(t)
			cmd := kubectl(t, c, p, "-n", namespace, "create", "configmap", "a")
			started, handled := make(chan struct{}), make(chan struct{})
			tt.add(p, proxy.On("create configmaps"), func(context.Context, proxy.Request) proxy.Action {
				defer close(handled)
				<-started
				if err := cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
				return tt.action
			})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			close(started)
			err := cmd.Wait()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Errorf("kubectl: %v, want it killed", err)
			}
			<-handled
			if stored := eventually(t, c, namespace, tt.stored); stored != tt.stored {
				t.Errorf("stored: %t, want %t", stored, tt.stored)
			}
		})
	}
}

// kubectl returns a command that speaks to the proxy and knows nothing else.
func kubectl(t *testing.T, c *cluster.Cluster, p *proxy.Proxy, args ...string) *exec.Cmd {
	t.Helper()
	path, err := assets.Path("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := c.KubeconfigFor(p.Config(c.Config))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + t.TempDir()}
	return cmd
}

// eventually reports whether the ConfigMap is stored, and waits for it if it
// should be: the client died before its request was through.
func eventually(t *testing.T, c *cluster.Cluster, namespace string, want bool) bool {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := c.Kube.CoreV1().ConfigMaps(namespace).Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		if stored := err == nil; stored == want || time.Now().After(deadline) {
			return stored
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestStopEndsWhatIsHeldBack(t *testing.T) {
	c, p := startProxy(t)
	gate := proxy.NewGate()
	p.Before(proxy.Any, gate.Hook)
	result := make(chan error, 1)
	go func() {
		_, err := clientOf(t, p.Config(c.Config)).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		result <- err
	}()
	<-gate.Arrived()
	p.Stop()
	var status apierrors.APIStatus
	if err := <-result; err == nil || errors.As(err, &status) {
		t.Errorf("list: %v, want a broken connection", err)
	}
}
