// Package proxy stands between a client and a real API server. It counts requests, and lets a test
// step in before a request is forwarded or before its answer is delivered: to answer instead of the
// server, to break the connection, to write something in between, or to kill, stop or hold up the
// process of ip-reaper that is the client.
package proxy

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
)

// A Proxy is a running proxy. Its methods may be called concurrently.
type Proxy struct {
	server  *httptest.Server
	forward *httputil.ReverseProxy
	ctx     context.Context // ends with the proxy
	cancel  context.CancelFunc

	mu            sync.Mutex
	before, after []rule
	requests      []Request
	mutations     int
}

type rule struct {
	match Match
	hook  Hook
}

// Start starts a proxy in front of admin's API server, on its own port of 127.0.0.1, with HTTPS and
// HTTP/2 like the API server. The caller must Stop it.
//
// A request with a token is forwarded with only that token, so the API server sees who it is. A
// client certificate ends at the proxy: its request is forwarded as admin's. A mutation is
// completed even if its client is gone. Upgrades, such as for exec, do not work.
func Start(admin *rest.Config) (*Proxy, error) {
	upstream, err := url.Parse(admin.Host)
	if err != nil {
		return nil, fmt.Errorf("parse server of the configuration: %w", err)
	}
	asAdmin, err := rest.TransportFor(admin)
	if err != nil {
		return nil, err
	}
	asClient, err := rest.TransportFor(rest.AnonymousClientConfig(admin))
	if err != nil {
		return nil, err
	}
	p := &Proxy{}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.forward = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:      identities{asAdmin, asClient},
		FlushInterval:  -1, // watches
		ModifyResponse: p.answered,
		ErrorHandler:   broken,
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	// It would log dropped requests, and TLS handshakes that a killed client never finishes.
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.StartTLS()
	return p, nil
}

// Stop aborts what is under way and ends the proxy.
func (p *Proxy) Stop() {
	p.cancel()
	p.server.CloseClientConnections()
	p.server.Close()
}

// Config returns a copy of cfg that talks to the proxy.
func (p *Proxy) Config(cfg *rest.Config) *rest.Config {
	through := rest.CopyConfig(cfg)
	through.Host = p.server.URL
	through.CAFile = ""
	through.CAData = pem.EncodeToMemory(&pem.Block{
		Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw,
	})
	return through
}

// Before sets a hook for each matching request, before it is forwarded. Of several hooks, the first
// that does not pass decides, and later ones are not called.
func (p *Proxy) Before(match Match, hook Hook) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = append(p.before, rule{match, hook})
}

// After sets a hook for each matching request that the API server has answered, before the client
// gets the answer.
func (p *Proxy) After(match Match, hook Hook) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = append(p.after, rule{match, hook})
}

// Reset forgets hooks and counts. Requests under way keep their hooks.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before, p.after, p.requests, p.mutations = nil, nil, nil, 0
}

// Requests returns the requests so far, in order of arrival, including those not forwarded.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Counts returns how often each verb was requested for each resource, by Request.String.
func (p *Proxy) Counts() map[string]int { return p.count(Any) }

// Mutations returns the Counts of requests that may have changed what is stored. It is empty for a
// client that only read.
func (p *Proxy) Mutations() map[string]int { return p.count(Mutating) }

func (p *Proxy) count(match Match) map[string]int {
	counts := map[string]int{}
	for _, r := range p.Requests() {
		if match(r) {
			counts[r.String()]++
		}
	}
	return counts
}

// requestKey is the key of the Request in a request's context.
type requestKey struct{}

// errDropped makes the reverse proxy end a request without an answer.
var errDropped = errors.New("dropped")

func (p *Proxy) ServeHTTP(w http.ResponseWriter, h *http.Request) {
	body, err := io.ReadAll(h.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	h.Body = io.NopCloser(bytes.NewReader(body))
	r, rules := p.arrived(parse(h), body)
	switch action := p.run(rules, r); {
	case action.drop:
		panic(http.ErrAbortHandler)
	case action.status != nil:
		res := action.response()
		maps.Copy(w.Header(), res.Header)
		w.WriteHeader(res.StatusCode)
		_, _ = io.Copy(w, res.Body) // the client may be gone
	default:
		ctx := context.WithValue(h.Context(), requestKey{}, r)
		if r.Mutating() {
			// What becomes of a request must not depend on a race with its client's end.
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(context.WithoutCancel(ctx))
			defer cancel()
			defer context.AfterFunc(p.ctx, cancel)()
		}
		p.forward.ServeHTTP(w, h.WithContext(ctx))
	}
}

// arrived numbers the request and returns the current hooks.
func (p *Proxy) arrived(r Request, body []byte) (Request, []rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(body) > 0 {
		r.Body = body
	}
	r.Number = len(p.requests) + 1
	if r.Mutating() {
		p.mutations++
		r.Mutation = p.mutations
	}
	p.requests = append(p.requests, r)
	return r, slices.Clone(p.before)
}

// answered handles the API server's answer.
func (p *Proxy) answered(res *http.Response) error {
	r, _ := res.Request.Context().Value(requestKey{}).(Request)
	p.mu.Lock()
	rules := slices.Clone(p.after)
	p.mu.Unlock()
	action := p.run(rules, r)
	if !action.drop && action.status == nil {
		return nil
	}
	if err := res.Body.Close(); err != nil {
		return err
	}
	if action.drop {
		return errDropped
	}
	injected := action.response()
	res.StatusCode, res.Status = injected.StatusCode, ""
	res.Header, res.Body = injected.Header, injected.Body
	res.ContentLength = injected.ContentLength
	return nil
}

// broken ends a request like a broken connection to the API server.
func broken(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }

func (p *Proxy) run(rules []rule, r Request) Action {
	for _, rule := range rules {
		if !rule.match(r) {
			continue
		}
		if action := rule.hook(p.ctx, r); action != (Action{}) {
			return action
		}
	}
	return Pass()
}

// identities forwards with the client's token, or else as the administrator.
type identities struct{ admin, client http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (i identities) RoundTrip(h *http.Request) (*http.Response, error) {
	if h.Header.Get("Authorization") != "" {
		return i.client.RoundTrip(h)
	}
	return i.admin.RoundTrip(h)
}
