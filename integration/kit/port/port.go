// Package port gives servers ports that nobody takes before they listen.
//
// A port that the kernel has chosen, and that was closed again, may go to the next
// connection of any process: a server that is told to listen there finds it in use, now
// and then, on a busy machine.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The ports are below those that Linux (from 32768) and macOS (from 49152) choose for
// connections, and those of NodePorts (from 30000).
const (
	first = 20000
	count = 10000
)

// reserved are what keeps the ports ours: one UDP socket for each TCP port, of which our
// programs have no other use. The kernel closes them with the process.
var (
	mu       sync.Mutex
	reserved []net.PacketConn
)

// Reserve returns a TCP port of 127.0.0.1 at which no process listens, and which no other
// call returns, in any process, before this process has ended. It is safe for concurrent use.
func Reserve() (string, error) {
	start := rand.IntN(count)
	for i := range count {
		port := strconv.Itoa(first + (start+i)%count)
		address := net.JoinHostPort("127.0.0.1", port)
		lock, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err == nil {
			err = listener.Close()
		}
		if err != nil {
			_ = lock.Close() // it is another program's port
			continue
		}
		mu.Lock()
		defer mu.Unlock()
		reserved = append(reserved, lock)
		return port, nil
	}
	return "", fmt.Errorf("reserve a port: each of 127.0.0.1:%d to %d is in use", first, first+count-1)
}
