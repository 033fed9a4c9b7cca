package dump

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// The mark of a tar is in its first header. GNU's tar, POSIX's and busybox's write it.
const (
	tarMark   = "ustar"
	tarMarkAt = 257
)

// isTar reports whether a file is a tar. It reads none of it.
func isTar(in *bufio.Reader) bool {
	begin, err := in.Peek(tarMarkAt + len(tarMark))
	return err == nil && string(begin[tarMarkAt:]) == tarMark
}

// readTar hands each entry of a tar to take, as a document with its path. An entry that has
// more than maxDocument bytes is an error.
func readTar(file string, in io.Reader, take func(reaper.Document) error) error {
	entries := tar.NewReader(in)
	for count := 0; ; count++ {
		entry, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF) && count > 0:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%s: the tar has no files", file)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("%s: the tar is cut short after %d entries: make it again", file, count)
		case err != nil:
			return fmt.Errorf("%s: %w", file, err)
		case entry.Size > maxDocument:
			return fmt.Errorf("%s: %s: %w", file, entry.Name, errTooLarge)
		}
		data, err := io.ReadAll(entries)
		if err != nil {
			return fmt.Errorf("%s: %s: the tar is cut short: make it again: %w", file, entry.Name, err)
		}
		err = take(reaper.Document{
			File: file, Place: entry.Name, Path: entry.Name, Mode: entry.FileInfo().Mode(), ModTime: entry.ModTime, Data: data,
		})
		if err != nil {
			return err
		}
	}
}
