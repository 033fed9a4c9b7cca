package state

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

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
