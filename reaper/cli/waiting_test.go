package cli

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
		together bool
		json     bool
	}{
		{format: "", terminal: true}, {format: "", together: true}, {format: "text"},
		{format: "", json: true}, {format: "json", terminal: true, together: true, json: true},
	} {
		var errs bytes.Buffer
		logger := newLogger(ioStreams{stderr: &errs, terminal: tt.terminal, together: tt.together}, tt.format, false)
		logger.With("lock", "one").Warn("it was not renewed", "err", errors.New("line\nbreak"), "tries", 2)
		want := "it was not renewed: line\\nbreak (lock one, tries 2)\n"
		if got := errs.String(); tt.json != strings.HasPrefix(got, "{") || !tt.json && got != want {
			t.Errorf("%+v: %s, want %s", tt, got, want)
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

// The log is for people where it goes with the report: to a pager or a file, but not to the socket of a system's log, and
// not if a container has a pipe for each.
func TestLogThatGoesWithTheReportIsForPeople(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	socket, peer := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "peer")
	_, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name           string
		stdout, stderr *os.File
		want           bool
	}{
		{"one pipe", pipe, pipe, true},
		{"two pipes", pipe, other, false},
		{"one socket", socket, socket, false},
	} {
		if got := sameFile(tt.stdout, tt.stderr); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	for _, f := range []*os.File{socket, peer, pipe, other} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
