// Package upgrade_test has one version of ip-reaper take over what another one has left: the
// ledger, the journal, the lock and the policy, in a real API server and in the folder of a
// node. testdata has what earlier versions left, as recorded; an earlier version is also
// built, and runs beside this one. The numbers in the comments are those of the promises in
// docs/design.md.
//
// A new version is recorded by
//
//	go test ./versions/upgrade -run TestRecord -record REVISION
//
// REVISION is a tag or a commit of this repository. The folder in testdata has its name.
package upgrade_test

import (
	"flag"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit"
)

var record = flag.String("record", "", "build this `REVISION`, and record what it leaves in testdata")

func TestMain(m *testing.M) {
	flag.Parse()
	kit.Main(m, kit.Options{Sets: []kit.Set{kit.Calico, kit.ReservedIPs}, Policies: true})
}
