//go:build !linux

package hostlocal

import "errors"

func (*folder) create(file) error { return errors.New("leases can only be restored on Linux") }

func (*folder) fileSystem() (uint32, error) {
	return 0, errors.New("the file system of a folder is known only on Linux")
}

func notLocal(uint32) string { return "an unknown file system" }
