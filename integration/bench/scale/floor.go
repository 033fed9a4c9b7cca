package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
)

// A floor is what a run costs at least: a bare client that knows the answer. It runs as
// a process of its own, so that its CPU time and its memory can be measured.
type floor struct {
	client *http.Client
	host   string
	page   int // objects on a page of a list; 0 for one answer
}

// floorName is the first argument of the process.
const floorName = "floor"

// runFloor is the process.
func runFloor(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(floorName, flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "`FILE` with the API server and the account")
	file := flags.String("task", "", "`FILE` with the task")
	page := flags.Int("page", 500, "objects on a page of a list; 0 for one answer")
	concurrency := flags.Int("concurrency", 32, "objects that are written at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.DisableCompression = true
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	var t task
	if err := json.Unmarshal(data, &t); err != nil {
		return fmt.Errorf("decode %s: %w", *file, err)
	}
	return floor{client, strings.TrimSuffix(config.Host, "/"), *page}.do(ctx, t, *concurrency)
}

// do does the task.
func (f floor) do(ctx context.Context, t task, concurrency int) (err error) {
	g, listed := errgroup.WithContext(ctx)
	for _, l := range t.Lists {
		g.Go(func() error { return f.list(listed, l) })
	}
	var etcd store
	if t.Etcd != nil {
		if etcd, err = openStore(t.Etcd.Endpoint); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, etcd.Close()) }()
		for _, prefix := range t.Etcd.Prefixes {
			g.Go(func() error { return etcd.each(listed, prefix, f.page, func(string, []byte) error { return nil }) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, stage := range t.Stages {
		err := parallel.Each(concurrency, stage, func(_ int, w write) error { return f.write(ctx, w) })
		if err != nil {
			return err
		}
	}
	if t.Etcd == nil {
		return nil
	}
	return parallel.Each(concurrency, t.Etcd.Txns, func(_ int, t transaction) error { return etcd.commit(ctx, t) })
}

// write makes the requests of one object.
func (f floor) write(ctx context.Context, w write) error {
	var answered struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	for i, r := range w.Requests {
		body := []byte(r.Body)
		if i > 0 {
			body = fmt.Appendf(nil, r.Body, answered.Metadata.ResourceVersion)
		}
		response, err := f.send(ctx, r.Method, w.Path, r.Type, bytes.NewReader(body))
		if err != nil {
			return err
		}
		data, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			return fmt.Errorf("%s %s: %w", r.Method, w.Path, err)
		}
		if i+1 < len(w.Requests) {
			if err := json.Unmarshal(data, &answered); err != nil {
				return fmt.Errorf("%s %s: %w", r.Method, w.Path, err)
			}
		}
	}
	return nil
}

// send makes a request. An answer that is no success is an error.
func (f floor) send(ctx context.Context, method, path, contentType string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, f.host+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	if body == nil {
		r.Header.Set("Accept", contentType)
	} else {
		r.Header.Set("Content-Type", contentType)
	}
	response, err := f.client.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		response.Body.Close()
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	return response, nil
}
