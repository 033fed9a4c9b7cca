//go:build !linux

package hostlocal

import (
	"context"
	"sync"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/version"
)

type pluginExec struct{ version.PluginDecoder }

func newExec(*sync.Map) invoke.Exec { return &pluginExec{} }

func (*pluginExec) FindInPath(string, []string) (string, error) { return "", errNotLinux }

func (*pluginExec) ExecPlugin(context.Context, string, []byte, []string) ([]byte, error) {
	return nil, errNotLinux
}
