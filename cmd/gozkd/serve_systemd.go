package main

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"
)

// systemd tells the service manager what the server does, as sd_notify(3) has it. Without one it does nothing.
type systemd struct{ log hclog.Logger }

// tell sends assignments, one per line.
func (m systemd) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.Warn("the service manager was not told", "state", state, "error", err)
	}
}

// reloading announces a reload, which ends with READY=1.
func (m systemd) reloading() {
	m.tell(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec()) // Type=notify-reload needs the time
}

// watchdog tells that the server is alive, twice in the time that the service manager allows, until ctx ends; it returns at once if none
// asks. look is called before, and does not return when the server is stuck.
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
		m.tell(daemon.SdNotifyWatchdog)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
