package program

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Peak reads the high-water mark of memory of a process that was started, until the
// function that it returns is called. That returns the mark in KiB; 0 if it could not be
// read. The rusage of a process would do if it did not also count the program that started
// it (exec_mmap in Linux' fs/exec.c).
func Peak(pid int) (peak func() int) {
	stop, result := make(chan struct{}), make(chan int)
	go func() {
		most := 0
		poll := time.NewTicker(2 * time.Millisecond)
		defer poll.Stop()
		for {
			most = max(most, highWater(pid))
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

// highWater reads VmHWM in KiB. A process that os/exec has started is the binary by then:
// Start waits for that.
func highWater(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if value, is := strings.CutPrefix(line, "VmHWM:"); is {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
			if err != nil {
				return 0
			}
			return kib
		}
	}
	return 0
}
