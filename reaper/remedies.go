package reaper

import (
	"regexp"
	"slices"
	"strings"
)

// A Remedy is what would change a decision, and the command to type. Command is empty if
// there is none, or if a name in it is none that Kubernetes gives.
type Remedy struct {
	Says    string `json:"says"`
	Command string `json:"command,omitempty"`
}

// safeWord is a word that a shell takes as it is, and safeName one that is no flag either.
// Names come from stores, which anyone may write, and an operator pastes the command.
var (
	safeWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)
	safeName = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9_./:-]*$`)
)

// named returns a name from a store for typed; empty, which is not safe, if it could be a
// flag or more than a name.
func named(name string) string {
	if !safeName.MatchString(name) {
		return ""
	}
	return name
}

// typed returns a command line; empty if one of its words is not safe.
func typed(words ...string) string {
	if slices.ContainsFunc(words, func(word string) bool { return !safeWord.MatchString(word) }) {
		return ""
	}
	return strings.Join(words, " ")
}

// remediesOf returns what would change the decision on an entry. The command is that of a
// run on the same cluster.
func remediesOf(r Report, e Entry, command []string) []Remedy {
	again := func(flags ...string) string { return typed(slices.Concat(command, flags)...) }
	only := []string{"--pool", named(e.Pool)}
	if e.Owner.Pod != "" && e.Owner.Namespace != "" {
		only = []string{"--pod", named(e.Owner.Namespace + "/" + e.Owner.Pod)}
	}
	deletePod := typed("kubectl", "delete", "pod", "-n", named(e.Owner.Namespace), named(e.Owner.Pod))
	switch {
	case e.Verdict == Orphaned && len(r.Result.Refused) > 0:
		all := []Remedy{}
		for _, refusal := range r.Result.Refused {
			all = append(all, Remedy{refusal.Message + ": " + refusal.Remedy, ""})
		}
		return all
	case e.Verdict == Orphaned:
		return []Remedy{{"it is due: the next run that releases gives it back", again(append(only, "--dry-run=false")...)}}
	case e.Verdict == Suspected && e.Due == nil:
		return []Remedy{
			{"no run has stored since when it has been ownerless: remember it", again("--remember")},
			{"or wait for no grace period", again(append(only, "--grace-period=0s")...)},
		}
	case e.Verdict == Suspected:
		return []Remedy{
			{"wait until " + stamp(*e.Due), ""},
			{"or wait for no grace period", again(append(only, "--grace-period=0s")...)},
		}
	}
	switch e.Reason {
	case NodeUnreachable:
		return nodeRemedies(e)
	case TerminationStuck:
		return stuckRemedies(e)
	case PodPresent:
		return []Remedy{{"it is in use until its pod is deleted", deletePod}}
	case SandboxPresent:
		return []Remedy{{"it is in use until the kubelet removes its sandbox", typed("crictl", "inspectp", named(e.Owner.Sandbox))}}
	case AddressInUse:
		return []Remedy{{"it is in use: " + e.Note, ""}}
	case PodFinished:
		return []Remedy{{"delete the object of the pod, which has ended", deletePod}, {"or set pods.finished to release in the policy", ""}}
	case SandboxReplaced:
		return []Remedy{{"set pods.superseded to release in the policy", ""}}
	case RuleHold:
		return []Remedy{{"edit the rule of the policy: " + e.Note, ""}}
	case OutOfScope:
		return []Remedy{{"edit the policy: " + e.Note, ""}}
	case RestoredLately:
		return []Remedy{{"wait: " + e.Note, ""}, {"or release what was restored", again(append(only, "--release-restored")...)}}
	case TooYoung:
		wait := Remedy{"wait: " + e.Note, ""}
		if slices.ContainsFunc(e.Evidence, func(one Evidence) bool { return one.Source == fromRuntime }) {
			return []Remedy{wait}
		}
		return []Remedy{wait, {"or ask for no minimum age", again(append(only, "--min-age=0s")...)}}
	case Protected:
		return []Remedy{{"edit or delete what protects it, if nothing needs the address: " + e.Note, ""}}
	case Retained:
		return []Remedy{{"scale down the StatefulSet, or set protection.statefulSets to ignore: " + said(e), ""}}
	case SiblingKept:
		return []Remedy{{"it goes with its sibling: " + e.Note, ""}}
	case OwnerUnknown:
		return []Remedy{{"look at what the store and the pods say: " + said(e), ""}}
	case NoCensus:
		return []Remedy{{"let the pods be listed; of files, give --pods FILE", typed("kubectl", "auth", "can-i", "list", "pods", "-A")}}
	case UnknownField:
		return []Remedy{{"use a version of ip-reaper that knows the field: " + e.Note, ""}}
	case Unreadable, NoToken:
		return []Remedy{{"repair the stored object by hand: " + said(e), ""}}
	default:
		return []Remedy{{"nothing: ip-reaper never releases it", ""}}
	}
}

// nodeRemedies returns what lets allocations of nodes go that are not ready. The evidence
// names the nodes.
func nodeRemedies(e Entry) []Remedy {
	remedies := []Remedy{{"wait until the node is ready again", ""}}
	for _, one := range e.Evidence {
		if name, ok := strings.CutPrefix(one.Source, "node "); ok {
			remedies = append(remedies, Remedy{
				"or, after making sure that nothing runs on " + name + " any more, fence it",
				typed("kubectl", "taint", "nodes", named(name), "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"),
			})
		}
	}
	return remedies
}

// stuckRemedies returns how to look for the sandbox of a pod that hung, and what lets its
// allocations go.
func stuckRemedies(e Entry) []Remedy {
	look := typed("crictl", "pods", "--namespace", named(e.Owner.Namespace), "--name", named(e.Owner.Pod))
	return []Remedy{
		{"look on that node whether its sandbox still runs", look},
		{"if it does, remove it there with crictl stopp and crictl rmp, or start the node anew, which ends the hold", ""},
		{"or set pods.stuck to release in the policy, once no sandbox of such a pod runs", ""},
	}
}

// said returns the evidence of an entry in one line.
func said(e Entry) string {
	parts := make([]string, len(e.Evidence))
	for i, one := range e.Evidence {
		parts[i] = one.Source + ": " + one.Says
	}
	return strings.Join(parts, "; ")
}
