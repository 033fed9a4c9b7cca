package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// An edit changes answers.
type edit struct {
	match  Match
	change func(runtime.Object)
}

// Edit changes the objects in the API server's answers to matching requests, such as a server does
// whose cache lacks an event. The answers must be in protobuf. A failure is left as it is.
func (p *Proxy) Edit(match Match, change func(runtime.Object)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.edits = append(p.edits, edit{match, change})
}

// editsOf returns the edits for a request.
func (p *Proxy) editsOf(h *http.Request) (some []edit) {
	r, _ := h.Context().Value(requestKey{}).(Request)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.edits {
		if e.match(r) {
			some = append(some, e)
		}
	}
	return some
}

// edit makes the edits of an answer.
func (p *Proxy) edit(res *http.Response) error {
	edits := p.editsOf(res.Request)
	if len(edits) == 0 || res.StatusCode != http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if err := res.Body.Close(); err != nil {
		return err
	}
	form := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	object, _, err := form.Decode(body, nil, nil)
	if err != nil {
		return err
	}
	for _, e := range edits {
		e.change(object)
	}
	var edited bytes.Buffer
	if err := form.Encode(object, &edited); err != nil {
		return err
	}
	res.Body, res.ContentLength = io.NopCloser(&edited), int64(edited.Len())
	res.Header.Set("Content-Length", strconv.Itoa(edited.Len()))
	return nil
}
