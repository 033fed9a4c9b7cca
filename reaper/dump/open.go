package dump

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Stdin is the name of a file that means standard input.
const Stdin = "-"

// Open opens a file, or standard input for Stdin, and returns the file's name for messages.
// Reading standard input ends with an error when ctx ends.
func Open(ctx context.Context, in io.Reader, file string) (text io.ReadCloser, name string, err error) {
	if file != Stdin {
		text, err = OpenFile(file)
		return text, file, err
	}
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, in)
		w.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { r.CloseWithError(ctx.Err()) })
	return r, "stdin", nil
}

// errNoFile is the error for a device, a pipe or a socket. A device such as /dev/zero has no
// end, and opening a pipe waits for a writer.
var errNoFile = errors.New("it is not a regular file: for a pipe, give /dev/stdin")

// OpenFile opens a regular file, or one that a shell has already opened: /dev/stdin, or
// /dev/fd/63 for a process substitution.
func OpenFile(file string) (*os.File, error) {
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() && !isOpen(file) {
		return nil, &fs.PathError{Op: "open", Path: file, Err: errNoFile}
	}
	return os.Open(file) // for a directory, the first read says so
}

// isOpen reports whether the process was started with the file open.
func isOpen(file string) bool {
	return file == "/dev/stdin" || strings.HasPrefix(file, "/dev/fd/") || strings.HasPrefix(file, "/proc/self/fd/")
}
