package dump

import (
	"fmt"
	"io"
)

// The most bytes that are held at a time. An API server accepts objects of 1.5 MiB without
// whitespace; kubectl's indentation makes them two to three times as large.
const (
	maxObject = 8 << 20  // in JSON, which may have any number of them
	maxText   = 64 << 20 // of any other file, which is held in memory
)

var (
	errObjectTooLarge = fmt.Errorf("an object has more than %d MiB", maxObject>>20)
	errTextTooLarge   = fmt.Errorf("the file has more than %d MiB and is no JSON: dump it by kubectl get -o json or etcdctl get -w json", maxText>>20)
)

// A budget reads objects. It returns an error if the current one is too large.
type budget struct {
	in   io.Reader
	left int // bytes of the current object
}

// renew begins an object. What was read ahead for it does not count.
func (b *budget) renew() { b.left = maxObject }

// Read implements io.Reader.
func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errObjectTooLarge
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
