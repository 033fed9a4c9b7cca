package calico

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
)

// A CheckReport is what calicoctl finds wrong with addresses. It knows no grace period: an address
// is leaked if no pod and no node has it at this moment.
type CheckReport struct {
	Allocations map[netip.Addr][]Allocation // all of them; more than one if blocks overlap

	Leaked         []netip.Addr // allocated, but no pod has it
	NotAllocated   []netip.Addr // a pod has it from a pool, but it is not allocated
	NoHandle       []netip.Addr // allocated without a handle
	LeakedHandles  []string     // names of handles without an address
	MissingHandles []string     // handles that addresses have, but that do not exist

	Text string // what calicoctl printed
}

// An Allocation is what calicoctl knows about an allocated address.
type Allocation struct {
	Handle string `json:"handle"`
	InUse  bool   `json:"inUse"`
}

var (
	complete      = regexp.MustCompile(`(?m)^Check complete; found \d+ problems\.$`)
	notAllocated  = regexp.MustCompile(`(?m)^ +(\S+) in use by .* has no IPAM allocation\.$`)
	missingHandle = regexp.MustCompile(`(?m)^ +(\S+) is in use in a block but doesn't exist\.$`)
)

// Check makes calicoctl compare allocations with pods and nodes.
func (d *Datastore) Check(ctx context.Context) (*CheckReport, error) {
	r, file := &CheckReport{}, d.newFile("report.json")
	var err error
	if r.Text, err = d.Calicoctl(ctx, "", "ipam", "check", "--show-problem-ips", "--output="+file); err != nil {
		return nil, err
	}
	if err := r.readText(); err != nil {
		return nil, fmt.Errorf("ipam check: %w\n%s", err, r.Text)
	}
	if err := r.readFile(file); err != nil {
		return nil, fmt.Errorf("ipam check: %w", err)
	}
	return r, nil
}

// readText reads what is not in the file.
func (r *CheckReport) readText() error {
	if !complete.MatchString(r.Text) {
		return errors.New("the check is not complete")
	}
	for _, match := range notAllocated.FindAllStringSubmatch(r.Text, -1) {
		ip, err := netip.ParseAddr(match[1])
		if err != nil {
			return err
		}
		r.NotAllocated = append(r.NotAllocated, ip)
	}
	for _, match := range missingHandle.FindAllStringSubmatch(r.Text, -1) {
		r.MissingHandles = append(r.MissingHandles, match[1])
	}
	slices.SortFunc(r.NotAllocated, netip.Addr.Compare)
	slices.Sort(r.MissingHandles)
	return nil
}

func (r *CheckReport) readFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var report struct {
		Allocations   map[netip.Addr][]Allocation `json:"allocations"`
		LeakedHandles []struct{ ID string }       `json:"leakedHandles"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return fmt.Errorf("decode %s: %w", name, err)
	}
	r.Allocations = report.Allocations
	for ip, allocations := range report.Allocations {
		is := func(what func(Allocation) bool) bool { return slices.ContainsFunc(allocations, what) }
		if is(func(a Allocation) bool { return !a.InUse }) {
			r.Leaked = append(r.Leaked, ip)
		}
		if is(func(a Allocation) bool { return a.Handle == "" }) {
			r.NoHandle = append(r.NoHandle, ip)
		}
	}
	for _, h := range report.LeakedHandles {
		r.LeakedHandles = append(r.LeakedHandles, h.ID)
	}
	slices.SortFunc(r.Leaked, netip.Addr.Compare)
	slices.SortFunc(r.NoHandle, netip.Addr.Compare)
	slices.SortFunc(r.LeakedHandles, cmp.Compare[string])
	return nil
}
