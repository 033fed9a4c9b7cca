package azurecns

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 11. A list that did not come from CNS is a failure, never an empty store.
func TestListingWithoutCNSFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		answer string
		want   string
	}{
		{"another server", 404, `404 page not found`, "404"},
		{"a failure of CNS", 200, `{"HTTPRestServiceData":{"PodIPIDByPodInterfaceKey":{},"PodIPConfigState":{}},"Response":{"ReturnCode":99,"Message":"not ready"}}`, "CNS answered 99: not ready"},
		{"nothing of CNS", 200, `{"status":"ok"}`, "no ReturnCode"},
		{"no data", 200, `{"Response":{"ReturnCode":0}}`, "lacks the addresses"},
		{"no keys", 200, `{"HTTPRestServiceData":{"PodIPConfigState":{}},"Response":{"ReturnCode":0}}`, "lacks the addresses or their keys"},
		{"no addresses", 200, `{"HTTPRestServiceData":{"PodIPIDByPodInterfaceKey":{}},"Response":{"ReturnCode":0}}`, "lacks the addresses"},
		{"a list", 200, `{"HTTPRestServiceData":{"PodIPIDByPodInterfaceKey":{},"PodIPConfigState":[]},"Response":{"ReturnCode":0}}`, "cannot unmarshal"},
		{"cut off", 200, `{"HTTPRestServiceData":{"PodIPIDBy`, "the answer is incomplete"},
		{"an error page", 502, ``, "502"},
		{"another address", 307, ``, "307"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != pathDump || r.Method != http.MethodPost {
					t.Errorf("the request is %s %s", r.Method, r.URL.Path)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.answer)
			}))
			defer server.Close()
			wantListError(t, server.URL, tt.want)
		})
	}
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	wantListError(t, server.URL, "connection refused")
}

// wantListError fails the test unless the listing is one error that contains the text.
func wantListError(t *testing.T, address, want string) {
	t.Helper()
	b, err := New(&Settings{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	inv := ipam.TakeInventory(t.Context(), []ipam.Backend{b}, func(string) bool { return true })
	l := inv.Listings[0]
	if l.Status != ipam.StatusFailed || !strings.Contains(l.Message, want) || !strings.Contains(l.Message, address) {
		t.Errorf("the listing is %v: %s, want a failure of %s with %q", l.Status, l.Message, address, want)
	}
}
