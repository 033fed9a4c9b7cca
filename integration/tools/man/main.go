// Command man writes the man pages of all commands of ip-reaper to a directory:
//
//	man VERSION DIR
//
// It is no part of the program, because cobra/doc and its renderer of Markdown would make
// the program larger.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/reaper/cli"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// write writes the pages. Their date is that of SOURCE_DATE_EPOCH, or else today.
func write(args []string) error {
	if len(args) != 2 {
		return errors.New("man needs exactly two arguments: VERSION DIR")
	}
	if err := os.MkdirAll(args[1], 0o755); err != nil {
		return err
	}
	root := cli.Documented(backends.All())
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{
		Title: "IP-REAPER", Section: "1", Source: "ip-reaper " + args[0], Manual: "ip-reaper",
	}, args[1])
}
