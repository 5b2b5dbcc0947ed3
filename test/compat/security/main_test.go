package security

import (
	"strconv"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

// Every act of every table can be performed, and the rows that may differ exist.
func TestReadTables(t *testing.T) {
	rows := make(map[string]bool)
	for _, table := range readTables(tablesText) {
		rows[table.name+", start"] = true
		for _, r := range table.rows {
			if name := table.name + ", " + r.name; rows[name] {
				t.Errorf("two rows are called %s", name)
			} else {
				rows[name] = true
			}
			for _, act := range r.acts {
				word, rest, _ := strings.Cut(act, " ")
				switch word {
				case "reply", "connect", "again":
				case "login":
					_, changes, _ := strings.Cut(rest, " ")
					_, changes, _ = strings.Cut(changes, " ")
					edited("a=1,b=2", changes)
				default:
					_, err := strconv.Atoi(word)
					if _, _, parseErr := exchange.ParseRequest(rest); err != nil || parseErr != nil {
						t.Errorf("%s, %s: %s: %v, %v", table.name, r.name, act, err, parseErr)
					}
				}
			}
		}
	}
	if len(rows) < 150 {
		t.Errorf("there are only %d rows", len(rows))
	}
	for name := range allowed {
		if !rows[name] {
			t.Errorf("no row is called %s", name)
		}
	}
}

func TestEdited(t *testing.T) {
	for changes, want := range map[string]string{
		"":                           `a=1,b="2"`,
		`with "a="`:                  `b="2"`,
		"with `a=x`":                 `b="2",a=x`,
		"edit `$` `,c` edit `,` `;`": `a=1;b="2";c`,
	} {
		if got := edited(`a=1,b="2"`, changes); got != want {
			t.Errorf("%s: %s, want %s", changes, got, want)
		}
	}
}
