//go:build !linux

package hostlocal

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

// errNotLinux says that only Linux has the stores of nodes. Files of them can be inspected
// everywhere.
var errNotLinux = errors.New("the stores of a node are read on Linux only")

type folder struct{ path string }

func openFolder(string) (*folder, error) { return nil, errNotLinux }

func (*folder) open(string) (*folder, error)         { return nil, errNotLinux }
func (*folder) Close() error                         { return nil }
func (*folder) stat(string) (file, error)            { return file{}, errNotLinux }
func (*folder) read(string, int) (file, error)       { return file{}, errNotLinux }
func (*folder) readLinked(string, int) (file, error) { return file{}, errNotLinux }
func (*folder) remove(string) error                  { return errNotLinux }
func (*folder) create(file) error                    { return errNotLinux }
func (*folder) sync() error                          { return errNotLinux }

func (*folder) each(context.Context, func(string, fs.FileMode) error) error { return errNotLinux }

func (*folder) lock(context.Context, time.Duration) (func(), error) { return nil, errNotLinux }
