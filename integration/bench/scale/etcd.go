package main

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// The size of one transaction, and how many are in flight. etcd's limits are 128 operations and 1.5
// MiB per transaction.
const (
	txnRecords = 100
	txnBytes   = 1 << 20
	txnsAtOnce = 8
)

// A store writes into an API server's etcd directly. A running API server follows etcd.
type store struct{ client *clientv3.Client }

// openStore connects to the etcd.
func openStore(url string) (store, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
	return store{client}, err
}

// Close ends the connection.
func (s store) Close() error { return s.client.Close() }

// A source returns the nth record, in the order of n. At the end it returns false.
type source func(n int) (record, bool, error)

// first returns a source of the first count records.
func first(count int, nth func(n int) (record, error)) source {
	return func(n int) (record, bool, error) {
		if n >= count {
			return record{}, false, nil
		}
		r, err := nth(n)
		return r, true, err
	}
}

// put writes all records of a source, in transactions.
func (s store) put(ctx context.Context, all source) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(txnsAtOnce)
	err := batches(all, func(batch []record) {
		g.Go(func() error {
			var puts []clientv3.Op
			for _, r := range batch {
				puts = append(puts, clientv3.OpPut(r.key, string(r.value)))
			}
			if _, err := s.client.Txn(ctx).Then(puts...).Commit(); err != nil {
				return fmt.Errorf("put %s and %d more keys into etcd: %w", batch[0].key, len(batch)-1, err)
			}
			return nil
		})
	})
	return errors.Join(err, g.Wait())
}

// batches calls do with the records of a source, as many as fit in one transaction.
func batches(all source, do func(batch []record)) error {
	var batch []record
	n, bytes := 0, 0
	for {
		r, more, err := all(n)
		if err != nil {
			return err
		}
		if len(batch) > 0 && (!more || len(batch) == txnRecords || bytes+len(r.value) > txnBytes) {
			do(batch)
			batch, bytes = nil, 0
		}
		if !more {
			return nil
		}
		batch, bytes, n = append(batch, r), bytes+len(r.value), n+1
	}
}
