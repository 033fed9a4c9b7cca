package calico

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// EtcdOptions say how to reach an etcd. The zero value means in the clear.
type EtcdOptions struct {
	TLS       bool // with a certificate for the server and for the client
	ServerTLS bool // with a certificate for the server alone
	Password  bool // with a user and its password
}

// An Etcd is a running etcd with one member, on the loopback interface, separate from the API
// server's.
type Etcd struct {
	// Dir is the folder of everything that etcd writes.
	Dir      string
	Endpoint string // a URL

	// What else a client needs; empty if not needed.
	CAFile, CertFile, KeyFile string
	User, Password            string // of a user who may read and write only /calico/

	// Client may do everything. Stop closes it.
	Client *clientv3.Client

	address string
	guard   *assets.Guard
	process *assets.Process
}

// StartEtcd starts an etcd and returns when it serves. The caller must
// Stop it.
func StartEtcd(ctx context.Context, o EtcdOptions) (_ *Etcd, err error) {
	program, err := assets.Path("etcd")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ip-reaper-etcd-")
	if err != nil {
		return nil, err
	}
	e := &Etcd{Dir: dir}
	if e.guard, err = assets.StartGuard(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Stop())
		}
	}()
	args, err := e.args(o)
	if err != nil {
		return nil, err
	}
	if e.process, err = e.guard.Run("etcd", program, args, nil); err != nil {
		return nil, err
	}
	if err := e.connect(ctx, "", ""); err != nil {
		return nil, err
	}
	if o.Password {
		err = e.enableUsers(ctx)
	}
	return e, err
}

// args chooses the address and writes the certificate.
func (e *Etcd) args(o EtcdOptions) ([]string, error) {
	number, err := assets.ReservePort()
	if err != nil {
		return nil, err
	}
	e.address = net.JoinHostPort("127.0.0.1", number)
	e.Endpoint = "http://" + e.address
	args := []string{
		"--data-dir=" + filepath.Join(e.Dir, "data"), "--log-level=warn", "--unsafe-no-fsync",
		"--listen-peer-urls=http://127.0.0.1:0",
		// One member waits for no other.
		"--heartbeat-interval=10", "--election-timeout=50",
		// The passwords are not secret.
		"--bcrypt-cost=4",
	}
	if o.TLS || o.ServerTLS {
		// The certificate is the server's, the client's, and its own authority.
		files, err := transport.SelfCert(zap.NewNop(), e.Dir, []string{e.address}, 1, x509.ExtKeyUsageClientAuth)
		if err != nil {
			return nil, err
		}
		e.Endpoint, e.CAFile = "https://"+e.address, files.CertFile
		args = append(args, "--cert-file="+files.CertFile, "--key-file="+files.KeyFile)
		if o.TLS {
			e.CertFile, e.KeyFile = files.CertFile, files.KeyFile
			args = append(args, "--client-cert-auth", "--trusted-ca-file="+e.CAFile)
		}
	}
	return append(args, "--listen-client-urls="+e.Endpoint, "--advertise-client-urls="+e.Endpoint), nil
}

// connect waits until etcd listens, makes Client act as the user and waits until etcd answers it.
func (e *Etcd) connect(ctx context.Context, user, password string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	config, err := e.tlsConfig()
	if err != nil {
		return err
	}
	return poll(ctx, e.process, func() error {
		connection, err := net.Dial("tcp", e.address)
		if err != nil {
			return err
		}
		client, err := clientv3.New(clientv3.Config{
			Endpoints: []string{e.Endpoint}, TLS: config, Username: user, Password: password,
			DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
		})
		if err := errors.Join(err, connection.Close()); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if _, err := client.Get(ctx, etcdRoot); err != nil {
			return errors.Join(err, client.Close())
		}
		e.Client = client
		return nil
	})
}

func (e *Etcd) tlsConfig() (*tls.Config, error) {
	if e.CAFile == "" {
		return nil, nil //nolint:nilnil // which is the configuration of no TLS
	}
	return transport.TLSInfo{TrustedCAFile: e.CAFile, CertFile: e.CertFile, KeyFile: e.KeyFile}.ClientConfig()
}

// enableUsers makes two users, root and one for Calico, and makes etcd reject all others.
func (e *Etcd) enableUsers(ctx context.Context) error {
	const root, role = "root", "calico"
	rootPassword := NewContainerID()
	e.User, e.Password = "calico", NewContainerID()
	c, all := e.Client, clientv3.PermissionType(clientv3.PermReadWrite)
	for _, step := range []func() error{
		func() error { _, err := c.UserAdd(ctx, root, rootPassword); return err },
		func() error { _, err := c.UserGrantRole(ctx, root, root); return err },
		func() error { _, err := c.RoleAdd(ctx, role); return err },
		func() error {
			_, err := c.RoleGrantPermission(ctx, role, etcdRoot, clientv3.GetPrefixRangeEnd(etcdRoot), all)
			return err
		},
		func() error { _, err := c.UserAdd(ctx, e.User, e.Password); return err },
		func() error { _, err := c.UserGrantRole(ctx, e.User, role); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
		c.Close,
	} {
		if err := step(); err != nil {
			return fmt.Errorf("enable users of etcd: %w", err)
		}
	}
	return e.connect(ctx, root, rootPassword)
}

// Stop ends etcd and removes its folder.
func (e *Etcd) Stop() error {
	var err error
	if e.Client != nil {
		err = e.Client.Close()
	}
	if e.process != nil {
		err = errors.Join(err, e.process.Stop(stopTimeout))
	}
	return errors.Join(err, e.guard.Release())
}
