package state

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The installed policy is a ConfigMap in the state namespace, which the pods of the CronJob
// mount. The manifests and the chart use these names.
const (
	PolicyName = "ip-reaper-policy"
	policyKey  = "policy.yaml"
)

// InstalledPolicy returns the text of the installed policy, or nil if the API server says that
// there is none. An *ipam.InputError says that the ConfigMap has no policy; any other error
// leaves open whether one is installed.
func InstalledPolicy(ctx context.Context, core corev1client.ConfigMapsGetter, namespace string) ([]byte, error) {
	var cm *corev1.ConfigMap
	err := kube.Patiently(ctx, func(ctx context.Context) (err error) {
		cm, err = core.ConfigMaps(namespace).Get(ctx, PolicyName, metav1.GetOptions{})
		return err
	})
	switch {
	case kube.Gone(err, "configmaps", PolicyName):
		return nil, nil
	case err != nil:
		return nil, err
	}
	text, ok := cm.Data[policyKey]
	if !ok {
		return nil, ipam.BadInput(fmt.Errorf("policy: ConfigMap %s/%s has no key %s", namespace, PolicyName, policyKey),
			"apply the manifests again; a dry run takes a policy of yours with --policy FILE")
	}
	return []byte(text), nil
}
