package main

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// measureWays measures ways in turns, and adds what that took.
func (g *stage) measureWays(ctx context.Context, ways []way, of contents, m *measured, out io.Writer) error {
	for range g.turns {
		for _, w := range ways {
			c, err := g.turn(ctx, w, of)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", w.part, w.name, err)
			}
			fmt.Fprintf(out, "  %s, %s: %s\n", w.part, w.name, c)
			m.add(w, c)
		}
	}
	return nil
}

// turn measures one way, checks what it has left of the contents, and restores them.
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
	if c.Server, c.Requests, err = stop(); err != nil {
		return c, err
	}
	c.Load, c.Stopped = load, errors.Is(runErr, errSlow)
	if !w.writes {
		return c, of.check(ctx)
	}
	if runErr != nil {
		c.Failure = runErr.Error()
	}
	if c.Released, c.Left, err = of.left(ctx); err != nil {
		return c, err
	}
	if c.Left > 0 && !partial {
		return c, fmt.Errorf("it did not release %d of %d, and said nothing", c.Left, c.Left+c.Released)
	}
	if w.name == reaperWay && !partial {
		if err := of.judge(ctx); err != nil {
			return c, err
		}
	}
	return c, of.restore(ctx)
}
