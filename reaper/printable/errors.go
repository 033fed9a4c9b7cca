package printable

import "strings"

// MaxText is the largest size of an error in a report, in bytes. An error may quote the
// message of a webhook or the page of a proxy.
const MaxText = 4 << 10

// goWords are the words of Go's packages for what the user or the program did.
var goWords = strings.NewReplacer(
	"context deadline exceeded (Client.Timeout exceeded while awaiting headers)", "no answer in time",
	"net/http: request canceled (Client.Timeout exceeded while awaiting headers)", "no answer in time",
	"context deadline exceeded (Client.Timeout or context cancellation while reading body)", "the answer did not end in time",
	"context deadline exceeded", "timed out",
	"context canceled", "interrupted",
)

// Plain returns the text of an error in the user's words: "interrupted" for what Go
// calls "context canceled".
func Plain(text string) string { return goWords.Replace(text) }

// Error returns the text of an error for a report: plain, and of at most MaxText bytes. It may
// have characters that are not printable.
func Error(err error) string { return Shorten(Plain(err.Error()), MaxText) }
