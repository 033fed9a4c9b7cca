package assets

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The ports that servers are given. A port that the kernel has chosen, and that was closed again, may
// go to the next connection of any process: on a busy machine, a server that should listen there
// sometimes finds it in use. So these are below those that Linux (from 32768) and macOS (from 49152) choose for connections,
// and below NodePorts (from 30000).
const (
	firstPort = 20000
	ports     = 10000
)

// reserved keeps the ports ours: one UDP socket for each TCP port. Our programs use no UDP
// otherwise. The kernel closes the sockets when the process ends.
var (
	reservedMu sync.Mutex
	reserved   []net.PacketConn
)

// ReservePort returns a TCP port of 127.0.0.1 on which no process listens, and which no other call
// returns, in any process, before this process has ended. It is safe for concurrent use.
func ReservePort() (string, error) {
	start := rand.IntN(ports)
	for i := range ports {
		port := strconv.Itoa(firstPort + (start+i)%ports)
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
		reservedMu.Lock()
		defer reservedMu.Unlock()
		reserved = append(reserved, lock)
		return port, nil
	}
	return "", fmt.Errorf("reserve a port: each of 127.0.0.1:%d to %d is in use", firstPort, firstPort+ports-1)
}
