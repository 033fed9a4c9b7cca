package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// floor lists what a plan has to list.
func (g *blockStage) floor(ctx context.Context) (cost, error) { return g.doTask(ctx, g.lists()) }

// floorRun lists the same, and writes what a run has to write: the blocks, and the handles
// after them. In etcd, one transaction is for a block and its handles.
func (g *blockStage) floorRun(ctx context.Context) (cost, error) {
	t := g.lists()
	var blocks, handles []write
	for b := range blockID(g.size.blocks()) {
		var gone []entry
		for _, e := range g.size.entries(b) {
			if e.stale() {
				gone = append(gone, e)
			}
		}
		if len(gone) == 0 {
			continue
		}
		content := g.size.content(b).without(gone)
		if g.form.etcd {
			txn, err := g.transaction(b, content, gone)
			if err != nil {
				return cost{}, err
			}
			t.Etcd.Txns = append(t.Etcd.Txns, txn)
			continue
		}
		block, err := g.blockWrite(b, content)
		if err != nil {
			return cost{}, err
		}
		blocks = append(blocks, block)
		for _, e := range gone {
			handles = append(handles, g.handleWrite(e))
		}
	}
	t.Stages = [][]write{blocks, handles}
	return g.doTask(ctx, t)
}

// calicoPath is where the API server has Calico's custom resources.
const calicoPath = "/apis/crd.projectcalico.org/v1/"

// lists are the lists of a plan that are not empty.
func (g *blockStage) lists() task {
	t := task{Lists: []listing{{"/api/v1/pods", true}, {"/api/v1/nodes", true}}}
	if g.form.etcd {
		t.Etcd = &etcdTask{
			Endpoint: g.datastore.Etcd.Endpoint,
			Prefixes: []string{g.form.handles, g.form.blocks, calicoResources + "nodes/"},
		}
		return t
	}
	t.Lists = append(t.Lists, listing{calicoPath + "ipamhandles", false}, listing{calicoPath + "ipamblocks", false})
	return t
}

// blockWrite updates a block, if no other client has.
func (g *blockStage) blockWrite(b blockID, c blockContent) (write, error) {
	body, err := g.form.blockValue(b, c, strconv.FormatInt(g.written[b], 10))
	return write{calicoPath + "ipamblocks/" + cidrName(b.cidr()), []request{{"PUT", "application/json", string(body)}}}, err
}

// handleWrite deletes the handle of a stale entry, if no other client has written it.
func (g *blockStage) handleWrite(e entry) write {
	options := fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":%q,"resourceVersion":"%d"}}`,
		uid(handleUID, int(e)), g.stale[e.nth()])
	return write{calicoPath + "ipamhandles/" + strings.ToLower(e.given().Handle()), []request{{"DELETE", "application/json", options}}}
}

// transaction writes a block and deletes the handles of stale entries, if no other client
// has written any of them.
func (g *blockStage) transaction(b blockID, c blockContent, gone []entry) (transaction, error) {
	value, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	t := transaction{{g.form.blockKey(b), g.written[b], string(value)}}
	for _, e := range gone {
		t = append(t, operation{Key: g.form.handleKey(e), Revision: g.stale[e.nth()]})
	}
	return t, nil
}
