package reservedips

import (
	"fmt"
	"strings"
	"testing"
)

// The error says which path it is.
func TestReservedPathIsRefusedAtOnce(t *testing.T) {
	p := everyPath
	p.Address = ".spec.ips["
	_, err := New(nil, []Resource{everyPath, p})
	if err == nil || !strings.Contains(err.Error(), "backends.reservedIPs.resources[1].address .spec.ips[: must be one JSONPath") {
		t.Errorf("New: %v, want an error", err)
	}
}

func TestReservedPathsLeadToAddresses(t *testing.T) {
	const fields = `,"spec":{"a":[{"t":"x","v":"10.1.0.1","first":true},{"t":"y","v":"10.1.0.2","mtu":1500},{"v":"10.1.0.3"}],"b.c":"10.1.0.4","l":["10.1.0.5","10.1.0.6"],
		"n":[{"l":[]},{"l":["10.1.0.7"]},{},{"l":null},{"l":["10.1.0.8"]}]}`
	for path, want := range map[FieldPath]string{
		`.spec.a[?(@.t=="y")].v`:   "[10.1.0.2]",
		`.spec.a[*].v`:             "[10.1.0.1 10.1.0.2 10.1.0.3]",
		`{.spec.a[*].v}`:           "[10.1.0.1 10.1.0.2 10.1.0.3]",
		`.spec.a[1].v`:             "[10.1.0.2]",
		`.spec.a[?(@.t=="1:2")].v`: "[]",
		`.spec['l'][*]`:            "[10.1.0.5 10.1.0.6]",
		`.spec.n[*].l[*]`:          "[10.1.0.7 10.1.0.8]", // kubectl finds none of them
		`.spec.n[*].l[*].none[*]`:  "[]",
		`.spec.l[-1]`:              "[10.1.0.6]",
		`.spec.l[0,1]`:             "[10.1.0.5 10.1.0.6]",
		`.spec.b\.c`:               "[10.1.0.4]",
		`.spec.l`:                  "[10.1.0.5 10.1.0.6]",

		`$.spec.l[1]`:                 "[10.1.0.6]",
		`{$['spec']['l'][*]}`:         "[10.1.0.5 10.1.0.6]",
		`.spec['b\.c','none']`:        "[10.1.0.4]",
		`..v`:                         "[10.1.0.1 10.1.0.2 10.1.0.3]",
		`.spec.a[?(@.t == 'y')].v`:    "[10.1.0.2]",
		`.spec.a[?(@.first==true)].v`: "[10.1.0.1]",
		`.spec.a[?(@.mtu)].v`:         "[10.1.0.2]",
		`.spec.a[?(@.mtu>=1500)].v`:   "[10.1.0.2]",
		`.status.a[*].v`:              "[]",
		`.status.l[0]`:                "[]",
		`.spec.l[0].v`:                "[]",
	} {
		p := everyPath
		p.Address = path
		if got, err := readOne(t, p, "shop", fields); err != nil || fmt.Sprint(got.IPs) != want {
			t.Errorf("%s leads to %v, %v, want %s", path, got.IPs, err, want)
		}
	}
}
