// Package rows_test plays, against a real API server, the scenarios that users
// of Whereabouts reported and that its source code calls for. They are numbered
// as in the survey of them that the design rests on. The real plugin makes
// whatever state it can make; what only its old versions, other programs or
// accidents leave behind is written down as they left it.
//
// Rows that are about parts of upstream that do not run here come down to the
// state that those leave: a network attachment that was deleted (40) and a
// DaemonSet that was away (41) both leave the entry of a pod that is gone (1).
package rows_test

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// TestMain has the tests run in a cluster with Multus's network attachments.
func TestMain(m *testing.M) {
	os.Exit(cluster.Run(m, func(context.Context) (cluster.Options, error) {
		crd, err := cluster.NetworkAttachmentCRD()
		return cluster.Options{CRDs: []string{crd}}, err
	}))
}

// A scenario is what there is when the reaper runs, and what it has to say and
// to do about it.
type scenario struct {
	name   string
	policy string // added to one that releases at once
	set    func(s *scene)
	exit   int // of the binary

	// want has a line for each allocation, in any order:
	//
	//	POOL/KEY     IP POD VERDICT REASON OUTCOME
	//	RESERVATION  IP POD VERDICT REASON OUTCOME
	//
	// Afterwards the store has to hold what it held before, byte for byte, but
	// for the lines that end with released.
	want []string

	then func(s *scene) // looks at what else has to be so; may be nil
}

// play runs each scenario in a cluster of its own making.
func play(t *testing.T, scenarios []scenario) {
	t.Helper()
	for _, tt := range scenarios {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			tt.set(s)
			before := s.store()
			got := s.reap(tt.policy)
			s.wantLines(tt.want, got.lines)
			if got.exit != tt.exit {
				t.Errorf("exit code %d, want %d\n%s", got.exit, tt.exit, got.stderr)
			}
			s.wantStore(before.without(got.lines))
			if tt.then != nil {
				tt.then(s)
			}
		})
	}
}

// wantLines compares the lines of a report with those that are due.
func (s *scene) wantLines(want, got []string) {
	s.Helper()
	want = slices.Sorted(slices.Values(want))
	if len(want) == 0 && len(got) == 0 {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("report (-want +got):\n%s", diff)
	}
}

// both returns the lines of an address that has an entry in a pool and a
// allocation, for the two share their fate more often than not.
func both(entry, allocation, rest string) []string {
	return []string{entry + " " + rest, allocation + " " + rest}
}
