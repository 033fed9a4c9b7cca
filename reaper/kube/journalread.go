package kube

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// maxRunsNamed is the largest number of runs that noRun names.
const maxRunsNamed = 10

// Read returns the journal of a run, with the errors of journal.Assemble. If no part of
// it is stored, the error wraps reaper.ErrNoJournal and names the runs with a journal.
func (j *Journals) Read(ctx context.Context, runID string) (reaper.Journal, error) {
	selector, err := labels.ValidatedSelectorFromSet(labels.Set{JournalLabel: "true", RunLabel: runID})
	if err != nil {
		return reaper.Journal{}, fmt.Errorf("%w: %q is not the ID of a run: %w", reaper.ErrNoJournal, runID, err)
	}
	var m journal.Meter
	stored, err := listParts(ctx, j, selector, func(cm *corev1.ConfigMap) journal.StoredPart { return readPart(&m, cm) })
	if err != nil {
		return reaper.Journal{}, fmt.Errorf("read the journal: %w", err)
	}
	if len(stored) == 0 {
		return reaper.Journal{}, j.noRun(ctx, runID)
	}
	return journal.Assemble(runID, stored)
}

// noRun returns the error for a run without a journal.
func (j *Journals) noRun(ctx context.Context, runID string) error {
	runs, err := j.runs(ctx)
	if err != nil {
		return fmt.Errorf("list the journals: %w", err)
	}
	there := "no run has a journal there"
	if len(runs) > 0 {
		var names []string
		for _, r := range runs[:min(len(runs), maxRunsNamed)] {
			names = append(names, r.id)
		}
		there = fmt.Sprintf("runs with a journal there: %d, the latest are %s", len(runs), strings.Join(names, ", "))
	}
	return fmt.Errorf("%w of run %q in namespace %s: %s", reaper.ErrNoJournal, runID, j.namespace, there)
}

// Prune implements reaper.Journals. It orders the runs by the API server's clock, and
// stops at the first part that it cannot delete.
func (j *Journals) Prune(ctx context.Context) error {
	if j.run == "" {
		return nil
	}
	runs, err := j.runs(ctx)
	if err != nil {
		return fmt.Errorf("list the journals: %w", err)
	}
	own := slices.IndexFunc(runs, func(r storedRun) bool { return r.id == j.run })
	if own < 0 {
		return fmt.Errorf("%w of the current run %s: another client deleted it", reaper.ErrNoJournal, j.run)
	}
	for i := len(runs) - 1; i >= max(j.keep, own+1); i-- {
		for _, p := range runs[i].parts {
			if err := j.remove(ctx, p.name, p.uid); err != nil {
				return fmt.Errorf("remove the journal of run %s: %s: %w", runs[i].id, p.name, err)
			}
		}
	}
	return nil
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
	run     string
	created time.Time
}

// runs lists the runs with a journal, the latest first. It leaves out ConfigMaps that
// have the labels of a journal but not the name.
func (j *Journals) runs(ctx context.Context) ([]storedRun, error) {
	all, err := listParts(ctx, j, labels.Set{JournalLabel: "true"}.AsSelector(), func(cm *corev1.ConfigMap) storedPart {
		return storedPart{cm.Name, cm.UID, cm.Labels[RunLabel], cm.CreationTimestamp.Time}
	})
	if err != nil {
		return nil, err
	}
	byID := make(map[string]storedRun)
	for _, p := range all {
		if p.run == "" || !strings.HasPrefix(p.name, namePrefix(p.run)) {
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
	}), nil
}

// listParts lists the ConfigMaps of a selector, and reduces each of them.
func listParts[T any](ctx context.Context, j *Journals, of labels.Selector, reduce func(*corev1.ConfigMap) T) ([]T, error) {
	request := func() *rest.Request {
		return j.client.Get().Namespace(j.namespace).Resource("configmaps").Param("labelSelector", of.String())
	}
	return list(ctx, journalPage, request, func(l *corev1.ConfigMapList) []corev1.ConfigMap { return l.Items }, reduce)
}

// readPart reads the part in a ConfigMap.
func readPart(m *journal.Meter, cm *corev1.ConfigMap) journal.StoredPart {
	data, err := unzip(cm.BinaryData[journalKey], journal.MaxPart+1)
	if err != nil {
		return journal.StoredPart{Name: cm.Name, Err: fmt.Errorf("%w: %s: %w", reaper.ErrJournalDamaged, journalKey, err)}
	}
	return m.Decode(cm.Name, data)
}
