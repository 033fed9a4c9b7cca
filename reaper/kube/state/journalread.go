package state

import (
	"context"
	"fmt"

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

// List returns the runs that have a journal, latest first, by the API server's clock. The
// warnings name the ConfigMaps that could not be read.
func (j *Journals) List(ctx context.Context) (runs []journal.PastRun, warnings []string, err error) {
	parts, err := j.all(ctx)
	summaries := make([]journal.Summary, len(parts))
	for i, p := range parts {
		summaries[i] = p.Summary
	}
	runs, warnings = journal.PastRuns(summaries)
	return runs, warnings, err
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

// A storedPart is what is kept of a ConfigMap with a journal's label. Its Summary has an error
// unless the ConfigMap has the part that its name and labels name.
type storedPart struct {
	journal.Summary
	uid     types.UID
	version string // the resource version
	size    int    // of its data, in bytes
}

// all lists the parts of all journals.
func (j *Journals) all(ctx context.Context) ([]storedPart, error) {
	parts, err := listParts(ctx, j, labels.Set{JournalLabel: "true"}.AsSelector(), readStored)
	if err != nil {
		return nil, fmt.Errorf("list the journals: %w", err)
	}
	return parts, nil
}

// readStored returns what is kept of a ConfigMap.
func readStored(cm *corev1.ConfigMap) storedPart {
	part := namedPart(new(journal.Meter), cm)
	return storedPart{
		journal.Summarize(cm.Labels[RunLabel], cm.CreationTimestamp.Time, part), cm.UID, cm.ResourceVersion, len(cm.BinaryData[journalKey]),
	}
}

// listParts lists the ConfigMaps that match a selector, and reduces each.
func listParts[T any](ctx context.Context, j *Journals, of labels.Selector, reduce func(*corev1.ConfigMap) T) ([]T, error) {
	request := func() *rest.Request {
		return j.client.Get().Namespace(j.namespace).Resource("configmaps").Param("labelSelector", of.String())
	}
	all, err := kube.ReadPages(ctx, journalPage, request, kube.FormOf("v1", "ConfigMapList", reduce))
	return all, kube.Answered(err)
}

// namedPart reads the part in a ConfigMap. If a part of the run is in a ConfigMap with another
// name, that is damage: another client copied or forged it.
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
