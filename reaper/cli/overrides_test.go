package cli

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/policy"
)

// ruled is a policy whose rules have terms of their own.
func ruled() policy.Policy {
	p := policy.Default()
	p.Rules = []policy.Rule{
		{Match: policy.Match{Namespaces: []string{"legacy"}}, Hold: true},
		{Match: policy.Match{Pods: []string{"db-*"}}, GracePeriod: duration(24 * time.Hour), MinAge: duration(time.Hour)},
	}
	return p
}

func duration(d time.Duration) *policy.Duration { return &policy.Duration{Duration: d} }

func TestFlagsReplaceFieldsOfThePolicy(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []string
		change func(*policy.Policy)
	}{
		{"no flag", nil, func(*policy.Policy) {}},
		{"false", []string{"--dry-run=false"}, func(p *policy.Policy) { p.DryRun = new(false) }},
		{"true", []string{"--dry-run"}, func(p *policy.Policy) { p.DryRun = new(true) }},
		{"grace period", []string{"--grace-period=60s"}, func(p *policy.Policy) { p.GracePeriod = duration(time.Minute) }},
		{"no grace period", []string{"--grace-period=0"}, func(p *policy.Policy) { p.GracePeriod = duration(0) }},
		{"minimum age", []string{"--min-age=1h"}, func(p *policy.Policy) { p.MinAge = duration(time.Hour) }},
		{"no minimum age", []string{"--min-age=0s"}, func(p *policy.Policy) { p.MinAge = duration(0) }},
		{"restored", []string{"--release-restored"}, func(p *policy.Policy) { p.Journal.RestoreHold = duration(0) }},
		{"not restored", []string{"--release-restored=false"}, func(*policy.Policy) {}},
	} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		var o overrides
		o.add(flags)
		if err := flags.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		got, want := ruled(), ruled()
		o.apply(&got)
		tt.change(&want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
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
		{[]string{"--wait=true"}, waitFlag{on: true}, "true"},
		{[]string{"--wait=1"}, waitFlag{on: true}, "true"}, // as IP_REAPER_WAIT=1
		{[]string{"--wait=false"}, waitFlag{}, "false"},
		{[]string{"--wait=0"}, waitFlag{}, "false"},
		{[]string{"--wait=2m"}, waitFlag{on: true, max: 2 * time.Minute}, "2m0s"},
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
