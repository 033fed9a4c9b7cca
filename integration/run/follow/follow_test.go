package follow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExperiment(t *testing.T) {
	c := newCrowd(t).in(t)
	l := c.plan()
	for _, every := range []time.Duration{50 * time.Millisecond, 700 * time.Millisecond, 3 * time.Second} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			client := c.client(c.Config)
			cm, err := client.CoreV1().ConfigMaps(c.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x"}}, metav1.CreateOptions{})
			for i := 0; ctx.Err() == nil && err == nil; i++ {
				cm.Data = map[string]string{"a": fmt.Sprint(i)}
				cm, err = client.CoreV1().ConfigMaps(c.namespace).Update(ctx, cm, metav1.UpdateOptions{})
				time.Sleep(every)
			}
			t.Log("bump ended", err)
		}()
		var worst, sum time.Duration
		for range 30 {
			began := time.Now()
			l.confirmer.Forget()
			w, err := l.confirm()
			_, werr := w.Allocation()
			took := time.Since(began)
			worst = max(worst, took)
			sum += took
			if err != nil || werr != nil {
				t.Log(every, took, err, werr)
			}
		}
		cancel()
		t.Log(every, "mean", sum/30, "worst", worst)
	}
	t.Log(c.proxy.Counts(), l.fullLists())
}
