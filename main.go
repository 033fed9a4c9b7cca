// Command ip-reaper gives back the addresses that IPAM stores hold for pods
// that no longer exist.
package main

import (
	"os"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/reaper/cli"
)

func main() { os.Exit(cli.Main(backends.All())) }
