package ship_test

import (
	"errors"
	"fmt"
	"strings"
)

// An exception is a kind of command that wants what is not here, and what is done
// in its stead: nothing where that is nil.
type exception struct {
	begins  string
	needs   string
	instead func(o *operator, typed string) (output string, err error)
}

// elsewhere are all commands of the pages that are not run. The first that fits
// counts.
var elsewhere = []exception{
	{"make ", "minutes, a registry or Docker; and it is what runs this test", nil},
	{"docker push ", "a registry", nil},
	{"helm ", "helm: integration/ship renders and applies the chart", nil},
	{"etcdctl ", "Calico's data in etcd: integration/calico has that", nil},
	{"ETCD_ENDPOINTS=", "Calico's data in etcd, behind TLS: integration/calico has that", nil},
	{"kubectl -n ip-reaper logs ", "a kubelet", logs},
	{"kubectl -n ip-reaper-outage logs ", "a kubelet", logs},
	{"calicoctl ", "a calicoctl that knows its version", mismatched},
	{"kubectl -n ip-reaper-node logs ", "a kubelet", nil},
	{"kubectl debug ", "a kubelet", nil},
	{"kubectl cp ", "a kubelet", nil},
	{"kubectl exec ", "a kubelet", nil},
	{"sudo ", "systemd: deploy verifies the units", nil},
	{"journalctl ", "systemd", nil},
	{"curl ", "a Pushgateway: integration/run has a real one", nil},
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
