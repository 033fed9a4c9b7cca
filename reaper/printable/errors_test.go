package printable_test

import (
	"context"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

func TestErrorsSpeakPlainly(t *testing.T) {
	for text, want := range map[string]string{
		"census: list pods: " + context.Canceled.Error():                                              "census: list pods: interrupted",
		"census: list pods: " + context.DeadlineExceeded.Error():                                      "census: list pods: timed out",
		`Get "https://a": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`: `Get "https://a": no answer in time`,
		"forbidden": "forbidden",
	} {
		if got := printable.Plain(text); got != want {
			t.Errorf("Plain(%q) = %q, want %q", text, got, want)
		}
	}
}
