package hostlocal

import (
	"io/fs"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A tar of data folders is listed as the folders are.
func TestTarIsListedAsItsFolders(t *testing.T) {
	at := time.Unix(1700000000, 0).UTC()
	entry := func(path, content string, mode fs.FileMode) reaper.Document {
		return reaper.Document{File: "a.tar", Place: path, Path: path, Mode: mode, ModTime: at, Data: []byte(content)}
	}
	b, rest := Offline([]reaper.Document{
		entry("networks/", "", fs.ModeDir), entry("networks/kindnet/", "", fs.ModeDir),
		entry("networks/kindnet/lock", "", 0), entry("networks/kindnet/last_reserved_ip.0", "10.0.0.1", 0),
		entry("networks/kindnet/10.0.0.2", id+"\r\neth0", 0o600), entry("networks/kindnet/10.0.0.1", id+"\r\neth0", 0o600),
		entry("networks/kindnet/10.0.0.3", "", fs.ModeSymlink), entry("networks/kindnet/foo.bak", "x", 0),
		entry("networks/podman/10.0.0.1", id, 0), entry("./10.0.0.9", id, 0),
		entry("results/kindnet-x-eth0", "{}", 0), {File: "b", Place: "document 1", Kind: "Pod"},
	}, Settings{})
	var got []string
	for pool, err := range b.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range pool.Allocations {
			said := pool.Name + " " + a.Key + " " + a.Owner.Sandbox
			if a.Unreadable != "" {
				said += "unreadable"
			}
			if a.Protected != "" {
				said += " protected"
			}
			if !a.Created.Equal(at) {
				t.Errorf("%s was made at %v", said, a.Created)
			}
			got = append(got, said)
		}
	}
	want := []string{
		"a.tar 10.0.0.9 " + id, "networks/kindnet foo.bak unreadable", "networks/kindnet 10.0.0.1 " + id,
		"networks/kindnet 10.0.0.2 " + id, "networks/kindnet 10.0.0.3 unreadable", "networks/podman 10.0.0.1 " + id + " protected",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	if len(rest) != 2 || rest[0].Place != "results/kindnet-x-eth0" || rest[1].Kind != "Pod" {
		t.Errorf("the rest is %+v", rest)
	}
	if b, rest := Offline([]reaper.Document{{Kind: "Pod"}}, Settings{}); b != nil || len(rest) != 1 {
		t.Errorf("without a folder, there is %v, and a rest of %d", b, len(rest))
	}
}
