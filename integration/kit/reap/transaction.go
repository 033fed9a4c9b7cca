package reap

import (
	"context"
	"sync"

	"google.golang.org/grpc"
)

// A Transaction is an etcd transaction that a hook intercepts.
type Transaction struct {
	Context context.Context
	Forward func() error // carries it out, and returns what the client would get
}

// OnTransaction calls the hook instead of the first transaction.
func OnTransaction(hook func(Transaction) error) grpc.DialOption {
	var once sync.Once
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any,
		c *grpc.ClientConn, forward grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		t := Transaction{ctx, func() error { return forward(ctx, method, request, reply, c, options...) }}
		hooked := false
		var err error
		if method == "/etcdserverpb.KV/Txn" {
			once.Do(func() {
				hooked = true
				err = hook(t)
			})
		}
		if hooked {
			return err
		}
		return t.Forward()
	})
}
