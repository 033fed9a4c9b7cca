package calico

import (
	"context"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An informationKV has a ClusterInformation and nothing else.
type informationKV struct {
	clientv3.KV
	text string
}

func (kv *informationKV) Get(_ context.Context, key string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	answer := &clientv3.GetResponse{}
	if key == clusterKey {
		answer.Kvs = []*mvccpb.KeyValue{{Key: []byte(key), Value: []byte(kv.text)}}
	}
	return answer, nil
}

// Promises 1, 2. Calico in etcd is identified by its GUID, anew with each list, even if it has no
// block. A GUID that cannot be read fails the list.
func TestStoreInEtcdHasCalicosGUID(t *testing.T) {
	kv := &informationKV{}
	b := newBackend(handlesAtOnce, func(context.Context) (datastore, error) { return etcd{&clientv3.Client{KV: kv}}, nil })
	b.place.Outside = true
	for _, tt := range []struct {
		text, want string
		fails      bool
	}{
		{`{"spec":{"datastoreReady":true,"clusterGUID":"a"}}`, "a", false},
		{`{"spec":{"clusterGUID":"b"}}`, "b", false},
		{`{"spec":{}}`, "", false},
		{`{"spec":{"clusterGUID":5}}`, "", true},
	} {
		kv.text = tt.text
		l := ipam.TakeInventory(t.Context(), []ipam.Backend{b}, func(string) bool { return true }).Listings[0]
		switch {
		case tt.fails != (l.Status == ipam.StatusFailed):
			t.Errorf("%s: %v %s", tt.text, l.Status, l.Message)
		case !tt.fails && (l.Outside == nil || l.Outside.ID != tt.want):
			t.Errorf("%s: %+v, want %q", tt.text, l.Outside, tt.want)
		}
	}
}

// Calico in the API server is of this cluster, and so are files of it.
func TestStoreInTheAPIServerIsNotOutside(t *testing.T) {
	inside := newFakeStore(t, shapes[0]).backend()
	if l := ipam.TakeInventory(t.Context(), []ipam.Backend{inside}, func(string) bool { return true }).Listings[0]; l.Status != ipam.StatusOK || l.Outside != nil {
		t.Errorf("%v %s: %+v", l.Status, l.Message, l.Outside)
	}
	handle := []byte(`{"spec":{"handleID":"h","block":{}}}`)
	for document, want := range map[*ipam.Document]bool{
		{Key: handlePrefix + "h", Data: []byte(`{"handleID":"h","block":{}}`)}: true,
		{APIVersion: groupV1 + "/v1", Kind: "IPAMHandle", Data: handle}:        false,
	} {
		if outside := newFiles([]ipam.Document{*document}, 4).Locate().Outside; outside != want {
			t.Errorf("%+v is outside: %v", document, outside)
		}
	}
}
