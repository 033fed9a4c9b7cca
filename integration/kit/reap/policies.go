package reap

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// The shipped accounts: for a CronJob, for the Jobs of an outage, and for a restore.
const (
	Home           = "ip-reaper" // the namespace of the state
	RunAccount     = "ip-reaper"
	OutageAccount  = "ip-reaper-outage" // in a namespace of its name
	RestoreAccount = "ip-reaper-restore"

	Operators = "ip-reaper-operators" // the group of people who release and restore
)

// settleTimeout is how long the API server may take to apply a new policy or role.
const settleTimeout = 30 * time.Second

// InstallPolicies creates the shipped policies in a cluster, and waits until the API server applies them.
func InstallPolicies(ctx context.Context, c *cluster.Cluster) error {
	objects, err := ShippedPolicies()
	if err != nil {
		return err
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			_, err = c.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, o, metav1.CreateOptions{})
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			_, err = c.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, o, metav1.CreateOptions{})
		default:
			err = fmt.Errorf("a %T is neither a policy nor a binding", o)
		}
		if err != nil {
			return fmt.Errorf("install the policies: %w", err)
		}
	}
	return wait(ctx, c)
}

// wait waits until the last created policy denies, which is that of everything else. The API server
// has seen the others before.
func wait(ctx context.Context, c *cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	config, err := As(c, RestoreAccount)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	probe := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}
	for {
		_, err := kube.CoreV1().Namespaces().Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for the policies: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// As returns a configuration that authenticates as a shipped account with all rights, so that only the
// policies say no.
func As(c *cluster.Cluster, account string) (*rest.Config, error) {
	return c.User("system:serviceaccount:"+HomeOf(account)+":"+account, "system:masters")
}

// HomeOf returns the namespace of a shipped account.
func HomeOf(account string) string {
	if account == OutageAccount {
		return OutageAccount
	}
	return Home
}

// ShippedPolicies reads the policies and their bindings.
func ShippedPolicies() ([]runtime.Object, error) {
	var objects []runtime.Object
	for _, file := range []string{"writes", "other"} {
		some, err := assets.Manifests("../helm/ip-reaper/admission/" + file + ".yaml")
		if err != nil {
			return nil, err
		}
		objects = append(objects, some...)
	}
	return objects, nil
}
