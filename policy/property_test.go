package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/policy"
)

func TestMarshalledPolicyLoadsAsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawPolicy(t)
		for name, marshal := range map[string]func(any) ([]byte, error){"JSON": json.Marshal, "YAML": yaml.Marshal} {
			data, err := marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := policy.Load(data, known)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Fatalf("%s: %v (-want +got):\n%s\n%s", name, err, diff, data)
			}
		}
	})
}

// drawPolicy draws a policy as Load returns it.
func drawPolicy(t *rapid.T) policy.Policy {
	pattern := rapid.OneOf(
		rapid.StringMatching(`[a-z0-9.*?-]{1,9}`),
		rapid.StringMatching(`[a-z]?\[\^?[a-f]-[g-z]\]\\[*?]`),
		// What YAML takes for something else if it is not in quotes.
		rapid.SampledFrom([]string{"no", "null", "1", "007", "1e3", "0x1f", ".5", ".nan", "-", "---", "...", "2001-01-01"}),
	)
	patterns := func(least int) []string { return rapid.SliceOfN(pattern, least, 3).Draw(t, "patterns") }
	duration := func() *policy.Duration {
		return &policy.Duration{Duration: time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "duration"))}
	}
	disposition := rapid.SampledFrom([]policy.Disposition{policy.Hold, policy.Release})
	rules := []policy.Rule{}
	for range rapid.IntRange(0, 3).Draw(t, "rules") {
		r := policy.Rule{Hold: rapid.Bool().Draw(t, "hold")}
		r.Match.Namespaces = patterns(1)
		if rapid.Bool().Draw(t, "pods") {
			r.Match.Pods = patterns(0)
		}
		if rapid.Bool().Draw(t, "backends") {
			r.Match.Backends = []string{"cal*", "whereabouts"}
		}
		if rapid.Bool().Draw(t, "grace") {
			r.GracePeriod, r.MinAge = duration(), duration()
		}
		rules = append(rules, r)
	}
	backend := rapid.Custom(func(t *rapid.T) policy.Backend {
		return policy.Backend{Enabled: rapid.SampledFrom([]policy.Switch{policy.Auto, policy.On, policy.Off}).Draw(t, "enabled")}
	})
	backends := rapid.MapOf(rapid.SampledFrom(known), backend).Draw(t, "backends")
	if calico, ok := backends["calico"]; ok {
		backends["calico"] = drawCalico(t, calico)
	}
	return policy.Policy{
		APIVersion:  policy.APIVersion,
		Kind:        policy.Kind,
		DryRun:      new(rapid.Bool().Draw(t, "dryRun")),
		GracePeriod: duration(),
		MinAge:      duration(),
		Namespaces:  policy.Namespaces{Include: patterns(1), Exclude: patterns(0)},
		Rules:       rules,
		Backends:    backends,
		Pods: policy.Pods{
			Finished:   disposition.Draw(t, "finished"),
			Superseded: disposition.Draw(t, "superseded"),
			Unnamed:    disposition.Draw(t, "unnamed"),
		},
		Nodes: policy.Nodes{Unreachable: disposition.Draw(t, "unreachable")},
		Limits: policy.Limits{
			MaxReleases: new(rapid.IntMin(0).Draw(t, "maxReleases")),
			MaxFraction: new(rapid.Float64Range(math.SmallestNonzeroFloat64, 1).Draw(t, "maxFraction")),
			MaxPodDrop:  new(rapid.Float64Range(math.SmallestNonzeroFloat64, 1).Draw(t, "maxPodDrop")),
			MinEntries:  new(rapid.IntMin(0).Draw(t, "minEntries")),
		},
		Protection: policy.Protection{
			StatefulSets: rapid.SampledFrom([]policy.StatefulSetProtection{policy.OrdinalInRange, policy.Ignore}).Draw(t, "statefulSets"),
			ReservedIPs:  drawReservedIPs(t),
		},
		Journal: policy.Journal{Keep: new(rapid.IntRange(1, 100).Draw(t, "keep"))},
	}
}

