package engine

import (
	"context"
	"sync"

	"google.golang.org/grpc"
)

// A Transaction is a transaction of etcd that a hook stands before.
type Transaction struct {
	Context context.Context
	Forward func() error // has it carried out, and returns what the client is told
}

// OnTransaction has the hook called for the first transaction, in its place.
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
