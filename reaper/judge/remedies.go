package judge

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A Remedy is what would change a decision, and the command to type. Command is empty if
// there is none, or if it would contain a name that Kubernetes does not allow.
type Remedy struct {
	Says    string `json:"says"`
	Command string `json:"command,omitempty"`
}

// safeWord is a word that a shell takes as it is, and safeName one that is not a flag either.
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

// A Subject is a decision for which remedies are given, as a report has it.
type Subject struct {
	Rule      int // see Ruling
	Verdict   Verdict
	Reason    Reason
	ChangedBy string
	Note      string
	Evidence  []Evidence
	Due       *time.Time // nil if it is not known
	Owner     ipam.EntryOwner
	Pool      string
	Endpoint  string // what is left over of its pod in the store; empty if nothing is

	Unread  bool      // the ledger could not be read
	Refused []Refusal // of its plan
	Command []string  // of a run on the same cluster
	Only    []string  // the flag that narrows it to more than the pod or the pool of the entry
	Kubectl []string  // the flags with which kubectl contacts that cluster
	NoState string    // the state namespace that does not exist, without which nothing is remembered or released
}

// advise returns the function that fills in these templates.
func advise(templates ...Remedy) func(Subject) []Remedy {
	return func(s Subject) []Remedy { return s.fill(templates...) }
}

// say is advise for one template without a command.
func say(text string) func(Subject) []Remedy { return advise(Remedy{text, ""}) }

// fill returns remedies with the placeholders in braces replaced by what the subject has.
func (s Subject) fill(templates ...Remedy) []Remedy {
	evidence := make([]string, len(s.Evidence))
	for i, one := range s.Evidence {
		evidence[i] = one.Source + ": " + one.Says
	}
	text := strings.NewReplacer("{note}", s.Note, "{node}", s.Owner.Node, "{evidence}", strings.Join(evidence, "; "))
	remedies := make([]Remedy, len(templates))
	for i, template := range templates {
		if writes := strings.Contains(template.Command, "--remember") || strings.Contains(template.Command, "--dry-run=false"); writes && s.NoState != "" {
			says, _, _ := strings.Cut(template.Says, ":")
			template = CreateState
			template.Says = says + ": first " + template.Says
		}
		remedies[i] = Remedy{text.Replace(template.Says), s.typed(template.Command)}
	}
	return remedies
}

// typed returns a command line; empty if one of its words is not safe. In the template, {run}
// is the command of a run, and {only} narrows it to Only, the pod of the entry, or else its pool.
func (s Subject) typed(template string) string {
	names := map[string]string{
		"{state}": s.NoState, "{endpoint}": s.Endpoint, "{namespace}": s.Owner.Namespace,
		"{node}": s.Owner.Node, "{pod}": s.Owner.Pod, "{sandbox}": s.Owner.Sandbox,
	}
	var words []string
	for _, word := range strings.Fields(template) {
		name, isName := names[word]
		switch {
		case isName:
			words = append(words, named(name))
		case word == "kubectl":
			words = append(append(words, word), s.Kubectl...)
		case word == "{run}":
			words = append(words, s.Command...)
		case word == "{only}" && len(s.Only) > 0:
			words = append(words, s.Only[0], named(s.Only[1]))
		case word == "{only}" && s.Owner.Pod != "" && s.Owner.Namespace != "":
			words = append(words, "--pod", named(s.Owner.Namespace+"/"+s.Owner.Pod))
		case word == "{only}":
			words = append(words, "--pool", named(s.Pool))
		default:
			words = append(words, word)
		}
	}
	if slices.ContainsFunc(words, func(word string) bool { return !safeWord.MatchString(word) }) {
		return ""
	}
	return strings.Join(words, " ")
}

// What several rules advise.
const (
	examine   = "compare what the store and the pods say: {evidence}"
	repair    = "repair the stored object by hand: {evidence}"
	standsIn  = "it is in use: {note}"
	unprotect = "if nothing needs the address, edit or delete what protects it: {note}"
	byHand    = "no policy lets it go: if nothing has the address, remove it from the store by hand: {evidence}"
)

// CreateState comes before anything that writes, if the state namespace does not exist.
var CreateState = Remedy{"install ip-reaper, or create at least the namespace in which it remembers", "kubectl create namespace {state}"}

// What TerminationStuck and StaticPod advise.
var (
	lookThere = Remedy{"check on that node whether its sandbox still runs", "crictl pods --namespace {namespace} --name {pod}"}
	unstick   = Remedy{"or set pods.stuck to release in the policy, once no sandbox of what is held as TerminationStuck or StaticPod runs", ""}
)

var (
	keepPod  = say("nothing to do: its pod uses it, and returns it when it ends")
	listPods = advise(Remedy{"let ip-reaper list the pods; with files, give one that has them", "kubectl auth can-i list pods -A"})
	outwait  = Remedy{"wait: {note}", ""}
)

// wait is for the rules that give an allocation up when its time has come.
func wait(s Subject) []Remedy {
	switch {
	case s.Verdict == Orphaned && len(s.Refused) > 0:
		all := []Remedy{}
		for _, refusal := range s.Refused {
			all = append(all, Remedy{refusal.Message + ": " + refusal.Remedy, ""})
		}
		return all
	case s.Verdict == Orphaned:
		return s.fill(Remedy{"release it (a run looks again first)", "{run} {only} --dry-run=false"})
	}
	first := Remedy{"its grace period has not begun: begin it now (needs the right to write the ledger)", "{run} --remember --dry-run"}
	switch {
	case s.Due != nil:
		first = Remedy{"wait until " + Stamp(*s.Due), ""}
	case s.Unread:
		return s.fill(Remedy{"let ip-reaper read the ledger, which may say when its grace period began", ""})
	}
	return s.fill(first, Remedy{"or look twice, a minute apart, in place of the grace period (--dry-run=false releases)", "{run} {only} --grace-period=60s --wait=2m --dry-run"})
}

