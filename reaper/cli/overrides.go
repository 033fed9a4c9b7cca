package cli

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// overrides are the flags that replace fields of the policy. A flag that is not given
// leaves its field as it is. None of them changes a rule of the policy.
type overrides struct {
	flags *pflag.FlagSet

	dryRun          bool
	gracePeriod     time.Duration
	minAge          time.Duration
	releaseRestored bool
}

// add adds the flags to a command.
func (o *overrides) add(flags *pflag.FlagSet) {
	o.addTerms(flags)
	flags.BoolVar(&o.dryRun, "dry-run", true, "only show what would be released; --dry-run=false releases; both override the policy")
	flags.BoolVar(&o.releaseRestored, "release-restored", false, "also release what a restore put back, before the policy's journal.restoreHold has passed")
}

// addTerms adds the flags with which a command that releases nothing answers "what if".
func (o *overrides) addTerms(flags *pflag.FlagSet) {
	o.flags = flags
	flags.DurationVar(&o.gracePeriod, "grace-period", 0, "use this `DURATION` in place of the policy's gracePeriod, but not of a rule's")
	flags.DurationVar(&o.minAge, "min-age", 0, "use this `DURATION` in place of the policy's minAge, but not of a rule's")
}

// check returns the mistakes in the flags.
func (o *overrides) check() error {
	if o.gracePeriod < 0 {
		return ipam.BadInput(fmt.Errorf("--grace-period: %v is negative", o.gracePeriod), "give one such as 15m")
	}
	if o.minAge < 0 {
		return ipam.BadInput(fmt.Errorf("--min-age: %v is negative", o.minAge), "give one such as 5m, or 0s")
	}
	return nil
}

// apply changes the policy.
func (o *overrides) apply(p *policy.Policy) {
	if o.flags.Changed("dry-run") {
		p.DryRun = &o.dryRun
	}
	if o.flags.Changed("grace-period") {
		p.GracePeriod = &policy.Duration{Duration: o.gracePeriod}
	}
	if o.flags.Changed("min-age") {
		p.MinAge = &policy.Duration{Duration: o.minAge}
	}
	if o.releaseRestored {
		p.Journal.RestoreHold = &policy.Duration{}
	}
}
