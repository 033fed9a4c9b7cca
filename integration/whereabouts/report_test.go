package whereabouts_test

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

const (
	// header begins every policy here: no grace period hides a mistake.
	header = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\ndryRun: false\ngracePeriod: 0s\nminAge: 0s\n"

	noLimit = "limits: {maxFraction: 1}\n"

	// inOrder makes a run release one pool at a time.
	inOrder = "--concurrency=1"
)

// A result is the result of a run of the reaper.
type result struct {
	exit   int
	lines  []string // as in scenario.want, sorted
	stderr string
	report reap.Report
}

// reap runs the binary with a policy that releases immediately, and the addition to it.
func (f *fixture) reap(addition string, args ...string) result {
	f.Helper()
	got, err := f.start(addition, args...).Wait()
	f.must(err)
	return f.read(got)
}

// mustReap is reap for a run that must exit with the code.
func (f *fixture) mustReap(code int, addition string, args ...string) result {
	f.Helper()
	got := f.reap(addition, args...)
	if got.exit != code {
		f.Errorf("exit code %d, want %d\n%s", got.exit, code, got.stderr)
	}
	return got
}

// converge runs once more, undisturbed. The run must succeed.
func (f *fixture) converge() {
	f.Helper()
	f.toReaper.Reset()
	f.mustReap(reap.ExitDone, "")
}

// start removes the lock, which a killed run leaves behind for half a minute, and starts the
// binary.
func (f *fixture) start(addition string, args ...string) *reap.Process {
	f.Helper()
	err := f.Kube.CoordinationV1().Leases(cluster.PoolNamespace).Delete(f.Context(), "ip-reaper", metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		f.must(err)
	}
	return reap.StartT(f, f.kubeconfig, header+addition, nil, args...)
}

// read reads the result of a run.
func (f *fixture) read(got reap.Result) result {
	f.Helper()
	if got.Report == nil {
		f.Fatalf("exit code %d and no report:\n%s", got.ExitCode, got.Stderr)
	}
	return result{got.ExitCode, lines(got.Report), got.Stderr, *got.Report}
}

// reapWhile runs the reaper and does something while the first request of this kind is held back.
func (f *fixture) reapWhile(hold string, do func()) result {
	f.Helper()
	gate := proxy.NewGate()
	f.toReaper.Before(proxy.Nth(1, proxy.On(hold)), gate.Hook)
	process := f.start("")
	var got reap.Result
	ended := make(chan error, 1)
	go func() {
		var err error
		got, err = process.Wait()
		ended <- err
	}()
	select {
	case <-gate.Arrived():
		do()
		gate.Open()
		f.must(<-ended)
	case err := <-ended:
		f.Fatalf("there was no %q: %v\n%s", hold, err, got.Stderr)
	}
	return f.read(got)
}

// killedAfter runs the reaper and kills it after its first request of this kind was carried out.
func (f *fixture) killedAfter(request string) {
	f.Helper()
	started := make(chan *reap.Process, 1)
	f.toReaper.After(proxy.Nth(1, proxy.On(request)), func(context.Context, proxy.Request) proxy.Action {
		if err := (<-started).Kill(); err != nil {
			f.Error(err)
		}
		return proxy.Drop()
	})
	process := f.start("")
	started <- process
	got, err := process.Wait()
	f.must(err)
	if got.ExitCode != reap.ExitedByKill {
		f.Fatalf("exit code %d, want it killed\n%s", got.ExitCode, got.Stderr)
	}
	f.toReaper.Reset()
}

// lines returns the entries of a report. A hyphen stands for an empty field.
func lines(r *reap.Report) []string {
	all := make([]string, 0, len(r.Entries))
	for _, e := range r.Entries {
		object := strings.TrimPrefix(e.Pool, cluster.PoolNamespace+"/")
		if e.Backend == "whereabouts" {
			object += "/" + e.Key
		}
		pod := strings.TrimPrefix(e.Owner.Namespace+"/"+e.Owner.Pod, shop+"/")
		fields := []string{object, e.IP, pod, e.Decision, e.Reason, e.Outcome}
		for i, field := range fields {
			if field == "" || field == "/" {
				fields[i] = "-"
			}
		}
		all = append(all, strings.Join(fields, " "))
	}
	slices.Sort(all)
	return all
}

// outcomes returns the outcomes of the entries, by backend and address.
func (r result) outcomes() map[string]string {
	all := make(map[string]string, len(r.report.Entries))
	for _, e := range r.report.Entries {
		all[e.Backend+" "+e.IP] = e.Outcome
	}
	return all
}
