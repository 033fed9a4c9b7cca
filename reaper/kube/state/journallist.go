package state

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// A poolKey names a pool of a backend.
type poolKey struct{ backend, pool string }

// A countedPart is what is kept of a part of a journal to count its allocations: their
// hashes, because two parts may have the same one.
type countedPart struct {
	name    string
	run     reaper.JournalRun
	created time.Time
	hashes  map[poolKey][]uint64
	err     error // why the part could not be read
}

// List returns the runs that have a journal, the latest first, by the API server's clock.
// The warnings name the ConfigMaps that could not be read.
func (j *Journals) List(ctx context.Context) (runs []reaper.PastRun, warnings []string, err error) {
	seed := maphash.MakeSeed()
	parts, err := listParts(ctx, j, labels.Set{JournalLabel: "true"}.AsSelector(), func(cm *corev1.ConfigMap) countedPart {
		return countPart(seed, cm)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list the journals: %w", err)
	}
	slices.SortStableFunc(parts, func(a, b countedPart) int { return a.created.Compare(b.created) })
	merged := make(map[string]*countedPart)
	var order []string
	var unread []string
	for i := range parts {
		p := &parts[i]
		if p.err != nil {
			unread = append(unread, fmt.Sprintf("%s (%v)", p.name, p.err))
			continue
		}
		first := merged[p.run.ID]
		if first == nil {
			merged[p.run.ID] = p
			order = append(order, p.run.ID)
			continue
		}
		for key, hashes := range p.hashes {
			first.hashes[key] = append(first.hashes[key], hashes...)
		}
	}
	for _, id := range slices.Backward(order) {
		runs = append(runs, merged[id].past())
	}
	return runs, unreadParts(unread), nil
}

// countPart reads the part in a ConfigMap.
func countPart(seed maphash.Seed, cm *corev1.ConfigMap) countedPart {
	s := namedPart(new(journal.Meter), cm)
	p := countedPart{name: cm.Name, run: s.Part.Run, created: cm.CreationTimestamp.Time, hashes: make(map[poolKey][]uint64), err: s.Err}
	if p.err == nil && p.run.ID != cm.Labels[RunLabel] {
		p.err = fmt.Errorf("it has a part of run %q", p.run.ID)
	}
	for _, r := range s.Part.Records {
		key := poolKey{r.Backend, r.Pool}
		p.hashes[key] = append(p.hashes[key], maphash.String(seed, r.Key))
	}
	return p
}

// past returns the run of the parts that were merged.
func (p *countedPart) past() reaper.PastRun {
	pools := []reaper.PoolRecord{}
	for key, hashes := range p.hashes {
		slices.Sort(hashes)
		pools = append(pools, reaper.PoolRecord{Backend: key.backend, Pool: key.pool, Recorded: len(slices.Compact(hashes))})
	}
	return reaper.NewPastRun(p.run, pools)
}

// unreadParts returns a warning that names ConfigMaps, if there are any.
func unreadParts(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	more := ""
	if n := len(names) - maxLeftNamed; n > 0 {
		names, more = names[:maxLeftNamed], fmt.Sprintf(" and %d more", n)
	}
	return []string{"parts of journals could not be read, and are not counted: " + strings.Join(names, ", ") + more}
}
