package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// memory reads a value in KiB from a process's status.
func memory(pid int, name string) (int, error) {
	file := fmt.Sprintf("/proc/%d/status", pid)
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if value, is := strings.CutPrefix(line, name+":"); is {
			return strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
		}
	}
	return 0, fmt.Errorf("%s has no %s", file, name)
}

// peak polls the memory high-water mark of a started process until the returned function is called.
// That returns the mark in KiB; 0 if it could not be read. The process's rusage would do if it did
// not also count the program that started it (exec_mmap in Linux' fs/exec.c).
func peak(pid int) (highest func() int) {
	stop, result := make(chan struct{}), make(chan int)
	go func() {
		most := 0
		poll := time.NewTicker(2 * time.Millisecond)
		defer poll.Stop()
		for {
			if now, err := memory(pid, "VmHWM"); err == nil { // after the end it is gone
				most = max(most, now)
			}
			select {
			case <-poll.C:
			case <-stop:
				result <- most
				return
			}
		}
	}()
	return func() int { close(stop); return <-result }
}
