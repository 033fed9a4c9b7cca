package state

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A Need is one verb on one resource that a run is about to use. An empty Name means all objects,
// and an empty Namespace all namespaces.
type Need authorizationv1.ResourceAttributes

// String returns the need as people write it: "patch ippools.whereabouts.cni.cncf.io".
func (n Need) String() string {
	text := n.Verb + " " + n.Resource
	if n.Group != "" {
		text += "." + n.Group
	}
	if n.Name != "" {
		text += " " + n.Name
	}
	if n.Namespace != "" {
		text += " in namespace " + n.Namespace
	}
	return text
}

const (
	reviewTimeout = 5 * time.Second // of all reviews together
	reviewsAtOnce = 8
)

// Missing returns the needs that the API server says it would deny this account, in order. It
// sends a SelfSubjectAccessReview for each, which changes nothing. If the API server does not
// answer all of them, Missing returns an error and no needs.
func Missing(ctx context.Context, raw rest.Interface, needs []Need) ([]Need, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	allowed := make([]bool, len(needs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(reviewsAtOnce)
	for i, need := range needs {
		g.Go(func() (err error) {
			allowed[i], err = review(ctx, raw, need)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("review access: %w", err)
	}
	var missing []Need
	for i, need := range needs {
		if !allowed[i] {
			missing = append(missing, need)
		}
	}
	return missing, nil
}

// review asks for one need.
func review(ctx context.Context, raw rest.Interface, need Need) (allowed bool, err error) {
	const resource = "selfsubjectaccessreviews"
	body, err := json.Marshal(authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: (*authorizationv1.ResourceAttributes)(&need)},
	})
	if err != nil {
		return false, err
	}
	data, err := kube.Send(ctx, raw.Post().AbsPath("/apis/authorization.k8s.io/v1/"+resource).Body(body))
	if err != nil {
		return false, err
	}
	var answer authorizationv1.SelfSubjectAccessReview
	if err := kube.Decode(data, &answer); err != nil {
		return false, fmt.Errorf("decode: %w", err)
	}
	if answer.Kind != "SelfSubjectAccessReview" {
		return false, fmt.Errorf("the answer is a %q", answer.Kind)
	}
	return answer.Status.Allowed, nil
}
