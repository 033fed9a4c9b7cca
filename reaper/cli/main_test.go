package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// A desert has no pods, no ledger, and a store that cannot be listed.
type desert struct{ ipam.Excerpt }

func (desert) Name() string { return "whereabouts" }

func (desert) List(context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) { yield(ipam.Pool{}, errors.New("list pools: forbidden")) }
}

func (desert) Pods(context.Context) ([]census.Pod, error) { return nil, nil }

func (desert) StatefulSets(context.Context) ([]census.StatefulSet, error) { return nil, nil }

func (desert) Nodes(context.Context) ([]census.Node, error) { return nil, nil }

func (desert) VirtualMachines(context.Context) ([]census.VirtualMachine, error) { return nil, nil }

func (desert) Pod(context.Context, ipam.PodRef) (census.Pod, census.Presence, error) {
	return census.Pod{}, census.Absent, nil
}

func (desert) Load(context.Context) (ledger.Ledger, error) { return ledger.Ledger{}, nil }

func (desert) Capacity() int { return 1 }

func (desert) Save(context.Context, ledger.Ledger) error { return nil }

// partialRun returns the error of a run of which a part failed.
func partialRun(t *testing.T) error {
	t.Helper()
	_, err := reaper.Run(t.Context(), reaper.Options{
		Policy: policy.Default(), Backends: []ipam.Backend{desert{}}, Cluster: desert{}, Ledgers: desert{},
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		t.Fatal("the run had no failure")
	}
	return err
}

func TestExitCode(t *testing.T) {
	partial := partialRun(t)
	usage := ipam.BadInput(errors.New("unknown flag"), "see --help")
	invalid := &policy.Error{Messages: []string{"minAge: must not be negative"}}
	for _, tt := range []struct {
		name        string
		err         error
		interrupted bool
		want        int
	}{
		{"done", nil, false, 0},
		{"done, then interrupted", nil, true, 0},
		{"something unexpected", io.ErrUnexpectedEOF, false, 1},
		{"the time is over", context.DeadlineExceeded, false, 1},
		{"usage", usage, false, 2},
		{"usage, deep inside", fmt.Errorf("run: %w", usage), false, 2},
		{"usage, then interrupted", usage, true, 2},
		{"policy", fmt.Errorf("policy p.yaml: %w", invalid), false, 2},
		{"partial", partial, false, 3},
		{"partial, and the report could not be printed", errors.Join(partial, io.ErrShortWrite), false, 3},
		{"only the report could not be printed", errors.Join(nil, io.ErrShortWrite), false, 1},
		{"limit", &judge.LimitError{}, false, 4},
		{"limit, and the report could not be printed", errors.Join(&judge.LimitError{}, io.ErrShortWrite), false, 4},
		{"interrupted", context.Canceled, true, 130},
		{"interrupted in the midst of the releases", partial, true, 130},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.interrupted {
				cancel()
			}
			if got := exitCode(ctx, tt.err); got != tt.want {
				t.Errorf("exitCode(%v) = %d, want %d", tt.err, got, tt.want)
			}
		})
	}
}

