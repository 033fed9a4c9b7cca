package main

// A task is what a floor does. It lists all lists at the same time. Then it sends all
// writes of the first stage, some at a time, then those of the next one, and then what is
// for an etcd.
type task struct {
	Lists  []listing `json:"lists"`
	Stages [][]write `json:"stages"`
	Etcd   *etcdTask `json:"etcd,omitempty"` // nil if Calico has none
}

// A listing is one list.
type listing struct {
	Path     string `json:"path"`
	Protobuf bool   `json:"protobuf"` // or else JSON
}

// A write is one object's requests, one after the other. The second may need the
// resourceVersion that the first has made: its body has a %s in its place.
type write struct {
	Path     string    `json:"path"`
	Requests []request `json:"requests"`
}

// A request is one request that writes.
type request struct {
	Method string `json:"method"`
	Type   string `json:"type"` // of the body
	Body   string `json:"body"`
}

// An etcdTask is for an etcd of Calico's. The prefixes are read at the same time as the lists.
// The transactions are made in the end, some at a time.
type etcdTask struct {
	Endpoint string        `json:"endpoint"`
	Prefixes []string      `json:"prefixes"`
	Txns     []transaction `json:"txns"`
}

// A transaction makes all of its operations, if each key has the revision.
type transaction []operation

// An operation puts a key, or deletes it if the value is empty.
type operation struct {
	Key      string `json:"key"`
	Revision int64  `json:"revision"`
	Value    string `json:"value,omitempty"`
}
