package dump

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The fields that make an object a list.
const (
	itemsField = "items" // in Kubernetes
	pairsField = "kvs"   // in the output of etcdctl
)

// An object is a JSON object that is being read. It turns out to be a list once a field with
// elements comes.
type object struct {
	*documents
	fields  map[string]json.RawMessage // all fields but the elements
	element int                        // the number of the current element, from 1
}

// value reads one value after its first token.
func (d *documents) value(values *json.Decoder, token json.Token) error {
	if token != json.Delim('{') {
		return fmt.Errorf("%s is not an object", d.place())
	}
	o := &object{documents: d, fields: make(map[string]json.RawMessage)}
	elements := map[string]func(json.RawMessage) error{itemsField: o.item, pairsField: o.pair}
	list, err := kube.ReadObject(values, elements, func(name string, value json.RawMessage) error {
		o.fields[name] = value
		return nil
	})
	if err != nil {
		return err
	}
	return o.finish(list)
}

// at names the current element in messages.
func (o *object) at() string { return fmt.Sprintf("%s, item %d", o.place(), o.element) }

// item hands out an item of a Kubernetes list.
func (o *object) item(data json.RawMessage) error {
	o.element++
	if data[0] != '{' {
		return fmt.Errorf("%s is not an object", o.at())
	}
	is := typeOf(data)
	if is.Kind == "" {
		is = o.typeOfItems()
	}
	if is.Kind == "" {
		return fmt.Errorf("%s has no kind, and its list names none before it", o.at())
	}
	return o.give(ipam.Document{Place: o.at(), APIVersion: is.APIVersion, Kind: is.Kind, Data: data})
}

// typeOfItems returns the type of the items of the list, which the items themselves lack in an
// answer of the API server. It is zero for a list of mixed items.
func (o *object) typeOfItems() metav1.TypeMeta {
	data, _ := json.Marshal(o.fields) // each was read as JSON
	list := typeOf(data)
	kind, ok := strings.CutSuffix(list.Kind, "List")
	if !ok {
		return metav1.TypeMeta{}
	}
	return metav1.TypeMeta{APIVersion: list.APIVersion, Kind: kind}
}

// pair hands out a key and its value, as "etcdctl get -w json" prints them.
func (o *object) pair(data json.RawMessage) error {
	o.element++
	var kv struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	}
	if err := kube.Decode(data, &kv); err != nil {
		return fmt.Errorf("%s: %w", o.at(), err)
	}
	if len(kv.Key) == 0 {
		return fmt.Errorf("%s has no key", o.at())
	}
	key := string(kv.Key)
	return o.give(ipam.Document{Place: "key " + key, Key: key, Data: kv.Value})
}

// finish hands out the object or, for a list, a document that marks its end.
//
// A list without a kind is refused. kubectl writes the kind after the items, so in YAML a
// missing kind is the only sign that the file was cut short.
func (o *object) finish(list string) error {
	data, _ := json.Marshal(o.fields) // each was read as JSON
	is := typeOf(data)
	if list == "" && is.Kind == "" && o.fields["header"] != nil {
		list = pairsField // etcdctl leaves out an empty list
	}
	switch {
	case list == "":
		return o.give(ipam.Document{APIVersion: is.APIVersion, Kind: is.Kind, Data: data})
	case list == itemsField && is.Kind == "":
		return fmt.Errorf("%s is a list without a kind, so the file may be cut short: dump it again", o.place())
	}
	var end struct {
		Metadata metav1.ListMeta `json:"metadata"`
		More     bool            `json:"more"`
	}
	if err := kube.Decode(data, &end); err != nil {
		return fmt.Errorf("%s: %w", o.place(), err)
	}
	more := end.More || end.Metadata.Continue != "" || end.Metadata.ShardInfo != nil
	return o.give(ipam.Document{APIVersion: is.APIVersion, Kind: is.Kind, List: true, More: more})
}

// typeOf returns the type of an object, or the zero TypeMeta if it cannot be read.
func typeOf(data []byte) metav1.TypeMeta {
	var is metav1.TypeMeta
	if err := kube.Decode(data, &is); err != nil {
		return metav1.TypeMeta{}
	}
	return is
}
