package upgrade_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
	"github.com/ip-reaper/ip-reaper/integration/kit/world"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The forms of a ledger: in one ConfigMap, or in many.
const (
	small   = "small"
	sharded = "sharded"
)

// crowd is more entries than a ledger in one ConfigMap can have.
const crowd = 35_000

// begin gives the scene the ledger of a cluster that once had a crowd, if that is the form.
// It has no entry any more, and stays in many ConfigMaps.
func (s *scene) begin(form string) {
	s.Helper()
	if form != sharded {
		return
	}
	var seen []string
	for i := range crowd {
		sum := sha256.Sum256(fmt.Append(nil, i))
		seen = append(seen, fmt.Sprintf(`"%s":%d`, base64.RawURLEncoding.EncodeToString(sum[:16]), 1_800_000_000+i))
	}
	large, err := reaper.DecodeLedger([]byte(`{"version":1,"seen":{` + strings.Join(seen, ",") + `}}`))
	s.must(err)
	ledgers := kube.NewLedgers(s.Kube.CoreV1(), world.Home)
	_, err = ledgers.Load(s.Context())
	s.must(err)
	s.must(ledgers.Save(s.Context(), large))
	s.must(ledgers.Save(s.Context(), reaper.Ledger{}))
	if n := s.ledgerMaps(); n != reaper.LedgerShards {
		s.Fatalf("the ledger is in %d ConfigMaps, want %d", n, reaper.LedgerShards)
	}
}

// isLedger reports whether a ConfigMap is one of the ledger.
func isLedger(cm corev1.ConfigMap) bool { return strings.HasPrefix(cm.Name, memory.LedgerName) }

// ledger returns all of the ledger, in however many ConfigMaps it is.
func (s *scene) ledger() memory.Ledger {
	s.Helper()
	all := memory.Ledger{Seen: map[string]int64{}, Restored: map[string]int64{}}
	for _, cm := range s.configMaps() {
		data := cm.BinaryData[memory.LedgerKey]
		if !isLedger(cm) || len(data) == 0 {
			continue
		}
		one, err := memory.Decode(data)
		s.must(err)
		maps.Copy(all.Seen, one.Seen)
		maps.Copy(all.Restored, one.Restored)
	}
	return all
}

// ledgerMaps returns how many ConfigMaps the ledger has.
func (s *scene) ledgerMaps() (n int) {
	s.Helper()
	for _, cm := range s.configMaps() {
		if isLedger(cm) {
			n++
		}
	}
	return n
}
