package storm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

// residents is how many of a worker's pods stay while others come.
const residents = 3

// A worker makes pods come and go, one after the other. Its decisions depend only on the seed; how
// they interleave with the others' does not.
type worker struct {
	*storm
	number int
	random *rand.Rand
	pods   []*sandbox // the present ones, oldest first
	names  int

	back *sandbox // whose name the next pod gets
	late *sandbox // whose DEL comes during the next ADD
}

// newWorker returns the worker with a number.
func newWorker(s *storm, number int) *worker {
	return &worker{storm: s, number: number, random: rand.New(rand.NewPCG(seed, uint64(number)))}
}

// round starts one pod, and ends one if there are enough, or if the new one got no address.
func (w *worker) round(ctx context.Context) error {
	s := w.next()
	_, err := w.cluster.CreatePod(ctx, namespace, s.pod, w.ipam.scheduled(s)...)
	if err != nil {
		return err
	}
	if err := w.arrive(ctx, s); err != nil {
		return err
	}
	if arrived := s.ip.IsValid(); len(w.pods) == 0 || arrived && len(w.pods) <= residents {
		return nil
	}
	i := w.random.IntN(len(w.pods))
	leaver := w.pods[i]
	w.pods = append(w.pods[:i], w.pods[i+1:]...)
	return w.leave(ctx, leaver)
}

// next returns the sandbox of the next pod.
func (w *worker) next() *sandbox {
	s := &sandbox{id: calico.NewContainerID(), place: w.ipam.place(w.random, w.number)}
	if w.back != nil {
		s.pod, w.back = w.back.pod, nil
		w.count(func(t *Tally) { t.Comebacks++ })
		return s
	}
	w.names++
	s.pod = fmt.Sprintf("pod-%d-%d", w.number, w.names)
	return s
}

// arrive runs the ADD and makes the pod run, while the DEL of an old sandbox may
// come late. A pod that got no address is deleted.
func (w *worker) arrive(ctx context.Context, s *sandbox) error {
	late := make(chan error, 1)
	go func(old *sandbox) { late <- w.bury(ctx, old) }(w.late)
	w.late = nil
	s.began = time.Now()
	err := w.ipam.add(ctx, s)
	s.answered = time.Now()
	var refused *plugin.Error
	switch {
	case err == nil:
		w.roster.arrived(s)
		w.pods = append(w.pods, s)
		w.count(func(t *Tally) { t.Adds++ })
		err = w.cluster.UpdatePod(ctx, namespace, s.pod, w.ipam.running(s)...)
	case errors.As(err, &refused):
		w.count(func(t *Tally) {
			if w.ipam.full(err) {
				t.Full++
			} else {
				t.Refused = append(t.Refused, "ADD: "+refused.Msg)
			}
		})
		err = w.cluster.DeletePod(ctx, namespace, s.pod)
	}
	return errors.Join(err, <-late)
}

// bury runs the DEL of a sandbox whose pod is gone, if there is one.
func (w *worker) bury(ctx context.Context, s *sandbox) error {
	if s == nil {
		return nil
	}
	return w.del(ctx, s)
}

// del runs a DEL. A failed one is not retried.
func (w *worker) del(ctx context.Context, s *sandbox) error {
	err := w.ipam.del(ctx, s)
	if refused := (*plugin.Error)(nil); errors.As(err, &refused) {
		w.count(func(t *Tally) { t.Refused = append(t.Refused, "DEL: "+refused.Msg) })
		return nil
	}
	return err
}

// leave ends a pod, with a DEL or by a crash, after which the DEL comes late or never, and decides
// whether the pod comes back.
func (w *worker) leave(ctx context.Context, s *sandbox) error {
	crash, late, back := w.random.IntN(2) == 0, w.random.IntN(3) == 0, w.random.IntN(2) == 0
	w.roster.leaves(s)
	if crash {
		w.count(func(t *Tally) { t.Crashes++ })
	} else {
		w.count(func(t *Tally) { t.Dels++ })
		if err := w.del(ctx, s); err != nil {
			return err
		}
	}
	if err := w.cluster.DeletePod(ctx, namespace, s.pod); err != nil {
		return err
	}
	if back {
		w.back = s
	}
	switch {
	case !crash || !late:
		return nil
	case back:
		w.late = s
		return nil
	}
	return w.bury(ctx, s)
}
