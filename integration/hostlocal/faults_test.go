package hostlocal_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// mount mounts a file system until the test ends.
func (w *world) mount(source, target, kind string, flags uintptr, data string) {
	w.Helper()
	w.must(os.MkdirAll(target, 0o700))
	if err := syscall.Mount(source, target, kind, flags, data); err != nil {
		w.Skipf("SKIPPED, so that nothing shows what a full or a read-only disk does: only root can mount: %v", err)
	}
	w.Cleanup(func() {
		if err := syscall.Unmount(target, syscall.MNT_DETACH); err != nil {
			w.Error(err)
		}
	})
}

// readOnly makes a folder read-only, and returns a function that makes it writable again.
func (w *world) readOnly(folder string) (writable func()) {
	w.Helper()
	w.mount(folder, folder, "", syscall.MS_BIND, "")
	remount := func(more uintptr) {
		w.must(syscall.Mount("", folder, "", syscall.MS_BIND|syscall.MS_REMOUNT|more, ""))
	}
	remount(syscall.MS_RDONLY)
	return func() { remount(0) }
}

// A read-only data folder loses nothing: each release fails, the run says so, and the next one
// releases (promises 2, 7 and 8).
func TestReadOnlyDataFolder(t *testing.T) {
	w := newWorld(t)
	ips := w.leaked(pods, sandbox("web"))
	attached := w.given(pods, sandbox("attached"), dead) // the plugin's DEL fails too, silently
	before := w.content()
	writable := w.readOnly(w.path(dataDir))
	want := map[string]fate{ips[0].String(): failed, attached[0].String(): failed}
	w.wantFates(w.run(reap.ExitPartial), pods, want)
	w.wantContent(before)
	writable()
	w.run(0)
	if left := w.left(pods, sandbox("web"), sandbox("attached")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
