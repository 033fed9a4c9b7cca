package cluster

import "sync"

// tailSize is enough for the lines that say why a component did not start.
const tailSize = 4096

// A tail keeps the end of what is written to it.
type tail struct {
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
	return len(p), nil
}

func (t *tail) lines() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.end)
}
