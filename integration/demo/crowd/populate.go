package main

import (
	"fmt"
	"time"
)

// The phases of the history, at whose times runs look at the cluster.
const (
	fourthDay = iota // two nights before the last one, without a release
	thirdNight
	lastNight
	morning // the pods of doomed are gone from here on
	noon
	lately
)

// ago are the times of the phases.
var ago = [...]time.Duration{57 * time.Hour, 33 * time.Hour, 9 * time.Hour, 8 * time.Hour, 4 * time.Hour, 6 * time.Minute}

// outage is since when the nodes are unreachable.
const outage = 45 * time.Minute

// ruled is the namespace that the policy's rule holds.
const ruled = "legacy"

// apps are namespaces with their ReplicaSets, by Calico's pool.
var apps = [][][2]string{
	{
		{"shop", "web-6d5f7c9b8"}, {"shop", "cart-7c4d9f6b5"}, {"search", "indexer-5b8f6d7c9"}, {"search", "query-84c6f5d7b"},
		{"checkout", "payments-65d8b9f7c"}, {"media", "encoder-7f9b6c5d4"}, {ruled, "billing-5c7d8f9b6"}, {"monitoring", "agent-6b9c8d7f5"},
	},
	{{"batch-etl", "nightly-import-29384400"}, {"batch-etl", "export-29384460"}, {"ml-training", "train-resnet-7d9c8"}},
	{{"edge", "ingress-58d7c9f6b"}, {"edge", "waf-79b6d8c5f"}},
}

// tunnels gives each node the address of its tunnel.
func (c *crowd) tunnels() {
	for n := range c.nodes {
		for _, b := range c.blocks {
			if b.pool == 0 && b.node == n {
				owner := &sandbox{node: n}
				b.give(owner, c.random)
				b.tunnel[owner.ip.As4()[3]%blockSize] = true
				break
			}
		}
	}
}

// sandbox returns a new sandbox of an app of the pool on the node.
func (c *crowd) sandbox(pool, node int) *sandbox {
	app := apps[pool][c.random.IntN(len(apps[pool]))]
	return &sandbox{
		namespace: app[0], pod: c.name(app[1]), node: node, id: c.hexID(),
		born: c.before(ago[fourthDay], 30*24*time.Hour),
	}
}

// before returns a time that is older than at, by at most so much.
func (c *crowd) before(at, most time.Duration) time.Time {
	return c.now.Add(-at - time.Hour - time.Duration(c.random.Int64N(int64(most))))
}

// nodeOf returns a node that has blocks of the pool.
func (c *crowd) nodeOf(pool int) int {
	if n := calicoPools[pool].nodes; n > 0 {
		return c.random.IntN(min(n, c.nodes))
	}
	return c.random.IntN(c.nodes)
}

// place gives the sandbox an address of the pool, on another node if its own is full.
func (c *crowd) place(s *sandbox, pool int) *sandbox {
	for !c.give(s, pool) {
		s.node = c.nodeOf(pool)
	}
	return s
}

// populate makes the live pods.
func (c *crowd) populate() {
	for i := range c.size.sets {
		name := fmt.Sprintf("db-%02d", i)
		c.sets = append(c.sets, name)
		for ordinal := range 3 {
			s := c.sandbox(0, c.nodeOf(0))
			s.namespace, s.pod, s.set = "databases", fmt.Sprintf("%s-%d", name, ordinal), name
			c.attach(s, 0)
			if ordinal == 1 && i < c.absent {
				c.absentees = append(c.absentees, s)
				continue
			}
			c.live = append(c.live, c.place(s, 0))
		}
	}
	for pool, n := range c.size.live {
		if pool == 0 {
			n -= len(c.live)
		}
		for range n {
			c.live = append(c.live, c.place(c.sandbox(pool, c.nodeOf(pool)), pool))
		}
	}
	next := len(c.sets)*3 - c.absent
	for r, n := range c.attached {
		if r == 0 {
			n -= len(c.sets) * 3
		}
		for range n {
			c.attach(c.live[next], r)
			next++
		}
	}
}

// attach gives the sandbox an address of the range.
func (c *crowd) attach(s *sandbox, r int) {
	offset := c.rooms[r][0]
	c.rooms[r] = c.rooms[r][1:]
	s.network, s.second = r, ranges[r].at(offset)
}
