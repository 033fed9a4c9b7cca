// Command reconciler reconciles once, as Whereabouts' own program of this name does when
// its schedule says so:
//
//	reconciler -kubeconfig FILE [-qps N]
//
// The program of Whereabouts itself runs in a pod, and ends never. It has the throttle of
// client-go, which is 5 requests a second. It logs more than this one, which logs errors.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	wbclient "github.com/k8snetworkplumbingwg/whereabouts/pkg/generated/clientset/versioned"
	"github.com/k8snetworkplumbingwg/whereabouts/pkg/logging"
	"github.com/k8snetworkplumbingwg/whereabouts/pkg/reconciler"
	wbkubernetes "github.com/k8snetworkplumbingwg/whereabouts/pkg/storage/kubernetes"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`FILE` with the API server and the account")
	qps := flag.Float64("qps", 0, "requests a second; 0 for client-go's default, -1 for no throttle")
	flag.Parse()
	if err := reconcile(*kubeconfig, float32(*qps)); err != nil {
		fmt.Fprintln(os.Stderr, "reconciler:", err)
		os.Exit(1)
	}
}

// reconcile does what ReconcileIPs in pkg/reconciler of v0.9.4 does, with a client of ours.
func reconcile(kubeconfig string, qps float32) error {
	logging.SetLogStderr(true)
	logging.SetLogLevel("error")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = qps
	pods, podsErr := kubernetes.NewForConfig(config)
	pools, poolsErr := wbclient.NewForConfig(config)
	if err := errors.Join(podsErr, poolsErr); err != nil {
		return err
	}
	looper, err := reconciler.NewReconcileLooperWithClient(wbkubernetes.NewKubernetesClient(pools, pods))
	if err != nil {
		return err
	}
	if _, err := looper.ReconcileIPPools(); err != nil {
		return err
	}
	return looper.ReconcileOverlappingIPAddresses()
}
