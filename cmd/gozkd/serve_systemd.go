package main

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"
)

// systemd sends the state of the server to the service manager, see sd_notify(3). Without a service
// manager nothing is sent.
type systemd struct{ log hclog.Logger }

// notify sends assignments, one per line.
func (m systemd) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.Warn("the service manager was not told", "state", state, "error", err)
	}
}

// reloading announces a reload, which ends with READY=1.
func (m systemd) reloading() {
	m.notify(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec()) // Type=notify-reload requires the time
}

// watchdog reports until ctx ends that the server is alive, twice per interval of the service
// manager. It calls look before each report; look blocks if the server is stuck. If no watchdog is
// configured, it returns at once.
func (m systemd) watchdog(ctx context.Context, look func()) {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		m.log.Warn("the service manager's watchdog is not served", "error", err)
	}
	if err != nil || every <= 0 {
		return
	}
	ticker := time.NewTicker(max(every/2, time.Millisecond))
	defer ticker.Stop()
	for {
		look()
		m.notify(daemon.SdNotifyWatchdog)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
