package print

import (
	"errors"
	"io"

	"go.yaml.in/yaml/v2"
)

// printYAML prints what printJSON prints, with sorted fields. Its texts and its large numbers are those of
// JSONPath.
func printYAML(w io.Writer, v view) error {
	value, err := plain(v.value)
	if err != nil {
		return err
	}
	out := yaml.NewEncoder(w)
	return errors.Join(out.Encode(value), out.Close())
}
