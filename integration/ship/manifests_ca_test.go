package ship_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A run trusts a gateway by the ConfigMap that components/ca-bundle mounts, and none without.
func TestRunsTrustTheGatewayOfTheirCABundle(t *testing.T) {
	c := fresh(t)
	var pushes atomic.Int32
	gateway := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { pushes.Add(1) }))
	gateway.Config.ErrorLog = log.New(io.Discard, "", 0) // it would tell of the run that hangs up
	gateway.StartTLS()
	defer gateway.Close()
	_, err := c.CreatePod(t.Context(), "default", "bystander")
	must(t, err)
	for _, tt := range []struct {
		components []string
		trusted    bool
	}{
		{[]string{"metrics"}, false},
		{[]string{"metrics", "ca-bundle"}, true},
	} {
		folder := of(tt.components...).write(t)
		apply(t, c, folder)
		if tt.trusted {
			bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: gateway.Certificate().Raw})
			_, err := c.Kube.CoreV1().ConfigMaps(home).Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "ip-reaper-ca"}, Data: map[string]string{"ca.crt": string(bundle)},
			}, metav1.CreateOptions{})
			must(t, err)
		}
		pod := podSpec(every[*batchv1.CronJob](t, render(t, folder))["ip-reaper"])
		r, err := reap.New()
		must(t, err)
		r.Env = []string{"IP_REAPER_PUSH_URL=" + gateway.URL}
		files := mounted(t, c, pod)
		for _, variable := range pod.Containers[0].Env {
			if variable.Name == "SSL_CERT_FILE" {
				file := filepath.Join(t.TempDir(), path.Base(variable.Value))
				must(t, os.WriteFile(file, []byte(files[variable.Value]), 0o600))
				r.Env = append(r.Env, "SSL_CERT_FILE="+file)
			}
		}
		result, err := r.Run(t.Context(), arguments(t, c, pod)...)
		must(t, err)
		unknown := strings.Contains(result.Stderr, "certificate signed by unknown authority")
		if result.ExitCode != reap.ExitDone || unknown == tt.trusted || pushes.Load() > 0 != tt.trusted {
			t.Errorf("%v: exit code %d, %d pushes\n%s", tt.components, result.ExitCode, pushes.Load(), result.Stderr)
		}
	}
}

// mounted are the texts of ConfigMaps that a pod mounts by their items, by where it has them.
func mounted(t *testing.T, c *cluster.Cluster, pod corev1.PodSpec) map[string]string {
	t.Helper()
	files := make(map[string]string)
	for _, mount := range pod.Containers[0].VolumeMounts {
		for _, volume := range pod.Volumes {
			if volume.Name != mount.Name || volume.ConfigMap == nil {
				continue
			}
			cm, err := c.Kube.CoreV1().ConfigMaps(home).Get(t.Context(), volume.ConfigMap.Name, metav1.GetOptions{})
			must(t, err)
			for _, item := range volume.ConfigMap.Items {
				files[path.Join(mount.MountPath, item.Path)] = cm.Data[item.Key]
			}
		}
	}
	return files
}
