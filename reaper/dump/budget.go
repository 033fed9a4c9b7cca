package dump

import (
	"fmt"
	"io"
)

// maxDocument is the largest document or item of a list that is read, in bytes. A file may
// be larger. An API server accepts objects of 1.5 MiB without space; kubectl's indentation
// makes them two to three times as large.
const maxDocument = 8 << 20

// errTooLarge says that a document or an item is larger than maxDocument.
var errTooLarge = fmt.Errorf("an object, or a list in a form that kubectl does not print, has more than %d MiB", maxDocument>>20)

// A budget reads from a file. It returns an error if the current document is too large.
type budget struct {
	in   io.Reader
	left int // bytes of the current document
}

// renew begins a document. What was read ahead of it does not count.
func (b *budget) renew() { b.left = maxDocument }

// Read implements io.Reader.
func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
