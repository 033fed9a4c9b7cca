// Command release does what the steps of a release need a program for:
//
//	release notices NOTICES PROGRAM...
//	release pack ARCHIVE FOLDER
//	release provenance FOLDER
//
// The program that signs is another one, and links less: it has the key.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch command {
	case "notices":
		return writeNotices(args[1:])
	case "pack":
		return writeArchive(args[1:], os.Getenv("SOURCE_DATE_EPOCH"))
	case "provenance":
		return writeProvenance(args[1:], os.Getenv)
	default:
		return errors.New("usage: release notices, pack or provenance, and then its arguments")
	}
}
