package httplocal

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestOwner: the kernel's tables are read as it writes them.
func TestOwner(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1
   1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000    33        0 4712 1
   2: 0000000000000000FFFF00000100007F:C351 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000 101 0 4713 1
   3: 00000000000000000000000001000000:C352 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000 1000 0 4714 1
   4: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     7        0 4715 1
   5: 0100007F
   6: zz:1 0100007F:1F90 01 00000000:00000000 00:00000000 00000000 9 0 4716 1
   7: 0100007F:C354 0100007F:1F90 05 00000000:00000000 03:00001770 00000000 0 0 0 3`
	for _, c := range []struct {
		socket, remote string
		uid            int
		found          bool
	}{
		{"127.0.0.1:50000", "127.0.0.1:8080", 33, true},
		{"127.0.0.1:50001", "127.0.0.1:8080", 101, true},
		{"[::1]:50002", "[::1]:8080", 1000, true},
		{"127.0.0.1:50000", "127.0.0.1:8081", 0, false},
		{"127.0.0.1:50003", "127.0.0.1:8080", 0, false},
		{"127.0.0.1:50004", "127.0.0.1:8080", 0, false}, // no process has it any more
	} {
		uid, found := owner(bufio.NewScanner(strings.NewReader(table)), netip.MustParseAddrPort(c.socket), netip.MustParseAddrPort(c.remote))
		if uid != c.uid || found != c.found {
			t.Errorf("%s to %s: %d, %t, want %d, %t", c.socket, c.remote, uid, found, c.uid, c.found)
		}
	}
}

// TestOnThisMachine_Service: a process of a user for services is no caller on this machine, because
// a proxy that adds no headers runs as one. People are, and so are root and the server's own user.
func TestOnThisMachine_Service(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("makes sockets of other users, so it needs root")
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if OnThisMachine(r) {
			_, _ = io.WriteString(w, "here") // what is missing fails the test
		}
	}))
	s.Config.ConnContext = ConnContext
	s.Start()
	defer s.Close()
	for uid, want := range map[int]string{0: "here", 33: "", 101: "", firstPerson - 1: "", firstPerson: "here"} {
		c := dialAs(t, s.Listener.Addr().String(), uid)
		client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return c, nil }}}
		for range 2 { // on one connection
			r, err := client.Get(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r.Body)
			if err := r.Body.Close(); err != nil || string(body) != want {
				t.Errorf("user %d: %q, want %q: %v", uid, body, want, err)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		client.CloseIdleConnections()
	}
}

// dialAs connects with a socket of a user: the thread that makes it is that user's, and then ends.
func dialAs(t *testing.T, address string, uid int) net.Conn {
	type result struct {
		net.Conn
		error
	}
	done := make(chan result)
	go func() { // ends with the result
		runtime.LockOSThread() // and not unlocked: the thread is not used again
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
			done <- result{nil, errno}
			return
		}
		c, err := net.Dial("tcp", address)
		done <- result{c, err}
	}()
	r := <-done
	if r.error != nil {
		t.Fatal(r.error)
	}
	return r.Conn
}
