package whereabouts

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// leakyPool holds three addresses of pods that do not exist, one with an unknown field, and two
// entries that cannot be read.
const leakyPool = `{
	"metadata": {"namespace": "kube-system", "name": "10.0.0.0-24", "uid": "u1", "resourceVersion": "7"},
	"spec": {"range": "10.0.0.0/24", "allocations": {
		"4": {"id":"c4","ifname":"net1","podref":"default/web-0"},
		"5": {"id":"c5","podref":"default/web-1","since":9007199254740993},
		"6": {"id":"c6","podref":"default/alive"},
		"007": {"id":"c7","podref":"default/web-2"},
		"abc": "what is this"
	}}
}`

const leakyPatch = `[` +
	`{"op":"test","path":"/spec/allocations/4","value":{"id":"c4","ifname":"net1","podref":"default/web-0"}},` +
	`{"op":"remove","path":"/spec/allocations/4"},` +
	`{"op":"test","path":"/spec/allocations/5","value":{"id":"c5","podref":"default/web-1","since":9007199254740993}},` +
	`{"op":"remove","path":"/spec/allocations/5"}]`

// leaky starts a server with leakyPool. It returns the backend, which ignores unknown
// fields, and warrants for two of its entries.
func leaky(t *testing.T) (*api, *Pools, []ipam.Warrant) {
	t.Helper()
	a, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": items(leakyPool), "GET " + poolAt: say(leakyPool)})
	b := NewPools(client, Settings{UnknownFields: IgnoreUnknownFields}, 4)
	return a, b, backendtest.Warrants(t, b, new(backendtest.Pods), ipam.Allocation{Pool: aPool, Key: "4"}, ipam.Allocation{Pool: aPool, Key: "5"})
}

func TestReleaseIsOnePatchOfTestsAndRemovals(t *testing.T) {
	a, b, ws := leaky(t)
	a.answer("PATCH "+poolAt, say(leakyPool))
	if got := outcomes(b.Release(t.Context(), ws)); got != "gone gone" {
		t.Errorf("Release = %s, want both gone", got)
	}
	if diff := cmp.Diff([]string{"PATCH " + poolAt}, a.calls()); diff != "" {
		t.Fatalf("requests (-want +got):\n%s", diff)
	}
	sent := a.bodies("PATCH " + poolAt)[0]
	if diff := cmp.Diff(leakyPatch, sent.Body); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	if sent.Type != "application/json-patch+json" {
		t.Errorf("the patch is sent as %s", sent.Type)
	}
	if strings.Contains(sent.Body+sent.URL, "resourceVersion") {
		t.Error("the patch tests a resourceVersion: the ADDs of others would abort it")
	}
}

