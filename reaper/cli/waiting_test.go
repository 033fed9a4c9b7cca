package cli

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// A server that accepts connections and never answers is given up.
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
	var out, errs bytes.Buffer
	w := streams(&out, &errs)
	w.firstAnswer = 60 * time.Millisecond
	code := run(t.Context(), w, append(leadToAddress(t, "http://"+listener.Addr().String()), "--dry-run"))
	if code != exitUnexpected || !strings.Contains(errs.String(), "did not answer within 60ms") {
		t.Errorf("exit code %d, stderr:\n%s", code, errs.String())
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
		newLogger(ioStreams{stderr: &errs, terminal: tt.terminal}, tt.format, false).Warn("word")
		if got := strings.HasPrefix(errs.String(), "{"); got != tt.json {
			t.Errorf("--log-format=%q, terminal %v: %s", tt.format, tt.terminal, errs.String())
		}
	}
}

// The log has no lines of client-go about itself, such as its feature gates.
func TestVerboseLogIsOursOnly(t *testing.T) {
	var errs bytes.Buffer
	newLogger(ioStreams{stderr: &errs}, "", true).Debug("ours")
	klog.Background().V(1).Info("Feature gate")
	klog.Background().Info("Waited before sending request")
	if got := errs.String(); !strings.Contains(got, "ours") || strings.Contains(got, "gate") || strings.Contains(got, "Waited") {
		t.Errorf("the log has\n%s", got)
	}
}

func TestWaitIsASwitchOrADuration(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want waitFlag
		text string
	}{
		{nil, waitFlag{}, "false"},
		{[]string{"--wait"}, waitFlag{on: true}, "true"},
		{[]string{"--wait=1"}, waitFlag{on: true}, "true"}, // as IP_REAPER_WAIT=1
		{[]string{"--wait=2m"}, waitFlag{on: true, max: 2 * time.Minute}, "2m"},
		{[]string{"--wait=2m", "--wait"}, waitFlag{on: true}, "true"},
		{[]string{"--wait=2m", "--wait=false"}, waitFlag{}, "false"},
	} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		var got waitFlag
		got.add(flags)
		if err := flags.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		if got != tt.want || got.String() != tt.text {
			t.Errorf("%q: %+v %s, want %+v %s", tt.args, got, got.String(), tt.want, tt.text)
		}
	}
	for _, text := range []string{"", "soon", "0s", "-1m", "2", "yes"} {
		if err := new(waitFlag).Set(text); err == nil {
			t.Errorf("--wait=%s is taken", text)
		}
	}
}
