package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The capabilities in the order of their numbers, as linux/capability.h has
// them. What comes after them is never removed.
var capabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER",
	"CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP",
	"CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST",
	"CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_IPC_OWNER",
	"CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE",
	"CAP_SYS_PACCT", "CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE",
	"CAP_SYS_RESOURCE", "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD",
	"CAP_LEASE", "CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL", "CAP_SETFCAP",
	"CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG", "CAP_WAKE_ALARM",
	"CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF",
	"CAP_CHECKPOINT_RESTORE",
}

// boundingSet says of each known capability whether it is in the bounding set
// that the text, of /proc/self/status, has as a mask in hexadecimal.
func boundingSet(status string) (map[string]bool, error) {
	for line := range strings.Lines(status) {
		mask, ok := strings.CutPrefix(line, "CapBnd:")
		if !ok {
			continue
		}
		bits, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("CapBnd of /proc/self/status: %w", err)
		}
		set := make(map[string]bool, len(capabilities))
		for number, name := range capabilities {
			set[name] = bits&(1<<number) != 0
		}
		return set, nil
	}
	return nil, errors.New("no CapBnd in /proc/self/status")
}

// narrow removes the capabilities that are known and not in the bounding set
// from all the sets of a process, and says whether there were any.
func narrow(process map[string]any, bounding map[string]bool) bool {
	narrowed := false
	sets, _ := process["capabilities"].(map[string]any)
	for name, set := range sets {
		list, _ := set.([]any)
		kept := slices.DeleteFunc(slices.Clone(list), func(capability any) bool {
			text, _ := capability.(string)
			has, known := bounding[text]
			return known && !has
		})
		if len(kept) < len(list) {
			sets[name], narrowed = kept, true
		}
	}
	return narrowed
}

// specFile is the file in which the arguments of runc say what to run: none if
// the command starts nothing.
func specFile(args []string) string {
	command, rest := splitCommand(args)
	switch command {
	case "create", "run":
		bundle := flagValue(rest, "--bundle", "-b")
		return filepath.Join(bundle, "config.json")
	case "exec":
		return flagValue(rest, "--process", "-p")
	}
	return ""
}

// splitCommand finds the command after the global flags of runc.
func splitCommand(args []string) (command string, rest []string) {
	valued := []string{"--criu", "--log", "--log-format", "--root", "--rootless"}
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains(valued, args[i]):
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i], args[i+1:]
		}
	}
	return "", nil
}

// flagValue is the value of the flag by either of its names, empty without it.
func flagValue(args []string, names ...string) string {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case !slices.Contains(names, name):
		case joined:
			return value
		case i+1 < len(args):
			return args[i+1]
		}
	}
	return ""
}
