package fault

import "github.com/ip-reaper/ip-reaper/integration/kit/proxy"

// A Fault is an answer that no client wants.
type Fault struct {
	Name   string
	Action proxy.Action
	Passes bool // repeating the request succeeds
}

// Faults lists what can go wrong with a request.
var Faults = []Fault{
	{"422", proxy.Invalid(), false},
	{"409", proxy.Conflict(), true},
	{"429", proxy.TooManyRequests(0), true},
	{"500", proxy.InternalError(), true},
	{"broken connection", proxy.Drop(), true},
}

// Fail makes matching requests fail before they are forwarded.
func (f Fault) Fail(p *proxy.Proxy, match proxy.Match) { p.Before(match, proxy.Always(f.Action)) }

// Lose lets matching requests be carried out, but replaces their answers.
func (f Fault) Lose(p *proxy.Proxy, match proxy.Match) { p.After(match, proxy.Always(f.Action)) }
