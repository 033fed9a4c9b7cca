package cli

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/ip-reaper/ip-reaper/backends"
)

// A server that accepts connections and never answers is told, and given up.
func TestServerThatNeverAnswers(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			if _, err := listener.Accept(); err != nil {
				return
			}
		}
	}()
	for _, tt := range []struct {
		name     string
		terminal bool
		told     string
	}{
		{"on a terminal", true, "waiting for the API server http://" + listener.Addr().String() + "\n"},
		{"elsewhere", false, `"msg":"waiting for the API server"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), ioStreams{
				environ:  func() []string { return nil },
				backends: backends.All(), env: func(string) string { return "" }, stdout: &out, stderr: &errs,
				terminal: tt.terminal, firstAnswer: 60 * time.Millisecond,
			}, append(leadToAddress(t, "http://"+listener.Addr().String()), "--dry-run"))
			if code != exitUnexpected {
				t.Errorf("exit code %d", code)
			}
			for _, want := range []string{tt.told, "did not answer within 60ms"} {
				if !strings.Contains(errs.String(), want) {
					t.Errorf("stderr does not have %q:\n%s", want, errs.String())
				}
			}
		})
	}
}

func TestLogFormat(t *testing.T) {
	for _, tt := range []struct {
		format   string
		terminal bool
		json     bool
	}{
		{"", true, false}, {"", false, true}, {"text", false, false}, {"json", true, true},
	} {
		var errs bytes.Buffer
		newLogger(ioStreams{stderr: &errs, terminal: tt.terminal}, commandFlags{logFormat: tt.format}).Warn("word")
		if got := strings.HasPrefix(errs.String(), "{"); got != tt.json {
			t.Errorf("--log-format=%q, terminal %v: %s", tt.format, tt.terminal, errs.String())
		}
	}
}

// The log has no lines of client-go about itself, such as its feature gates.
func TestVerboseLogIsOursOnly(t *testing.T) {
	var errs bytes.Buffer
	newLogger(ioStreams{stderr: &errs}, commandFlags{verbose: true}).Debug("ours")
	klog.Background().V(1).Info("Feature gate")
	klog.Background().Info("Waited before sending request")
	if got := errs.String(); !strings.Contains(got, "ours") || strings.Contains(got, "gate") || strings.Contains(got, "Waited") {
		t.Errorf("the log has\n%s", got)
	}
}
