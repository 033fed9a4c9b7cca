package ipam

import (
	"context"
	"time"
)

// Ending is how long each of the last things that a run does may take after it was told to stop. There
// are at most four: it writes handles, or takes a journal back; it saves its end, frees the lock and
// pushes metrics. So it ends within 10 seconds.
const Ending = 2 * time.Second

// Finish returns a context for what is done even after ctx has ended. It ends after the limit, and not
// later than Ending after ctx.
func Finish(ctx context.Context, limit time.Duration) (finish context.Context, cancel func()) {
	finish, end := context.WithTimeout(context.WithoutCancel(ctx), limit)
	forget := context.AfterFunc(ctx, func() { time.AfterFunc(Ending, end) })
	return finish, func() {
		forget()
		end()
	}
}
