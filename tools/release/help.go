package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// command is a command of gozkd, as its help describes it.
type command struct {
	name, help string
	flags      []string
}

var (
	commandRow = regexp.MustCompile(`(?m)^  ([a-z-]+(?:, [a-z-]+)*)(?:  .*)?$`)
	flagWords  = regexp.MustCompile(`(?m)^ +(-(?:[^ ]| \S)*)`)
	flagWord   = regexp.MustCompile(`(?:^|, )(--?[a-z][a-z0-9-]*)`)
)

// commands returns the commands that the help of gozkd names. help returns the text of gozkd help
// with arguments.
func commands(help func(args ...string) string) []command {
	_, rows, _ := strings.Cut(help(), "\ncommands:\n")
	rows, _, _ = strings.Cut(rows, "\n\n")
	var all []command
	for _, row := range commandRow.FindAllStringSubmatch(rows, -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			c := command{name: name}
			if !slices.Contains([]string{"start-foreground", "version", "print-cmd"}, name) {
				c.help = help(name)
			}
			for _, words := range flagWords.FindAllStringSubmatch(c.help, -1) {
				for _, w := range flagWord.FindAllStringSubmatch(words[1], -1) {
					if !slices.Contains(c.flags, w[1]) {
						c.flags = append(c.flags, w[1])
					}
				}
			}
			all = append(all, c)
		}
	}
	return all
}

// bash, zsh and fish return completion files.
func bash(all []command) string {
	text := "# Completion of gozkd for bash.\n_gozkd() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} words\n"
	text += "\tif [ \"$COMP_CWORD\" -eq 1 ] && [[ $cur != -* ]]; then\n\t\twords=\"" + names(all) + "\"\n\telse\n\t\tcase ${COMP_WORDS[1]} in\n"
	for _, c := range all {
		text += fmt.Sprintf("\t\t%s) words=\"%s\" ;;\n", c.name, strings.Join(c.flags, " "))
	}
	return text + "\t\t*) words=\"" + strings.Join(all[0].flags, " ") + "\" ;;\n\t\tesac\n\tfi\n" +
		"\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _gozkd gozkd\n"
}

func zsh(all []command) string {
	return "#compdef gozkd\nautoload -U bashcompinit && bashcompinit\n" + bash(all)
}

func fish(all []command) string {
	text := "# Completion of gozkd for fish.\ncomplete -c gozkd -n __fish_use_subcommand -a '" + names(all) + "'\n"
	for _, c := range all {
		if len(c.flags) > 0 {
			text += fmt.Sprintf("complete -c gozkd -n '__fish_seen_subcommand_from %s' -a '%s'\n", c.name, strings.Join(c.flags, " "))
		}
	}
	return text
}

func names(all []command) string {
	var list []string
	for _, c := range all {
		list = append(list, c.name)
	}
	return strings.Join(list, " ")
}

// manual returns the help as a page of man.
func (r *release) manual(help func(args ...string) string, all []command) string {
	text := fmt.Sprintf(".TH GOZKD 1 %s \"gozkd %s\"\n.SH NAME\ngozkd \\- a coordination server for ZooKeeper clients\n", r.time.UTC().Format("2006-01-02"), r.version)
	section := func(title, help string) {
		help = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace("\n" + help)
		text += ".SH \"" + strings.ToUpper(title) + "\"\n.nf" + help + "\n.fi\n"
	}
	section("synopsis", help())
	for _, c := range all[1:] {
		if c.help != "" {
			section("gozkd "+c.name, c.help)
		}
	}
	return text
}

// describe returns the files that accompany the programs.
func (r *release) describe() []entry {
	r.linked = r.licences()
	gozkd := filepath.Join(r.programs(runtime.GOOS+"/"+runtime.GOARCH), "gozkd")
	help := func(args ...string) string { return r.output(r.dir, gozkd, append([]string{"help"}, args...)...) }
	all := commands(help)
	return []entry{
		{name: "LICENSE", data: r.file("LICENSE")},
		{name: "LICENSES-OF-LIBRARIES", data: thirdParty(r.linked)},
		{name: "README.md", data: r.file("README.md")},
		{name: "CHANGELOG.md", data: r.file("CHANGELOG.md")},
		{name: "gozkd.1", data: []byte(r.manual(help, all))},
		{name: "completion/gozkd.bash", data: []byte(bash(all))},
		{name: "completion/_gozkd", data: []byte(zsh(all))},
		{name: "completion/gozkd.fish", data: []byte(fish(all))},
		{name: "gozkd.service", data: r.file("deploy/gozkd.service")},
		{name: "zoo.cfg", data: r.file("deploy/package/zoo.cfg")},
	}
}
