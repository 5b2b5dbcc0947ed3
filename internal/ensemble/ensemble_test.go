package ensemble

import (
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }

// The error of a taken port names the member, its address and what to do.
func TestNew_PortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, err = New("", []string{"127.0.0.1:0", taken.Addr().String()}, false, "--port")
	want := "member 2: client port: listen tcp " + taken.Addr().String() +
		": bind: address already in use; stop what listens there, or choose another port: --port"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// The error of Listen does not name the member: callers do, as for the other errors of its start.
func TestListen_PortInUse(t *testing.T) {
	e, err := New("", []string{"127.0.0.1:0"}, false, "")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	l, _, err := e.Members[0].Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if _, _, err = e.Members[0].Listen(); err == nil || !strings.HasPrefix(err.Error(), "client port: listen tcp "+e.ConnectString()) {
		t.Errorf("%v", err)
	}
}
