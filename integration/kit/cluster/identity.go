package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// tokenSeconds is the life of a service account's token. Ten minutes is the API server's minimum;
// an hour outlives any test.
const tokenSeconds = int64(3600)

// KubeconfigFor writes a kubeconfig file for cfg's server and identity, and returns its path. The
// file has one context, ContextName, with the namespace PoolNamespace, and lasts as long as the
// cluster.
func (c *Cluster) KubeconfigFor(cfg *rest.Config) (string, error) {
	k := clientcmdapi.NewConfig()
	k.Clusters[ContextName] = &clientcmdapi.Cluster{
		Server:                   cfg.Host,
		CertificateAuthorityData: cfg.CAData,
	}
	k.AuthInfos[ContextName] = &clientcmdapi.AuthInfo{
		ClientCertificateData: cfg.CertData,
		ClientKeyData:         cfg.KeyData,
		Token:                 cfg.BearerToken,
		Impersonate:           cfg.Impersonate.UserName,
		ImpersonateGroups:     cfg.Impersonate.Groups,
	}
	k.Contexts[ContextName] = &clientcmdapi.Context{
		Cluster: ContextName, AuthInfo: ContextName, Namespace: PoolNamespace,
	}
	k.CurrentContext = ContextName
	path := c.newFile("kubeconfig")
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return path, nil
}

// newFile returns a path in the cluster's folder at which there is no file yet.
func (c *Cluster) newFile(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		path := filepath.Join(c.Dir, name)
		if c.files > 0 {
			path = filepath.Join(c.Dir, fmt.Sprintf("%s-%d", name, c.files))
		}
		c.files++
		if _, err := os.Lstat(path); os.IsNotExist(err) {
			return path
		}
	}
}

// User returns a configuration that authenticates by client certificate as the user, who has only
// the rights of the groups.
func (c *Cluster) User(name string, groups ...string) (*rest.Config, error) {
	user, err := c.plane.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		return nil, fmt.Errorf("add user %s: %w", name, err)
	}
	return user.Config(), nil
}

// ServiceAccount returns a configuration that authenticates as the service account, with a token
// that the API server issued. It creates the account if necessary. The account has no rights until
// a role is bound to it.
func (c *Cluster) ServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	accounts := c.Kube.CoreV1().ServiceAccounts(namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := accounts.Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create service account %s/%s: %w", namespace, name, err)
	}
	seconds := tokenSeconds
	request, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("request token for %s/%s: %w", namespace, name, err)
	}
	cfg := rest.AnonymousClientConfig(c.Config)
	cfg.BearerToken = request.Status.Token
	return cfg, nil
}
