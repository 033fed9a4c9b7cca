package ship_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// An exception is a kind of command that wants what is not here, and what is done
// in its stead.
type exception struct {
	begins  string
	needs   string
	instead func(o *operator, typed string) (output string, err error)
}

// elsewhere are all commands of the pages that are not run. The first that fits
// counts.
var elsewhere = []exception{
	{"make ", "minutes, a registry or Docker; and it is what runs this test", targetExists},
	{"docker push ", "a registry", unchecked},
	{"helm ", "helm: integration/ship/chart renders and applies the chart", chartExists},
	{"etcdctl ", "Calico's data in etcd: integration/calico has that", flagsExist},
	{"ETCD_ENDPOINTS=", "Calico's data in etcd, behind TLS: integration/calico has that", flagsExist},
	{"kubectl -n ip-reaper logs ", "a kubelet", logs},
	{"calicoctl ", "a calicoctl that knows its version", mismatched},
	{"kubectl -n ip-reaper-node logs ", "a kubelet", unchecked},
	{"kubectl debug ", "a kubelet", unchecked},
	{"kubectl cp ", "a kubelet", unchecked},
	{"kubectl exec ", "a kubelet", unchecked},
	{"sudo ", "systemd: deploy verifies the units", unchecked},
	{"journalctl ", "systemd", unchecked},
	{"curl ", "a Pushgateway: integration/run has a real one", unchecked},
}

// cannotRun returns the exception that a command is.
func cannotRun(typed string) (exception, bool) {
	for _, e := range elsewhere {
		if strings.HasPrefix(typed, e.begins) {
			return e, true
		}
	}
	return exception{}, false
}

// mismatched lets calicoctl off from comparing versions: built from its module, it has
// none.
func mismatched(o *operator, typed string) (string, error) {
	return o.bash(typed + " --allow-version-mismatch")
}

// unchecked does nothing.
func unchecked(*operator, string) (string, error) { return "", nil }

// targetExists fails unless the Makefile, or what it includes, has the target.
func targetExists(o *operator, typed string) (string, error) {
	target := strings.Fields(typed)[1]
	files, err := filepath.Glob(filepath.Join(root(o), "integration", "*", "*.mk"))
	if err != nil {
		return "", err
	}
	for _, file := range append(files, filepath.Join(root(o), "Makefile")) {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:.* ## `).Match(text) {
			return "", nil
		}
	}
	return "", fmt.Errorf("there is no target %s with a word on what it does", target)
}

// chartExists fails unless the chart that is named exists, and has the values that
// are set.
func chartExists(o *operator, typed string) (string, error) {
	words := strings.Fields(typed)
	for i, word := range words {
		switch {
		case strings.HasPrefix(word, "deploy/"):
			if _, err := os.Stat(o.path(word, "Chart.yaml")); err != nil {
				return "", err
			}
		case word == "--set":
			key, _, _ := strings.Cut(words[i+1], "=")
			if err := valueExists(o.path("deploy", "helm", "ip-reaper", "values.yaml"), key); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

func valueExists(file, key string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var at any
	if err := yaml.Unmarshal(text, &at); err != nil {
		return err
	}
	for part := range strings.SplitSeq(key, ".") {
		values, _ := at.(map[string]any)
		next, ok := values[part]
		if !ok {
			return fmt.Errorf("%s has no value %s", file, key)
		}
		at = next
	}
	return nil
}

// flagsExist fails unless ip-reaper, where the command calls it, knows its flags and
// its subcommand.
func flagsExist(o *operator, typed string) (string, error) {
	_, called, ok := strings.Cut(typed, "ip-reaper ")
	if !ok {
		return "", errors.New("it does not call ip-reaper")
	}
	words := strings.Fields(called)
	help := "ip-reaper --help"
	if !strings.HasPrefix(words[0], "-") {
		help = "ip-reaper " + words[0] + " --help"
	}
	text, err := o.bash(help)
	for _, word := range words {
		flag, _, _ := strings.Cut(word, "=")
		if strings.HasPrefix(flag, "--") && !strings.Contains(text, flag+" ") {
			return text, fmt.Errorf("there is no flag %s", flag)
		}
	}
	return text, err
}

// logs returns what the Job printed that the command names.
func logs(o *operator, typed string) (string, error) {
	words := strings.Fields(typed)
	for _, word := range words {
		if name, ok := strings.CutPrefix(word, "job/"); ok {
			out, ran := o.logs[name]
			if !ran {
				return "", fmt.Errorf("no Job %s has run", name)
			}
			return out, nil
		}
	}
	return "", errors.New("it names no Job")
}
