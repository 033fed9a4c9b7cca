package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Read returns the journal of a run, with the errors of journal.Find.
func (j *Journals) Read(ctx context.Context, runID string) (journal.Journal, error) {
	return journal.Find(ctx, j, runID)
}

// Place implements journal.Source.
func (j *Journals) Place() string { return "namespace " + j.namespace }

// List returns the runs that have a journal, the latest first, by the API server's clock.
// The warnings name the ConfigMaps that could not be read.
func (j *Journals) List(ctx context.Context) (runs []journal.PastRun, warnings []string, err error) {
	parts, err := listParts(ctx, j, labels.Set{JournalLabel: "true"}.AsSelector(), func(cm *corev1.ConfigMap) journal.Summary {
		return journal.Summarize(cm.Labels[RunLabel], cm.CreationTimestamp.Time, namedPart(new(journal.Meter), cm))
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list the journals: %w", err)
	}
	runs, warnings = journal.PastRuns(parts)
	return runs, warnings, nil
}

// Parts implements journal.Source.
func (j *Journals) Parts(ctx context.Context, runID string) ([]journal.StoredPart, error) {
	if !journal.IsRunID(runID) {
		return nil, nil
	}
	var m journal.Meter
	of := labels.Set{JournalLabel: "true", RunLabel: runID}.AsSelector()
	return listParts(ctx, j, of, func(cm *corev1.ConfigMap) journal.StoredPart { return namedPart(&m, cm) })
}

// A storedRun is a run with a journal.
type storedRun struct {
	id    string
	began time.Time // when its first part was created, by the API server's clock
	parts []storedPart
}

// A storedPart is a ConfigMap without its data.
type storedPart struct {
	name    string
	uid     types.UID
	version string // the resource version
	run     string
	created time.Time
	size    int   // of its data, in bytes
	foreign error // why it is no part of a journal; nil for a part
}

// runs lists the runs with a journal, the latest first. It also returns the names of
// ConfigMaps that have the labels of a journal and are no part of one.
func (j *Journals) runs(ctx context.Context) (runs []storedRun, foreign []string, err error) {
	all, err := listParts(ctx, j, labels.Set{JournalLabel: "true"}.AsSelector(), func(cm *corev1.ConfigMap) storedPart {
		return storedPart{cm.Name, cm.UID, cm.ResourceVersion, cm.Labels[RunLabel], cm.CreationTimestamp.Time, len(cm.BinaryData[journalKey]), checkOwn(cm)}
	})
	if err != nil {
		return nil, nil, err
	}
	byID := make(map[string]storedRun)
	for _, p := range all {
		if p.foreign != nil {
			foreign = append(foreign, fmt.Sprintf("%s (%v)", p.name, p.foreign))
			continue
		}
		r, ok := byID[p.run]
		if !ok || p.created.Before(r.began) {
			r.began = p.created
		}
		r.id, r.parts = p.run, append(r.parts, p)
		byID[p.run] = r
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b storedRun) int {
		return cmp.Or(b.began.Compare(a.began), cmp.Compare(b.id, a.id)) // an ID begins with its time
	}), foreign, nil
}

// checkOwn returns an error unless a ConfigMap is as Write makes it: immutable, and with
// the part that its name and its labels name.
func checkOwn(cm *corev1.ConfigMap) error {
	s := namedPart(new(journal.Meter), cm)
	switch {
	case s.Err != nil:
		return s.Err
	case s.Part.Run.ID != cm.Labels[RunLabel]:
		return fmt.Errorf("it has a part of run %q", s.Part.Run.ID)
	case !value(cm.Immutable):
		return errors.New("it is not immutable")
	}
	return nil
}

// listParts lists the ConfigMaps of a selector, and reduces each of them.
func listParts[T any](ctx context.Context, j *Journals, of labels.Selector, reduce func(*corev1.ConfigMap) T) ([]T, error) {
	request := func() *rest.Request {
		return j.client.Get().Namespace(j.namespace).Resource("configmaps").Param("labelSelector", of.String())
	}
	all, err := kube.ReadPages(ctx, journalPage, request, kube.FormOf("v1", "ConfigMapList", reduce))
	return all, kube.Answered(err)
}

// namedPart reads the part in a ConfigMap. If a part of the run is in a ConfigMap of another
// name, it is damage: another client copied or forged it.
func namedPart(m *journal.Meter, cm *corev1.ConfigMap) journal.StoredPart {
	s := readPart(m, cm)
	if s.Err != nil || s.Part.Run.ID != cm.Labels[RunLabel] {
		return s
	}
	if name := partName(s.Part); name != cm.Name {
		s.Err = fmt.Errorf("%w: the part belongs into %s", journal.ErrDamaged, name)
	}
	return s
}

// readPart reads the part in a ConfigMap.
func readPart(m *journal.Meter, cm *corev1.ConfigMap) journal.StoredPart {
	data, err := unzip(cm.BinaryData[journalKey], journal.MaxPart+1)
	if err != nil {
		return journal.StoredPart{Name: cm.Name, Err: fmt.Errorf("%w: %s: %w", journal.ErrDamaged, journalKey, err)}
	}
	return m.Decode(cm.Name, data)
}
