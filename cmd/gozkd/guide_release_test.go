//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// followAll runs blocks as one script, which ends at the first command that fails. Programs in
// place of those that are not here check their words; $root is the repository.
func (sh *guideShell) followAll(blocks []guideBlock, programs map[string]string) {
	sh.t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		sh.t.Fatal(err)
	}
	for name, script := range programs {
		sh.writeProgram(name, "root='"+root+"'\n"+script+"\n")
	}
	script := "set -ex\n"
	for _, b := range blocks {
		script += b.text()
	}
	sh.writeProgram("follow", script)
	sh.run("follow")
}

// The commands of docs/internals/releasing.md tag all released modules, push the tags, and sign
// what a user verifies.
func TestGuide_Releasing(t *testing.T) {
	for _, name := range []string{"git", "ssh-keygen", "sha256sum"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("the commands of docs/internals/releasing.md need ", name, ", which is not installed: ", err)
		}
	}
	sh := startGuide(t)
	blocks := readGuide(t, "../internals/releasing.md", strings.Clone)
	blocks[0].lines = append([]string{
		"git init -q -b main .", "git config user.name a", "git config user.email a@example.org", "git commit -q --allow-empty -m c",
		"git init -q --bare origin", "git remote add origin origin", "ssh-keygen -q -t ed25519 -N '' -f KEY",
	}, blocks[0].lines...)
	user := slices.IndexFunc(blocks, func(b guideBlock) bool {
		return strings.HasPrefix(b.lines[0], "ssh-keygen -Y verify ")
	})
	if user < 0 {
		t.Fatal("the page does not verify")
	}
	lines := append([]string{"cd dist", `echo "release@gozkd $(cat ../KEY.pub)" > signers`}, blocks[user].lines...)
	blocks[user].lines = append(lines, "cd ..")
	sh.followAll(blocks, map[string]string{
		"make": `grep -q "^$1:.*##" "$root/Makefile" || exit
v=${2#VERSION=}
[ "$1" = release ] && mkdir -p dist/testkits && cd dist && for f in gozkd_${v}_image_amd64.tar gozkd_${v}_image_arm64.tar gozkd-$v.tgz \
	testkits/gozkd_testkit-$v.whl testkits/gozkd-testkit-$v.tgz testkits/gozkd-testkit-$v.jar testkits/gozkd-testkit-$v.pom; do echo > $f; done &&
	sha256sum * 2>/dev/null > sums; mv sums SHA256SUMS 2>/dev/null
test -f "$OLDPWD/dist/SHA256SUMS" || test -f dist/SHA256SUMS`,
		"skopeo": `[ "$1" = copy ] && test -f "${2#oci-archive:}"`,
		"docker": `[ "$1 $2 $3" = "buildx imagetools create" ]`,
		"helm":   `[ "$1" = push ] && test -f "$2"`,
		"twine":  `[ "$1" = upload ] && test -f "$2"`,
		"npm":    `[ "$1" = publish ] && test -f "$4"`,
		"mvn":    `for w in "$@"; do case $w in -Dfile=* | -DpomFile=*) test -f "${w#*=}" || exit ;; esac; done`,
	})
	source, err := os.ReadFile(filepath.Join("..", "..", "tools", "release", "modules.go"))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^var released = \[\]string\{"", (.*)\}$`).FindSubmatch(source)
	if list == nil {
		t.Fatal("tools/release has no list of released modules")
	}
	want := []string{"v0.1.0"}
	for name := range strings.SplitSeq(strings.ReplaceAll(string(list[1]), `"`, ""), ", ") {
		want = append(want, name+"/v0.1.0")
	}
	slices.Sort(want)
	if got := strings.Fields(sh.run("git --git-dir origin tag")); !slices.Equal(got, want) {
		t.Errorf("pushed are the tags %q, want %q", got, want)
	}
}

// The commands of docs/guide/container.md fit the files in deploy. Those for Kubernetes, which
// begin with $, and the objects there are for TestGuide of tools/chart, which has Helm's code.
func TestGuide_Container(t *testing.T) {
	sh := startGuide(t)
	blocks := slices.DeleteFunc(readGuide(t, "container.md", strings.Clone), func(b guideBlock) bool {
		return strings.HasPrefix(b.lines[0], "$ ") || strings.HasPrefix(b.lines[0], "apiVersion: ")
	})
	env, _ := dockerfile(t)
	for _, m := range file(t, "compose.yaml", `(?m)^  (ZOO_[A-Z0-9_]+): (.*)$`) {
		env[m[1]] = m[2]
	}
	variables := ""
	for name, value := range env {
		if name != "PATH" {
			variables += "'" + name + "=" + value + "' "
		}
	}
	sh.run("touch gozkd_0.1.0_image_amd64.tar")
	sh.followAll(blocks, map[string]string{
		"git": "echo v0.1.0",
		"docker": `case "$1 $2" in
"load " | "tag gozkd:0.1.0") ;;
"build -f") cd "$root" && grep -Eqx "ARG( [A-Z]+)* ${5%=v0.1.0}( [A-Z]+)*" "$3" ;;
"run -d") [ "$#" = 9 ] && grep -q "^EXPOSE .*${4##*:}" "$root/deploy/Dockerfile" && grep -q "^VOLUME.*\"${6#*:}\".*\"${8#*:}\"" "$root/deploy/Dockerfile" ;;
"compose run") grep -q "^  $4:$" "$root/$COMPOSE_FILE" && exec env ` + variables + `ZOO_MY_ID=${4#zoo} ZOO_CONF_DIR=$4 ZOO_DATA_DIR=$4/data ZOO_DATA_LOG_DIR=$4/log gozkd $5 ;;
"compose up") test -f "$root/$COMPOSE_FILE" ;;
*) exit 1 ;;
esac`,
	})
	for _, name := range []string{"zoo1", "zoo2", "zoo3"} {
		if _, err := os.Stat(filepath.Join(sh.dir, name, "data", "initialize")); err != nil {
			t.Error("the volumes are not new: ", err)
		}
	}
}
