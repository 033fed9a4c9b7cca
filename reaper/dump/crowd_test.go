package dump

import (
	"fmt"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A crowd is the text of a list of pods, as far as it is read.
type crowd struct {
	text string
	read int64
}

func (c *crowd) Read(p []byte) (int, error) {
	if c.text == "" {
		c.text = `{"metadata": {"name": "web"}, "spec": {}},`
	}
	n := copy(p, c.text)
	c.text = c.text[n:]
	c.read += int64(n)
	return n, nil
}

// A dump may be larger than what should be held in memory.
func TestPodsAreReadOneByOne(t *testing.T) {
	enough := fmt.Errorf("enough")
	c := &crowd{text: `{"kind": "PodList", "apiVersion": "v1", "items": [`}
	pods := 0
	err := readDocuments("f", c, func(reaper.Document) error {
		if pods++; pods == 10_000 {
			return enough
		}
		return nil
	})
	if err == nil || pods != 10_000 || c.read > 1<<20 {
		t.Errorf("%d pods after %d bytes: %v", pods, c.read, err)
	}
}
