package ship_test

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// A write that a shipped policy refuses is in the audit log, with the policy, under the audit policy
// that the page advises.
func TestRefusedWriteIsInTheAuditLog(t *testing.T) {
	c := fresh(t)
	apply(t, c, shipped(t, "cronjob"))
	config, err := c.User("system:serviceaccount:"+home+":ip-reaper", "system:masters")
	must(t, err)
	kube, err := kubernetes.NewForConfig(config)
	must(t, err)
	probe := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}
	cluster.AwaitT(t, "a policy refuses the write", func() bool {
		_, err := kube.CoreV1().Namespaces().Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "'ip-reaper-other'")
	})
	cluster.AwaitT(t, "the refusal is in the audit log", func() bool {
		text, err := os.ReadFile(auditLog)
		must(t, err)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `"validation.policy.admission.k8s.io/validation_failure"`) && strings.Contains(line, "ip-reaper-other") {
				return true
			}
		}
		return false
	})
}
