package run_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Promises 2 and 9. A malformed object of one tenant holds what it may name, and nothing
// else. The output names it, and another object whose time is over goes meanwhile.
func TestMalformedReservedIPHoldsWhatItMayName(t *testing.T) {
	const ofGroup = ".v1alpha1.network.example.com"
	for _, tt := range []struct {
		name   string
		kind   string
		fields string // of the object odd
		mine   string // what is said of web-0 and web-1 of the shop
		other  string // and of db-0 of another namespace
		says   string
	}{
		{"a TTL that is none", "ReservedIP", `"spec":{"pod":"web-0","ttl":"7d"}`,
			"web-0", released, "reservedips" + ofGroup + ` shop/odd: ttl .spec.ttl: "7d" is not how long to keep an address`},
		{"a TTL that is none, of another pod", "ReservedIP", `"spec":{"pod":"other","ttl":"7d"}`,
			"", released, "reservedips" + ofGroup + ` shop/odd: ttl .spec.ttl: "7d" is not how long to keep an address`},
		{"a deletion time that is none", "ReservedIP", `"spec":{"pod":"web-0","ttl":"1h"},"status":{"deletedAt":"yesterday"}`,
			"web-0", released, "reservedips" + ofGroup + ` shop/odd: deletedAt .status.deletedAt: "yesterday" is not a time`},
		{"a pod that is none", "ReservedIP", `"spec":{"pod":"Web 0","ttl":"1h"}`,
			"web-0 web-1", released, "reservedips" + ofGroup + ` shop/odd: pod .spec.pod: "Web 0" is not the name of a pod`},
		{"an address that is none", "ReservedIP", `"spec":{"ttl":"1h"},"status":{"ips":["10.0.0.x"]}`,
			"web-0 web-1", released, "reservedips" + ofGroup + ` shop/odd: address .status.ips[*]: "10.0.0.x" is not an address`},
		{"a range of everything", "ReservedIP", `"spec":{"ttl":"1h"},"status":{"ips":["0.0.0.0/0"]}`,
			"web-0 web-1", released, "reservedips" + ofGroup + ` shop/odd: address .status.ips[*]: "0.0.0.0/0" is a range, not an address`},
		{"an address that is none, in no namespace", "ClusterReservedIP", `"spec":{"ip":"10.0.0.0/24"}`,
			"web-0 web-1", reserved, "clusterreservedips" + ofGroup + ` odd: address .spec.ip: "10.0.0.0/24" is a range, not an address`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.live("live")
			f.leak("web-0")
			f.leak("web-1")
			_, err := f.plugin.Add(f.Context(), f.network, plugin.Pod{Namespace: "db", Name: "db-0"}, "sandbox-of-db-0", "net1")
			f.must(err)
			f.reserve(tt.kind, "odd", tt.fields)
			f.reserve("ReservedIP", "over", `"spec":{"pod":"long-gone","ttl":"0s"}`)

			want := decisions{"live": present, "web-0": released, "web-1": released, "db-0": tt.other, "object odd": "held Unreadable kept", "object over": released}
			switch tt.mine {
			case "web-0 web-1":
				want["web-1"] = reserved
				fallthrough
			case "web-0":
				want["web-0"] = reserved
			}
			got := f.reap(reap.ExitPartial, atOnce+reservedIPs)
			f.wantSaid(got.Report, want)
			f.wantText(got.Stderr, tt.says)
			if len(got.Report.Warnings) == 0 {
				t.Fatal("the report has no warning")
			}
			f.wantText(got.Report.Warnings[0], "reservedIPs: "+tt.says)
			if tt.mine != "" {
				f.wantText(noteOf(got.Report, "web-0"), "may name it: ")
			}
			if tt.other == reserved {
				f.wantText(got.Report.Warnings[1], "nothing of whereabouts kube-system/10.0.0.0-24 is released, since every address is protected: clusterreservedips")
			}
			for _, b := range got.Report.Backends {
				if (b.Name == "reservedIPs") != (b.Status == "partial") {
					t.Errorf("backend %s is %s: %s", b.Name, b.Status, b.Message)
				}
			}
		})
	}
}
