package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layer returns the one layer of an image: the program, its licence, and the notices of
// what it is made of. The files are those of user 0, and as old as those of the Dockerfile.
func (r release) layer(program string) (v1.Layer, error) {
	var layer bytes.Buffer
	files := tar.NewWriter(&layer)
	for _, f := range []struct {
		name string
		mode int64
		from string // nothing for a folder
	}{
		{"ip-reaper", 0o755, program},
		{"licenses/", 0o755, ""},
		{"licenses/LICENSE", 0o644, r.license},
		{"licenses/THIRD_PARTY_NOTICES", 0o644, r.notices},
	} {
		var text []byte
		if f.from != "" {
			var err error
			if text, err = os.ReadFile(f.from); err != nil {
				return nil, err
			}
			if len(bytes.TrimSpace(text)) == 0 {
				return nil, fmt.Errorf("%s is empty: an image needs %s", f.from, f.name)
			}
		}
		if err := add(files, f.name, f.mode, text, time.Unix(0, 0)); err != nil {
			return nil, err
		}
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(layer.Bytes())), nil
	}, tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
}

// add adds a file to an archive, or a folder if the name ends in a slash.
func add(files *tar.Writer, name string, mode int64, text []byte, at time.Time) error {
	header := &tar.Header{Name: name, Mode: mode, Size: int64(len(text)), ModTime: at, Format: tar.FormatUSTAR}
	if err := files.WriteHeader(header); err != nil {
		return err
	}
	_, err := files.Write(text)
	return err
}
