package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
)

// check implements contents.
func (g *blockStage) check(ctx context.Context) error {
	released, _, err := g.left(ctx)
	if err == nil && released > 0 {
		err = fmt.Errorf("%d stale addresses are gone", released)
	}
	return err
}

// left implements contents. An address is released when neither block nor handle has it.
func (g *blockStage) left(ctx context.Context) (released, left int, err error) {
	found := newFindings(g.size)
	read := func(take func(name string, content []byte) error) func(string, []byte) error {
		return func(name string, value []byte) error {
			content, err := g.form.content(value)
			if err != nil {
				return err
			}
			return take(name, content)
		}
	}
	if err := g.stored.each(ctx, g.form.blocks, checkPage, read(found.block)); err != nil {
		return 0, 0, err
	}
	if err := g.stored.each(ctx, g.form.handles, checkPage, read(found.handle)); err != nil {
		return 0, 0, err
	}
	return found.count()
}

// findings records which entries have their address in a block, and which have a handle.
type findings struct {
	size      size
	byHandle  map[string]entry
	allocated []bool
	counted   []bool
}

func newFindings(s size) *findings {
	f := &findings{s, map[string]entry{}, make([]bool, s.total()), make([]bool, s.total())}
	for e := range entry(s.total()) {
		f.byHandle[e.given().Handle()] = e
	}
	return f
}

// block takes a block. A new allocation is an error, as is a broken invariant of Calico's.
func (f *findings) block(_ string, content []byte) error {
	if err := calico.Invariants(string(content)); err != nil {
		return err
	}
	var b blockContent
	if err := json.Unmarshal(content, &b); err != nil {
		return err
	}
	for ordinal, index := range b.Allocations {
		if index == nil {
			continue
		}
		e, known := f.byHandle[b.Attributes[*index].Handle]
		if !known || e.block().cidr() != b.CIDR || e.ordinal() != ordinal {
			return fmt.Errorf("ordinal %d has the handle %s", ordinal, b.Attributes[*index].Handle)
		}
		f.allocated[e] = true
	}
	return nil
}

// handle takes a handle, which must count one address, in the block of its entry. Calico marks a
// handle before it deletes it, and may be stopped in between.
func (f *findings) handle(name string, content []byte) error {
	var h struct {
		Block   map[netip.Prefix]int
		Deleted bool
	}
	if err := json.Unmarshal(content, &h); err != nil {
		return err
	}
	e, known := f.byHandle[name]
	marked := e.stale() && h.Deleted && len(h.Block) == 0
	if !known || !marked && (h.Deleted || !maps.Equal(h.Block, map[netip.Prefix]int{e.block().cidr(): 1})) {
		return fmt.Errorf("there is the handle %s", content)
	}
	f.counted[e] = true
	return nil
}

// count counts the stale entries that have nothing left, and those that still have a handle. It is
// an error if a live entry lacks its address or its handle, or if any entry has an address without
// a handle.
func (f *findings) count() (released, left int, err error) {
	for e := range entry(f.size.total()) {
		switch {
		case f.allocated[e] && !f.counted[e]:
			return 0, 0, fmt.Errorf("the address %s of %s has no handle", e.blockIP(), e.podRef())
		case f.counted[e] && e.stale():
			left++
		case e.stale():
			released++
		case !f.allocated[e]:
			return 0, 0, fmt.Errorf("%s of the live pod %s was released", e.blockIP(), e.podRef())
		}
	}
	return released, left, nil
}