// drawCalico returns b with settings of Calico.
func drawCalico(t *rapid.T, b policy.Backend) policy.Backend {
	b.Datastore = rapid.SampledFrom([]policy.Datastore{
		"", policy.DatastoreAuto, policy.DatastoreKubernetes, policy.DatastoreEtcd,
	}).Draw(t, "datastore")
	if b.Datastore == policy.DatastoreKubernetes {
		return b
	}
	text := rapid.OneOf(
		rapid.StringMatching(`[ -~]{1,9}`),
		rapid.SampledFrom([]string{"no", "null", "~", "1", "1e3", "---", "2001-01-01", "ü", "a: b", "#"}),
	)
	if rapid.Bool().Draw(t, "has endpoints") {
		b.Etcd.Endpoints = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			host := rapid.StringMatching(`[a-z0-9.-]{1,9}|\[[0-9a-f]{1,4}::[0-9a-f]{1,4}\]`).Draw(t, "host")
			return fmt.Sprintf("%s://%s:%d", rapid.SampledFrom([]string{"http", "https"}).Draw(t, "scheme"), host,
				rapid.IntRange(1, 65535).Draw(t, "port"))
		}), 1, 3).Draw(t, "endpoints")
	}
	if rapid.Bool().Draw(t, "has user") {
		b.Etcd.Username = text.Draw(t, "username")
		b.Etcd.PasswordFile = rapid.OneOf(rapid.Just(""), text).Draw(t, "passwordFile")
	}
	if rapid.Bool().Draw(t, "has certificate") {
		b.Etcd.CertFile, b.Etcd.KeyFile = text.Draw(t, "certFile"), text.Draw(t, "keyFile")
	}
	b.Etcd.CAFile = rapid.OneOf(rapid.Just(""), text).Draw(t, "caFile")
	return b
}

// TestEndpointsAreURLsOfAHostAndAPort has net/url for its judge of what Load
// accepts.
func TestEndpointsAreURLsOfAHostAndAPort(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"http://", "https://", "HTTP://", "unix://", "//", "/", "etcd", "10.0.0.1", "[", "]", "[::1]", "::1", "[1.2.3.4]",
		":", ":2379", ":0", ":65536", ":02379", ":+1", "@", "root:pw@", "?a=b", "#a", ",", ";", " ", "\n", "%41", "é", "\\",
	})
	one := rapid.StringMatching(`https?://(etcd|10\.0\.0\.1|\[::1\])(:2379)?`)
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(one, rapid.Just("")).Draw(t, "start") + strings.Join(rapid.SliceOfN(piece, 0, 3).Draw(t, "pieces"), "")
		data, err := json.Marshal(withCalico(node{"etcd": node{"endpoints": []any{text}}}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policy.Load(data, known); err != nil {
			return
		}
		accepted++
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.Atoi(u.Port())
		if err != nil || port < 1 || port > 65535 {
			t.Errorf("%q is accepted, its port is %q", text, u.Port())
		}
		want := url.URL{Scheme: u.Scheme, Host: u.Host}
		if diff := cmp.Diff(want, *u); diff != "" || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			t.Errorf("%q is accepted, as a URL it is (-want +got):\n%s", text, diff)
		}
	})
	if accepted == 0 {
		t.Error("no endpoint was accepted")
	}
}

// TestNoPasswordIsEchoed puts a URL with a password in every place of a policy,
// also in the place of a name.
func TestNoPasswordIsEchoed(t *testing.T) {
	full := func() node {
		var doc node
		if err := yaml.Unmarshal([]byte(fullPolicy), &doc); err != nil {
			t.Fatal(err)
		}
		return doc
	}
	places := 0
	setPlace(full(), -1, nil, &places)
	rapid.Check(t, func(t *rapid.T) {
		special := rapid.StringMatching(`[a-z@:/?#%&=+'"{}\[\]\\, \n\x{00a0}-]{0,4}`)
		url := rapid.SampledFrom([]string{"https://", "http://", "etcd://"}).Draw(t, "scheme") + "root:" +
			special.Draw(t, "before") + "hunter2" + special.Draw(t, "after") + "@etcd:2379"
		doc := full()
		var value any = url
		if rapid.Bool().Draw(t, "in a list") {
			value = []any{url}
		}
		place, seen := rapid.IntRange(0, places-1).Draw(t, "place"), 0
		setPlace(doc, place, value, &seen)
		if rapid.Bool().Draw(t, "as a name") {
			seen = 0
			doc = full()
			setPlace(doc, place, node{url: nil}, &seen)
		}
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = policy.Load(data, known); err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("place %d: %v", place, err)
		}
	})
}

