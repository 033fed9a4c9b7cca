// Command workload is what the pods of the end-to-end tests run: a server that
// answers with the name of its pod, and the means to ask one from another pod.
//
//	workload              serve on port 8080 until SIGTERM
//	workload get URL      print what the URL answers
//	workload lookup NAME  print the addresses of the name, one a line
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// patience is how long a question may take.
const patience = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := realMain(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "workload: %v\n", err)
		os.Exit(1)
	}
}

func realMain(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) == 0:
		return serve(ctx)
	case len(args) == 2 && args[0] == "get":
		return get(ctx, args[1], out)
	case len(args) == 2 && args[0] == "lookup":
		return lookup(ctx, args[1], out)
	}
	return fmt.Errorf("unknown arguments %q: none, get URL or lookup NAME", args)
}

func serve(ctx context.Context) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr:              ":8080",
		ReadHeaderTimeout: patience,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			// A connection for each request, so that a Service can choose anew.
			w.Header().Set("Connection", "close")
			fmt.Fprintln(w, name)
		}),
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func get(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", url, response.Status)
	}
	_, err = io.Copy(out, response.Body)
	return err
}

func lookup(ctx context.Context, name string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return err
	}
	for _, address := range addresses {
		fmt.Fprintln(out, address)
	}
	return nil
}
