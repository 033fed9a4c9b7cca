//go:build !linux

package hostlocal

import "errors"

func (*folder) create(file) error { return errors.New("leases can only be restored on Linux") }
