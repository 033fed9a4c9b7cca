package hostlocal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// inNamespaces says that the network namespace of a container exists, or may exist; empty if it
// does not. A runtime that stops a sandbox removes its namespace, after DEL. So if it exists
// and the runtime does not have the sandbox, the runtime may have lost a running sandbox: on
// start, containerd leaves out those that it cannot load.
func inNamespaces(paths, files []string) string {
	remove := ": if no process of its pod is left, remove " + strings.Join(files, " ")
	if len(paths) == 0 {
		return "libcni's cache names no network namespace that can be checked, so something may still run in it" + remove
	}
	for _, name := range slices.Compact(paths) {
		switch exists, err := namespaceExists(name); {
		case err != nil:
			return fmt.Sprintf("its network namespace may exist: %v", err) + remove
		case exists:
			return fmt.Sprintf("its network namespace %s exists, so something may still run in it: if \"ip netns pids %s\" prints nothing, run "+
				"\"ip netns delete %[2]s\"", name, path.Base(name))
		}
	}
	return ""
}

// namespaceExists reports whether there is a network namespace at the path. It is an error if
// the folder of the path does not exist: in a pod, it might not be mounted.
func namespaceExists(name string) (bool, error) {
	paths := []string{name}
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "/var"), "/run/"); ok {
		paths = []string{"/run/" + rest, "/var/run/" + rest} // one folder, but not in a container
	}
	looked := false
	for _, one := range paths {
		if _, err := os.Lstat(one); !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
		_, err := os.Stat(path.Dir(one))
		looked = looked || err == nil
	}
	if !looked {
		return false, fmt.Errorf("the folder of %s does not exist here: if this is a pod, mount it", name)
	}
	return false, nil
}
