// Package job runs the binary as the container of a Job would, with what the container
// would find in its pod: the token of its account and the files of its ConfigMaps.
package job

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Arguments returns the arguments of the pod's container. What its ConfigMaps hold on the
// API server is in files below dir, and the arguments lead there.
func Arguments(ctx context.Context, c *cluster.Cluster, namespace string, pod corev1.PodSpec, dir string) ([]string, error) {
	account, err := c.ServiceAccount(ctx, namespace, pod.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.KubeconfigFor(account)
	if err != nil {
		return nil, err
	}
	there := []string{"$(NAMESPACE)", namespace}
	for _, mount := range pod.Containers[0].VolumeMounts {
		files := filepath.Join(dir, mount.Name)
		there = append(there, mount.MountPath+"/", files+"/")
		for _, volume := range pod.Volumes {
			if volume.Name != mount.Name || volume.ConfigMap == nil {
				continue
			}
			if err := project(ctx, c, namespace, volume.ConfigMap.Name, files); err != nil {
				return nil, err
			}
		}
	}
	var args []string
	for _, arg := range pod.Containers[0].Args {
		args = append(args, strings.NewReplacer(there...).Replace(arg))
	}
	return append(args, "--kubeconfig="+kubeconfig, "--context="+cluster.ContextName), nil
}

// project writes what a ConfigMap holds to files of a folder.
func project(ctx context.Context, c *cluster.Cluster, namespace, configMap, dir string) error {
	cm, err := c.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, configMap, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(cm.Data)) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(cm.Data[name]), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Run runs the pod's container. Its report is in JSON.
func Run(ctx context.Context, c *cluster.Cluster, namespace string, pod corev1.PodSpec, dir string) (reap.Result, error) {
	args, err := Arguments(ctx, c, namespace, pod, dir)
	if err != nil {
		return reap.Result{}, err
	}
	r, err := reap.New()
	if err != nil {
		return reap.Result{}, err
	}
	return r.Run(ctx, append(args, "--output=json")...)
}
