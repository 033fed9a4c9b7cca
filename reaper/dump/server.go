package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A server answers with the objects of files, as the API server does that they were dumped from. It
// implements http.RoundTripper.
//
// It answers only what files can tell: a list that they have; that a list is not found, or was refused, if a
// whole dump says so; and which API groups there are. The answer to anything else is an *ipam.UnreadError and never
// a 404, which would say that the cluster has no such object. So it answers with an object by its name only if it
// has it.
type server struct {
	lists   map[schema.GroupKind]*list
	missing map[schema.GroupKind]missing // what a whole dump says of other lists
	whole   bool                         // a dump by ip-reaper is among the files, and failed with nothing
}

// newServer returns a server without a list.
func newServer() *server {
	return &server{lists: make(map[schema.GroupKind]*list), missing: make(map[schema.GroupKind]missing)}
}

// end takes what the end of a whole dump says about lists that are not in it. Dumps of older versions do not say
// it: of the lists without which such a dump is not whole, those of Whereabouts may be absent. That other lists
// were refused, such as the attachments, made no such dump fail. What one dump could not read, another one does not
// make absent.
func (s *server) end(last end) {
	s.whole = true
	if last.Missing == nil {
		last.Missing = map[string]missing{
			"ippools." + whereabouts:                        absent,
			"overlappingrangeipreservations." + whereabouts: absent,
		}
	}
	for name, why := range last.Missing {
		resource := schema.ParseGroupResource(name)
		if of := kindOf(resource.Group, resource.Resource); s.missing[of] != unread {
			s.missing[of] = why
		}
	}
}

// A list has the objects of a kind, in the order of the files.
type list struct {
	apiVersion, kind string // of an object
	items            []json.RawMessage
	part             bool // the list is not whole
}

// kindOf returns the key of a list, by the name of its kind or of its resource.
func kindOf(group, name string) schema.GroupKind {
	return schema.GroupKind{Group: group, Kind: ipam.Singular(name)}
}

// known are the lists of which every version has the same objects: a run asks for each by one name.
var known = map[schema.GroupKind]bool{
	kindOf("", "nodes"):                                         true,
	kindOf("apps", "statefulsets"):                              true,
	kindOf(machineGroup, machineResource):                       true,
	kindOf(whereabouts, "ippools"):                              true,
	kindOf(whereabouts, "nodeslicepools"):                       true,
	kindOf(whereabouts, "overlappingrangeipreservations"):       true,
	kindOf("k8s.cni.cncf.io", "network-attachment-definitions"): true,
}

const whereabouts = "whereabouts.cni.cncf.io"

// add adds an object, or says that its list is there.
func (s *server) add(doc ipam.Document) {
	kind, isList := doc.Kind, doc.List
	if isList {
		kind = strings.TrimSuffix(kind, "List")
	}
	if kind == "" || doc.APIVersion == "" {
		return
	}
	of := kindOf(schema.FromAPIVersionAndKind(doc.APIVersion, "").Group, kind)
	l := s.lists[of]
	if l == nil {
		l = &list{apiVersion: doc.APIVersion, kind: kind}
		s.lists[of] = l
	}
	mixed := !known[of] && doc.APIVersion != l.apiVersion // a server converts objects to one version
	l.part = l.part || doc.More || mixed
	if !isList {
		l.items = append(l.items, doc.Data)
	}
}

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return nil, fmt.Errorf("%w: nothing can be written to files", ipam.ErrRefused)
	}
	at := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case at[0] == "version":
		return answer(request, `{"gitVersion": "v1.34.0"}`), nil // its lists are whole
	case at[0] == "api" && len(at) > 1:
		return s.list(request, "", at[2:])
	case at[0] != "apis":
	case len(at) == 1:
		return s.groups(request), nil
	case len(at) == 3:
		return s.resources(request, at[1], at[2])
	case len(at) > 3:
		return s.list(request, at[1], at[3:])
	}
	return nil, &ipam.UnreadError{List: "objects at " + request.URL.Path}
}

