package print

import (
	"io"

	"sigs.k8s.io/yaml"
)

// printYAML prints what printJSON prints, with sorted fields. Its texts and its large numbers are those of
// JSONPath.
func printYAML(w io.Writer, v view) error {
	value, err := plain(v.value)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}
