package run_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// roomFor has a ResourceQuota allow n ConfigMaps more in the namespace. No controller counts those
// that are deleted.
func (f *fixture) roomFor(n int64) {
	f.Helper()
	const counted = corev1.ResourceName("count/configmaps")
	quotas, maps := f.Kube.CoreV1().ResourceQuotas(home), f.Kube.CoreV1().ConfigMaps(home)
	f.must(quotas.DeleteCollection(f.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	hard := corev1.ResourceList{counted: *resource.NewQuantity(n+1, resource.DecimalSI)}
	quota, err := quotas.Create(f.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "q-"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}, metav1.CreateOptions{})
	f.must(err)
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{counted: resource.MustParse("0")}}
	_, err = quotas.UpdateStatus(f.Context(), quota, metav1.UpdateOptions{})
	f.must(err)
	cluster.AwaitT(f.T, "the API server counts ConfigMaps", func() bool {
		probe, err := maps.Create(f.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}, metav1.CreateOptions{})
		if err != nil {
			return false // by the quota before
		}
		f.must(maps.Delete(f.Context(), probe.Name, metav1.DeleteOptions{}))
		now, err := quotas.Get(f.Context(), quota.Name, metav1.GetOptions{})
		f.must(err)
		used := now.Status.Used[counted]
		return used.Value() == 1
	})
}

// Promises 8 and 10. Where a quota has no room for a whole journal, nothing of it stays, which would
// take room of the next one.
func TestQuotaThatIsReachedLeavesNothingHalfDone(t *testing.T) {
	f := newJournalFixture(t)
	f.roomFor(2)
	err := f.journals(1).Write(t.Context(), run("run-1"), threeParts())
	if err == nil || !strings.Contains(err.Error(), "run-1-1-3") || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("Write = %v, want that the quota has no room for the third part", err)
	}
	f.wantStored()
}
