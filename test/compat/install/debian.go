package install

import (
	"context"
	"os"
	"os/exec"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// debian installs the packages. It refreshes apt's lists only if an install fails without it.
func debian(ctx context.Context, packages ...string) {
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		must.Failf("install: this machine has no dpkg; needed here are what Debian calls %s", strings.Join(packages, ", "))
	}
	var missing []string
	for _, p := range packages {
		state, err := output(ctx, "", "dpkg-query", "-W", "-f", "${Status}", p)
		if err != nil || state != "install ok installed" {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return
	}
	if os.Getuid() != 0 {
		must.Failf("install: missing Debian packages; install them with: sudo apt-get install --no-install-recommends %s",
			strings.Join(missing, " "))
	}
	get := func(args ...string) error {
		_, err := output(ctx, "", "env", append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"}, args...)...)
		return err
	}
	installMissing := append([]string{"install", "--no-install-recommends"}, missing...)
	if get(installMissing...) != nil {
		must.Do(get("update"))
		must.Do(get(installMissing...))
	}
}
