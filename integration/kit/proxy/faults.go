package proxy

// A Fault is an answer that no client wants.
type Fault struct {
	Name   string
	Action Action
	Passes bool // repeating the request succeeds
}

// Faults lists what can go wrong with a request.
var Faults = []Fault{
	{"422", Invalid(), false},
	{"409", Conflict(), true},
	{"429", TooManyRequests(0), true},
	{"500", InternalError(), true},
	{"broken connection", Drop(), true},
}

// Fail makes matching requests fail before they are forwarded.
func (f Fault) Fail(p *Proxy, match Match) { p.Before(match, Always(f.Action)) }

// Lose lets matching requests be carried out, but replaces their answers.
func (f Fault) Lose(p *Proxy, match Match) { p.After(match, Always(f.Action)) }
