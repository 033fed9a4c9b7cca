package cnstest

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// A CNS is a fake Azure CNS: an http.Handler. It is safe for concurrent use.
type CNS struct {
	byContainer bool

	mu        sync.Mutex
	addresses map[string]*Address
	keys      map[string][]string // by container key: the IDs of its addresses
	endpoints map[string]*endpoint
	hook      func(method, path string) *Answer
}

// An Address is an address as /debug/restdata shows it.
type Address struct {
	State   string    `json:"state"`
	ID      string    `json:"ID"`
	IP      string    `json:"IPAddress"`
	Changed time.Time `json:"LastStateTransition"`
	Network string    `json:"NCID"`
	Owner   *Owner    `json:"PodInfo"`
}

// An Owner is the container of an address.
type Owner struct {
	Pod       string `json:"podName"`
	Namespace string `json:"podNamespace"`
	Container string `json:"PodInfraContainerID"`
	Interface string `json:"PodInterfaceID"`
	Scheme    int    `json:"Version"`
	Secondary bool   `json:"SecondaryInterfaceSet"`
}

// The states of an address.
const (
	Available      = "Available"
	Assigned       = "Assigned"
	PendingRelease = "PendingRelease"
)

// An Answer is what a hook makes CNS reply.
type Answer struct {
	Status int // of HTTP
	Body   string
}

// New returns a CNS without addresses. It finds those of a container by its interface.
func New() *CNS {
	return &CNS{addresses: make(map[string]*Address), keys: make(map[string][]string), endpoints: make(map[string]*endpoint)}
}

// NewManaging returns a CNS that finds the addresses of a container by its ID, and keeps a
// record of the network interfaces of each container.
func NewManaging() *CNS {
	c := New()
	c.byContainer = true
	return c
}

// Add adds free addresses of a network container. The ID of each is the address itself, as in
// CNS for the addresses of a node's subnet.
func (c *CNS) Add(network string, ips ...netip.Addr) {
	for _, ip := range ips {
		c.Set(ip.String(), Address{State: Available, ID: ip.String(), IP: ip.String(), Changed: time.Now(), Network: network})
	}
}

// Set puts an address at an ID, in any state. It changes nothing else: an assigned address is
// freed with its container only if it was requested or linked.
func (c *CNS) Set(id string, a Address) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addresses[id] = &a
}

// Link makes a release of the key free these IDs.
func (c *CNS) Link(key string, ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[key] = ids
}

// Change changes the addresses of a container, in the order of their IDs.
func (c *CNS) Change(container string, change func(*Address)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(c.addresses)) {
		if a := c.addresses[id]; a.Owner != nil && a.Owner.Container == container {
			change(a)
		}
	}
}

// Restart does what a restart of CNS does: all addresses get a new state transition. A managing
// CNS reads the owners from its records of network interfaces, which lack some fields.
func (c *CNS) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.addresses {
		a.Changed = time.Now()
		if c.byContainer && a.Owner != nil {
			o := *a.Owner
			o.Interface, o.Secondary = o.Container, false
			a.Owner = &o
		}
	}
}

// OnRequest sets a hook that runs at the beginning of each request, and may change CNS. If it
// returns an Answer, CNS replies with that and does nothing else.
func (c *CNS) OnRequest(hook func(method, path string) *Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hook = hook
}

// ServeHTTP implements http.Handler.
func (c *CNS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	hook := c.hook
	c.mu.Unlock()
	if hook != nil {
		if a := hook(r.Method, r.URL.Path); a != nil {
			http.Error(w, a.Body, a.Status)
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch path := r.URL.Path; {
	case path == "/debug/restdata":
		c.dump(w)
	case path == "/network/requestipconfigs":
		c.request(w, r)
	case path == "/network/releaseipconfigs":
		c.release(w, r)
	case strings.HasPrefix(path, endpointPath):
		c.endpoint(w, r, strings.TrimPrefix(path, endpointPath))
	default:
		http.NotFound(w, r)
	}
}
