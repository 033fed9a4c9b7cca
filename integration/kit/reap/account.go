package reap

import (
	"context"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// An Account is the reaper's service account or a person, with the rights of one grant.
type Account struct {
	Config *rest.Config // as the account

	grant Grant
	admin kubernetes.Interface
	kube  kubernetes.Interface // as the account
}

// InstallAccount creates the account in a cluster, with the rights of a grant, and waits until the API
// server applies them. The caller must Remove it.
func InstallAccount(ctx context.Context, c *cluster.Cluster, g Grant) (*Account, error) {
	if err := c.CreateNamespace(ctx, Home); err != nil {
		return nil, err
	}
	var config *rest.Config
	var err error
	if g.person { // not by a client certificate, which ends at a proxy
		config = rest.CopyConfig(c.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: g.account, Groups: g.groups}
	} else {
		config, err = c.ServiceAccount(ctx, Home, g.account)
	}
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	a := &Account{config, g, c.Kube, kube}
	if err := a.create(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("install: %w", err), a.Remove(ctx))
	}
	return a, a.await(ctx, true)
}

func (a *Account) create(ctx context.Context) (err error) {
	rbac, none := a.admin.RbacV1(), metav1.CreateOptions{}
	for _, object := range a.grant.objects {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			_, err = rbac.ClusterRoles().Create(ctx, o, none)
		case *rbacv1.Role:
			_, err = rbac.Roles(Home).Create(ctx, o, none)
		case *rbacv1.ClusterRoleBinding:
			_, err = rbac.ClusterRoleBindings().Create(ctx, o, none)
		case *rbacv1.RoleBinding:
			_, err = rbac.RoleBindings(Home).Create(ctx, o, none)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Remove takes all rights away, even those left by a killed process, and waits until the API server
// applies that.
func (a *Account) Remove(ctx context.Context) error {
	rbac := a.admin.RbacV1()
	none, all := metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=ip-reaper"}
	err := errors.Join(
		rbac.ClusterRoleBindings().DeleteCollection(ctx, none, all), rbac.ClusterRoles().DeleteCollection(ctx, none, all),
		rbac.RoleBindings(Home).DeleteCollection(ctx, none, all), rbac.Roles(Home).DeleteCollection(ctx, none, all),
	)
	if err != nil {
		return err
	}
	return a.await(ctx, false)
}

// await waits until the API server allows the account everything that the grant gives, or nothing.
func (a *Account) await(ctx context.Context, allowed bool) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for _, object := range a.grant.objects {
		_, local := object.(*rbacv1.Role)
		for _, rule := range rules(object) {
			for _, verb := range rule.Verbs {
				r := authorizationv1.ResourceAttributes{Verb: verb, Group: rule.APIGroups[0], Resource: rule.Resources[0]}
				if local {
					r.Namespace = Home
				}
				if len(rule.ResourceNames) > 0 {
					r.Name = rule.ResourceNames[0]
				}
				if err := a.awaitRight(ctx, r, allowed); err != nil {
					return fmt.Errorf("wait for the right to %s %s: %t: %w", r.Verb, r.Resource, allowed, err)
				}
			}
		}
	}
	return nil
}

// awaitRight waits until the account has a right, or no longer has it.
func (a *Account) awaitRight(ctx context.Context, r authorizationv1.ResourceAttributes, allowed bool) error {
	for {
		review, err := a.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &r},
		}, metav1.CreateOptions{})
		if err != nil || review.Status.Allowed == allowed {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}
