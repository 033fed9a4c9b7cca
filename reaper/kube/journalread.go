package kube

import (
	"cmp"
	"context"
	"errors"
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

// Errors name at most so many runs with a journal, and so many ConfigMaps without one.
const (
	maxRunsNamed = 10
	maxLeftNamed = 10
)

// Read returns the journal of a run, with the errors of journal.Assemble. If no part of
// it is stored, the error wraps reaper.ErrNoJournal and names the runs with a journal.
func (j *Journals) Read(ctx context.Context, runID string) (reaper.Journal, error) {
	selector, err := labels.ValidatedSelectorFromSet(labels.Set{JournalLabel: "true", RunLabel: runID})
	if err != nil {
		return reaper.Journal{}, fmt.Errorf("%w: %q is not the ID of a run: %w", reaper.ErrNoJournal, runID, err)
	}
	var m journal.Meter
	stored, err := listParts(ctx, j, selector, func(cm *corev1.ConfigMap) journal.StoredPart { return namedPart(&m, cm) })
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
	runs, _, err := j.runs(ctx)
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
// stops at the first part that the API server does not let it delete.
//
// It deletes only ConfigMaps that are parts of journals by their labels, names and data,
// and only as they were listed. It leaves all others, and its error names them.
func (j *Journals) Prune(ctx context.Context) error {
	if j.run == "" {
		return nil
	}
	runs, left, err := j.runs(ctx)
	if err != nil {
		return fmt.Errorf("list the journals: %w", err)
	}
	own := slices.IndexFunc(runs, func(r storedRun) bool { return r.id == j.run })
	if own < 0 {
		return fmt.Errorf("%w of the current run %s: another client deleted it", reaper.ErrNoJournal, j.run)
	}
	for i := len(runs) - 1; i >= max(j.keep, own+1); i-- {
		for _, p := range runs[i].parts {
			err := j.remove(ctx, p.name, p.uid, p.version)
			switch {
			case errors.Is(err, errReplaced):
				left = append(left, fmt.Sprintf("%s (%v)", p.name, err))
			case err != nil:
				return fmt.Errorf("remove the journal of run %s: %s: %w", runs[i].id, p.name, err)
			}
		}
	}
	return leftAlone(left)
}

// leftAlone returns the error that names ConfigMaps, or nil if there are none.
func leftAlone(names []string) error {
	if len(names) == 0 {
		return nil
	}
	more := ""
	if n := len(names) - maxLeftNamed; n > 0 {
		names, more = names[:maxLeftNamed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("ConfigMaps with the label %s that ip-reaper did not write were left (delete them, or remove the label): %s%s",
		JournalLabel, strings.Join(names, ", "), more)
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
	foreign error // why it is no part of a journal; nil for a part
}

// runs lists the runs with a journal, the latest first. It also returns the names of
// ConfigMaps that have the labels of a journal and are no part of one.
func (j *Journals) runs(ctx context.Context) (runs []storedRun, foreign []string, err error) {
	all, err := listParts(ctx, j, labels.Set{JournalLabel: "true"}.AsSelector(), func(cm *corev1.ConfigMap) storedPart {
		return storedPart{cm.Name, cm.UID, cm.ResourceVersion, cm.Labels[RunLabel], cm.CreationTimestamp.Time, checkOwn(cm)}
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
	return list(ctx, journalPage, request, func(l *corev1.ConfigMapList) []corev1.ConfigMap { return l.Items }, reduce)
}

// namedPart reads the part in a ConfigMap. If a part of the run is in a ConfigMap of another
// name, it is damage: another client copied or forged it.
func namedPart(m *journal.Meter, cm *corev1.ConfigMap) journal.StoredPart {
	s := readPart(m, cm)
	if s.Err != nil || s.Part.Run.ID != cm.Labels[RunLabel] {
		return s
	}
	if name := partName(s.Part.Run.ID, s.Part.Write, s.Part.Part); name != cm.Name {
		s.Err = fmt.Errorf("%w: the part belongs into %s", reaper.ErrJournalDamaged, name)
	}
	return s
}

// readPart reads the part in a ConfigMap.
func readPart(m *journal.Meter, cm *corev1.ConfigMap) journal.StoredPart {
	data, err := unzip(cm.BinaryData[journalKey], journal.MaxPart+1)
	if err != nil {
		return journal.StoredPart{Name: cm.Name, Err: fmt.Errorf("%w: %s: %w", reaper.ErrJournalDamaged, journalKey, err)}
	}
	return m.Decode(cm.Name, data)
}
