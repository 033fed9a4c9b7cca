package kube

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The engine asks again after every error that is not refused.
func TestAnswersSayWhetherAskingAgainHelps(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, tt := range []struct {
		name  string
		err   error
		again bool
	}{
		{"forbidden", apierrors.NewForbidden(pods, "", errors.New("no")), false},
		{"a 404 of a proxy", apierrors.NewGenericServerResponse(404, "get", pods, "web", "", 0, true), false},
		{"too many requests", apierrors.NewTooManyRequests("later", 1), true},
		{"a broken server", apierrors.NewInternalError(errors.New("etcd")), true},
		{"a broken connection", errors.New("connection refused"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Answered(tt.err)
			if again := errors.Is(got, ipam.ErrAgain); again != tt.again || errors.Is(got, ipam.ErrRefused) == again {
				t.Errorf("answered = %v: again is %v, want %v, and refused otherwise", got, again, tt.again)
			}
			if !errors.Is(got, tt.err) {
				t.Errorf("answered = %v, which hides %v", got, tt.err)
			}
		})
	}
	if err := Answered(nil); err != nil {
		t.Errorf("Answered(nil) = %v", err)
	}
}
