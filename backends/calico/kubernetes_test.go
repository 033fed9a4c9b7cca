package calico

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

const (
	blockAt  = "crd.projectcalico.org/v1/ipamblocks/10-0-0-0-30"
	handleAt = "crd.projectcalico.org/v1/ipamhandles/net.a"
)

// overKubernetes returns the datastore over a test server.
func overKubernetes(t *testing.T, answers map[string]http.HandlerFunc) (*api, datastore) {
	t.Helper()
	a, b := newAPI(t, with(v1, "GET x", ready))
	store, err := b.datastore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers, a.n = answers, 0
	return a, store
}

func TestAnswersOfKubernetes(t *testing.T) {
	modified := func(resource, name string) http.HandlerFunc {
		return refuse(apierrors.NewConflict(schema.GroupResource{Group: groupV1, Resource: resource}, name, errors.New("modified")))
	}
	busy := refuse(apierrors.NewTooManyRequests("busy", 60))
	const (
		again, final = "again", "final"

		held = `{"metadata":{"name":"net.a","deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["example.com/hold"]}}`
	)
	for _, tt := range []struct {
		name              string
		block, handle     http.HandlerFunc
		get, put, deletes string
	}{
		{"there is none", absent(blockAt), absent(handleAt), "gone", "gone", "gone"},
		{"another version", modified("ipamblocks", "10-0-0-0-30"), modified("ipamhandles", "net.a"), again, "conflict", "conflict"},
		{"another object is not found", absent(blockAt + "x"), absent(handleAt + "x"), final, final, final},
		{"another kind is not found", absent(handleAt), absent(blockAt), final, final, final},
		{"the resource is not served", refuse(apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "404 page not found", 0, true)),
			html(http.StatusNotFound), final, final, final},
		{"a proxy knows no such path", html(http.StatusNotFound), html(http.StatusNotFound), final, final, final},
		{"forbidden", forbidden, forbidden, final, final, final},
		{"broken", broken, broken, again, again, again},
		{"broken on the way", html(http.StatusBadGateway), html(http.StatusBadGateway), again, again, again},
		{"busy", busy, busy, again, again, again},
		{"finalizers keep it", say(held), say(held), "written", "written", "deleting"},
		{"no JSON", say(`<html>`), say(`{"kind":"Status","apiVersion":"v1","status":"Success"}`), again, again, "written"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, store := overKubernetes(t, map[string]http.HandlerFunc{"GET " + blockAt: tt.block, "PUT " + blockAt: tt.block, "DELETE " + handleAt: tt.handle})
			word := func(err error) string {
				switch {
				case err == nil:
					return "written"
				case errors.Is(err, errGone):
					return "gone"
				case errors.Is(err, errConflict):
					return "conflict"
				case errors.Is(err, ipam.ErrDeleting):
					return "deleting"
				case errors.Is(store.transient(err), ipam.ErrAgain):
					return again
				default:
					return final
				}
			}
			began := time.Now()
			if tt.name != "busy" { // client-go may wait before it repeats a read
				if _, err := store.get(t.Context(), blocks, "10.0.0.0/30"); word(err) != tt.get {
					t.Errorf("get: %v, want %s", err, tt.get)
				}
			}
			if _, err := store.write(t.Context(), shapes[0].stored(blocks, "10.0.0.0/30", threeOfFour)); word(err) != tt.put {
				t.Errorf("put: %v, want %s", err, tt.put)
			}
			h := newHandle(shapes[0], "net.a")
			h.raw = nil
			if _, err := store.write(t.Context(), h); word(err) != tt.deletes {
				t.Errorf("delete: %v, want %s", err, tt.deletes)
			}
			if n := a.requests(); n > 3 || time.Since(began) > 30*time.Second {
				t.Errorf("%d requests in %v, want no wait: the warrants would expire", n, time.Since(began))
			}
		})
	}
}

func TestListOfAWrongAnswer(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"no such resource": html(http.StatusNotFound), "forbidden": forbidden, "an empty object": say(`{}`),
		"an item of a wrong type": items(`{"metadata":{"name":7}}`),
	} {
		_, store := overKubernetes(t, map[string]http.HandlerFunc{"GET crd.projectcalico.org/v1/ipamblocks": answer})
		all, err := store.list(t.Context(), blocks, func(o object) any { return o })
		if err == nil || len(all) > 0 || errors.Is(err, ipam.ErrNotInstalled) {
			t.Errorf("%s: list = %s, %v, want an error", name, fmt.Sprint(all), err)
		}
	}
}

// What an answer that broke off contained is not in the list.
func TestListThatIsReadAgainAfterItsAnswerBrokeOff(t *testing.T) {
	broke := say(`{"kind":"List","metadata":{"resourceVersion":"98"},"items":[{"metadata":{"name":7}},`)
	_, store := overKubernetes(t, map[string]http.HandlerFunc{
		"GET crd.projectcalico.org/v1/ipamblocks": first(broke, items(`{"metadata":{"name":"10-0-0-0-30"}}`)),
	})
	all, err := store.list(t.Context(), blocks, func(o object) any { return o.name })
	if got := fmt.Sprint(all); err != nil || got != "[10-0-0-0-30]" {
		t.Errorf("list = %s, %v, want what the second answer has", got, err)
	}
}

// A resource is absent only if the API server itself says so. Otherwise its addresses would be
// released although it protects them (promise 2).
func TestResourcesOfTheAPIServer(t *testing.T) {
	const (
		definition = definitions + "ipreservations.crd.projectcalico.org"
		list       = "GET crd.projectcalico.org/v1/ipreservations"
	)
	one := items(`{"metadata":{"name":"keep"}}`)
	for name, tt := range map[string]struct {
		answers map[string]http.HandlerFunc
		want    string
	}{
		"not defined":                      {nil, "undefined"},
		"none":                             {with(nil, list, items()), "0"},
		"one":                              {with(nil, list, one), "1"},
		"forbidden, and not defined":       {with(nil, list, forbidden), "undefined"},
		"of another version":               {with(nil, definition, served("v9"), "GET crd.projectcalico.org/v9/ipreservations", one), "1"},
		"of the other group":               {with(nil, definitions+"ipreservations.projectcalico.org", served("v1"), "GET projectcalico.org/v1/ipreservations", one), "undefined"},
		"forbidden":                        {with(nil, definition, served("v1"), list, forbidden), "failed"},
		"defined, and the list not found":  {with(nil, definition, served("v1")), "failed"},
		"definition forbidden":             {with(nil, definition, forbidden), "failed"},
		"a proxy knows no such definition": {with(nil, definition, html(http.StatusNotFound)), "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, store := overKubernetes(t, tt.answers)
			all, err := store.resources(t.Context(), "ipreservations")
			got := fmt.Sprint(len(all))
			switch {
			case errors.Is(err, errUndefined):
				got = "undefined"
			case err != nil:
				got = "failed"
			}
			if got != tt.want {
				t.Errorf("resources are %v, %v, want %s", all, err, tt.want)
			}
		})
	}
}
