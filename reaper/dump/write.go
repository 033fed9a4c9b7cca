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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// An end is the last document of a dump. With it, a list that the dump lacks is one that the cluster
// does not have.
type end struct {
	metav1.TypeMeta
	Time    time.Time `json:"time"`
	Version string    `json:"version"` // of the program
	Error   string    `json:"error,omitempty"`
	Ledger  []byte    `json:"ledger,omitempty"` // in its stored form; nothing without one
	Policy  Policy    `json:"policy,omitzero"`
}

// A Policy is the installed one by which a dump was judged. It is zero if none is installed or could be
// read, or if the dump was judged by a file.
type Policy struct {
	Installed string `json:"installed"` // the ConfigMap, as namespace/name
	Text      string `json:"text"`
}

// Write writes lists, one object on a line, the policy, the ledger, and what ended the dump: nil if it is whole. It
// leaves out lists of metadata, and those of Kubernetes that are not of pods, nodes or StatefulSets.
func Write(out io.Writer, lists map[string]kube.RecordedList, ledger []byte, policy Policy, now time.Time, version string, failed error) error {
	w := bufio.NewWriter(out)
	for _, path := range slices.Sorted(maps.Keys(lists)) {
		list := lists[path]
		switch group := schema.FromAPIVersionAndKind(list.APIVersion, "").Group; {
		case list.Kind == "PodList", list.Kind == "NodeList", list.Kind == "StatefulSetList":
		case !strings.Contains(group, "."), strings.HasSuffix(group, "k8s.io"):
			continue
		}
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"items":[`, list.APIVersion, list.Kind)
		for i, item := range list.Items {
			fmt.Fprintf(w, "%s\n%s", map[bool]string{true: ","}[i > 0], item)
		}
		fmt.Fprint(w, "\n]}\n")
	}
	last := end{metav1.TypeMeta{APIVersion: ipam.DumpGroup + "/v1alpha1", Kind: ipam.DumpKind}, now, version, "", ledger, policy}
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
