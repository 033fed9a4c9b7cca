package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

func TestExitCode(t *testing.T) {
	partial := report.Partial([]error{errors.New("a pool failed")})
	usage := ipam.BadInput(errors.New("unknown flag"), "see --help")
	invalid := &policy.Error{Messages: []string{"minAge: must not be negative"}}
	for _, tt := range []struct {
		name        string
		err         error
		interrupted bool
		want        int
	}{
		{"done", nil, false, 0},
		{"something unexpected", io.ErrUnexpectedEOF, false, 1},
		{"usage", usage, false, 2},
		{"policy", fmt.Errorf("policy p.yaml: %w", invalid), false, 2},
		{"partial", partial, false, 3},
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
		{t.Context(), fmt.Errorf("census: %w", context.DeadlineExceeded), "census: timed out"},
	} {
		if got := oneLine(sayInterrupted(tt.ctx, tt.err)); got != tt.want {
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
		{"limit", fmt.Errorf("run: %w", &judge.LimitError{Refusals: []judge.Refusal{{Message: "limits.maxReleases: too many", Remedy: "review the plan"}}}),
			"ip-reaper: run: limits.maxReleases: too many; nothing was released\nhint: review the plan\n"},
		{"several mistakes of a policy file", fmt.Errorf("policy p.yaml: %w", &policy.Error{Messages: []string{"a: no", "b: no\nreally"}}),
			"ip-reaper: policy p.yaml: a: no\nip-reaper: b: no\\nreally\n"},
		{"what a store or a server says", errors.New("pool a\x1b[2Jb\r: bad \u202erange\nhint: type this"),
			`ip-reaper: pool a\x1b[2Jb\r: bad \u202erange\nhint: type this` + "\n"},
		{"several errors", fmt.Errorf("restore: %w", errors.Join(errors.New("one\ntwo"), fmt.Errorf("a: %w", errors.Join(io.EOF, io.ErrNoProgress)))),
			`ip-reaper: restore: one\ntwo` + "\nip-reaper: a: EOF\nip-reaper: multiple Read calls return no data or error\n"},
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

func TestVariablesThatSetNothingAreRefused(t *testing.T) {
	for _, tt := range []struct {
		variable string
		err      string // empty if it is accepted
		hint     string
	}{
		{"ip_reaper_polcy=p.yaml", "", ""},
		{"IP_REAPER_POLICY=p.yaml", "", ""},
		{"IP_REAPER_JOURNAL=run.json", "", ""}, // of restore
		{"IP_REAPER_POLCY=p.yaml", "unknown variable IP_REAPER_POLCY", "did you mean IP_REAPER_POLICY?"},
		{"IP_REAPER_POLCY=", "", ""}, // it says nothing
		{"IP_REAPER_UNSAFE_IGNORE_LIMIT=maxFraction", "IP_REAPER_UNSAFE_IGNORE_LIMIT: --unsafe-ignore-limit must be typed", "unset the variable"},
		{"IP_REAPER_VERSION=v1", "IP_REAPER_VERSION: --version must be typed", "unset the variable"},
		// The kubelet sets these for Services named ip-reaper and ip-reaper-metrics.
		{"IP_REAPER_SERVICE_HOST=10.0.0.1", "", ""},
		{"IP_REAPER_SERVICE_PORT_HTTP_METRICS=80", "", ""},
		{"IP_REAPER_PORT=tcp://10.0.0.1:80", "", ""},
		{"IP_REAPER_PORT_8080_SCTP_PROTO=sctp", "", ""},
		{"IP_REAPER_METRICS_PORT_53_UDP_ADDR=10.0.0.1", "", ""},
		{"IP_REAPER_PORTS=80", "unknown variable IP_REAPER_PORTS", "did you mean IP_REAPER_PODS?"},
		{"IP_REAPER_PORT_TCP=80", "unknown variable IP_REAPER_PORT_TCP", "see ip-reaper help environment"},
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

// The man page of the program has the exit codes and the variables of all commands.
func TestTheManPageHasItsSections(t *testing.T) {
	for _, section := range []string{"\n# EXIT STATUS\n\n```\n  0    done", "\n# ENVIRONMENT\n"} {
		if long := Documented(nil).Long; !strings.Contains(long, section) {
			t.Errorf("no section %q in %s", section, long)
		}
	}
}

// The help of each command has each of its flags once, whether or not a group names it, and fits
// into a terminal.
func TestHelpShowsEveryFlagOnce(t *testing.T) {
	root := newRoot(ioStreams{})
	run, _, err := root.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	run.Flags().Bool("new", false, "is in no group")
	visitCommands(root, func(cmd *cobra.Command) {
		var help strings.Builder
		cmd.SetOut(&help)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			want := 1
			if cmd == root && f.Name != "help" && f.Name != "version" {
				want = 0 // the help of run has it
			}
			if got := len(regexp.MustCompile("(?m)^  .{3} --"+f.Name+`[ \[\n]`).FindAllString(help.String(), -1)); got != want {
				t.Errorf("%s shows --%s %d times, want %d:\n%s", cmd.CommandPath(), f.Name, got, want, help.String())
			}
		})
		if strings.Contains(cmd.CommandPath(), "completion") {
			return // cobra wrote this
		}
		for line := range strings.Lines(help.String()) {
			if len(line) > helpWidth+1 && !strings.HasSuffix(line, "[flags]\n") {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), len(line)-1, line)
			}
		}
	})
}

// A right that is missing is answered with what grants it.
func TestMissingRightsSayWhatGrantsThem(t *testing.T) {
	const account, cluster = "system:serviceaccount:ip-reaper:ip-reaper", " at the cluster scope"
	pods := schema.GroupResource{Resource: "pods"}
	for _, tt := range []struct {
		user, verb string
		resource   schema.GroupResource
		at, want   string
	}{
		{account, "list", pods, cluster, "deploy/kustomize/components/plan grants this, and so does mode: plan of the Helm chart"},
		{account, "patch", pods, cluster, "deploy/kustomize/components/release grants this, and so does mode: release of the Helm chart"},
		{account + "-restore", "patch", pods, cluster, "deploy/kustomize/components/restore grants this, and so does restore.enabled of the Helm chart"},
		{"alice", "get", schema.GroupResource{Group: "whereabouts.cni.cncf.io", Resource: "ippools"}, ` in the namespace "kube-system"`,
			"ask a cluster administrator to let alice get ippools.whereabouts.cni.cncf.io in namespace kube-system; ip-reaper-view is the role for looking, ip-reaper-operator that for releasing"},
	} {
		denied := apierrors.NewForbidden(tt.resource, "",
			fmt.Errorf("User %q cannot %s resource %q in API group %q%s", tt.user, tt.verb, tt.resource.Resource, tt.resource.Group, tt.at))
		if got := missingRight(report.Partial([]error{errors.New("a pool failed"), fmt.Errorf("list pods: %w", denied)})); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.user, tt.verb, got, tt.want)
		}
	}
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("exceeded quota"))
	if got := missingRight(quota); got != "" {
		t.Errorf("a quota: %q", got)
	}
}
