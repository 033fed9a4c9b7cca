package calico

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

const (
	etcdTimeout = 15 * time.Second // of a write, or of a read with all of its retries
	maxTxnOps   = 128              // the default of a server's --max-txn-ops
)

// NewEtcd returns the backend over the etcdv3 datastore. The first use connects. It
// releases at most atOnce blocks at the same time.
func NewEtcd(config clientv3.Config, atOnce int) *Backend {
	config.DialOptions = append(slices.Clone(config.DialOptions), grpc.WithChainUnaryInterceptor(failFast))
	b := newBackend(atOnce, func(ctx context.Context) (datastore, error) {
		var client *clientv3.Client
		err := patiently(ctx, func(ctx context.Context) (err error) {
			client, err = dial(ctx, config)
			return err
		})
		return etcd{client}, err
	})
	b.place = ipam.Store{
		Where: "etcd " + strings.Join(config.Endpoints, ","), Outside: true,
		Field: "spec.clusterGUID of the ClusterInformation default in etcd",
	}
	return b
}

// dial makes a client, which logs in if the configuration has a user. The context
// bounds the call, not the life of the client: after an interruption, a release
// that has begun may still need it.
func dial(ctx context.Context, config clientv3.Config) (*clientv3.Client, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	config.Context = life
	defer context.AfterFunc(ctx, end)()
	return clientv3.New(config)
}

// failFast makes a request without a connection fail immediately with the
// connection's error; the client then retries it. Otherwise, the client would
// wait for a connection and in the end report only that it waited.
func failFast(ctx context.Context, method string, request, reply any,
	conn *grpc.ClientConn, send grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	return send(ctx, method, request, reply, conn, append(options, grpc.WaitForReady(false))...)
}

// patiently retries a request if the failure may be temporary, a few times and
// for at most etcdTimeout in all.
func patiently(ctx context.Context, request func(ctx context.Context) error) error {
	timed, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	var last error // before the time ran out
	err := kube.Patiently(timed, func(ctx context.Context) error {
		err := request(ctx)
		if last == nil || timed.Err() == nil {
			last = err
		}
		return err
	})
	switch {
	case err == nil:
		return nil
	case timed.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("etcd: no answer within %v: %w", etcdTimeout, last)
	}
	return fmt.Errorf("etcd: %w", err)
}

// etcd is the datastore in Calico's own etcd.
type etcd struct{ client *clientv3.Client }

// ready implements datastore.
func (s etcd) ready(ctx context.Context) (string, error) {
	o, err := s.key(ctx, clusterKey)
	if errors.Is(err, errGone) {
		return "", fmt.Errorf("etcd has no key %s: either it is not Calico's etcd (check ETCD_ENDPOINTS), or Calico has never used it", clusterKey)
	}
	if err != nil {
		return "", err
	}
	var info clusterInformation
	if err := kube.Decode(o.raw, &info); err != nil {
		return "", fmt.Errorf("decode %s: %w", clusterKey, err)
	}
	return info.Spec.GUID, info.check()
}

// get implements datastore.
func (s etcd) get(ctx context.Context, k kind, id string) (object, error) {
	o, err := s.key(ctx, etcdKey(k, id))
	o.kind = k
	return o, err
}

// key reads one key. It returns errGone if there is none.
func (s etcd) key(ctx context.Context, key string) (object, error) {
	answer, err := s.read(ctx, key)
	if err != nil {
		return object{}, err
	}
	if len(answer.Kvs) == 0 {
		return object{}, errGone
	}
	return stored(answer.Kvs[0]), nil
}

// read makes one range request. It retries if the failure may be temporary.
func (s etcd) read(ctx context.Context, from string, options ...clientv3.OpOption) (answer *clientv3.GetResponse, err error) {
	err = patiently(ctx, func(ctx context.Context) (err error) {
		answer, err = s.client.Get(ctx, from, options...)
		return err
	})
	return answer, err
}

// stored returns a key as an object. The caller sets its kind.
func stored(kv *mvccpb.KeyValue) object {
	return object{name: string(kv.Key), raw: kv.Value, revision: strconv.FormatInt(kv.ModRevision, 10)}
}

// name implements datastore.
func (etcd) name(k kind, id string) string { return etcdKey(k, id) }

// newObject implements datastore.
func (etcd) newObject(k kind, name string, raw []byte) (object, error) {
	o := object{kind: k, name: name, raw: raw}
	return o, o.unambiguous()
}

// objectsPerWrite implements datastore.
func (etcd) objectsPerWrite() int { return maxTxnOps }

