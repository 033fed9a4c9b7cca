package cnstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// The return codes of CNS that the fake knows.
const (
	success            = 0
	notFound           = 14
	invalidRequest     = 23
	failedToAllocate   = 32
	emptyOrchestrator  = 33
	unsupportedContext = 34
	unexpected         = 99
)

// codeNames are the values of the header cns_return_code.
var codeNames = map[int]string{
	success: "Success", notFound: "NotFound", invalidRequest: "InvalidRequest", failedToAllocate: "FailedToAllocateIpConfig",
	emptyOrchestrator: "EmptyOrchestratorContext", unsupportedContext: "UnsupportedOrchestratorContext", unexpected: "UnexpectedError",
}

// A result is how CNS says what became of a request.
type result struct {
	Code    int    `json:"ReturnCode"`
	Message string `json:"Message"`
}

// An assignment is the body of a request for addresses, or of one to release those of a
// container.
type assignment struct {
	Addresses []string        `json:"desiredIPAddresses"`
	Interface string          `json:"podInterfaceID"`
	Container string          `json:"infraContainerID"`
	Context   json.RawMessage `json:"orchestratorContext"`
	Name      string          `json:"ifname"`
}

// An assignmentAnswer is the answer to an assignment.
type assignmentAnswer struct {
	Addresses []assignedAddress `json:"podIPInfo"`
	Response  result            `json:"response"`
}

// An assignedAddress is part of what CNS says about an assigned address.
type assignedAddress struct {
	Config struct {
		IP     string `json:"IPAddress"`
		Length int    `json:"PrefixLength"`
	} `json:"PodIPConfig"`
	Type string `json:"NICType"`
}

// encode writes one JSON object and, if it is the first, the header.
func encode(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Cns_return_code", codeNames[code])
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

// decode reads the body of a request. If it cannot be read, decode answers as CNS does.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	err := json.NewDecoder(r.Body).Decode(into)
	if err != nil {
		http.Error(w, "Failed to decode request: "+err.Error(), http.StatusBadRequest)
	}
	return err
}

// dump answers with everything in memory.
func (c *CNS) dump(w http.ResponseWriter) {
	var answer struct {
		Data struct {
			Keys      map[string][]string `json:"PodIPIDByPodInterfaceKey"`
			Addresses map[string]*Address `json:"PodIPConfigState"`
		} `json:"HTTPRestServiceData"`
		Response result `json:"Response"`
	}
	answer.Data.Keys, answer.Data.Addresses = c.keys, c.addresses
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_ = json.NewEncoder(w).Encode(answer)
}

// owner returns the container of an assignment, and its key.
func (c *CNS) owner(a assignment) (owner *Owner, key string, failed result) {
	if a.Context == nil {
		return nil, "", result{emptyOrchestrator, "no orchestratorContext"}
	}
	owner = &Owner{Scheme: 1}
	if err := json.Unmarshal(a.Context, owner); err != nil {
		return nil, "", result{unsupportedContext, err.Error()}
	}
	owner.Container, owner.Interface, key = a.Container, a.Interface, a.Interface
	if c.byContainer {
		owner.Scheme, key = 2, a.Container
	} else if key == "" {
		return nil, "", result{unsupportedContext, "no podInterfaceID"}
	}
	return owner, key, result{}
}

// request assigns addresses to a container: those that it has, or all of those that it asks for
// or none, or any free one.
func (c *CNS) request(w http.ResponseWriter, r *http.Request) {
	var a assignment
	if decode(w, r, &a) != nil {
		return
	}
	owner, key, failed := c.owner(a)
	if failed.Code != success {
		encode(w, failed.Code, assignmentAnswer{Response: failed})
		return
	}
	answer := assignmentAnswer{Addresses: []assignedAddress{}}
	ids := c.keys[key]
	if len(ids) == 0 {
		var err error
		if ids, err = c.choose(a.Addresses); err != nil {
			answer.Response = result{failedToAllocate, err.Error()}
			if errors.Is(err, errTooFew) {
				answer.Addresses = make([]assignedAddress, len(a.Addresses))
			}
			encode(w, failedToAllocate, answer)
			return
		}
		for _, id := range ids {
			at := c.addresses[id]
			at.State, at.Owner, at.Changed = Assigned, owner, time.Now()
		}
		c.keys[key] = ids
	}
	for _, id := range ids {
		one := assignedAddress{Type: "InfraNIC"}
		one.Config.IP = c.addresses[id].IP
		answer.Addresses = append(answer.Addresses, one)
	}
	if c.byContainer {
		c.recordEndpoint(owner, a.Name, answer.Addresses)
	}
	encode(w, success, answer)
}

// errTooFew is the failure after which CNS answers with empty addresses.
var errTooFew = errors.New("not enough of the addresses are in the pool")

// choose returns the IDs of the desired addresses, or of any free one.
func (c *CNS) choose(desired []string) ([]string, error) {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(c.addresses)) {
		a := c.addresses[id]
		switch wanted := slices.Contains(desired, a.IP); {
		case wanted && a.State == Assigned:
			return nil, fmt.Errorf("%s is assigned to %s/%s", a.IP, a.Owner.Namespace, a.Owner.Pod)
		case wanted && a.State == PendingRelease:
			return nil, errTooFew
		case wanted, len(desired) == 0 && a.State == Available:
			ids = append(ids, id)
		}
		if len(desired) == 0 && len(ids) == 1 {
			return ids, nil
		}
	}
	for _, ip := range desired {
		if _, err := netip.ParseAddr(ip); err != nil {
			return nil, err
		}
	}
	if len(ids) != max(1, len(desired)) {
		return nil, errTooFew
	}
	return ids, nil
}

// release frees all addresses of a container.
func (c *CNS) release(w http.ResponseWriter, r *http.Request) {
	var a assignment
	if err := decode(w, r, &a); err != nil {
		encode(w, unexpected, result{unexpected, err.Error()})
		return
	}
	_, key, failed := c.owner(a)
	answer := assignmentAnswer{Response: failed}
	if failed.Code != success {
		encode(w, failed.Code, answer) // and once more
		encode(w, failed.Code, answer)
		return
	}
	delete(c.endpoints, a.Container)
	for _, id := range c.keys[key] {
		at := c.addresses[id]
		at.State, at.Owner, at.Changed = Available, nil, time.Now()
	}
	delete(c.keys, key)
	encode(w, success, answer)
}
