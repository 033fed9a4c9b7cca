package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// What an API server accepts, and where events are found, is tested on a real one in
// integration/run/kube. These tests only cover what events say.

// reportOf is the report of a run that released 12 addresses, changed by the test.
func reportOf(change func(*report.Report)) report.Report {
	r := report.Report{
		Run:      report.RunInfo{ID: "run-1"},
		Summary:  report.Counts{Entries: 340, InUse: 300, Suspected: 3, Planned: 12, Released: 12},
		Backends: []report.BackendReport{{Name: "whereabouts", Status: ipam.StatusOK}, {Name: "calico", Status: ipam.StatusSkipped, Message: "not there"}},
	}
	if change != nil {
		change(&r)
	}
	return r
}

func TestSummaryTellsWhatTheRunDidAndWarnsOfWhatWentWrong(t *testing.T) {
	for _, tt := range []struct {
		name   string
		report report.Report
		untold int
		note   string
		kind   string
	}{
		{"all is well", reportOf(nil), 0,
			"released 0 addresses (12 of 340 allocations); 3 suspected, 0 failed (run-1)", corev1.EventTypeNormal},
		{"more than the limit", reportOf(nil), 7,
			"released 0 addresses (12 of 340 allocations); 3 suspected, 0 failed (run-1); 7 more releases have no event of their own", corev1.EventTypeNormal},
		{"the report warns", reportOf(func(r *report.Report) { r.Warnings = []string{"no ledger", "no journal"} }), 7,
			"released 0 addresses (12 of 340 allocations); 3 suspected, 0 failed (run-1); 7 more releases have no event of their own; no ledger; no journal",
			corev1.EventTypeWarning},
	} {
		t.Run(tt.name, func(t *testing.T) {
			note, kind := summary(tt.report, tt.untold)
			if note != tt.note || kind != tt.kind {
				t.Errorf("summary = %s %q, want %s %q", kind, note, tt.kind, tt.note)
			}
		})
	}
}

func TestReleaseIsToldWithAddressOwnerAndReason(t *testing.T) {
	object := ipam.Object{APIVersion: "whereabouts.cni.cncf.io/v1alpha1", Kind: "IPPool", Namespace: "kube-system", Name: "10.0.0.0-24", UID: "u1"}
	pod := ipam.EntryOwner{Namespace: "default", Pod: "web-0", Sandbox: "c1"}
	for _, tt := range []struct {
		name  string
		entry report.Entry
		note  string
		kind  string
	}{
		{"of a pod", report.Entry{Key: "5", IP: "10.0.0.5", Owner: pod, Reason: judge.PodAbsent},
			"10.0.0.5 of default/web-0 (PodAbsent) released by run run-1", corev1.EventTypeNormal},
		{"of a sandbox", report.Entry{Key: "5", IP: "10.0.0.5", Owner: ipam.EntryOwner{Sandbox: "c1"}, Reason: judge.SandboxAbsent},
			"10.0.0.5 of sandbox c1 (SandboxAbsent) released by run run-1", corev1.EventTypeNormal},
		{"with something left of it", report.Entry{IP: "10.0.0.5", Owner: pod, Reason: judge.PodAbsent, Error: "its handle is there"},
			"10.0.0.5 of default/web-0 (PodAbsent) released by run run-1; its handle is there", corev1.EventTypeWarning},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := releaseEvent("run-1", tt.entry, object)
			if got.Note != tt.note || got.Type != tt.kind {
				t.Errorf("event = %s %q, want %s %q", got.Type, got.Note, tt.kind, tt.note)
			}
			want := corev1.ObjectReference{APIVersion: object.APIVersion, Kind: "IPPool", Namespace: "kube-system", Name: "10.0.0.0-24", UID: "u1"}
			if diff := cmp.Diff(want, got.Regarding); diff != "" {
				t.Errorf("regarding (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSummaryIsAboutTheJobThatMadeThePod(t *testing.T) {
	itself := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "reap", Name: "p", UID: "u1"}
	owner := func(kind string, controller *bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "u3"},
			{APIVersion: "batch/v1", Kind: kind, Name: "owner", UID: "u2", Controller: controller},
		}
	}
	for _, tt := range []struct {
		name   string
		owners []metav1.OwnerReference
		want   corev1.ObjectReference
	}{
		{"a Job", owner("Job", new(true)), corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "reap", Name: "owner", UID: "u2"}},
		{"another controller", owner("ReplicaSet", new(true)), itself},
		{"no controller", nil, itself},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "reap", Name: "p", UID: "u1", OwnerReferences: tt.owners}}
			if diff := cmp.Diff(tt.want, makerOf(pod)); diff != "" {
				t.Errorf("makerOf (-want +got):\n%s", diff)
			}
		})
	}
}
