//go:build linux

package main

import (
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// separation sends TCP packets of this network namespace through the device distance.
const separation = `
ip link set lo up
ip tuntap add dev distance mode tun
ip link set distance up mtu 65000 txqueuelen 20000
for key in all.rp_filter=0 distance.rp_filter=0 all.accept_local=1 all.route_localnet=1; do
	sysctl -qw net.ipv4.conf.$key
done
ip route add 127.0.0.0/8 dev distance src 127.0.0.1 table 200
ip rule add pref 1 iif distance lookup local
ip rule add pref 20 to 127.0.0.0/8 ipproto tcp lookup 200
ip rule add pref 100 lookup local
ip rule del pref 0`

// separate makes TCP packets of this machine take that long, except those of exceptClients. It
// changes the network namespace of this process, so it needs one of its own.
func separate(distance time.Duration) {
	tun := must.Get(unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0))
	ip(separation)
	device := must.Get(unix.NewIfreq("distance"))
	device.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	must.Do(unix.IoctlIfreq(tun, unix.TUNSETIFF, device))
	type packet struct {
		bytes []byte
		due   time.Time
	}
	held := make(chan packet, 1<<16) // in the order of due
	// Ends with the process.
	go func() {
		b := make([]byte, 1<<16)
		for {
			n := must.Get(unix.Read(tun, b))
			held <- packet{append([]byte(nil), b[:n]...), time.Now().Add(distance)}
		}
	}()
	// Ends with the process.
	go func() {
		for p := range held {
			if wait := unix.NsecToTimespec(int64(time.Until(p.due))); wait.Nano() > 0 {
				_ = unix.Nanosleep(&wait, nil) // a timer of the runtime may be late by a millisecond
			}
			must.Get(unix.Write(tun, p.bytes))
		}
	}()
}

// exceptClients lets the packets between clients and these addresses take no time.
func exceptClients(addrs []string) {
	for _, addr := range addrs {
		_, port, _ := strings.Cut(addr, ":")
		ip("ip rule add pref 10 ipproto tcp sport " + port + " lookup local\nip rule add pref 10 ipproto tcp dport " + port + " lookup local")
	}
}

func ip(script string) {
	if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
		must.Failf("%s: %w", out, err)
	}
}