func TestInterruptedRunSaysSo(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for _, tt := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{ended, fmt.Errorf("census: list pods: %w", context.Canceled), "census: list pods: interrupted"},
		{ended, io.ErrUnexpectedEOF, "interrupted: unexpected EOF"},
		{ended, ipam.BadInput(errors.New("unknown flag"), ""), "unknown flag"},
		{t.Context(), io.ErrUnexpectedEOF, "unexpected EOF"},
		{t.Context(), fmt.Errorf("census: %w", context.DeadlineExceeded), "census: the time is over"},
	} {
		if got := oneLine(told(tt.ctx, tt.err)); got != tt.want {
			t.Errorf("%v is told as %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestPrintError(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"usage with a hint", ipam.BadInput(errors.New("unknown flag: --x"), "see ip-reaper --help"),
			"ip-reaper: unknown flag: --x\nhint: see ip-reaper --help\n"},
		{"usage without one", ipam.BadInput(errors.New("--timeout: 0s is not a positive duration"), ""),
			"ip-reaper: --timeout: 0s is not a positive duration\n"},
		{"several lines", &policy.Error{Messages: []string{"a: no", "b: no"}},
			"ip-reaper: a: no\nip-reaper: b: no\n"},
		{"limit", fmt.Errorf("run: %w", &judge.LimitError{Refusals: []judge.Refusal{{Message: "limits.maxReleases: too many", Remedy: "look at the plan"}}}),
			"ip-reaper: run: limits.maxReleases: too many; nothing was released\nhint: look at the plan\n"},
		{"several mistakes of a policy file", fmt.Errorf("policy p.yaml: %w", &policy.Error{Messages: []string{"a: no", "b: no\nreally"}}),
			"ip-reaper: policy p.yaml: a: no\nip-reaper: b: no\\nreally\n"},
		{"what a store or a server says", errors.New("pool a\x1b[2Jb\r: bad \u202erange\nhint: type this"),
			`ip-reaper: pool a\x1b[2Jb\r: bad \u202erange\nhint: type this` + "\n"},
		{"several errors", fmt.Errorf("restore: %w", errors.Join(errors.New("one\ntwo"), fmt.Errorf("a: %w", errors.Join(io.EOF, io.ErrNoProgress)))),
			`ip-reaper: restore: one\ntwo` + "\nip-reaper: a: EOF\nip-reaper: multiple Read calls return no data or error\n"},
		{"a hint with a name of a context", ipam.BadInput(io.EOF, "--context a\nb"), "ip-reaper: EOF\nhint: --context a\\nb\n"},
		{"a page of a proxy", errors.New(strings.Repeat("<p>é", 9999)), "ip-reaper: " + strings.Repeat("<p>é", 3276) + "<…\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got bytes.Buffer
			printError(ioStreams{stderr: &got}, tt.err)
			if diff := cmp.Diff(tt.want, got.String()); diff != "" {
				t.Errorf("printError (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFromEnv(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		env  map[string]string
		want string // dry-run, policy, timeout, unsafe-ignore-limits
		err  string
	}{
		{"nothing given", nil, nil, "true  10m0s false", ""},
		{"variables", nil, map[string]string{"IP_REAPER_DRY_RUN": "false", "IP_REAPER_POLICY": "p.yaml", "IP_REAPER_TIMEOUT": "1m"},
			"false p.yaml 1m0s false", ""},
		{"a flag wins", []string{"--dry-run=true", "--policy", "q.yaml"}, map[string]string{"IP_REAPER_DRY_RUN": "false", "IP_REAPER_POLICY": "p.yaml"},
			"true q.yaml 10m0s false", ""},
		{"a flag that says the default wins", []string{"--timeout=10m"}, map[string]string{"IP_REAPER_TIMEOUT": "1m"},
			"true  10m0s false", ""},
		{"a flag wins over a variable that is wrong", []string{"--timeout=1m"}, map[string]string{"IP_REAPER_TIMEOUT": "soon"},
			"true  1m0s false", ""},
		{"an empty variable says nothing", nil, map[string]string{"IP_REAPER_DRY_RUN": "", "IP_REAPER_TIMEOUT": ""}, "true  10m0s false", ""},
		{"what is unsafe must be typed", nil, map[string]string{"IP_REAPER_UNSAFE_IGNORE_LIMITS": "true"}, "true  10m0s false", ""},
		{"typed", []string{"--unsafe-ignore-limits"}, nil, "true  10m0s true", ""},
		{"a variable that is wrong", nil, map[string]string{"IP_REAPER_TIMEOUT": "soon"}, "", "IP_REAPER_TIMEOUT: "},
		{"other variables", nil, map[string]string{"TIMEOUT": "1m", "IP_REAPER_PORT": "tcp://10.0.0.1:80", "ip_reaper_timeout": "1m"}, "true  10m0s false", ""},
		{"help and version are typed", nil, map[string]string{"IP_REAPER_VERSION": "v1.2.3", "IP_REAPER_HELP": "yes please"}, "true  10m0s false", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := newRoot(ioStreams{stdout: io.Discard, stderr: io.Discard})
			cmd.InitDefaultHelpFlag()
			cmd.InitDefaultVersionFlag()
			flags := cmd.Flags()
			if err := flags.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			err := fromEnv(flags, func(key string) string { return tt.env[key] })
			if tt.err != "" {
				var usage *ipam.InputError
				if !errors.As(err, &usage) || !bytes.HasPrefix([]byte(err.Error()), []byte(tt.err)) {
					t.Errorf("fromEnv = %v, want a mistake in usage: %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(value(t, flags, "dry-run"), " ", value(t, flags, "policy"), " ", value(t, flags, "timeout"), " ", value(t, flags, "unsafe-ignore-limits"))
			if got != tt.want {
				t.Errorf("flags = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestVariablesThatSetNothingAreRefused(t *testing.T) {
	for _, tt := range []struct {
		variable string
		err      string // empty if it is accepted
		hint     string
	}{
		{"PATH=/bin", "", ""},
		{"ip_reaper_polcy=p.yaml", "", ""},
		{"IP_REAPER_POLICY=p.yaml", "", ""},
		{"IP_REAPER_ONLY=10.0.0.1", "", ""}, // of restore
		{"IP_REAPER_POLCY=p.yaml", "unknown variable IP_REAPER_POLCY", "see ip-reaper --help"},
		{"IP_REAPER_DRYRUN=false", "unknown variable IP_REAPER_DRYRUN", "see ip-reaper --help"},
		{"IP_REAPER_XYZZY=a", "unknown variable IP_REAPER_XYZZY", "see ip-reaper --help"},
		{"IP_REAPER_POLCY=", "", ""}, // it says nothing
		{"IP_REAPER_UNSAFE_IGNORE_LIMITS=false", "IP_REAPER_UNSAFE_IGNORE_LIMITS: no variable stands for --unsafe-ignore-limits", "unset it; type the flag if you mean it"},
		{"IP_REAPER_VERSION=v1", "IP_REAPER_VERSION: no variable stands for --version", "unset it; type the flag if you mean it"},
		// The kubelet sets these for Services named ip-reaper and ip-reaper-metrics.
		{"IP_REAPER_SERVICE_HOST=10.0.0.1", "", ""},
		{"IP_REAPER_SERVICE_PORT=80", "", ""},
		{"IP_REAPER_SERVICE_PORT_HTTP_METRICS=80", "", ""},
		{"IP_REAPER_PORT=tcp://10.0.0.1:80", "", ""},
		{"IP_REAPER_PORT_8080_TCP=tcp://10.0.0.1:80", "", ""},
		{"IP_REAPER_PORT_8080_SCTP_PROTO=sctp", "", ""},
		{"IP_REAPER_METRICS_SERVICE_HOST=10.0.0.1", "", ""},
		{"IP_REAPER_METRICS_PORT_53_UDP_ADDR=10.0.0.1", "", ""},
		{"IP_REAPER_PORTS=80", "unknown variable IP_REAPER_PORTS", "see ip-reaper --help"},
		{"IP_REAPER_PORT_TCP=80", "unknown variable IP_REAPER_PORT_TCP", "see ip-reaper --help"},
	} {
		root := newRoot(ioStreams{stdout: io.Discard, stderr: io.Discard})
		root.InitDefaultVersionFlag()
		err := checkVariables(root, []string{"A=b", tt.variable})
		var usage *ipam.InputError
		switch {
		case tt.err == "" && err != nil, tt.err != "" && !errors.As(err, &usage):
			t.Errorf("%s: %v, want %q", tt.variable, err, tt.err)
		case tt.err != "" && (err.Error() != tt.err || usage.Hint != tt.hint):
			t.Errorf("%s: %v; %s, want %s; %s", tt.variable, err, usage.Hint, tt.err, tt.hint)
		}
	}
}

func value(t *testing.T, flags *pflag.FlagSet, name string) string {
	t.Helper()
	f := flags.Lookup(name)
	if f == nil {
		t.Fatalf("there is no flag --%s", name)
	}
	return f.Value.String()
}

func TestVersionThatWasLinkedIn(t *testing.T) {
	t.Cleanup(func(v, c string) func() { return func() { version, commit = v, c } }(version, commit))
	for _, tt := range []struct{ version, commit, wantShort, wantLong string }{
		{"v9.9.9", "635c952", "v9.9.9", "v9.9.9 (commit 635c952)"},
		{"v9.9.9", "", "v9.9.9", "v9.9.9"},
		{"635c952", "635c952", "635c952", "635c952"},
	} {
		version, commit = tt.version, tt.commit
		if got := buildVersion(); got != tt.wantShort {
			t.Errorf("buildVersion = %q, want %q", got, tt.wantShort)
		}
		if got := longVersion(); got != tt.wantLong {
			t.Errorf("longVersion = %q, want %q", got, tt.wantLong)
		}
	}
	version, commit = "", ""
	if got := buildVersion(); got == "" {
		t.Error("buildVersion says nothing")
	}
}

// A man page has the sections that the help of its command has.
func TestDocumentedCommandsHaveTheirSections(t *testing.T) {
	visitCommands(Documented(nil), func(cmd *cobra.Command) {
		for _, section := range []string{"\n# EXIT STATUS\n\n```\n  0    done", "\n# ENVIRONMENT\n"} {
			if got := strings.Contains(cmd.Long, section); got == isPlain(cmd) {
				t.Errorf("%s: has section %q: %v", cmd.CommandPath(), section, got)
			}
		}
	})
}