// setPlace replaces what is in one place of container, by its number, and
// counts the places. No place has a negative number.
func setPlace(container any, place int, value any, seen *int) {
	set := func(was any, replace func(any)) {
		if *seen == place {
			replace(value)
		}
		*seen++
		setPlace(was, place, value, seen)
	}
	switch c := container.(type) {
	case node:
		for _, name := range slices.Sorted(maps.Keys(c)) {
			set(c[name], func(v any) { c[name] = v })
		}
	case []any:
		for i, was := range c {
			set(was, func(v any) { c[i] = v })
		}
	}
}

// withCalico returns a policy with nothing but these settings of Calico.
func withCalico(settings node) node {
	return node{"apiVersion": policy.APIVersion, "kind": policy.Kind, "backends": node{"calico": settings}}
}

// TestUnknownNamesGetTheMostCarefulTerms compares an unknown name with every name
// that it may stand for.
func TestUnknownNamesGetTheMostCarefulTerms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		name := rapid.StringMatching(`[a-z0-9][a-z0-9.-]{0,3}`)
		namespace, pod := name.Draw(t, "namespace"), name.Draw(t, "pod")
		backend := rapid.SampledFrom(known).Draw(t, "backend")
		named := p.Terms(namespace, pod, backend)
		for _, unknown := range []policy.Terms{
			p.Terms("", pod, backend), p.Terms(namespace, "", backend), p.Terms("", "", backend), p.Terms("", "", ""),
		} {
			if unknown.InScope && !named.InScope || !unknown.Hold && named.Hold ||
				unknown.Grace < named.Grace || unknown.MinAge < named.MinAge {
				t.Fatalf("the terms of an unknown name are %+v, and those of %s/%s are %+v", unknown, namespace, pod, named)
			}
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add(policy.Example())
	f.Add([]byte(fullPolicy))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := policy.Load(data, known)
		if err != nil {
			var refusal *policy.Error
			if !errors.As(err, &refusal) || len(refusal.Messages) == 0 {
				t.Fatalf("error %#v has no messages", err)
			}
			if got := len(strings.Split(err.Error(), "\n")); got != len(refusal.Messages) {
				t.Fatalf("%d lines for %d messages: %q", got, len(refusal.Messages), err)
			}
			if diff := cmp.Diff(policy.Policy{}, p); diff != "" {
				t.Fatalf("a refused policy is applied in part:\n%s", diff)
			}
			return
		}
		for _, of := range []any{p, p.Namespaces, p.Limits, p.Protection, p.Journal} {
			for f, value := range reflect.ValueOf(of).Fields() {
				canBeNil := []reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}
				if slices.Contains(canBeNil, value.Kind()) && value.IsNil() {
					t.Fatalf("%s is nil in %+v", f.Name, of)
				}
			}
		}
		for _, r := range p.Protection.ReservedIPs {
			for _, path := range []policy.FieldPath{r.Address, r.Pod, r.Namespace, r.TTL, r.DeletedAt} {
				if _, err := path.Parse(); err != nil && path != "" {
					t.Fatalf("path %q of a policy that loads: %v", path, err)
				}
			}
		}
		again, err := yaml.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := policy.Load(again, known)
		if diff := cmp.Diff(p, q); err != nil || diff != "" {
			t.Fatalf("marshalled policy: %v (-want +got):\n%s\n%s", err, diff, again)
		}
	})
}