// keepUnshown is for an allocation whose pod exists and does not show the address.
func keepUnshown(s Subject) []Remedy {
	if s.Note == "" {
		return s.fill(Remedy{"nothing to do: its pod exists, and may use it without showing it", ""})
	}
	return s.fill(Remedy{"nothing to do: {note}, which does not prove that it has given this one up; a run releases it once no pod of that name exists", ""})
}

// growOlder offers no shorter age if the container runtime needs this one.
func growOlder(s Subject) []Remedy {
	if s.has(fromRuntime) {
		return s.fill(outwait)
	}
	return s.fill(outwait, Remedy{"or look twice, a minute apart, in place of the minimum age and the grace period (--dry-run=false releases)", "{run} {only} --grace-period=60s --min-age=0s --wait=2m --dry-run"})
}

// has reports whether the evidence has this source.
func (s Subject) has(source string) bool {
	return slices.ContainsFunc(s.Evidence, func(one Evidence) bool { return one.Source == source })
}

// listSandboxes is for a node of which either the sandboxes or the pods were not listed.
func listSandboxes(s Subject) []Remedy {
	if s.has(fromRuntime) {
		return s.fill(Remedy{"let ip-reaper ask the container runtime of the node: give its socket with --runtime-endpoint", "crictl pods"})
	}
	return listPods(s)
}

// lookForIt is for allocations that name no pod: whether the policy lets them go, or some pod may
// have the address without showing it, is in the evidence.
func lookForIt(s Subject) []Remedy {
	switch {
	case s.has(fromPolicy):
		if i := slices.Index(s.Command, "--policy"); i >= 0 {
			s.Command = slices.Concat(s.Command[:i], s.Command[min(i+2, len(s.Command)):]) // another one follows
		}
		return s.fill(
			Remedy{"it may have leaked: look on the nodes whether its sandbox still runs", "crictl inspectp {sandbox}"},
			Remedy{"if no node has it, and the owners of all pods are trusted, write pods: {unnamed: release} into the policy, which lets go what no pod shows; see the plan with such a file first", "{run} {only} --policy FILE --dry-run"})
	case s.has(fromPods):
		return s.fill(Remedy{"it may have leaked: find the pods that run and show no address, such as those without a network-status, and wait for them or delete them: {evidence}", "kubectl get pods -A -o wide"})
	case len(s.Evidence) > 1:
		return say("it may have leaked: repair what could not be read, which the report names: {evidence}")(s)
	default:
		return say("nothing to do: {note}, and holds no address")(s)
	}
}

// fence is for allocations of nodes that are not ready. The evidence names the nodes.
func fence(s Subject) []Remedy {
	remedies := s.fill(Remedy{"wait until the node is ready again", ""})
	if i := slices.Index(s.Kubectl, "--as"); i >= 0 { // the roles of ip-reaper may not write nodes
		s.Kubectl = s.Kubectl[:i]
	}
	for _, one := range s.Evidence {
		if name, ok := strings.CutPrefix(one.Source, "node "); ok {
			s.Owner.Node = name
			remedies = append(remedies, s.fill(Remedy{
				"or fence it, once you are sure that nothing runs on {node} any more (needs rights on nodes)",
				"kubectl taint nodes {node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
			}, Remedy{
				"or, if its machine is gone for good or has joined again under another name, delete {node} (needs rights on nodes)",
				"kubectl delete node {node}",
			})...)
		}
	}
	return remedies
}

// leave is for allocations of nodes that may be of another cluster. The evidence names the node.
func leave(s Subject) []Remedy {
	remedies := s.fill(Remedy{"if another cluster keeps its addresses in this store, leave it: only a run there can tell", ""})
	for _, one := range s.Evidence {
		if name, ok := strings.CutPrefix(one.Source, fromStoreNode); ok {
			s.Owner.Node = name
			remedies = append(remedies, s.fill(Remedy{"or, if the machine {node} is gone for good, delete its node from the store", "calicoctl delete node {node}"})...)
		}
	}
	return append(remedies, s.fill(Remedy{"or, if the store is this cluster's alone, set nodes.foreign to release in the policy", ""})...)
}

// Remedies returns what would change the decision: what its rule advises, or the step after the
// rules that keeps the allocation.
func (s Subject) Remedies() []Remedy {
	all := s.ofDecision()
	if s.Endpoint != "" {
		all = append(all, s.fill(Remedy{
			"delete the WorkloadEndpoint of the pod that is gone, or the next pod with the address gets its policy",
			"calicoctl delete workloadendpoint {endpoint} --namespace {namespace}",
		})...)
	}
	return all
}

// ofDecision returns what would change the decision.
func (s Subject) ofDecision() []Remedy {
	switch {
	case s.Rule == 0:
		return say(examine)(s)
	case s.ChangedBy == "" || s.Verdict == Suspected || s.Verdict == Orphaned:
		return table[s.Rule-1].remedies(s)
	case s.Reason == SiblingKept:
		return say("it goes with its sibling: {note}")(s)
	case s.Reason == Protected && !s.has(fromReservation):
		return say(unprotect)(s)
	default:
		return say("it goes after the addresses that it protects, or when you delete it: {note}")(s)
	}
}
