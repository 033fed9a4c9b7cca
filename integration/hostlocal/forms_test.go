package hostlocal_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

// dual has the ranges of a network with both families.
var dual = []span{{Subnet: "10.1.0.0/24"}, {Subnet: "fd00:1::/64"}}

// A plugin that ends in the middle of an ADD leaves an empty file, which no DEL removes. When such
// files fill the range, no ADD succeeds. They stay until they are older than any ADD can take, are
// released, and are restored byte for byte; once the range is free, the plugin works again.
func TestEmptyFilesThatFillTheRange(t *testing.T) {
	w := newWorld(t, span{Subnet: "10.1.0.0/28"})
	w.must(w.del(t.Context(), pods, sandbox("nobody"))) // makes the folder and the lock
	young, old := map[string]fate{}, map[string]fate{}
	var paths []string
	for i := 2; i <= 14; i++ {
		name := fmt.Sprint("10.1.0.", i)
		young[name], old[name] = waiting, released
		paths = append(paths, w.lease(pods, name))
	}
	age := func(by time.Duration) {
		at := time.Now().Add(-by)
		for _, path := range paths {
			w.must(os.Chtimes(path, at, at))
		}
	}
	for _, path := range paths {
		w.must(os.WriteFile(path, nil, 0o600))
	}
	_, err := w.add(t.Context(), pods, sandbox("next"))
	if says := plugin.QuotedT(t, errors.Unwrap(err)); !strings.Contains(says, "no IP addresses available in range set: 10.1.0.1-10.1.0.14") {
		t.Fatalf("a range that is full: %s", says)
	}
	age(9 * time.Minute)
	before := w.content()
	w.wantFates(w.run(0), pods, young)
	w.wantContent(before)

	age(11 * time.Minute)
	before = w.content()
	w.wantFates(w.run(0), pods, old)
	w.wantContent(before, paths...)
	w.restore(w.journals()[0], 0)
	w.wantContent(before)
	w.wantFates(w.run(0), pods, old)
	if _, err := w.add(t.Context(), pods, sandbox("next")); err != nil {
		t.Errorf("the plugin still gives no address: %v", err)
	}
}