func TestReleaseAnswers(t *testing.T) {
	changed := strings.Replace(leakyPool, `"id":"c4"`, `"id":"c9"`, 1)
	without := strings.Replace(leakyPool, `"4": {"id":"c4","ifname":"net1","podref":"default/web-0"},`, ``, 1)
	notFound := refuse(apierrors.NewNotFound(poolResources, "10.0.0.0-24"))
	broken := refuse(apierrors.NewInternalError(errors.New("etcd is gone")))
	for _, tt := range []struct {
		name  string
		patch http.HandlerFunc
		get   http.HandlerFunc // nil: a request fails the test
		want  string           // for both entries
	}{
		{"done", say(leakyPool), nil, "gone gone"},
		{"pool is gone", notFound, nil, "gone gone"},
		{"a proxy knows no such path", plain(http.StatusNotFound), nil, "final final"},
		{"another object is gone", refuse(apierrors.NewNotFound(poolResources, "other")), nil, "final final"},
		{"conflict", refuse(apierrors.NewConflict(poolResources, "10.0.0.0-24", errors.New("busy"))), nil, "again again"},
		{"server broken", broken, nil, "lost lost"},
		{"proxy broken", plain(http.StatusBadGateway), nil, "lost lost"},
		{"forbidden", refuse(apierrors.NewForbidden(poolResources, "10.0.0.0-24", errors.New("no"))), nil, "final final"},
		{"patch too large", refuse(apierrors.NewRequestEntityTooLargeError("too large")), nil, "final final"},
		// If client-go waited inside the request, it would write with expired warrants (promise 4).
		{"asked to wait", first(tooMany, say(leakyPool)), nil, "again again"},
		// A webhook denies the patch as a whole, even with the code of a failed test.
		{"denied by a webhook", deny(403), nil, "final final"},
		{"denied by a webhook, with a conflict", deny(409), nil, "final final"},
		{"denied by a webhook, as invalid", deny(422), nil, "final final"},
		{"denied by a webhook, as broken", deny(500), nil, "final final"},

		{"an entry changed hands", refuse(failedTest()), say(changed), "changed again"},
		{"an entry is gone", refuse(failedTest()), say(without), "gone again"},
		{"the pool was deleted meanwhile", refuse(failedTest()), notFound, "gone gone"},
		{"a proxy knows no such path meanwhile", refuse(failedTest()), plain(http.StatusNotFound), "final final"},
		{"nothing changed", refuse(failedTest()), say(leakyPool), "again again"},
		{"the pool cannot be read", refuse(failedTest()), broken, "again again"},
		{"reading the pool is forbidden", refuse(failedTest()),
			refuse(apierrors.NewForbidden(poolResources, "10.0.0.0-24", errors.New("no"))), "final final"},
		{"the pool cannot be decoded any more", refuse(failedTest()),
			say(strings.Replace(leakyPool, "10.0.0.0/24", "?", 1)), "again again"},

		{"schema", refuse(brokenSchema()), say(leakyPool), "final final"},
		{"schema, and an entry changed hands", refuse(brokenSchema()), say(changed), "changed final"},
		{"schema, and an entry is gone", refuse(brokenSchema()), say(without), "gone final"},
		{"a proxy finds it invalid", plain(http.StatusUnprocessableEntity), say(leakyPool), "final final"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b, ws := leaky(t)
			a.answer("GET "+poolAt, tt.get)
			a.answer("PATCH "+poolAt, tt.patch)
			errs := b.Release(t.Context(), ws)
			if got := outcomes(errs); got != tt.want {
				t.Errorf("Release = %s, want %s", got, tt.want)
			}
			for name, says := range map[string]string{
				"schema": "spec.allocations.9.podref: Required value", "denied": `"guard.example.com" refuses to write IPPool kube-system/10.0.0.0-24`,
			} {
				if strings.HasPrefix(tt.name, name) && !strings.Contains(errs[1].Error(), says) {
					t.Errorf("Release = %v, want %q in it", errs[1], says)
				}
			}
			if n := len(a.bodies("PATCH " + poolAt)); n != 1 {
				t.Errorf("%d patches, want 1", n)
			}
		})
	}
}

// tooMany answers that the client may try again immediately.
func tooMany(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "0")
	http.Error(w, "slow down", http.StatusTooManyRequests)
}

func TestReleaseOfAServerThatIsNotThere(t *testing.T) {
	_, _, ws := leaky(t)
	b := NewPools(clientOf(t, "http://127.0.0.1:1"), Settings{}, atOnce)
	if got := outcomes(b.Release(t.Context(), ws)); got != "again again" {
		t.Errorf("Release = %s, want again", got)
	}
}

func TestNothingIsPatchedWithoutAWarrant(t *testing.T) {
	a, b, ws := leaky(t)
	a.answer("PATCH "+poolAt, say(leakyPool))
	if got := outcomes(b.Release(t.Context(), make([]ipam.Warrant, 2))); got != "no-warrant no-warrant" {
		t.Errorf("Release without warrants = %s", got)
	}
	if got := outcomes(b.Release(t.Context(), nil)); got != "" {
		t.Errorf("Release of nothing = %s", got)
	}
	if calls := a.calls(); len(calls) != 0 {
		t.Errorf("requests %s, want none", calls)
	}

	if got := outcomes(b.Release(t.Context(), []ipam.Warrant{{}, ws[1], {}})); got != "no-warrant gone no-warrant" {
		t.Errorf("Release with one warrant of three = %s", got)
	}
	want := leakyPatch[:1] + leakyPatch[strings.Index(leakyPatch, `{"op":"test","path":"/spec/allocations/5"`):]
	if got := a.bodies("PATCH " + poolAt)[0].Body; got != want {
		t.Errorf("patch = %s, want %s", got, want)
	}
}

// outcomes returns the answers of Release, in one word each.
func outcomes(errs []error) string {
	var all []string
	for _, err := range errs {
		word := "final"
		for _, known := range []struct {
			err  error
			word string
		}{
			{ipam.ErrDeleting, "deleting"}, {ipam.ErrReturned, "returned"}, {ipam.ErrChanged, "changed"}, {ipam.ErrKept, "kept"},
			{ipam.ErrLost, "lost"}, {ipam.ErrAgain, "again"}, {ipam.ErrNoWarrant, "no-warrant"},
		} {
			if errors.Is(err, known.err) {
				word = known.word
				break
			}
		}
		if err == nil {
			word = "gone"
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}
