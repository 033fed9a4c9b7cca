package secondring_test

import (
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// verdicts are the verdict, the reason and the outcome of each entry, by its pod.
type decisions map[string]string

// said are the verdicts of a report. An object that reserves addresses stands under
// its own name. Entries of one pod that are judged differently stand beside each other.
func said(r *reap.Report) decisions {
	all := decisions{}
	for _, e := range r.Entries {
		name := e.Owner.Pod
		if e.Backend == "reservedIPs" {
			name = "object " + e.Key[strings.LastIndexByte(e.Key, '/')+1:]
		}
		decision := strings.Join([]string{e.Decision, e.Reason, e.Outcome}, " ")
		if other := all[name]; other != "" && other != decision {
			decision = other + ", " + decision
		}
		all[name] = decision
	}
	return all
}

// wantSaid compares what a run said with what is due.
func (s *scene) wantSaid(r *reap.Report, want decisions) {
	s.Helper()
	if diff := cmp.Diff(want, said(r)); diff != "" {
		s.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// wantText fails the test unless the text says it.
func (s *scene) wantText(text, want string) {
	s.Helper()
	if !strings.Contains(text, want) {
		s.Errorf("it does not say %q:\n%s", want, text)
	}
}

// versions are those of every object but the lock.
func (s *scene) versions() map[string]string {
	s.Helper()
	all, err := s.Versions(s.Context())
	s.must(err)
	delete(all, "leases.coordination.k8s.io/"+home+"/ip-reaper")
	return all
}

// wantUnwritten fails the test if anything but the lock was written since.
func (s *scene) wantUnwritten(before map[string]string) {
	s.Helper()
	if diff := cmp.Diff(before, s.versions()); diff != "" {
		s.Errorf("versions (-before +after):\n%s", diff)
	}
}
