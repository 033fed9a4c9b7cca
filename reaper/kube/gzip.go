package kube

import (
	"bytes"
	"compress/gzip"
	"io"
)

// zip compresses data. The same data gives the same result.
func zip(data []byte) ([]byte, error) {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// unzip undoes zip. It stops behind limit bytes, so that data which was made to be
// large does not fill the memory, and returns them without an error.
func unzip(data []byte, limit int64) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, limit))
}
