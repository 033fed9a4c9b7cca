package whereabouts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// recordedBy returns the objects that the real plugin of a version stored.
func recordedBy(t *testing.T, version, file, kind string) []ipam.Document {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", version, file))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	var all []ipam.Document
	for _, item := range list.Items {
		all = append(all, document(kind, string(item)))
	}
	return all
}

// What real plugins stored has no unknown fields. Each entry is one group with the reservation
// of its ADD, even in named networks and in IPv6. Only entries of a version before 0.8 are
// never adopted.
func TestStoresOfOtherVersions(t *testing.T) {
	for version, never := range map[string]bool{"0.7.0": true, "0.8.1": false, "0.9.4": false} {
		t.Run(version, func(t *testing.T) {
			documents := append(recordedBy(t, version, "ippools.json", poolKind),
				recordedBy(t, version, "overlappingrangeipreservations.json", overlappingKind)...)
			found, _ := plugin.Offline(Plugins(), documents, policy.Default())
			groups := make(map[string]int)
			for _, b := range found {
				for pool, err := range b.List(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					for _, a := range pool.Allocations {
						groups[a.Group]++
						if a.Unreadable+a.UnknownField+a.Protected != "" {
							t.Errorf("%s: %+v, want it readable and not protected", b.Name(), a)
						}
						if want := never && b.Name() == PoolsName; a.NeverAdopted != want {
							t.Errorf("%s %s: NeverAdopted is %t, want %t", b.Name(), a.IP, a.NeverAdopted, want)
						}
					}
				}
			}
			if len(groups) < 7 {
				t.Errorf("groups %v, want one for each of the addresses", groups)
			}
			for group, members := range groups {
				if group == "" || members != 2 {
					t.Errorf("group %q has %d members, want an entry and a reservation", group, members)
				}
			}
		})
	}
}
