package dump

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// An end is the last document of a dump.
type end struct {
	metav1.TypeMeta
	Time    time.Time `json:"time"`
	Version string    `json:"version"` // of the program
	Error   string    `json:"error,omitempty"`
	Ledger  []byte    `json:"ledger,omitempty"` // in its stored form; nothing without one
	Policy  Policy    `json:"policy,omitzero"`

	// Missing has the lists that were asked for and are not in the dump, as resource.group. It is nil in a dump
	// by a version that did not note them.
	Missing map[string]missing `json:"missing"`
}

// missing says why a list is not in a dump.
type missing string

const (
	absent missing = "absent" // the API server has no such list
	unread missing = "unread" // it was refused, or could not be read
)

// A Policy is the installed one by which a dump was judged. It is zero if none is installed or could be
// read, or if the dump was judged by a file.
type Policy struct {
	Installed string `json:"installed"` // the ConfigMap, as namespace/name
	Text      string `json:"text"`
}

// Write writes lists, one object on a line, the policy, the ledger, and what ended the dump: nil if it is whole. It
// leaves out lists of metadata, and those of Kubernetes that are not of pods, nodes, StatefulSets, namespaces or
// events.
func Write(out io.Writer, recorded *kube.Recording, ledger []byte, policy Policy, now time.Time, version string, failed error) error {
	w := bufio.NewWriter(out)
	for _, path := range slices.Sorted(maps.Keys(recorded.Lists)) {
		list := recorded.Lists[path]
		switch group := schema.FromAPIVersionAndKind(list.APIVersion, "").Group; {
		case slices.Contains([]string{"PodList", "NodeList", "StatefulSetList", "NamespaceList", "EventList"}, list.Kind):
		case !strings.Contains(group, "."), strings.HasSuffix(group, "k8s.io"):
			continue
		}
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"items":[`, list.APIVersion, list.Kind)
		for i, item := range list.Items {
			fmt.Fprintf(w, "%s\n%s", map[bool]string{true: ","}[i > 0], item)
		}
		fmt.Fprint(w, "\n]}\n")
	}
	last := end{
		TypeMeta: metav1.TypeMeta{APIVersion: ipam.DumpGroup + "/v1alpha1", Kind: ipam.DumpKind},
		Time:     now,
		Version:  version,
		Ledger:   ledger,
		Policy:   policy,
		Missing:  missingOf(recorded.Unread),
	}
	if failed != nil {
		last.Error = failed.Error()
	}
	text, err := json.Marshal(last)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\n", text)
	return w.Flush()
}

// missingOf says why lists could not be read, by their resources. The errors are by the paths of the lists.
func missingOf(errs map[string]error) map[string]missing {
	all := make(map[string]missing, len(errs))
	for path, err := range errs {
		at := strings.Split(strings.Trim(path, "/"), "/")
		if len(at) != 4 || at[0] != "apis" { // without those of the core group, no dump is whole
			continue
		}
		resource := schema.GroupResource{Group: at[1], Resource: at[3]}.String()
		all[resource] = unread
		if apierrors.IsNotFound(err) {
			all[resource] = absent
		}
	}
	return all
}
