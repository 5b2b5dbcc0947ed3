package server

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// freePorts returns n different ports of 127.0.0.1 that were free a moment ago, below those that
// systems use for outgoing connections: a stopped member must find its ports free when it returns.
func freePorts(n int) (ports []int, err error) {
	const first, last, attempts = 16384, 32767, 1000
	var held []net.Listener
	defer func() {
		for _, l := range held {
			err = errors.Join(err, l.Close())
		}
	}()
	for range attempts {
		if len(ports) == n {
			return ports, nil
		}
		port := first + rand.IntN(last-first+1)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		held, ports = append(held, l), append(ports, port)
	}
	return nil, fmt.Errorf("server: found only %d free ports of %d", len(ports), n)
}
