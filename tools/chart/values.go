// Package chart tests the Helm chart: it renders the chart with several values, and checks the
// objects without a cluster. Each object is decoded strictly as the type of Kubernetes that it
// names, references within the objects lead somewhere, and gozkd takes the configuration of each
// server.
//
// README.md and values.schema.json of the chart must be what values.yaml makes of them, and
// files/alerts.yaml a copy of deploy/monitoring/alerts.yaml, because Helm warns of links; make
// chart CHART=-update writes them.
package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// generated returns the files of the chart that follow from others, by their names: the table of
// values for people, the schema that Helm checks values with, and the alert rules.
func generated(chart string) (map[string][]byte, error) {
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return nil, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	var table bytes.Buffer
	table.WriteString("# The values of the chart\n\nMade from values.yaml by `make chart CHART=-update`. How to use the chart:\n" +
		"docs/guide/container.md.\n\n| value | default | meaning |\n|---|---|---|\n")
	schema := document(&table, "", "", root.Content[0])
	schema["$schema"] = "https://json-schema.org/draft-07/schema#"
	inJSON, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, err
	}
	alerts, err := os.ReadFile(filepath.Join(chart, "../../monitoring/alerts.yaml"))
	return map[string][]byte{
		"README.md": table.Bytes(), "values.schema.json": append(inJSON, '\n'), "files/alerts.yaml": alerts,
	}, err
}

// document writes the rows of a value and returns its schema. An empty map or list holds anything,
// an empty string any string, except for those with a pattern.
func document(table *bytes.Buffer, path, comment string, value *yaml.Node) map[string]any {
	if value.Kind == yaml.MappingNode && len(value.Content) > 0 && path != "updateStrategy" && !strings.HasSuffix(path, "esources") {
		properties := make(map[string]any)
		for i := 0; i < len(value.Content); i += 2 {
			key, v := value.Content[i], value.Content[i+1]
			said := prose(key.HeadComment, key.LineComment, v.LineComment, v.HeadComment, key.FootComment)
			if i == 0 && path != "" {
				said = prose(comment, said)
			}
			properties[key.Value] = document(table, strings.TrimPrefix(path+"."+key.Value, "."), said, v)
		}
		// What contains this chart as a part passes "global".
		if path == "" {
			properties["global"] = map[string]any{"type": "object"}
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	}
	var shown any
	if err := value.Decode(&shown); err != nil {
		shown = err
	}
	asJSON, err := json.Marshal(shown)
	if err != nil {
		asJSON = []byte(err.Error())
	}
	fmt.Fprintf(table, "| `%s` | `%s` | %s |\n", path, asJSON, strings.ReplaceAll(comment, "|", "\\|"))
	kind := map[string]any{"!!str": "string", "!!bool": "boolean", "!!int": "integer", "!!map": "object", "!!seq": "array"}[value.Tag]
	schema := map[string]any{"type": kind}
	if pattern, ok := patterns[path]; ok {
		schema["pattern"] = pattern
	}
	return schema
}

// patterns are regular expressions of values in which a typo would be noticed by Kubernetes or the
// servers only.
var patterns = map[string]string{
	"archive.verify.ensemble": "^([0-9a-f]{16})?$",
	"image.pullPolicy":        "^(Always|Never|IfNotPresent)$",
	"service.type":            "^(ClusterIP|NodePort|LoadBalancer)$",
	"tls.clientAuth":          "^(none|want|need)$",
}

// prose joins comments without their marks.
func prose(comments ...string) string {
	var words []string
	for _, c := range comments {
		for line := range strings.Lines(c) {
			words = append(words, strings.Fields(strings.TrimPrefix(line, "#"))...)
		}
	}
	return strings.Join(words, " ")
}

// compareGenerated fails if the files differ from what values.yaml makes of them; with update it
// writes them.
func compareGenerated(chart string, update bool) error {
	files, err := generated(chart)
	if err != nil {
		return err
	}
	for name, want := range files {
		path := filepath.Join(chart, name)
		if update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				return err
			}
		} else if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, want) {
			return fmt.Errorf("%s is not what is made of its source: make chart CHART=-update", path)
		}
	}
	return nil
}
