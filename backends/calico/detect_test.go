package calico

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The requests for the objects that decide which API group is in use.
const (
	definitions  = "GET apiextensions.k8s.io/v1/customresourcedefinitions/"
	v1Blocks     = definitions + "ipamblocks.crd.projectcalico.org"
	v3Blocks     = definitions + "ipamblocks.projectcalico.org"
	migrations   = definitions + "datastoremigrations.migration.projectcalico.org"
	v1Info       = "GET crd.projectcalico.org/v1/clusterinformations/default"
	v3Info       = "GET projectcalico.org/v3/clusterinformations/default"
	theMigration = "GET migration.projectcalico.org/v1beta1/datastoremigrations"
)

// served answers with a definition whose version is served and stored.
func served(version string) http.HandlerFunc {
	return say(`{"spec":{"versions":[{"name":"v0","served":true,"storage":false},{"name":"` + version + `","served":true,"storage":true}]}}`)
}

var (
	ready     = say(`{"spec":{"datastoreReady":true}}`)
	locked    = say(`{"spec":{"datastoreReady":false}}`)
	forbidden = refuse(apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "y", errors.New("no such right")))
	broken    = refuse(apierrors.NewInternalError(errors.New("etcd is gone")))
	v1        = map[string]http.HandlerFunc{v1Blocks: served("v1"), v1Info: ready}
	both      = map[string]http.HandlerFunc{v1Blocks: served("v1"), v3Blocks: served("v3"), v1Info: ready, v3Info: ready}
)

// with returns the answers with others added or replaced.
func with(answers map[string]http.HandlerFunc, others ...any) map[string]http.HandlerFunc {
	all := make(map[string]http.HandlerFunc)
	maps.Copy(all, answers)
	for i := 0; i < len(others); i += 2 {
		all[others[i].(string)] = others[i+1].(http.HandlerFunc)
	}
	return all
}

func TestGroupInUse(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers map[string]http.HandlerFunc
		want    string // empty: an error
		says    string // part of the error
	}{
		{"the first only", v1, "crd.projectcalico.org/v1", ""},
		{"the second only", with(nil, v3Blocks, served("v3"), v3Info, ready), "projectcalico.org/v3", ""},
		{"both, the first locked", with(both, v1Info, locked), "projectcalico.org/v3", ""},
		{"both, the second never used", with(both, v3Info, absent("projectcalico.org/v3/clusterinformations/default")), "crd.projectcalico.org/v1", ""},
		{"both, the first ready without a word", with(both, v1Info, say(`{"spec":{}}`), v3Info, locked), "crd.projectcalico.org/v1", ""},

		{"both in use", both, "", "2 of the API groups"},
		{"both locked", with(both, v1Info, locked, v3Info, locked), "", "0 of the API groups"},
		{"both, and one cannot be read", with(both, v3Info, forbidden), "", "no such right"},
		{"both, and a proxy knows no such path", with(both, v3Info, html(http.StatusNotFound)), "", "could not find"},
		{"forbidden", with(nil, v1Blocks, forbidden), "", "no such right"},
		{"a proxy knows no such path", with(nil, v1Blocks, html(http.StatusNotFound)), "", "ipamblocks.crd.projectcalico.org"},
		{"a proxy knows no path for the second", with(v1, v3Blocks, html(http.StatusNotFound)), "", "ipamblocks.projectcalico.org"},
		{"something else does not exist", with(nil, v1Blocks, absent("apiextensions.k8s.io/v1/customresourcedefinitions/other")), "", "not found"},
		{"an answer that is no JSON", with(nil, v1Blocks, say(`<html>`)), "", "ipamblocks.crd.projectcalico.org"},
		{"no version that is stored is served", with(nil, v1Blocks,
			say(`{"spec":{"versions":[{"name":"v1","served":false,"storage":true},{"name":"v2","served":true}]}}`)), "", "not served"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, b := newAPI(t, tt.answers)
			store, err := b.datastore(t.Context())
			if tt.want != "" {
				if err != nil || store.(kubernetes).group != tt.want {
					t.Errorf("found %+v, %v, want %s", store, err, tt.want)
				}
				return
			}
			if err == nil || store != nil || errors.Is(err, ipam.ErrNotInstalled) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("found %+v, %v, want %q in an error that is not ErrNotInstalled", store, err, tt.says)
			}
		})
	}
}

