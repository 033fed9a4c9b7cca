package cluster

import (
	"io"
	"sync"
)

// tailSize is enough for the lines that say why a component did not start.
const tailSize = 4096

// A tail passes on what is written to it and remembers the end of it.
type tail struct {
	out io.Writer // may be nil

	mu  sync.Mutex
	end []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p...)
	if over := len(t.end) - tailSize; over > 0 {
		t.end = append(t.end[:0], t.end[over:]...)
	}
	if t.out == nil {
		return len(p), nil
	}
	return t.out.Write(p)
}

func (t *tail) lines() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.end)
}
