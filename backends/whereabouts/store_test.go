package whereabouts

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/reaper"
)

func TestReadOwner(t *testing.T) {
	for _, tt := range []struct {
		podRef string
		want   reaper.PodRef
	}{
		{"default/web-0", reaper.PodRef{Namespace: "default", Name: "web-0"}},
		{"", reaper.PodRef{}},
		{"justname", reaper.PodRef{Name: "justname"}},
		{"a/b/c", reaper.PodRef{Name: "a/b/c"}},
		{"/web-0", reaper.PodRef{Name: "/web-0"}},
		{"default/", reaper.PodRef{Name: "default/"}},
		{"/", reaper.PodRef{Name: "/"}},
		{"default//web-0", reaper.PodRef{Name: "default//web-0"}},
	} {
		if got := readOwner(tt.podRef); got != tt.want {
			t.Errorf("readOwner(%q) = %+v, want %+v", tt.podRef, got, tt.want)
		}
	}
}

func TestListReadsEveryPage(t *testing.T) {
	a, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": pages(nil)})
	got, err := list(t.Context(), client, poolResource)
	if want := []string{`"a"`, `"b"`, `"c"`}; err != nil || !cmp.Equal(want, texts(got)) {
		t.Errorf("list = %s, %v, want %s", got, err, want)
	}
	for i, r := range a.bodies("GET ippools") {
		u, err := url.Parse(r.URL)
		if err != nil {
			t.Fatal(err)
		}
		limit := "500"
		if i > 0 {
			limit = "5000" // the objects are small
		}
		if q := u.Query(); q.Has("resourceVersion") || q.Get("limit") != limit {
			t.Errorf("asked with %s, want a limit of %s and a quorum read, which names no resourceVersion", u.RawQuery, limit)
		}
	}
}

// Pages from before the token expired belong to another version of the list.
func TestExpiredPageRestartsTheList(t *testing.T) {
	a, client := newAPI(t, map[string]http.HandlerFunc{
		"GET ippools": pages(map[string]http.HandlerFunc{
			"page 2": first(refuse(apierrors.NewResourceExpired("the continue token is too old")), pages(nil)),
		}),
	})
	got, err := list(t.Context(), client, poolResource)
	if want := []string{`"a"`, `"b"`, `"c"`}; err != nil || !cmp.Equal(want, texts(got)) {
		t.Errorf("list = %s, %v, want %s", got, err, want)
	}
	if n := len(a.calls()); n != 5 {
		t.Errorf("%d requests, want 5: two pages, and then all three", n)
	}
}

func TestListThatAlwaysExpiresFails(t *testing.T) {
	_, client := newAPI(t, map[string]http.HandlerFunc{
		"GET ippools": pages(map[string]http.HandlerFunc{
			"page 3": refuse(apierrors.NewResourceExpired("the continue token is too old")),
		}),
	})
	got, err := list(t.Context(), client, poolResource)
	if !apierrors.IsResourceExpired(err) || got != nil {
		t.Errorf("list = %s, %v, want nothing and Expired", got, err)
	}
}

func TestListStatuses(t *testing.T) {
	forbidden := apierrors.NewForbidden(poolResources, "", errors.New("no such right"))
	for _, tt := range []struct {
		name         string
		answer       http.HandlerFunc
		notInstalled bool
		says         string
	}{
		// The API server answers so if it has no such resource.
		{"no CRD", plain(http.StatusNotFound), true, "no ippools.whereabouts.cni.cncf.io"},
		{"forbidden", refuse(forbidden), false, "no such right"},
		{"unauthorized", refuse(apierrors.NewUnauthorized("who are you")), false, "who are you"},
		{"no JSON", say("<html>"), false, "decode"},
		{"empty object", say("{}"), false, "not a list"},
		{"items of a wrong type", say(`{"items": {}}`), false, "decode"},
		{"broken", refuse(apierrors.NewInternalError(errors.New("etcd is gone"))), false, "etcd is gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": tt.answer})
			got, err := list(t.Context(), client, poolResource)
			if err == nil || got != nil {
				t.Fatalf("list = %s, %v, want nothing and an error", got, err)
			}
			if is := errors.Is(err, reaper.ErrNotInstalled); is != tt.notInstalled {
				t.Errorf("list: %v: is ErrNotInstalled = %v, want %v", err, is, tt.notInstalled)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("list: %v, want %q in it", err, tt.says)
			}
			if tt.notInstalled && len(a.calls()) != 1 {
				t.Errorf("%d requests, want 1 and no repetition", len(a.calls()))
			}
		})
	}
}

func TestListOfAServerThatIsNotThere(t *testing.T) {
	got, err := list(t.Context(), clientOf(t, "http://127.0.0.1:1"), poolResource)
	if got != nil || err == nil || errors.Is(err, reaper.ErrNotInstalled) {
		t.Errorf("list = %s, %v, want nothing and an error", got, err)
	}
}

func TestListIsRepeatedAfterPassingFailures(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"busy":   refuse(apierrors.NewTooManyRequestsError("busy")),
		"broken": refuse(apierrors.NewInternalError(errors.New("etcd is gone"))),
	} {
		t.Run(name, func(t *testing.T) {
			_, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": first(answer, pages(nil))})
			got, err := list(t.Context(), client, poolResource)
			if err != nil || len(got) != 3 {
				t.Errorf("list = %s, %v, want three items", got, err)
			}
		})
	}
}

// pages answers with the items a, b and c on a page each. A continue token may have
// another answer.
func pages(other map[string]http.HandlerFunc) http.HandlerFunc {
	tokens := []string{"", "page 2", "page 3", ""}
	return func(w http.ResponseWriter, r *http.Request) {
		token := r.URL.Query().Get("continue")
		if answer := other[token]; answer != nil {
			answer(w, r)
			return
		}
		n := slices.Index(tokens, token)
		page := map[string]any{
			"metadata": map[string]string{"resourceVersion": "99", "continue": tokens[n+1]},
			"items":    []string{[]string{"a", "b", "c"}[n]},
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(page)
	}
}

func texts(raw []json.RawMessage) []string {
	var all []string
	for _, r := range raw {
		all = append(all, string(r))
	}
	return all
}
