package azurecns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The paths of CNS.
const (
	pathDump     = "/debug/restdata"
	pathRequest  = "/network/requestipconfigs"
	pathRelease  = "/network/releaseipconfigs"
	pathEndpoint = "/network/endpoints/" // plus the ID of a container
)

const (
	requestTimeout = 10 * time.Second
	maxAnswer      = 64 << 20 // bytes; a node has a few hundred addresses, of 500 bytes each
)

// The return codes of CNS that the backend does not treat as a failure.
const (
	codeSuccess  = 0
	codeNotFound = 14
)

// A client sends requests to one CNS.
type client struct {
	address string // such as http://localhost:10090
	http    *http.Client
}

// newClient returns the client for the settings.
func newClient(s *Settings) (*client, error) {
	config, err := s.TLS.config(s.address())
	if err != nil {
		return nil, err
	}
	return &client{s.address(), &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			TLSClientConfig:     config,
			MaxIdleConnsPerHost: 1,
			IdleConnTimeout:     requestTimeout,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // CNS sends none
		},
	}}, nil
}

// A response says whether CNS carried out a request. The HTTP status is 200 even if the request
// failed.
type response struct {
	Code    *int   `json:"ReturnCode"`
	Message string `json:"Message"`
}

// check returns an error unless the request succeeded. An answer without a code is not from
// CNS.
func (r *response) check() error {
	switch {
	case r == nil || r.Code == nil:
		return errors.New("the answer has no ReturnCode: is this Azure CNS?")
	case *r.Code == codeNotFound:
		return fmt.Errorf("%w: %.300s", errNotFound, r.Message)
	case *r.Code != codeSuccess:
		return fmt.Errorf("CNS answered %d: %.300s", *r.Code, r.Message)
	}
	return nil
}

// errNotFound says that CNS has no record of a container.
var errNotFound = fmt.Errorf("CNS answered %d", codeNotFound)

// call sends a request and decodes the first JSON object of the answer: CNS writes the answer
// to a failed release twice. The error wraps ipam.ErrAgain if a retry may succeed.
func (c *client) call(ctx context.Context, method, path string, body, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.address+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", ipam.ErrAgain, err)
	}
	defer response.Body.Close()
	switch code := response.StatusCode; {
	case code >= http.StatusInternalServerError:
		return fmt.Errorf("%w: %s %s: %s", ipam.ErrAgain, method, path, response.Status)
	case code != http.StatusOK:
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	var first json.RawMessage
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&first); err != nil {
		return fmt.Errorf("%w: %s %s: the answer is incomplete: %w", ipam.ErrAgain, method, path, err)
	}
	if err := kube.Decode(first, answer); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// An assignment is the body of a request for addresses, or of one to release those of a
// container.
type assignment struct {
	Addresses []string `json:"desiredIPAddresses"`
	Interface string   `json:"podInterfaceID"`
	Container string   `json:"infraContainerID"`
	Pod       pod      `json:"orchestratorContext"`
	Name      string   `json:"ifname"`
}

// A pod is how CNS names a pod.
type pod struct {
	Name      string `json:"podName"`
	Namespace string `json:"podNamespace"`
}

// assign sends a request for addresses, or a release.
func (c *client) assign(ctx context.Context, path string, a assignment) error {
	var answer struct {
		Response *response `json:"response"`
	}
	if err := c.call(ctx, http.MethodPost, path, a, &answer); err != nil {
		return err
	}
	return answer.Response.check()
}

// infraNIC is the type of the interface that has the addresses of the pool. Records of older
// versions have no type.
const infraNIC = "InfraNIC"

// A device is what the backend reads about a network interface in CNS's record of a container.
type device struct {
	Type string `json:"NICType"`
	Veth string `json:"HostVethName"`
	HNS  string `json:"HnsEndpointID"`
	MAC  string `json:"MacAddress"`
}

// endpoint returns CNS's record of the interfaces of a container, by name; empty if it has
// none.
func (c *client) endpoint(ctx context.Context, container string) (map[string]json.RawMessage, error) {
	var answer struct {
		Response *response `json:"response"`
		Endpoint struct {
			Interfaces map[string]json.RawMessage `json:"IfnameToIPMap"`
		} `json:"endpointInfo"`
	}
	if err := c.call(ctx, http.MethodGet, pathEndpoint+container, struct{}{}, &answer); err != nil {
		return nil, err
	}
	err := answer.Response.check()
	if errors.Is(err, errNotFound) {
		return map[string]json.RawMessage{}, nil
	}
	return answer.Endpoint.Interfaces, err
}

// leftToCNS says why the addresses of a container with other interfaces stay.
const leftToCNS = ". A release would remove what CNS knows of all of them, so it is left to CNS: nothing has to be done"

// otherInterface returns why a container that may have interfaces other than eth0 keeps its
// addresses; empty if it has no others. A release removes CNS's record of all interfaces. The
// error wraps ipam.ErrAgain.
func (b *Backend) otherInterface(ctx context.Context, a *address) (string, error) {
	switch {
	case a.Owner.Secondary:
		return "its pod has network interfaces besides eth0" + leftToCNS, nil
	case a.Owner.Scheme != schemeContainer:
		return "", nil
	}
	interfaces, err := b.cns.endpoint(ctx, a.container)
	switch {
	case errors.Is(err, ipam.ErrAgain):
		return "", err
	case err != nil:
		return "the network interfaces of its pod are unknown: " + err.Error() + leftToCNS, nil
	}
	for _, name := range slices.Sorted(maps.Keys(interfaces)) {
		var d device
		if err := kube.Decode(interfaces[name], &d); err != nil {
			return fmt.Sprintf("the type of network interface %q of its pod is unknown: %v", name, err) + leftToCNS, nil
		}
		if d.Type != infraNIC && d.Type != "" {
			return fmt.Sprintf("its pod has the network interface %q of type %s", name, d.Type) + leftToCNS, nil
		}
	}
	return "", nil
}
