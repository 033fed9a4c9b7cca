package run_test

import (
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// decisions has the verdict, the reason and the outcome of each entry, by pod.
type decisions map[string]string

// said returns the decisions of a report. Different decisions for one pod are joined.
func said(r *reap.Report) decisions {
	all := decisions{}
	for _, e := range r.Entries {
		name := e.Owner.Pod
		decision := strings.Join([]string{e.Decision, e.Reason, e.Outcome}, " ")
		if other := all[name]; other != "" && other != decision {
			decision = other + ", " + decision
		}
		all[name] = decision
	}
	return all
}

// wantSaid compares what a run said with what it should say.
func (f *fixture) wantSaid(r *reap.Report, want decisions) {
	f.Helper()
	if diff := cmp.Diff(want, said(r)); diff != "" {
		f.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// wantText fails the test unless the text contains want.
func (f *fixture) wantText(text, want string) {
	f.Helper()
	if !strings.Contains(text, want) {
		f.Errorf("it does not say %q:\n%s", want, text)
	}
}

// versions returns the version of every object except the lock.
func (f *fixture) versions() map[string]string {
	f.Helper()
	all, err := f.Versions(f.Context())
	f.must(err)
	delete(all, "leases.coordination.k8s.io/"+home+"/ip-reaper")
	return all
}

// wantUnwritten fails the test if anything except the lock was written since.
func (f *fixture) wantUnwritten(before map[string]string) {
	f.Helper()
	if diff := cmp.Diff(before, f.versions()); diff != "" {
		f.Errorf("versions (-before +after):\n%s", diff)
	}
}
