package calico

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	a.answers, a.sent = answers, nil
	return a, store
}

func TestResourceNames(t *testing.T) {
	for _, tt := range []struct {
		kind     kind
		id, want string
	}{
		{blocks, "10.0.0.0/26", "10-0-0-0-26"},
		{blocks, "fd80:24e2::/122", "fd80-24e2---122"},
		{blocks, "::/122", "---122"},
		{handles, "k8s-pod-network.0A", "k8s-pod-network.0a"},
		{handles, "lb-N4bQ", "lb-n4bq"},
	} {
		if got := resourceName(tt.kind, tt.id); got != tt.want {
			t.Errorf("resourceName(%s) = %s, want %s", tt.id, got, tt.want)
		}
	}
}

// objectsOf returns all objects of a kind.
func objectsOf(ctx context.Context, store datastore, k kind) ([]object, error) {
	all, err := store.list(ctx, k, func(o object) any { return o })
	var objects []object
	for _, one := range all {
		objects = append(objects, one.(object))
	}
	return objects, err
}

func TestObjectsAreRead(t *testing.T) {
	document := string(shapes[0].stored(blocks, "10.0.0.0/30", threeOfFour).raw)
	a, store := overKubernetes(t, map[string]http.HandlerFunc{
		"GET " + blockAt: say(document),
		"GET crd.projectcalico.org/v1/ipamhandles": first(
			say(`{"metadata":{"resourceVersion":"99","continue":"more"},"items":[{"metadata":{"name":"net.a"},"spec":{"handleID":"net.A"}}]}`),
			items(`{"metadata":{"name":"net.b","uid":"u","resourceVersion":"8","creationTimestamp":"2026-03-01T12:00:00Z"},"spec":{}}`)),
	})
	o, err := store.get(t.Context(), blocks, "10.0.0.0/30")
	if err != nil || string(o.raw) != document || o.name != "10-0-0-0-30" || o.uid != "uid-10-0-0-0-30" || o.revision != "7" || o.kind != blocks {
		t.Errorf("get = %+v, %v", o, err)
	}
	all, err := objectsOf(t.Context(), store, handles)
	if err != nil || len(all) != 2 || all[0].name != "net.a" || all[1].uid != "u" || all[1].revision != "8" || all[1].kind != handles ||
		!all[1].created.Equal(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)) || !all[0].created.IsZero() {
		t.Errorf("list = %+v, %v", all, err)
	}
	if n := len(a.calls()); n != 4 {
		t.Errorf("%d requests, want 4: the block, two pages of handles, and the version between them", n)
	}
	if nodes, err := store.nodes(t.Context()); len(nodes) != 0 || err != nil || store.objectsPerWrite() != 1 {
		t.Errorf("nodes = %v, %v, objects per write %d", nodes, err, store.objectsPerWrite())
	}
}

func TestWritesToKubernetes(t *testing.T) {
	before := mustRead(t, shapes[0].stored(blocks, "10.0.0.0/30", threeOfFour))
	after, err := before.release([]int{3})
	if err != nil {
		t.Fatal(err)
	}
	stored := strings.Replace(string(after.raw), `"resourceVersion":"7"`, `"resourceVersion":"8"`, 1)
	a, store := overKubernetes(t, map[string]http.HandlerFunc{
		"PUT " + blockAt:     say(stored),
		"DELETE " + handleAt: say(`{"kind":"Status","apiVersion":"v1","status":"Success"}`),
	})
	written, err := store.write(t.Context(), after.object)
	if err != nil || len(written) != 1 || written[0].revision != "8" || string(written[0].raw) != stored || written[0].root != "spec" {
		t.Errorf("write = %+v, %v", written, err)
	}
	h := newHandle(shapes[0], "net.a")
	h.raw = nil
	if written, err = store.write(t.Context(), h); err != nil || len(written) != 1 || written[0].raw != nil || written[0].name != "net.a" {
		t.Errorf("deletion = %+v, %v", written, err)
	}
	want := []call{
		{"PUT " + blockAt, "application/json", string(after.raw)},
		{"DELETE " + handleAt, "application/json", `{"preconditions":{"uid":"uid-net.a","resourceVersion":"7"}}`},
	}
	if diff := cmp.Diff(want, a.calls()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestAnswersOfKubernetes(t *testing.T) {
	modified := func(resource, name string) http.HandlerFunc {
		return refuse(apierrors.NewConflict(schema.GroupResource{Group: groupV1, Resource: resource}, name, errors.New("modified")))
	}
	busy := refuse(apierrors.NewTooManyRequests("busy", 60))
	const again, final = "again", "final"
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
			if n := len(a.calls()); n > 3 || time.Since(began) > 30*time.Second {
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
		all, err := objectsOf(t.Context(), store, blocks)
		if err == nil || len(all) > 0 || errors.Is(err, ipam.ErrNotInstalled) {
			t.Errorf("%s: list = %s, %v, want an error", name, fmt.Sprint(all), err)
		}
	}
}