func TestGroupWhileDataMoves(t *testing.T) {
	for phase, settled := range map[string]bool{
		"": true, "Pending": true, "Converged": true, "Complete": true,
		"Migrating": false, "WaitingForConflictResolution": false, "Aborting": false, "complete": false,
	} {
		item := say(`{"metadata":{"resourceVersion":"9"},"items":[{"status":{"phase":"Complete"}},{"status":{"phase":"` + phase + `"}}]}`)
		_, b := newAPI(t, with(both, v1Info, locked, migrations, served("v1beta1"), theMigration, item))
		if store, err := b.datastore(t.Context()); (err == nil) != settled || err != nil && (errors.Is(err, ipam.ErrNotInstalled) || !strings.Contains(err.Error(), phase)) {
			t.Errorf("in phase %q found %+v, %v, want success: %v", phase, store, err, settled)
		}
	}
	for name, tt := range map[string]struct {
		answers map[string]http.HandlerFunc
		works   bool
	}{
		"no migrations":                      {with(v1, migrations, served("v1beta1"), theMigration, items()), true},
		"one that was just made":             {with(v1, migrations, served("v1beta1"), theMigration, items(`{}`)), true},
		"migrations forbidden":               {with(v1, migrations, served("v1beta1"), theMigration, forbidden), false},
		"the definition is forbidden":        {with(v1, migrations, forbidden), false},
		"migrations behind a proxy":          {with(v1, migrations, served("v1beta1"), theMigration, html(http.StatusNotFound)), false},
		"a migration that cannot be decoded": {with(v1, migrations, served("v1beta1"), theMigration, items(`{"status":7}`)), false},
		"one that moves, with one group":     {with(v1, migrations, served("v1beta1"), theMigration, items(`{"status":{"phase":"Migrating"}}`)), false},
	} {
		_, b := newAPI(t, tt.answers)
		if store, err := b.datastore(t.Context()); (err == nil) != tt.works || errors.Is(err, ipam.ErrNotInstalled) {
			t.Errorf("%s: found %+v, %v, want success: %v", name, store, err, tt.works)
		}
	}
}

// Only the API server itself can say that Calico is not installed.
func TestNotInstalled(t *testing.T) {
	_, b := newAPI(t, nil)
	answers := 0
	for _, err := range b.List(t.Context()) {
		answers++
		if !errors.Is(err, ipam.ErrNotInstalled) {
			t.Errorf("List: %v, want ErrNotInstalled", err)
		}
	}
	if answers != 1 {
		t.Errorf("List yields %d times, want once", answers)
	}
}

// No read of a listing waits for another one without a reason: a cluster may be far away.
func TestReadsAtTheSameTime(t *testing.T) {
	definition, state := meeting(3), meeting(2)
	meet := func(at func() error, answer http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if err := at(); err != nil {
				t.Errorf("%s: %v", r.URL.Path, err)
			}
			answer(w, r)
		}
	}
	none := items()
	_, b := newAPI(t, map[string]http.HandlerFunc{
		v1Blocks:   meet(definition, served("v1")),
		v3Blocks:   meet(definition, absent("apiextensions.k8s.io/v1/customresourcedefinitions/ipamblocks.projectcalico.org")),
		migrations: meet(definition, absent("apiextensions.k8s.io/v1/customresourcedefinitions/datastoremigrations.migration.projectcalico.org")),
		v1Info:     meet(state, ready), "GET crd.projectcalico.org/v1/ipamhandles": meet(state, none),
		"GET crd.projectcalico.org/v1/ipamblocks": none, "GET crd.projectcalico.org/v1/ipreservations": none,
	})
	for _, err := range b.List(t.Context()) {
		if err != nil {
			t.Error(err)
		}
	}
}

// meeting returns a function that returns once it was called so many times. It returns an error if
// it waits for long.
func meeting(guests int) func() error {
	var mu sync.Mutex
	complete := make(chan struct{})
	return func() error {
		mu.Lock()
		if guests--; guests == 0 {
			close(complete)
		}
		mu.Unlock()
		select {
		case <-complete:
			return nil
		case <-time.After(5 * time.Second):
			return errors.New("it was alone")
		}
	}
}

// The backend keeps the datastore that it found. After a failure it looks again.
func TestDatastoreIsFoundOnce(t *testing.T) {
	a, b := newAPI(t, with(v1, v1Blocks, first(forbidden, served("v1"))))
	if store, err := b.datastore(t.Context()); err == nil {
		t.Errorf("found %+v, want an error", store)
	}
	if got := outcomes(b.Release(t.Context(), []ipam.Warrant{{}})); got != "no-warrant" {
		t.Errorf("Release = %s, want no-warrant", got)
	}
	n := a.requests()
	if _, err := b.datastore(t.Context()); err != nil || a.requests() != n {
		t.Errorf("%v, after %d requests, want none", err, a.requests()-n)
	}
}
