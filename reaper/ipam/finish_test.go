package ipam_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// What is done last ends at its limit, or soon after the run was told to stop.
func TestFinish(t *testing.T) {
	const limit = time.Minute
	for _, tt := range []struct {
		name  string
		after time.Duration // ctx ends; 0: it has ended before, negative: never
		want  time.Duration
	}{
		{"never stopped", -1, limit},
		{"stopped before", 0, ipam.Ending},
		{"stopped meanwhile", 3 * time.Second, 3*time.Second + ipam.Ending},
		{"stopped just before the limit", limit - time.Second, limit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				switch {
				case tt.after == 0:
					stop()
				case tt.after > 0:
					time.AfterFunc(tt.after, stop)
				}
				began := time.Now()
				finish, cancel := ipam.Finish(ctx, limit)
				defer cancel()
				<-finish.Done()
				if got := time.Since(began); got != tt.want {
					t.Errorf("it ends after %v, want %v", got, tt.want)
				}
			})
		})
	}
}