// list answers with a list. The rest of its path is its resource, below a namespace or not.
func (s *server) list(request *http.Request, group string, rest []string) (*http.Response, error) {
	if len(rest) == 2 {
		return s.object(request, kindOf(group, rest[0]), rest[1])
	}
	namespace := ""
	if len(rest) > 2 && rest[0] == "namespaces" {
		namespace, rest = rest[1], rest[2:]
	}
	if len(rest) != 1 { // an object of a namespace by its name
		return nil, &ipam.UnreadError{List: "objects at " + request.URL.Path}
	}
	resource := schema.GroupResource{Group: group, Resource: rest[0]}
	of := kindOf(group, rest[0])
	switch found := s.lists[of]; {
	case found != nil && found.part:
		return nil, &ipam.UnreadError{List: resource.String(), Part: true}
	case found != nil:
		name, is := strings.CutPrefix(request.URL.Query().Get("fieldSelector"), metav1.ObjectNameField+"=")
		if !is { // whoever asks for events by another selector leaves out the others, too
			name = ""
		}
		return found.answer(request, namespace, name), nil
	case s.missing[of] == absent:
		return failure(request, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource"), nil
	case s.missing[of] == unread:
		return failure(request, http.StatusForbidden, metav1.StatusReasonForbidden, "the dump could not read it"), nil
	}
	return nil, &ipam.UnreadError{List: resource.String()}
}

// object answers with an object outside of namespaces.
func (s *server) object(request *http.Request, of schema.GroupKind, name string) (*http.Response, error) {
	for _, item := range s.lists[of].named("", name) {
		return answer(request, string(item)), nil
	}
	return nil, &ipam.UnreadError{List: "objects at " + request.URL.Path}
}

// named returns the objects of a namespace and of a name; empty stands for any.
func (l *list) named(namespace, name string) []json.RawMessage {
	switch {
	case l == nil:
		return nil
	case namespace == "" && name == "":
		return l.items
	}
	var found []json.RawMessage
	for _, item := range l.items {
		var object struct {
			Metadata kube.Metadata `json:"metadata"`
		}
		_ = kube.Decode(item, &object) // it has no name then
		is := object.Metadata
		if (namespace == "" || is.Namespace == namespace) && (name == "" || is.Name == name) {
			found = append(found, item)
		}
	}
	return found
}

// answer answers with the objects of a namespace and of a name.
func (l *list) answer(request *http.Request, namespace, name string) *http.Response {
	parts := []io.Reader{strings.NewReader(fmt.Sprintf(
		`{"apiVersion": %q, "kind": %q, "metadata": {"resourceVersion": "1"}, "items": [`, l.apiVersion, l.kind+"List"))}
	separator := ""
	for _, item := range l.named(namespace, name) {
		parts = append(parts, strings.NewReader(separator), bytes.NewReader(item))
		separator = ","
	}
	return answerWith(request, http.StatusOK, io.MultiReader(append(parts, strings.NewReader("]}"))...))
}

// machineGroup has virtual machines. A run asks whether there is such a resource before it lists them, and
// only a whole dump says that there is none.
const machineGroup, machineResource = "kubevirt.io", "virtualmachineinstances"

// groups answers which API groups there are.
func (s *server) groups(request *http.Request) *http.Response {
	versions := map[string]string{"apps": "v1"}
	if !s.whole {
		versions[machineGroup] = "v1"
	}
	for of, l := range s.lists {
		versions[of.Group] = schema.FromAPIVersionAndKind(l.apiVersion, "").Version
	}
	all := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}}
	for group, version := range versions {
		v := metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + version, Version: version}
		all.Groups = append(all.Groups, metav1.APIGroup{
			Name:             group,
			Versions:         []metav1.GroupVersionForDiscovery{v},
			PreferredVersion: v,
		})
	}
	text, _ := json.Marshal(all) // texts always marshal
	return answer(request, string(text))
}

// resources answers which resources of an API group there are.
func (s *server) resources(request *http.Request, group, version string) (*http.Response, error) {
	all := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList"},
		GroupVersion: group + "/" + version,
	}
	if group == machineGroup && !s.whole {
		all.APIResources = append(all.APIResources, metav1.APIResource{Name: machineResource})
	}
	for of, l := range s.lists {
		if of.Group == group {
			all.APIResources = append(all.APIResources, metav1.APIResource{Name: strings.ToLower(l.kind) + "s"})
		}
	}
	if len(all.APIResources) == 0 {
		return nil, &ipam.UnreadError{List: "resources of " + all.GroupVersion}
	}
	text, _ := json.Marshal(all) // texts always marshal
	return answer(request, string(text)), nil
}

// failure answers as an API server that refuses, or has no such resource.
func failure(request *http.Request, code int, reason metav1.StatusReason, message string) *http.Response {
	text, _ := json.Marshal(metav1.Status{ // texts always marshal
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Reason:   reason,
		Code:     int32(code),
		Message:  message,
	})
	return answerWith(request, code, bytes.NewReader(text))
}

// answer answers with an object.
func answer(request *http.Request, text string) *http.Response {
	return answerWith(request, http.StatusOK, strings.NewReader(text))
}

func answerWith(request *http.Request, status int, body io.Reader) *http.Response {
	return &http.Response{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		StatusCode: status,
		Header:     http.Header{"Content-Type": {runtime.ContentTypeJSON}},
		Body:       io.NopCloser(body),
		Request:    request,
	}
}
