package reservedips

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// everyPath is a policy that reads every field.
var everyPath = Resource{
	Resource:  ResourceName{Group: "network.example.com", Version: "v1alpha1", Resource: "reservedips"},
	Address:   ".spec.ips[*]",
	Pod:       ".spec.pod",
	Namespace: ".spec.podNamespace",
	TTL:       ".spec.ttl",
	DeletedAt: ".status.deletedAt",
}

// readOne reads an object by the policy. An empty namespace means that it has none.
func readOne(t *testing.T, p Resource, namespace, fields string) (ipam.Protection, error) {
	t.Helper()
	r, err := newReservedResource(p)
	if err != nil {
		t.Fatal(err)
	}
	return r.read(reservedObject("web-0", namespace, fields), map[string]bool{})
}

// reservedObject returns an object with these fields, in JSON.
func reservedObject(name, namespace, fields string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"apiVersion":"network.example.com/v1alpha1","kind":"ReservedIP",
		"metadata":{"name":%q,"namespace":%q,"uid":"u1","resourceVersion":"7"}%s}`, name, namespace, fields))
}

func TestReservedObjectIsRead(t *testing.T) {
	at := "2026-01-02T15:04:05Z"
	for _, tt := range []struct {
		name, namespace, fields string
		ips                     []string
		pod                     string
		ttl, deleted            string // empty for nil and zero
	}{
		{"address", "shop", `,"spec":{"ips":["10.1.0.4"]}`, []string{"10.1.0.4"}, "/", "", ""},
		{"addresses in every form", "shop", `,"spec":{"ips":[" 10.1.0.4/32 ","FD00::A/128","::ffff:10.1.0.5","fe80::1%eth0"]}`,
			[]string{"10.1.0.4", "fd00::a", "10.1.0.5", "fe80::1"}, "/", "", ""},
		{"addresses of interfaces, with their networks", "shop", `,"spec":{"ips":["10.1.0.4/24","fd00::a/64","::ffff:10.1.0.9/126"]}`,
			[]string{"10.1.0.4", "fd00::a", "10.1.0.9"}, "/", "", ""},
		{"both families in one text", "", `,"spec":{"ips":["10.1.0.4,fd00::4","10.1.0.5/24, fe80::1%eth0,"]}`,
			[]string{"10.1.0.4", "fd00::4", "10.1.0.5", "fe80::1"}, "/", "", ""},
		{"small ranges", "shop", `,"spec":{"ips":["10.1.0.0/30","10.1.0.9 - 10.1.0.10","fd00::a/127"]}`,
			[]string{"10.1.0.0", "10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.9", "10.1.0.10", "fd00::a", "fd00::b"}, "/", "", ""},
		{"pod of both in one field", "", `,"spec":{"pod":{"kind":"Pod","namespace":"db","name":"web-0"}}`, nil, "db/web-0", "", ""},
		{"pod in the object's namespace, in a field of both", "shop", `,"spec":{"pod":{"name":"web-0"}}`, nil, "shop/web-0", "", ""},
		{"a node has no namespace", "", `,"spec":{"ips":["10.1.0.4"],"pod":"node-1","podNamespace":""}`, []string{"10.1.0.4"}, "/", "", ""},
		{"empty ones among addresses", "shop", `,"spec":{"ips":["","10.1.0.4",null]}`, []string{"10.1.0.4"}, "/", "", ""},
		{"pod in the object's namespace", "shop", `,"spec":{"pod":"web-0"}`, nil, "shop/web-0", "", ""},
		{"pod in a namespace of its own", "shop", `,"spec":{"pod":"web-0","podNamespace":"db"}`, nil, "db/web-0", "", ""},
		{"pod with its namespace", "shop", `,"spec":{"pod":"db/web-0"}`, nil, "db/web-0", "", ""},
		{"pod of an object without a namespace", "", `,"spec":{"pod":"db/web-0"}`, nil, "db/web-0", "", ""},
		{"nothing yet", "shop", `,"spec":{"ips":[],"pod":"","podNamespace":"db","ttl":"1h"}`, nil, "/", "1h0m0s", ""},
		{"nothing at all", "shop", ``, nil, "/", "", ""},
		{"null", "shop", `,"spec":{"ips":null,"pod":null,"ttl":null},"status":null`, nil, "/", "", ""},
		{"ttl and deletion", "shop", `,"spec":{"pod":"web-0","ttl":"24h"},"status":{"deletedAt":"` + at + `"}`, nil, "shop/web-0", "24h0m0s", at},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readOne(t, everyPath, tt.namespace, tt.fields)
			if err != nil || got.Unreadable != "" {
				t.Fatal(err, got.Unreadable)
			}
			var ips []string
			for _, ip := range got.IPs {
				ips = append(ips, ip.String())
			}
			if diff := cmp.Diff(tt.ips, ips); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
			ttl, deleted := "", ""
			if got.TTL != nil {
				ttl = got.TTL.String()
			}
			if !got.Deleted.IsZero() {
				deleted = got.Deleted.Format(time.RFC3339)
			}
			if got.Pod.String() != tt.pod || ttl != tt.ttl || deleted != tt.deleted {
				t.Errorf("pod %q, ttl %q, deleted %q, want %q, %q, %q", got.Pod, ttl, deleted, tt.pod, tt.ttl, tt.deleted)
			}
		})
	}
}

// An object of the cluster may reserve whole networks.
func TestLargeRangesOfTheClusterAreReserved(t *testing.T) {
	got, err := readOne(t, everyPath, "", `,"spec":{"ips":["10.1.0.0/16","fd00::1-fd00::ffff:0","10.1.0.0-10.1.255.255","10.2.0.4"]}`)
	if err != nil || got.Unreadable != "" {
		t.Fatal(err, got.Unreadable)
	}
	if len(got.IPs) != 1 || len(got.Ranges) != 2 {
		t.Errorf("%v, %v", got.IPs, got.Ranges)
	}
	for text, want := range map[string]bool{"10.1.255.255": true, "10.2.0.0": false, "fd00::": false, "fd00::1": true, "fd00::ffff:0": true, "fd00::ffff:1": false} {
		if got.Ranges.Contains(netip.MustParseAddr(text)) != want {
			t.Errorf("%s is reserved: %v", text, !want)
		}
	}
}

// The TTL of all objects may be in the policy.
func TestTTLOfThePolicy(t *testing.T) {
	for text, want := range map[FieldPath]string{"24h": "24h0m0s", "3600s": "1h0m0s", "never": "for good", ".spec.ttl": "1h0m0s", "{.spec.none}": "for good"} {
		p := everyPath
		p.TTL = text
		r, err := readOne(t, p, "shop", `,"spec":{"ips":["10.1.0.4"],"ttl":"1h"}`)
		got := "for good"
		if r.TTL != nil {
			got = r.TTL.String()
		}
		if err != nil || got != want {
			t.Errorf("ttl %s: %s, %v, want %s", text, got, err, want)
		}
	}
}

// Promise 2. An object that cannot be decoded protects everything it may name, forever.
func TestUnreadableReservedObjectsProtectWhatTheyMayName(t *testing.T) {
	for _, tt := range []struct{ name, namespace, fields, want, protects string }{
		{"no address", "shop", `,"spec":{"ips":["10.1.0.4","10.1.0.x"]}`, `shop/web-0: address .spec.ips[*]: "10.1.0.x" is not an address`, "10.1.0.4 shop/*"},
		{"a large range", "shop", `,"spec":{"ips":["10.1.0.0/23","fd00::/119"]}`, `"10.1.0.0/23" is too large a range: objects in a namespace have at most 256 addresses in ranges`, "10.1.0.0 fd00:: shop/*"},
		{"a network of IPv4 in IPv6", "shop", `,"spec":{"ips":["::ffff:10.1.0.8/126"]}`, `is not an address`, "10.1.0.8 shop/*"},
		{"backwards, and to the other family", "shop", `,"spec":{"ips":["10.1.0.3-10.1.0.1","10.1.0.1-fd00::1","10.1.0.1-"]}`, `is not an address`, "shop/*"},
		{"several in one text", "shop", `,"spec":{"ips":["10.1.0.1, fd00::2|10.1.0.3/32 x"]}`, `is not an address`, "10.1.0.1 fd00::2 10.1.0.3 shop/*"},
		{"leading zeros", "shop", `,"spec":{"ips":["010.1.000.002"]}`, `"010.1.000.002" is not an address`, "10.1.0.2 shop/*"},
		{"the last addresses of a family", "shop", `,"spec":{"ips":["255.255.255.254-255.255.255.255 ","255.255.255.254/31 x"]}`, `is not an address`,
			"255.255.255.254 255.255.255.255 255.255.255.254 255.255.255.255 shop/*"},
		{"a number for an address", "shop", `,"spec":{"ips":[167837700]}`, `167837700 is not an address`, "shop/*"},
		{"a string for a list", "shop", `,"spec":{"ips":"10.1.0.4"}`, `49 is the code of a character, not an address: the path has [*] after a text`, "shop/*"},
		{"no pod name", "shop", `,"spec":{"pod":"Web 0"}`, `shop/web-0: pod .spec.pod: "Web 0" is neither a pod name nor namespace/name`, "shop/*"},
		{"a kind for a namespace", "shop", `,"spec":{"pod":"Pod/web-0"}`, `"Pod/web-0" is in "Pod", which is not the name of a namespace`, "shop/*"},
		{"an empty name", "shop", `,"spec":{"pod":"db/"}`, `"db/" is neither a pod name nor namespace/name`, "shop/* db/*"},
		{"two pods", "shop", `,"spec":{"pod":["web-0","web-1"]}`, `pod .spec.pod leads to 2 values, but must lead to at most one`, "shop/*"},
		{"a number for a pod", "shop", `,"spec":{"pod":7}`, `pod .spec.pod: 7 is not the name of a pod`, "shop/*"},
		{"two namespaces", "shop", `,"spec":{"pod":"web-0","podNamespace":["a","b"]}`, `namespace .spec.podNamespace leads to 2 values`, "shop/* a/* b/*"},
		{"two namespaces that differ", "shop", `,"spec":{"pod":"db/web-0","podNamespace":"shop"}`, `"db/web-0" names a namespace other than "shop"`, "shop/* shop/* db/*"},
		{"no namespace anywhere", "", `,"spec":{"pod":"web-0"}`, `web-0: pod .spec.pod: "web-0" has no namespace, nor has the object`, "*"},
		{"a namespace without a pod, in an object of both", "shop", `,"spec":{"pod":{"namespace":"db"}}`, `is not the name of a pod`, "shop/* db/*"},
		{"an address of no pod, cluster-wide", "", `,"spec":{"ips":["10.1.0.4","10.1.0.5 x"]}`, `web-0: address .spec.ips[*]: "10.1.0.5 x" is not an address`, "10.1.0.4 10.1.0.5"},
		{"an address beside a bad pod, cluster-wide", "", `,"spec":{"ips":["10.1.0.4"],"pod":"Web 0"}`, `is neither a pod name nor namespace/name`, "10.1.0.4 *"},
		{"a bad pod in a namespace of its own, cluster-wide", "", `,"spec":{"pod":"Web 0","podNamespace":"db"}`, `web-0: pod .spec.pod: "Web 0" is neither a pod name nor namespace/name`, "db/*"},
		{"a bad ttl beside an address", "shop", `,"spec":{"ips":["10.1.0.4"],"ttl":"7d"}`, `ttl .spec.ttl`, "10.1.0.4"},
		{"no address beside a ttl and a time", "shop", `,"spec":{"ips":["10.1.0.x"],"ttl":"1h"},"status":{"deletedAt":"2026-01-02T15:04:05Z"}`, `"10.1.0.x" is not an address`, "shop/*"},
		{"no ttl", "shop", `,"spec":{"pod":"web-0","ttl":"7d"}`, `shop/web-0: ttl .spec.ttl: "7d" is not a time to live`, "shop/web-0"},
		{"no time", "shop", `,"spec":{"pod":"web-0"},"status":{"deletedAt":"yesterday"}`, `shop/web-0: deletedAt .status.deletedAt: "yesterday" is not a time`, "shop/web-0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readOne(t, everyPath, tt.namespace, tt.fields)
			if err != nil {
				t.Fatal(err)
			}
			if got.Unreadable == "" || !strings.Contains(got.Name+": "+got.Unreadable, tt.want) {
				t.Fatalf("%s is unreadable: %q, want an error with %s", got.Name, got.Unreadable, tt.want)
			}
			if got.TTL != nil || !got.Deleted.IsZero() {
				t.Errorf("ttl %v, deleted %v, want it to protect for good", got.TTL, got.Deleted)
			}
			if diff := cmp.Diff(tt.protects, protects(got)); diff != "" {
				t.Errorf("protects (-want +got):\n%s", diff)
			}
		})
	}
}

// A tenant's object does not hold networks of others by texts that merely may name addresses.
func TestMalformedTextsProtectAFewAddresses(t *testing.T) {
	for _, texts := range []string{`"0.0.0.0-255.255.255.255"`, `"10.1.0.0/24","10.2.0.0/24","10.1.0.x"`, `"::-ffff::"`, `"10.1.0.0/24|10.2.0.0/24"`} {
		got, err := readOne(t, everyPath, "shop", `,"spec":{"ips":[`+texts+`,"10.9.0.9"]}`)
		if err != nil || len(got.IPs) != maxLoose+1 || got.IPs[maxLoose] != netip.MustParseAddr("10.9.0.9") {
			t.Errorf("%s: %d addresses, %v, want %d and the one that is well formed", texts, len(got.IPs), err, maxLoose)
		}
	}
}

// protects returns what an object protects: addresses, pods, and namespaces.
func protects(r ipam.Protection) string {
	var all []string
	for _, ip := range r.IPs {
		all = append(all, ip.String())
	}
	if r.Pod != (ipam.PodRef{}) {
		all = append(all, r.Pod.String())
	}
	for _, namespace := range r.Namespaces {
		all = append(all, namespace+"/*")
	}
	if r.All {
		all = append(all, "*")
	}
	return strings.Join(all, " ")
}

func TestImpossibleReservedObjectsAreErrors(t *testing.T) {
	r, err := newReservedResource(everyPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range []string{``, `7`, `null`, `{}`, `[]`, `{"metadata":{"uid":"u1"}}`, `{"metadata":{"name":7}}`} {
		if got, err := r.read(json.RawMessage(item), map[string]bool{}); err == nil {
			t.Errorf("read(%s) = %+v, want an error", item, got)
		}
	}
}

// A path with a mistake would protect nothing, and without an error the operator
// would not notice.
func TestReservedPathsThatLeadNowhereAreErrors(t *testing.T) {
	only := func(change func(*Resource)) Resource {
		p := everyPath
		change(&p)
		return p
	}
	const someNothing = `,"spec":{"ttl":"1h"}`
	for _, tt := range []struct {
		name   string
		policy Resource
		fields []string
		want   string // of the error; none if empty
		number int
	}{
		{"no objects", everyPath, nil, "", 0},
		{"one object reserves nothing yet", everyPath, []string{someNothing, `,"spec":{"pod":"web-0","podNamespace":"db"}`}, "", 1},
		{"neither path leads anywhere", everyPath, []string{someNothing, someNothing},
			"neither address .spec.ips[*] nor pod .spec.pod leads to anything in any of 2 objects of reservedips.v1alpha1.network.example.com", 0},
		{"the address alone", only(func(p *Resource) { p.Pod, p.Namespace, p.Address = "", "", ".spec.pi" }), []string{`,"spec":{"ip":"10.1.0.4"}`},
			"address .spec.pi leads to nothing in any of 1 objects of reservedips.v1alpha1.network.example.com", 0},
		{"the pod alone", only(func(p *Resource) { p.Address, p.Pod = "", ".spec.dop" }), []string{`,"spec":{"pod":"web-0"}`},
			"pod .spec.dop leads to nothing in any of 1 objects", 0},
		{"no object has a namespace", everyPath, []string{`,"spec":{"pod":"web-0"}`, `,"spec":{"ips":["10.1.0.4"],"podNamespace":"db"}`},
			"namespace .spec.podNamespace leads to nothing in any of 2 objects", 0},
		{"one object has a namespace", everyPath, []string{`,"spec":{"pod":"web-0"}`, `,"spec":{"pod":"web-1","podNamespace":"db"}`}, "", 2},
		{"no object of the cluster names anything", only(func(p *Resource) { p.Pod, p.Namespace = "", "" }), []string{`,"spec":{"ips":["web"]}`},
			`none of 1 objects of reservedips.v1alpha1.network.example.com names an address that can be decoded: address .spec.ips[*]: "web" is not an address`, 0},
		{"a namespace that no pod needs", everyPath, []string{`,"spec":{"ips":["10.1.0.4"]}`}, "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := newReservedResource(tt.policy)
			if err != nil {
				t.Fatal(err)
			}
			var items []json.RawMessage
			for _, fields := range tt.fields {
				namespace := "shop"
				if tt.policy.Pod == "" {
					namespace = ""
				}
				items = append(items, reservedObject("web-0", namespace, fields))
			}
			got, err := r.readAll(items)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) || len(got) != tt.number {
				t.Errorf("readAll = %d, %v, want %d, %q", len(got), err, tt.number, tt.want)
			}
		})
	}
}

func TestTTLs(t *testing.T) {
	for _, tt := range []struct{ value, want string }{
		{`null`, "for good"}, {`"never"`, "for good"}, {`"Never"`, "for good"}, {`"forever"`, "for good"},
		{`"24h"`, "24h0m0s"}, {`"1h30m"`, "1h30m0s"}, {`"0"`, "0s"}, {`0`, "0s"}, {`3600`, "1h0m0s"}, {`"3600"`, "1h0m0s"},
		{`9223372036`, "2562047h47m16s"},
		{`9223372037`, "error"}, {`9223372036854775808`, "error"}, {`3600.0`, "error"}, {`1e3`, "error"}, {`"1e3"`, "error"},
		{`-1`, "error"}, {`"-1"`, "error"}, {`"-1h"`, "error"}, {`"7d"`, "error"}, {`"300000000h"`, "error"},
		{`" 1h"`, "error"}, {`true`, "error"}, {`{}`, "error"}, {`"PT1H"`, "error"}, {`"10.0.0.1"`, "error"},
	} {
		var value any
		if err := kube.Decode([]byte(tt.value), &value); err != nil {
			t.Fatal(err)
		}
		ttl, err := readTTL(value)
		got := "for good"
		if err != nil {
			got = "error"
		} else if ttl != nil {
			got = ttl.String()
		}
		if got != tt.want || err != nil && ttl != nil {
			t.Errorf("readTTL(%s) = %s, %v, want %s", tt.value, got, err, tt.want)
		}
	}
}

// For any object, its addresses compare equal to others, and every address of a plain list is
// protected.
func FuzzReservedObject(f *testing.F) {
	f.Add(`{"ips":["10.1.0.4"],"pod":"web-0","ttl":3600}`, `{"deletedAt":"2026-01-02T15:04:05+02:00"}`)
	f.Add(`{"ips":"10.1.0.4","pod":["a","b"],"ttl":1e400}`, `{"deletedAt":7}`)
	f.Add(`{"ips":[[[null]]],"pod":{},"podNamespace":"x","ttl":-0}`, `[]`)
	r, err := newReservedResource(everyPath)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, spec, status string) {
		item := reservedObject("web-0", "shop", `,"spec":`+spec+`,"status":`+status)
		got, err := r.read(item, map[string]bool{})
		if err != nil {
			return
		}
		for _, ip := range got.IPs {
			if !ip.IsValid() || ip.Is4In6() || ip.Zone() != "" {
				t.Errorf("address %v does not compare with others", ip)
			}
		}
		if got.TTL != nil && *got.TTL < 0 || got.Name != "reservedips.v1alpha1.network.example.com shop/web-0" {
			t.Errorf("ttl %v of %s", got.TTL, got.Name)
		}
		for _, ip := range plainAddresses(item) {
			if !slices.Contains(got.IPs, ip) {
				t.Errorf("%v is not among %v", ip, got.IPs)
			}
		}
	})
}

// plainAddresses returns the addresses of the list spec.ips. It does not use the
// code under test.
func plainAddresses(item json.RawMessage) []netip.Addr {
	var object map[string]any
	if json.Unmarshal(item, &object) != nil {
		return nil
	}
	spec, _ := object["spec"].(map[string]any)
	values, _ := spec["ips"].([]any)
	var ips []netip.Addr
	for _, value := range values {
		text, _ := value.(string)
		if ip, err := netip.ParseAddr(text); err == nil {
			ips = append(ips, ip.Unmap().WithZone(""))
		}
	}
	return ips
}
