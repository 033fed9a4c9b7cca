package dump

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
)

// etcdRoot is how a line begins that etcdctl prints for a key.
const etcdRoot = "/calico/"

// chunks cuts a text into what stands between the lines that separate documents:
// the marks of YAML, and keys of etcd, which name what comes after them. No JSON
// and no YAML has such a line inside.
//
// Read reads one chunk to its end; next goes on to the one behind it. Lines may be
// of any length: the dump of a cluster can be a single one.
type chunks struct {
	in     *bufio.Reader
	piece  []byte // of the buffer of in, not handed out yet
	begun  bool   // next was called
	begins bool   // the next byte of in begins a line
	line   int    // of the next byte of in, from 1
	offset int64  // of the next byte of in
}

func newChunks(r io.Reader) *chunks {
	return &chunks{in: bufio.NewReaderSize(r, 1<<16), begins: true, line: 1}
}

// next goes to the beginning of the next chunk, and returns the key that names
// it; none for one that is not from etcd. It returns io.EOF behind the last.
func (c *chunks) next() (key string, err error) {
	first := !c.begun
	c.begun = true
	if !first {
		if _, err := io.Copy(io.Discard, c); err != nil {
			return "", err
		}
	}
	switch mark := c.mark(); {
	case mark == etcdRoot:
		line, err := c.in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		c.passed([]byte(line))
		return strings.TrimSpace(line), nil
	case mark != "":
		skipped, err := c.in.Discard(len(mark))
		c.passed([]byte(mark[:skipped]))
		return "", err
	case first:
		return "", nil
	}
	return "", io.EOF
}

// Read implements io.Reader.
func (c *chunks) Read(p []byte) (int, error) {
	for len(c.piece) == 0 {
		if c.begins && c.mark() != "" {
			return 0, io.EOF
		}
		piece, err := c.in.ReadSlice('\n')
		c.piece = piece
		c.passed(piece)
		if len(piece) == 0 && err != nil {
			return 0, err
		}
	}
	n := copy(p, c.piece)
	c.piece = c.piece[n:]
	return n, nil
}

// opens returns the first character of the chunk that is neither space nor of a
// comment, and how many bytes stand before it; zero if it is not within reach.
func (c *chunks) opens() (first byte, before int) {
	comment := false
	for n := 1; ; n++ {
		begin, _ := c.in.Peek(n)
		if len(begin) < n {
			return 0, 0
		}
		switch char := begin[n-1]; {
		case char == '#', char == '\n':
			comment = char == '#'
		case !comment && char != ' ' && char != '\t' && char != '\r':
			return char, n - 1
		}
	}
}

// passed counts what was read.
func (c *chunks) passed(text []byte) {
	c.offset += int64(len(text))
	if len(text) > 0 {
		c.begins = text[len(text)-1] == '\n'
	}
	if c.begins && len(text) > 0 {
		c.line++
	}
}

// mark returns what separates documents at the beginning of this line, or nothing.
func (c *chunks) mark() string {
	begin, _ := c.in.Peek(len(etcdRoot)) // what is wrong is found when it is read
	if bytes.HasPrefix(begin, []byte(etcdRoot)) {
		return etcdRoot
	}
	for _, mark := range []string{"---", "..."} {
		behind, ok := bytes.CutPrefix(begin, []byte(mark))
		if ok && (len(behind) == 0 || strings.ContainsRune(" \t\r\n", rune(behind[0]))) {
			return mark
		}
	}
	return ""
}
