package rights

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

	"github.com/ip-reaper/ip-reaper/integration/kit/admission"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// Home is where the shipped manifests put the reaper.
const Home = admission.Home

// settleTimeout is how long the API server may take to go by a new role.
const settleTimeout = 30 * time.Second

// An Account is the reaper's service account, with the rights of one grant.
type Account struct {
	Config *rest.Config // as the account

	admin kubernetes.Interface
	kube  kubernetes.Interface // as the account
}

// Install creates the account in a cluster, with the rights of a grant, and waits
// until the API server goes by them. The caller must Remove it.
func Install(ctx context.Context, c *cluster.Cluster, g Grant) (*Account, error) {
	if err := c.CreateNamespace(ctx, Home); err != nil {
		return nil, err
	}
	config, err := c.ServiceAccount(ctx, Home, g.account)
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	a := &Account{config, c.Kube, kube}
	if err := a.create(ctx, g); err != nil {
		return nil, errors.Join(fmt.Errorf("install: %w", err), a.Remove(ctx))
	}
	return a, a.waitFor(ctx, g, nil)
}

func (a *Account) create(ctx context.Context, g Grant) error {
	rbac, none := a.admin.RbacV1(), metav1.CreateOptions{}
	for _, r := range g.cluster {
		if _, err := rbac.ClusterRoles().Create(ctx, r, none); err != nil {
			return err
		}
	}
	for _, r := range g.local {
		if _, err := rbac.Roles(Home).Create(ctx, r, none); err != nil {
			return err
		}
	}
	for _, b := range g.bindings {
		var err error
		switch b := b.(type) {
		case *rbacv1.ClusterRoleBinding:
			_, err = rbac.ClusterRoleBindings().Create(ctx, b, none)
		case *rbacv1.RoleBinding:
			_, err = rbac.RoleBindings(Home).Create(ctx, b, none)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Remove takes all rights away, also those of an installation that was killed.
func (a *Account) Remove(ctx context.Context) error {
	rbac := a.admin.RbacV1()
	none, all := metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=ip-reaper"}
	return errors.Join(
		rbac.ClusterRoleBindings().DeleteCollection(ctx, none, all), rbac.ClusterRoles().DeleteCollection(ctx, none, all),
		rbac.RoleBindings(Home).DeleteCollection(ctx, none, all), rbac.Roles(Home).DeleteCollection(ctx, none, all),
	)
}

// Lose gives the account the rights of the grant that it was installed with, but
// for one verb, and waits until the API server goes by that.
func (a *Account) Lose(ctx context.Context, g Grant, v Verb) error {
	now, none := g.Without(v), metav1.UpdateOptions{}
	for _, r := range now.cluster {
		if _, err := a.admin.RbacV1().ClusterRoles().Update(ctx, r, none); err != nil {
			return err
		}
	}
	for _, r := range now.local {
		if _, err := a.admin.RbacV1().Roles(Home).Update(ctx, r, none); err != nil {
			return err
		}
	}
	return a.waitFor(ctx, g, &v)
}

// waitFor waits until the API server allows the account exactly what the grant
// gives, without one verb.
func (a *Account) waitFor(ctx context.Context, g Grant, without *Verb) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for _, v := range g.Verbs() {
		want := without == nil || v != *without
		for {
			may, err := a.may(ctx, g, v)
			if err != nil {
				return fmt.Errorf("wait for %s: %t: %w", v.Of(g), want, err)
			}
			if may == want {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}

// may asks the API server whether the account has the right.
func (a *Account) may(ctx context.Context, g Grant, v Verb) (bool, error) {
	r := v.in(g)
	attributes := &authorizationv1.ResourceAttributes{Verb: v.name, Group: r.APIGroups[0], Resource: r.Resources[0]}
	if v.local {
		attributes.Namespace = Home
	}
	if len(r.ResourceNames) > 0 {
		attributes.Name = r.ResourceNames[0]
	}
	review, err := a.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