// write implements datastore with one transaction, conditional on the revision of
// every key. A key that does not exist has revision 0.
func (s etcd) write(ctx context.Context, objects ...object) ([]object, error) {
	var conditions []clientv3.Cmp
	var operations []clientv3.Op
	for _, o := range objects {
		revision, err := strconv.ParseInt(cmp.Or(o.revision, "0"), 10, 64)
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(o.name), "=", revision))
		if o.raw == nil {
			operations = append(operations, clientv3.OpDelete(o.name))
		} else {
			operations = append(operations, clientv3.OpPut(o.name, string(o.raw)))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	first := clientv3.OpGet(objects[0].name, clientv3.WithCountOnly())
	response, err := s.client.Txn(ctx).If(conditions...).Then(operations...).Else(first).Commit()
	switch {
	case err != nil:
		return nil, fmt.Errorf("etcd: %w", err)
	case !response.Succeeded && objects[0].revision != "" && response.Responses[0].GetResponseRange().Count == 0:
		return nil, errGone
	case !response.Succeeded:
		return nil, errConflict
	}
	written := make([]object, len(objects))
	for i, o := range objects {
		o.revision = strconv.FormatInt(response.Header.Revision, 10)
		written[i] = o
	}
	return written, nil
}

// transient implements datastore. A request that the server refused would be
// refused again.
func (etcd) transient(err error) error {
	if err == nil || errors.Is(err, ipam.ErrAgain) {
		return err
	}
	code := status.Code(err)
	if refused := (rpctypes.EtcdError{}); errors.As(err, &refused) {
		code = refused.Code()
	}
	switch code {
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.FailedPrecondition:
		return err
	default:
		return fmt.Errorf("%w: %w", ipam.ErrAgain, err)
	}
}

// The most keys in one answer. 16 blocks of 4096 addresses take some 16 MiB, 5000 handles 1 MiB.
const (
	blocksListed  = 16
	handlesListed = 5000
)

// list implements datastore.
func (s etcd) list(ctx context.Context, k kind, reduce func(object) any) ([]any, error) {
	prefix, limit := blockPrefix, int64(blocksListed)
	if k == handles {
		prefix, limit = handlePrefix, handlesListed
	}
	return all(ctx, s, prefix, limit, func(o object) (any, bool) {
		if o.kind = k; k == blocks && !strings.Contains(o.name, "/block/") {
			return nil, false
		}
		one := reduce(o)
		return one, one != nil
	})
}

// all returns what reduce makes of each object under a prefix, as list does, if it reports true. It
// starts over, a few times, if etcd no longer has the revision of the first page.
func all[T any](ctx context.Context, s etcd, prefix string, limit int64, reduce func(object) (T, bool)) ([]T, error) {
	for restarts := 0; ; restarts++ {
		found, err := pages(ctx, s, prefix, limit, reduce)
		if !errors.Is(err, rpctypes.ErrCompacted) || restarts == 3 {
			return found, err
		}
	}
}

// pages reads the objects once, all pages at the revision of the first one.
func pages[T any](ctx context.Context, s etcd, prefix string, limit int64, reduce func(object) (T, bool)) ([]T, error) {
	var found []T
	end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix))
	for from, revision := prefix, int64(0); ; {
		page, err := s.read(ctx, from, end, clientv3.WithLimit(limit), clientv3.WithRev(revision))
		if err != nil {
			return nil, err
		}
		for _, kv := range page.Kvs {
			if one, ok := reduce(stored(kv)); ok {
				found = append(found, one)
			}
		}
		if !page.More || len(page.Kvs) == 0 {
			return found, nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
		if revision == 0 { // every answer has its own revision
			revision = page.Header.Revision
		}
	}
}

// nodes implements datastore.
func (s etcd) nodes(ctx context.Context) ([]node, error) {
	stored, err := s.resources(ctx, "nodes")
	if err != nil {
		return nil, err
	}
	nodes := make([]node, len(stored))
	for i, r := range stored {
		if nodes[i], err = readNode(r); err != nil {
			return nil, fmt.Errorf("decode %s: %w", resourcePrefix+"nodes/"+r.name, err)
		}
	}
	return nodes, nil
}

// resources implements datastore.
func (s etcd) resources(ctx context.Context, plural string) ([]resource, error) {
	prefix := resourcePrefix + plural + "/"
	return all(ctx, s, prefix, blocksListed, func(o object) (resource, bool) {
		return resource{strings.TrimPrefix(o.name, prefix), o.raw}, true
	})
}
