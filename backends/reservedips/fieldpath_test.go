package reservedips

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestReservedPathsAreRefusedAtOnce(t *testing.T) {
	for _, path := range []FieldPath{
		".spec.ips[", "spec.ips", ".spec.ips[0:2]", ".spec.ips[1:]", ".spec.ips[:]", `.a[?(@.b[1:])]`, ".spec.ips[0,1:]",
	} {
		p := everyPath
		p.Address = path
		_, err := New(&rest.Config{}, []Resource{everyPath, p})
		if err == nil || !strings.Contains(err.Error(), "backends.reservedIPs.resources[1].address "+string(path)+": must be one JSONPath") {
			t.Errorf("New with %s: %v, want an error", path, err)
		}
	}
}

func TestReservedPathsLeadToAddresses(t *testing.T) {
	const fields = `,"spec":{"a":[{"t":"x","v":"10.1.0.1"},{"t":"y","v":"10.1.0.2"},{"v":"10.1.0.3"}],"b.c":"10.1.0.4","l":["10.1.0.5","10.1.0.6"],
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
	} {
		p := everyPath
		p.Address = path
		if got, err := readOne(t, p, "shop", fields); err != nil || fmt.Sprint(got.IPs) != want {
			t.Errorf("%s leads to %v, %v, want %s", path, got.IPs, err, want)
		}
	}
}
