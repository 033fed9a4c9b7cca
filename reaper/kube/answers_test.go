package kube

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// The engine asks again after every error that is not refused.
func TestAnswersSayWhetherAskingAgainHelps(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, tt := range []struct {
		name string
		err  error
		want error
	}{
		{"forbidden", apierrors.NewForbidden(pods, "", errors.New("no")), reaper.ErrRefused},
		{"a 404 of a proxy", apierrors.NewGenericServerResponse(404, "get", pods, "web", "", 0, true), reaper.ErrRefused},
		{"too many requests", apierrors.NewTooManyRequests("later", 1), reaper.ErrAgain},
		{"a broken server", apierrors.NewInternalError(errors.New("etcd")), reaper.ErrAgain},
		{"a broken connection", errors.New("connection refused"), reaper.ErrAgain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := answered(tt.err)
			for _, class := range []error{reaper.ErrRefused, reaper.ErrAgain} {
				if errors.Is(got, class) != (class == tt.want) {
					t.Errorf("answered = %v, want %v", got, tt.want)
				}
			}
			if !errors.Is(got, tt.err) {
				t.Errorf("answered = %v, which hides %v", got, tt.err)
			}
		})
	}
	if err := answered(nil); err != nil {
		t.Errorf("answered(nil) = %v", err)
	}
}
