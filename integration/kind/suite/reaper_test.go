package suite_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The namespaces of the shipped manifests.
const (
	home       = "ip-reaper"
	outageHome = "ip-reaper-outage"
)

// install applies the manifests as they are shipped, but for the image: that of the
// checkout, and kustomizations of testdata over them.
func (c *cluster) install(kustomizations ...string) {
	c.Helper()
	dir := c.manifests()
	for _, k := range kustomizations {
		c.kubectl("apply", "-k", filepath.Join(dir, "e2e", k))
	}
}

// manifests copies the manifests into a new folder, with testdata/kustomize as e2e, and
// with the image of the checkout as its component image.
func (c *cluster) manifests() (dir string) {
	c.Helper()
	dir = c.TempDir()
	c.must(os.CopyFS(dir, os.DirFS(filepath.Join(c.root, "deploy"))))
	dir = filepath.Join(dir, "kustomize")
	c.must(os.CopyFS(filepath.Join(dir, "e2e"), os.DirFS(filepath.Join("testdata", "kustomize"))))
	c.must(os.Mkdir(filepath.Join(dir, "e2e", "image"), 0o700))
	name, tag, _ := strings.Cut(cmp.Or(os.Getenv("IP_REAPER_IMAGE"), "ip-reaper:e2e"), ":")
	c.must(os.WriteFile(filepath.Join(dir, "e2e", "image", "kustomization.yaml"), fmt.Appendf(nil, `
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
images:
- {name: ghcr.io/ip-reaper/ip-reaper, newName: %s, newTag: %s}
`, name, tag), 0o600))
	return dir
}

// A lastWord is what a run leaves as its pod's termination message.
type lastWord struct {
	ExitCode int    `json:"exitCode"`
	DryRun   bool   `json:"dryRun"`
	Error    string `json:"error"`
	Summary  struct {
		Allocations, InUse, Held, Suspected, Planned, Released, Changed, Failed int
	} `json:"summary"`
	Backends map[string]string `json:"backends"`
}

// jobTimeout is how long a Job may take: those of an outage sleep for at most two minutes.
const jobTimeout = 5 * time.Minute

// job starts a one-off Job from a CronJob, as an operator does, and waits for its
// end. What the run printed is in the log of the test.
func (c *cluster) job(from, name string) lastWord {
	c.Helper()
	home := home
	if strings.HasPrefix(from, outageHome) {
		home = outageHome
	}
	c.kubectl("-n", home, "create", "job", "--from=cronjob/"+from, name)
	c.eventually(jobTimeout, func(ctx context.Context) (string, error) {
		job, err := c.kube.BatchV1().Jobs(home).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if !ended(*job) {
			return "job " + name + " has not ended", nil
		}
		return "", nil
	})
	c.Logf("%s:\n%s", name, c.kubectl("-n", home, "logs", "--all-containers", "job/"+name))
	pods, err := c.kube.CoreV1().Pods(home).List(c.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + name})
	c.must(err)
	if len(pods.Items) != 1 {
		c.Fatalf("job %s has %d pods, want 1", name, len(pods.Items))
	}
	var word lastWord
	if n := len(pods.Items[0].Status.ContainerStatuses); n != 1 {
		c.Fatalf("the pod of job %s has %d containers, want 1", name, n)
	}
	for _, s := range pods.Items[0].Status.ContainerStatuses {
		if s.State.Terminated == nil {
			c.Fatalf("the container of job %s has not terminated: %v", name, s.State)
		}
		if err := json.Unmarshal([]byte(s.State.Terminated.Message), &word); err != nil {
			c.Fatalf("the termination message of job %s: %v: %s", name, err, s.State.Terminated.Message)
		}
		if code := int(s.State.Terminated.ExitCode); code != word.ExitCode {
			c.Errorf("job %s exits with %d and says %d", name, code, word.ExitCode)
		}
	}
	if word.ExitCode != 0 {
		c.Errorf("job %s exits with %d: %s", name, word.ExitCode, word.Error)
	}
	for _, backend := range []string{"whereabouts", "overlapping", "calico"} {
		if got := word.Backends[backend]; got != "ok" {
			c.Errorf("job %s: backend %s is %q", name, backend, got)
		}
	}
	return word
}

// ended reports whether a Job has succeeded or failed.
func ended(job batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}
