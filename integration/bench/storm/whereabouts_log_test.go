package main

import (
	"context"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// The plugin's log tells an ADD that forgets to reserve from one that does not,
// and a DEL that deletes a reservation from one that does not. (How an ADD comes
// to forget is in the tests of safety.)
func TestThePluginsLogTellsWhatItDid(t *testing.T) {
	c := cluster.StartT(t)
	c.ResetT(t)
	w := newWhereabouts(c, small)
	must(t, w.prepare(t.Context()))
	p, err := proxy.Start(c.Config)
	must(t, err)
	t.Cleanup(p.Stop)
	held := newWhereabouts(c, small) // the plugin of one node, whose writes can be held up
	through, err := c.KubeconfigFor(p.Config(c.Config))
	must(t, err)
	must(t, held.prepareFrom(t.Context(), through))

	add := func(w *whereabouts, pod string) *sandbox {
		s := &sandbox{pod: pod, id: calico.NewContainerID()}
		must(t, w.add(t.Context(), s))
		return s
	}
	first, old := add(w, "first"), add(w, "web-0")
	must(t, w.del(t.Context(), first)) // a lower address than web-0 has
	p.Before(proxy.Nth(1, proxy.On("patch ippools")), func(ctx context.Context, _ proxy.Request) proxy.Action {
		if err := w.del(ctx, old); err != nil {
			t.Error(err)
		}
		return proxy.Pass()
	})
	back := add(held, "web-0")
	if !back.unreserved || first.unreserved || old.unreserved {
		t.Errorf("without a reservation: %v, %v, %v, want the last", first.unreserved, old.unreserved, back.unreserved)
	}
	var deleted []string
	for _, u := range w.unmakings {
		deleted = append(deleted, u.reservation+" of "+u.by.pod)
	}
	if len(deleted) != 2 || deleted[0] != first.ip.String()+" of first" || deleted[1] != old.ip.String()+" of web-0" {
		t.Errorf("reservations deleted: %v", deleted)
	}
	must(t, w.del(t.Context(), old)) // once more: nothing is there
	if len(w.unmakings) != 2 {
		t.Errorf("a DEL without an entry deleted %+v", w.unmakings[2])
	}
}
