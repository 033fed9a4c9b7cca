package safety_test

import (
	"context"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/rights"
)

// shipped are the rights of an installation with these backends.
func shipped(t *testing.T, mode string, backends ...string) rights.Grant {
	t.Helper()
	g, err := rights.Shipped(mode, backends...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// An account is the scene with runs that are the service account's.
type account struct {
	*scene
	rights *rights.Account
}

// install makes the scene's runs those of the service account under a grant.
func (s *scene) install(t *testing.T, g rights.Grant) *account {
	t.Helper()
	a, err := rights.Install(t.Context(), s.Cluster, g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := a.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	s.ledgerIn = rights.Home
	if s.kubeconfig, err = s.KubeconfigFor(s.toReaper.Config(a.Config)); err != nil {
		t.Fatal(err)
	}
	return &account{s, a}
}

// lose takes one verb of the grant away.
func (a *account) lose(t *testing.T, g rights.Grant, v rights.Verb) {
	t.Helper()
	if err := a.rights.Lose(t.Context(), g, v); err != nil {
		t.Fatal(err)
	}
}
