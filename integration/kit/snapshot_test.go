package kit_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/snapshot"
)

// The paths of the objects that the tests look at.
const (
	poolPath        = "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools/10.0.0.0-24"
	reservationPath = "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/overlappingrangeipreservations/10.0.0.7"
	blockPath       = "/apis/crd.projectcalico.org/v1/ipamblocks/10-30-0-0-26"
)

// stored returns a store with one object of each of three kinds.
func stored(edit func(snapshot.Store)) snapshot.Store {
	s := snapshot.Store{
		poolPath: {Resource: snapshot.Pools, Namespace: "kube-system", Name: "10.0.0.0-24", Raw: json.RawMessage(
			`{"metadata":{"name":"10.0.0.0-24","resourceVersion":"5","uid":"a"},"spec":{"range":"10.0.0.0/24",
			"allocations":{"7":{"id":"sandbox","podref":"shop/web-0"}}}}`)},
		reservationPath: {Resource: snapshot.Reservations, Namespace: "kube-system", Name: "10.0.0.7", Raw: json.RawMessage(
			`{"metadata":{"name":"10.0.0.7","resourceVersion":"6","uid":"b"},"spec":{"podref":"shop/web-0"}}`)},
		blockPath: {Resource: snapshot.Blocks, Name: "10-30-0-0-26", Raw: json.RawMessage(
			`{"metadata":{"name":"10-30-0-0-26","resourceVersion":"7"},"spec":{"cidr":"10.30.0.0/26","sequenceNumber":4,
			"allocations":[null,0],"attributes":[{"handle_id":"h"}]}}`)},
	}
	if edit != nil {
		edit(s)
	}
	return s
}

// sends has the API server have sent something else of an object.
func sends(path, raw string) func(snapshot.Store) {
	return func(s snapshot.Store) {
		o := s[path]
		o.Raw = json.RawMessage(raw)
		s[path] = o
	}
}

func TestBytesTellAChangeFromAWrite(t *testing.T) {
	before := stored(nil).Bytes()
	for _, tt := range []struct {
		name string
		edit func(snapshot.Store)
		same bool
	}{
		{"nothing", nil, true},
		{"the object was written again", sends(poolPath, `{"metadata":{"name":"10.0.0.0-24","resourceVersion":"9","generation":2,"uid":"a"},
			"spec":{"range":"10.0.0.0/24",
			"allocations":{"7":{"id":"sandbox","podref":"shop/web-0"}}}}`), true},
		{"a reservation was created again", sends(reservationPath,
			`{"metadata":{"name":"10.0.0.7","resourceVersion":"9","uid":"c"},"spec":{"podref":"shop/web-0"}}`), true},
		{"the block counted a write", sends(blockPath, `{"metadata":{"name":"10-30-0-0-26","resourceVersion":"9"},
			"spec":{"cidr":"10.30.0.0/26","sequenceNumber":5,
			"allocations":[null,0],"attributes":[{"handle_id":"h"}]}}`), true},
		{"a pool was created again", sends(poolPath, `{"metadata":{"name":"10.0.0.0-24","uid":"c"},
			"spec":{"range":"10.0.0.0/24",
			"allocations":{"7":{"id":"sandbox","podref":"shop/web-0"}}}}`), false},
		{"a pool has another space in it", sends(poolPath, `{"metadata":{"name":"10.0.0.0-24","uid":"a"},
			"spec":{"range":"10.0.0.0/24",
			"allocations": {"7":{"id":"sandbox","podref":"shop/web-0"}}}}`), false},
		{"a label", sends(reservationPath,
			`{"metadata":{"name":"10.0.0.7","labels":{"a":"b"}},"spec":{"podref":"shop/web-0"}}`), false},
		{"an owner", sends(reservationPath,
			`{"metadata":{"name":"10.0.0.7"},"spec":{"podref":"shop/web-1"}}`), false},
		{"an object is gone", func(s snapshot.Store) { delete(s, blockPath) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if same := cmp.Equal(before, stored(tt.edit).Bytes()); same != tt.same {
				t.Errorf("the same: %t, want %t\n%s", same, tt.same, cmp.Diff(before, stored(tt.edit).Bytes()))
			}
		})
	}
}

func TestViewsTellWhoHasWhat(t *testing.T) {
	s := stored(nil)
	held := map[string]string{
		poolPath + " 7":  `{"id":"sandbox","podref":"shop/web-0"}`,
		blockPath + " 1": `{"handle_id":"h"}`,
		reservationPath:  "metadata.name: \"10.0.0.7\"\nspec: {\"podref\":\"shop/web-0\"}",
	}
	places := map[string]string{poolPath: "metadata.name: \"10.0.0.0-24\"\nmetadata.uid: \"a\"\nspec: {\"range\":\"10.0.0.0/24\"}"}
	for path, content := range held {
		places[path] = content
	}
	for _, tt := range []struct {
		name      string
		want, got map[string]string
	}{
		{"held", held, s.Held()},
		{"places", places, s.Places()},
		{"owners", map[string]string{"10.0.0.0-24 10.0.0.7": "shop/web-0 sandbox", "10.0.0.7": "shop/web-0"}, s.Owners()},
		{"versions", map[string]string{poolPath: `"5"`, reservationPath: `"6"`, blockPath: `"7"`}, s.Versions()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Errorf("view (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKeysAreCountedFromTheRange(t *testing.T) {
	for _, tt := range []struct{ cidr, key, want string }{
		{"10.0.0.0/24", "7", "10.0.0.7"},
		{"10.0.0.0/16", "257", "10.0.1.1"},
		{"fd00::/64", "18446744073709551615", "fd00::ffff:ffff:ffff:ffff"},
	} {
		if got := snapshot.Address(tt.cidr, tt.key); got != tt.want {
			t.Errorf("%s of %s is %s, want %s", tt.key, tt.cidr, got, tt.want)
		}
	}
}
