package reap

import (
	"bytes"
	"compress/gzip"
	"io"

	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

// DecodeLedger decodes the value of LedgerKey.
func DecodeLedger(data []byte) (l ledgertest.Ledger, err error) {
	zipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return l, err
	}
	text, err := io.ReadAll(zipped)
	if err != nil {
		return l, err
	}
	return ledgertest.Decode(text)
}

// Zip compresses text.
func Zip(text []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write(text) // a buffer takes everything
	_ = w.Close()
	return buf.Bytes()
}
