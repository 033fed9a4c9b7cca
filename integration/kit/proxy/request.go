package proxy

import (
	"net/http"
	"strings"
)

// A Request is a client's request in the API server's terms.
type Request struct {
	Verb        string // get list watch create update patch delete deletecollection; the HTTP method for other paths
	Group       string // "" for the core group
	Version     string
	Resource    string // "" for a path that has no resource
	Subresource string
	Namespace   string // "" for all, or none
	Name        string
	Path        string
	Query       string
	DryRun      bool   // the server must write nothing
	Body        []byte // as sent, in JSON or protobuf; nil for a read

	// Number counts all requests of the proxy, from 1, in order of arrival.
	Number int
	// Mutation counts the mutating ones, from 1; it is 0 for a read.
	Mutation int
}

// Mutating reports whether the request may change what is stored.
func (r Request) Mutating() bool {
	switch r.Verb {
	case "get", "list", "watch", http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return !r.DryRun && r.Resource != "selfsubjectaccessreviews" // a question
}

// String returns the verb and the resource with its subresource, as in roles: "patch ippools",
// "update pods/status". For other paths it returns the method and the path.
func (r Request) String() string {
	what := r.Resource
	switch {
	case what == "":
		what = r.Path
	case r.Subresource != "":
		what += "/" + r.Subresource
	}
	return r.Verb + " " + what
}

// parse reads what the request line says.
func parse(h *http.Request) Request {
	r := Request{
		Verb: h.Method, Path: h.URL.Path, Query: h.URL.RawQuery,
		DryRun: h.URL.Query().Has("dryRun"),
	}
	// /api/VERSION/… or /apis/GROUP/VERSION/…
	parts := strings.Split(strings.Trim(h.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		r.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		r.Group, r.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return r // discovery, health, …
	}
	// A namespace's own subresources have no resource of their own.
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	for i, field := range []*string{&r.Resource, &r.Name, &r.Subresource} {
		if i < len(parts) {
			*field = parts[i]
		}
	}
	r.Verb = verb(h, r.Name)
	return r
}

func verb(h *http.Request, name string) string {
	switch h.Method {
	case http.MethodGet, http.MethodHead:
		switch watch := h.URL.Query().Get("watch"); {
		case watch == "true" || watch == "1":
			return "watch"
		case name == "":
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return h.Method
}
