package hostlocal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Attachments implements ipam.Attacher. It leaves out loopback, whose addresses no store has.
func (b *Backend) Attachments(ctx context.Context, sandboxes []string) ([]ipam.Attachment, error) {
	known, err := openCache(b.settings.CacheDir)
	if err != nil {
		return nil, err
	}
	defer known.close()
	if len(known) == 0 {
		folders := strings.Join(cacheFolders(b.settings.CacheDir), ", ")
		return nil, ipam.Worded("no claim by libcni's cache: none of "+folders+" exists", ipam.ErrNotInstalled)
	}
	entries, err := known.bySandbox(ctx)
	if err != nil {
		return nil, err
	}
	var defaults []string
	for _, dir := range b.settings.DataDirs {
		defaults = append(defaults, resolved(dir))
	}
	var all []ipam.Attachment
	for _, id := range sandboxes {
		for _, at := range entries[id] {
			_, name, _ := strings.Cut(at.name, id+"-")
			if name == "lo" {
				continue
			}
			a := ipam.Attachment{Sandbox: id, Interface: name, File: at.path()}
			e, err := at.read(id)
			if errors.Is(err, fs.ErrNotExist) {
				continue // DEL removed it meanwhile
			}
			if err == nil {
				a.IPs, err = e.addresses()
			}
			if err != nil {
				a.Unreadable = err.Error()
			} else {
				a.Pools = e.pools(defaults)
			}
			all = append(all, a)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addresses returns the addresses of the result, in whichever version of CNI it is.
func (e cached) addresses() (ips []netip.Addr, err error) {
	if e.Kind == "" {
		return nil, errors.New("it is not an entry of libcni for this sandbox")
	}
	var entry struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(e.content, &entry); err != nil {
		return nil, err
	}
	if len(entry.Result) == 0 || string(entry.Result) == "null" {
		return nil, errors.New("it has no result")
	}
	defer func() {
		if failed := recover(); failed != nil { // as libcni does of a list that has null
			ips, err = nil, fmt.Errorf("its result: %v", failed)
		}
	}()
	of, err := create.CreateFromBytes(entry.Result)
	if err != nil {
		return nil, fmt.Errorf("its result: %w", err)
	}
	result, err := types100.NewResultFromResult(of)
	if err != nil {
		return nil, fmt.Errorf("its result: %w", err)
	}
	for _, one := range result.IPs {
		ip, ok := netip.AddrFromSlice(one.Address.IP)
		if !ok {
			return nil, errors.New("its result has an empty address")
		}
		ips = append(ips, ip.Unmap())
	}
	return ips, nil
}

// pools returns the folders in one of which host-local has each address, by the configuration of the
// ADD; none if another plugin may have given them.
func (e cached) pools(defaults []string) []ipam.PoolRef {
	var c conf
	if json.Unmarshal(e.Config, &c) != nil {
		return nil
	}
	var pools []ipam.PoolRef
	none := func(string) (conf, bool) { return conf{}, false }
	for _, n := range c.networks("", none, 0) {
		if !n.local || n.idle {
			continue
		}
		for _, dir := range foldersOf(n, defaults) {
			pools = append(pools, ipam.PoolRef{Backend: Name, Name: dir + "/" + n.name})
		}
	}
	return pools
}
