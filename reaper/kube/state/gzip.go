package state

import (
	"bytes"
	"compress/gzip"
	"io"
)

// zip compresses data, at one of the levels of gzip. It returns the same result for the
// same data.
func zip(data []byte, level int) ([]byte, error) {
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, level)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// unzip decompresses data. It returns at most limit bytes, without an error, so that
// hostile data cannot fill the memory.
func unzip(data []byte, limit int64) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, limit))
}
