//go:build !linux

package hostlocal

import (
	"context"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/version"
)

type pluginExec struct{ version.PluginDecoder }

func newExec() invoke.Exec { return &pluginExec{} }

func (*pluginExec) FindInPath(string, []string) (string, error) { return "", errNotLinux }

func (*pluginExec) ExecPlugin(context.Context, string, []byte, []string) ([]byte, error) {
	return nil, errNotLinux
}
