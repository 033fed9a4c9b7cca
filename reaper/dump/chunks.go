package dump

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
)

// etcdRoot begins every line in which etcdctl prints a key.
const etcdRoot = "/calico/"

// chunks cuts a text at the lines that separate documents: "---", "...", and the
// keys of etcd, each of which names the value that follows. Neither JSON nor YAML
// has such a line inside a document.
//
// next goes to the next chunk, and Read reads that chunk up to its end. A line may
// be of any length, because etcdctl prints a whole dump as one line of JSON.
type chunks struct {
	in      *bufio.Reader
	begun   bool  // next was called
	newLine bool  // the next byte of in begins a line
	line    int   // the line of the next byte of in, from 1
	offset  int64 // the offset of the next byte of in
}

func newChunks(r io.Reader) *chunks {
	return &chunks{in: bufio.NewReaderSize(r, 1<<16), newLine: true, line: 1}
}

// next goes to the beginning of the next chunk. It returns the etcd key of that
// chunk, if it has one, and io.EOF after the last chunk.
func (c *chunks) next() (key string, err error) {
	if c.begun {
		if _, err := io.Copy(io.Discard, c); err != nil {
			return "", err
		}
	}
	begin, _ := c.in.Peek(len(etcdRoot)) // the next read returns the error
	mark := separator(begin)
	if mark == "" && c.begun {
		return "", io.EOF
	}
	c.begun = true
	if mark != etcdRoot {
		c.skip(len(mark))
		return "", nil
	}
	line, err := c.in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	c.passed([]byte(line))
	return strings.TrimSpace(line), nil
}

// Read implements io.Reader. It returns io.EOF at the end of the chunk.
func (c *chunks) Read(p []byte) (int, error) {
	begin, _ := c.in.Peek(len(etcdRoot))
	if c.newLine && separator(begin) != "" {
		return 0, io.EOF
	}
	if _, err := c.in.Peek(1); err != nil {
		return 0, err
	}
	text, _ := c.in.Peek(min(c.in.Buffered(), len(p)))
	return c.skip(copy(p, firstChunk(text))), nil
}

// firstChunk returns the beginning of a text up to the first line that separates
// documents, or that is too short to tell.
func firstChunk(text []byte) []byte {
	for end := 0; ; {
		length := bytes.IndexByte(text[end:], '\n') + 1
		if length == 0 {
			return text
		}
		end += length
		if rest := text[end:]; len(rest) < len(etcdRoot) || separator(rest) != "" {
			return text[:end]
		}
	}
}

// separator returns the mark with which a line separates documents, if the line
// does. Of a long line it needs the first len(etcdRoot) bytes.
func separator(line []byte) string {
	if bytes.HasPrefix(line, []byte(etcdRoot)) {
		return etcdRoot
	}
	for _, mark := range []string{"---", "..."} {
		rest, ok := bytes.CutPrefix(line, []byte(mark))
		if ok && (len(rest) == 0 || strings.ContainsRune(" \t\r\n", rune(rest[0]))) {
			return mark
		}
	}
	return ""
}

// jsonBegin matches the beginning of a text that is JSON behind space and comments.
var jsonBegin = regexp.MustCompile(`^(?:\s|#.*\n)*[{[]`)

// beforeJSON returns the number of bytes in the chunk before a JSON value, and
// false if the chunk is no JSON.
func (c *chunks) beforeJSON() (int, bool) {
	begin, _ := c.in.Peek(c.in.Size())
	match := jsonBegin.Find(begin)
	return len(match) - 1, match != nil
}

// skip passes n bytes of the buffer and returns n.
func (c *chunks) skip(n int) int {
	text, _ := c.in.Peek(n)
	c.passed(text)
	_, _ = c.in.Discard(n)
	return n
}

// passed counts the bytes and the lines of a text that was read.
func (c *chunks) passed(text []byte) {
	c.offset += int64(len(text))
	c.line += bytes.Count(text, []byte("\n"))
	if len(text) > 0 {
		c.newLine = text[len(text)-1] == '\n'
	}
}
