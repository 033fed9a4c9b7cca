package journal_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// benchRecords returns n records of half a kilobyte.
func benchRecords(n int) []reaper.Record {
	records := make([]reaper.Record, n)
	for i := range records {
		records[i] = reaper.Record{
			Backend: "whereabouts", Pool: "kube-system/10.0.0.0-9", Key: fmt.Sprint(i), IP: "10.0.0.1",
			Stored: fmt.Appendf(nil, `{"id":"%064x","podref":"shop/web-%d","rest":%q}`, i, i, strings.Repeat("x", 300)),
		}
	}
	return records
}

func BenchmarkJournal(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		records := benchRecords(n)
		b.Run(fmt.Sprintf("write/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				file, err := journal.Create(filepath.Join(b.TempDir(), "journal"), nil)
				if err != nil {
					b.Fatal(err)
				}
				if err := file.Write(b.Context(), journaled, records); err != nil {
					b.Fatal(err)
				}
				_ = file.Close()
			}
		})
		parts, err := journal.Encode(journaled, 1, records)
		if err != nil {
			b.Fatal(err)
		}
		text := bytes.Join(parts, []byte("\n"))
		b.Run(fmt.Sprintf("read/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if j, err := journal.Read("journal", bytes.NewReader(text)); err != nil || len(j.Records) != n {
					b.Fatalf("%d records, %v", len(j.Records), err)
				}
			}
		})
	}
}
