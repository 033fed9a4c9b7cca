package main

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// measureWays measures ways in turns, and adds their costs.
func (g *stage) measureWays(ctx context.Context, ways []way, of contents, m *measured, out io.Writer) error {
	for range g.turns {
		for _, w := range ways {
			c, err := g.turn(ctx, w, of)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", w.part, w.name, err)
			}
			m.add(w, c)
			fmt.Fprintf(out, "  %s, %s: %s\n", w.part, w.name, c)
		}
	}
	return nil
}

// turn measures one way, checks what it left of the contents, and restores them.
func (g *stage) turn(ctx context.Context, w way, of contents) (cost, error) {
	load := loadAverage()
	stop, err := g.server.watch(ctx)
	if err != nil {
		return cost{}, err
	}
	c, runErr := w.run(ctx)
	partial := w.writes && (errors.Is(runErr, errSlow) || errors.Is(runErr, errPartial))
	if runErr != nil && !partial {
		return c, runErr
	}
	if c.server, c.requests, err = stop(); err != nil {
		return c, err
	}
	c.load, c.stopped = load, errors.Is(runErr, errSlow)
	if !w.writes {
		return c, of.check(ctx)
	}
	if c.released, c.left, err = of.left(ctx); err != nil {
		return c, err
	}
	if c.left > 0 && !partial {
		return c, fmt.Errorf("it did not release %d of %d, and said nothing", c.left, c.left+c.released)
	}
	return c, of.restore(ctx)
}
