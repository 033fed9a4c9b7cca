package main

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// clear deletes all keys with the prefixes.
func (s store) clear(ctx context.Context, prefixes ...string) error {
	for _, prefix := range prefixes {
		if _, err := s.client.Delete(ctx, prefix, clientv3.WithPrefix()); err != nil {
			return fmt.Errorf("delete %s from etcd: %w", prefix, err)
		}
	}
	return nil
}

// count returns how many keys have a prefix.
func (s store) count(ctx context.Context, prefix string) (int, error) {
	response, err := s.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("count %s in etcd: %w", prefix, err)
	}
	return int(response.Count), nil
}

// compact discards the old revisions of all keys.
func (s store) compact(ctx context.Context) error {
	now, err := s.client.Get(ctx, "now", clientv3.WithCountOnly())
	if err == nil {
		_, err = s.client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil {
		return fmt.Errorf("compact etcd: %w", err)
	}
	return nil
}

// each reads a prefix, with page keys per answer; 0 means a single answer. It calls do with the
// rest of each key, and its value.
func (s store) each(ctx context.Context, prefix string, page int, do func(name string, value []byte) error) error {
	end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix))
	for from := prefix; ; {
		answer, err := s.client.Get(ctx, from, end, clientv3.WithLimit(int64(page)))
		if err != nil {
			return fmt.Errorf("read %s from etcd: %w", prefix, err)
		}
		for _, kv := range answer.Kvs {
			if err := do(strings.TrimPrefix(string(kv.Key), prefix), kv.Value); err != nil {
				return fmt.Errorf("%s: %w", kv.Key, err)
			}
			from = string(kv.Key) + "\x00"
		}
		if !answer.More {
			return nil
		}
	}
}
