package main

import "time"

// leak makes the sandboxes whose pods are gone.
func (c *crowd) leak() {
	for night, n := range c.nights {
		for range n {
			c.during(night, c.place(c.unruled(night%2, c.nodeOf(0)), night%2))
		}
		for range c.nightlies[night] {
			s := c.unruled(0, c.nodeOf(0))
			c.attach(s, 0)
			c.during(night, s)
		}
	}
	for range c.down {
		node := c.nodeOf(0)
		for !c.isDown(node) {
			node = c.nodeOf(0)
		}
		c.since(c.place(c.unruled(0, node), 0), lately)
	}
	for range c.ruled {
		s := c.sandbox(0, c.up())
		s.namespace, s.pod = ruled, c.name("billing-5c7d8f9b6")
		c.since(c.place(s, 0), morning)
	}
	waiting := c.newer
	for pool, n := range c.size.leaked {
		for i := range n {
			s, phase := c.unruled(pool, c.worst(pool)), morning
			switch {
			case pool == 0 && i < c.twice:
				c.former(s)
				c.place(s, pool)
				s.from = morning
				c.leaked = append(c.leaked, s)
				continue
			case waiting > 0 && pool != 2:
				waiting--
				phase = lately
			case c.random.IntN(3) == 0:
				phase = noon
			}
			c.since(c.place(s, pool), phase)
		}
	}
	for r, n := range c.detached {
		for range n {
			s := c.unruled(0, c.up())
			c.attach(s, r)
			c.since(s, morning)
			c.doomed = append(c.doomed, s)
		}
	}
}

// unruled returns a new sandbox that no rule holds.
func (c *crowd) unruled(pool, node int) *sandbox {
	for {
		if s := c.sandbox(pool, node); s.namespace != ruled {
			return s
		}
	}
}

// during notes that the sandbox is without a pod from a night until the run of the next.
func (c *crowd) during(night int, s *sandbox) {
	s.from, s.until = night, night+1
	c.leaked = append(c.leaked, s)
}

// former makes it a former sandbox of a live pod.
func (c *crowd) former(s *sandbox) {
	for {
		of := c.live[c.random.IntN(len(c.live))]
		if of.namespace != ruled && of.namespace != "edge" && !c.isDown(of.node) {
			s.namespace, s.pod, s.node, s.born = of.namespace, of.pod, of.node, of.born.Add(-time.Hour)
			return
		}
	}
}

// since notes that the sandbox is without a pod from the phase on.
func (c *crowd) since(s *sandbox, phase int) {
	s.from = phase
	s.born = c.before(ago[phase], 24*time.Hour)
	c.leaked = append(c.leaked, s)
}

// up returns a node that is reachable.
func (c *crowd) up() int {
	for {
		if n := c.nodeOf(0); !c.isDown(n) {
			return n
		}
	}
}

// worst returns a reachable node: worker-23 and worker-07 more often than the others.
func (c *crowd) worst(pool int) int {
	if calicoPools[pool].nodes > 0 {
		return c.nodeOf(pool)
	}
	if n := []int{22, 22, 6}[c.random.IntN(3)] % c.nodes; c.random.IntN(3) == 0 && !c.isDown(n) {
		return n
	}
	return c.up()
}
