package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	foreignUser  = "foreigner"
	foreignHome  = "default" // where its leases are
	foreignEvery = 20 * time.Millisecond
	foreignNames = 10 // of leases
)

// A foreigner is another client of the API server, to which API priority and fairness applies as to
// any user. It makes a request every 20 ms, whether or not earlier ones were answered: it reads a
// pod, lists a few leases, and patches one, in turns.
type foreigner struct {
	kube kubernetes.Interface
	size size
}

// newForeigner creates the user and its leases.
func newForeigner(ctx context.Context, g *poolStage) (*foreigner, error) {
	config, err := g.cluster.User(foreignUser)
	if err != nil {
		return nil, err
	}
	f := &foreigner{size: g.size}
	if f.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	_, err = g.cluster.Kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: foreignUser},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: foreignUser}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	for n := range foreignNames {
		_, err := g.cluster.Kube.CoordinationV1().Leases(foreignHome).Create(ctx,
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: foreignLease(n)}}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// foreignLease returns the name of one of the leases.
func foreignLease(n int) string { return fmt.Sprintf("%s-%d", foreignUser, n%foreignNames) }

// load makes requests until the context ends, and returns their latencies once all are answered.
func (f *foreigner) load(ctx context.Context) (all latencies, err error) {
	answered := context.WithoutCancel(ctx)
	var mu sync.Mutex
	var wg sync.WaitGroup
	defer wg.Wait()
	tick := time.NewTicker(foreignEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			wg.Wait()
			return all, err
		case <-tick.C:
		}
		wg.Go(func() {
			began := time.Now()
			requestErr := f.request(answered, n)
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took)
			if requestErr != nil {
				err = requestErr
			}
		})
	}
}

// request makes the nth request.
func (f *foreigner) request(ctx context.Context, n int) (err error) {
	leases := f.kube.CoordinationV1().Leases(foreignHome)
	switch n % 3 {
	case 0:
		e := entry(n % (int(f.size) / 10 * 10)) // of the first eleven, ten have a pod
		if e.stale() {
			e--
		}
		_, err = f.kube.CoreV1().Pods(e.namespace()).Get(ctx, e.pod(), metav1.GetOptions{})
	case 1:
		_, err = leases.List(ctx, metav1.ListOptions{})
	default:
		renewed := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, metav1.NowMicro().UTC().Format(metav1.RFC3339Micro))
		_, err = leases.Patch(ctx, foreignLease(n), types.MergePatchType, renewed, metav1.PatchOptions{})
	}
	return err
}

// latencies are the latencies of some requests.
type latencies []time.Duration

// of returns a percentile; 0 if there are no latencies.
func (l latencies) of(percent int) time.Duration {
	if len(l) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(l))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

// String returns the percentiles.
func (l latencies) String() string {
	const digit = 100 * time.Microsecond
	return fmt.Sprintf("p50 %v, p99 %v of %d", l.of(50).Round(digit), l.of(99).Round(digit), len(l))
}
