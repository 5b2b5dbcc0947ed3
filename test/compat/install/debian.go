package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// debian installs the packages. It refreshes apt's lists only if an install fails without it.
func debian(ctx context.Context, packages ...string) error {
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		return fmt.Errorf("install: this machine has no dpkg; needed here are what Debian calls %s", strings.Join(packages, ", "))
	}
	var missing []string
	for _, p := range packages {
		state, err := output(ctx, "", "dpkg-query", "-W", "-f", "${Status}", p)
		if err != nil || state != "install ok installed" {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if os.Getuid() != 0 {
		return fmt.Errorf("install: missing Debian packages; install them with: sudo apt-get install --no-install-recommends %s",
			strings.Join(missing, " "))
	}
	get := func(args ...string) error {
		_, err := output(ctx, "", "env", append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"}, args...)...)
		return err
	}
	installMissing := append([]string{"install", "--no-install-recommends"}, missing...)
	if get(installMissing...) == nil {
		return nil
	}
	if err := get("update"); err != nil {
		return err
	}
	return get(installMissing...)
}

// debianVersion returns the version of an installed Debian package.
func debianVersion(ctx context.Context, name string) (string, error) {
	return output(ctx, "", "dpkg-query", "-W", "-f", "${Version}", name)
}
