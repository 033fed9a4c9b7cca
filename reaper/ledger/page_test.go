package ledger_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// The page on versions names the format that this program writes.
func TestThePageNamesTheVersionOfTheLedger(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(", ledger %d, ", ledger.Ledger{}.Salted().Encode()[0]); !strings.Contains(string(page), want) {
		t.Errorf("docs/install.md does not have %q", want)
	}
}
