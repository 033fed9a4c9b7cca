package judge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A Remedy is what would change a decision, and the command to type. Command is empty if
// there is none, or if it would contain a name that Kubernetes does not allow.
type Remedy struct {
	Says    string `json:"says"`
	Command string `json:"command,omitempty"`
}

// safeName is a word that a shell takes as it is, and that is no flag. Names and addresses come from
// stores, which anyone may write, and an operator pastes the command.
var safeName = regexp.MustCompile(`^[A-Za-z0-9/:][A-Za-z0-9_./:-]*$`)

// named returns a name from a store for typed; empty, for which there is no command, if it could be a
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
	Due       *time.Time    // nil if it is not known
	Ripe      time.Time     // Due, or what it would be if a run remembered the allocation now
	Wait      time.Duration // see Verdicts.Waits
	Owner     ipam.EntryOwner
	IP        string // empty if it has none
	Pool      string
	Policy    string // where it is, in words
	Endpoint  string // what is left over of its pod in the store; empty if nothing is

	Unread  bool      // the ledger could not be read
	Refused []Refusal // of its plan
	Command []string  // of a run on the same cluster
	Only    []string  // the flags that narrow it to what the remedies are for; nil if that is one allocation
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
	text := strings.NewReplacer("{note}", s.Note, "{node}", s.Owner.Node, "{pool}", s.Pool, "{policy}", s.Policy, "{evidence}", strings.Join(evidence, "; "))
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

// typed returns a command line; empty if one of its words is. In the template, {run}
// is the command of a run, and {only} narrows it to what the remedies are for.
func (s Subject) typed(template string) string {
	names := map[string]string{
		"{state}": s.NoState, "{endpoint}": s.Endpoint, "{namespace}": s.Owner.Namespace,
		"{node}": s.Owner.Node, "{ip}": s.IP, "{pod}": s.Owner.Pod, "{sandbox}": s.Owner.Sandbox,
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
		case word == "{only}":
			words = append(words, s.only()...)
		default:
			words = printable.Replaced(words, word)
		}
	}
	if slices.Contains(words, "") {
		return ""
	}
	return printable.Typed(words...)
}

// only returns the flags that narrow a run to what the remedies are for. An address may have been
// given out in several networks, so that of one allocation has its pod beside it, or else its pool.
func (s Subject) only() []string {
	switch {
	case s.Only != nil:
		flags := slices.Clone(s.Only)
		for i := 1; i < len(flags); i += 2 {
			flags[i] = named(flags[i])
		}
		return flags
	case s.IP == "":
		return []string{""} // no flag does, so there is no command
	case s.Owner.Pod != "" && s.Owner.Namespace != "":
		return []string{"--ip", named(s.IP), "--pod", named(s.Owner.Namespace + "/" + s.Owner.Pod)}
	default:
		return []string{"--ip", named(s.IP), "--pool", named(s.Pool)}
	}
}

// What several rules advise.
const (
	examine  = "compare what the store and the pods say: {evidence}"
	repair   = "correct it in the store, by hand or through what keeps the store: {evidence}"
	standsIn = "it is in use: {note}"
	inherits = "when the pod ends, its plugin returns it, or a run finds that it leaked"
	newer    = "use a version of ip-reaper that knows the field: {note}"
	byHand   = "no policy lets it go: if nothing has the address, remove it from the store by hand: {evidence}"
)

// CreateState comes before anything that writes, if the state namespace does not exist.
var CreateState = Remedy{"install ip-reaper, or create at least the namespace in which it remembers", "kubectl create namespace {state}"}

// What TerminationStuck and StaticPod advise.
var (
	lookThere = Remedy{"check on that node whether its sandbox still runs", "crictl pods --namespace {namespace} --name {pod}"}
	unstick   = Remedy{"or set pods.stuck to release in the policy, once no sandbox of what is held as TerminationStuck or StaticPod runs", ""}
)

var listPods = advise(Remedy{"let ip-reaper list pods, and what else the error names; with files, give one that has the pods", "kubectl auth can-i list pods -A"})

// wait is for the rules that give an allocation up when its time has come.
func wait(s Subject) []Remedy {
	switch {
	case s.Verdict == Orphaned && len(s.Refused) > 0:
		all := []Remedy{}
		for _, refusal := range s.Refused {
			all = append(all, Remedy{refusal.Message + ": " + refusal.Remedy, ""})
		}
		return all
	case s.Verdict == Orphaned && s.isAlone():
		return s.fill(Remedy{"release it (a run looks again first)", "{run} {only} --dry-run=false"})
	case s.Verdict == Orphaned:
		return s.fill(Remedy{"a run releases it with all else that is due: no flag selects it alone", ""})
	}
	first := Remedy{"its grace period has not begun: begin it now (needs the right to write the ledger)", "{run} {only} --remember --dry-run"}
	switch {
	case s.Due != nil:
		first = Remedy{"wait until " + Stamp(*s.Due), ""}
	case s.Unread:
		return s.fill(Remedy{"let ip-reaper read the ledger, which may say when its grace period began", ""})
	case s.Wait == 0:
		first.Says += ", and a run releases it from " + Stamp(s.Ripe) + " on"
	}
	if !s.isAlone() {
		first.Command = strings.Replace(first.Command, " {only}", "", 1) // it releases nothing
	}
	if s.Reason == TooYoung {
		return append(s.fill(first), s.lookTwice("the minimum age and the grace period", "--min-age=0s")...)
	}
	return append(s.fill(first), s.lookTwice("the grace period", "")...)
}

// lookTwice is for what a run releases within ten minutes if it looks twice. more are its flags besides
// those of the grace period and of the wait.
func (s Subject) lookTwice(inPlaceOf, more string) []Remedy {
	if s.Wait == 0 || !s.isAlone() {
		return nil
	}
	return s.fill(Remedy{
		"or look twice, at least a minute apart, in place of " + inPlaceOf + " (--dry-run=false releases)",
		fmt.Sprintf("{run} {only} --grace-period=60s %s --wait=%.0fm --dry-run", more, s.Wait.Minutes()),
	})
}

// isAlone reports whether flags narrow a run to what the remedies are for.
func (s Subject) isAlone() bool { return s.Only != nil || s.IP != "" }

// keepUnshown is for an allocation whose pod exists and does not show the address.
func keepUnshown(s Subject) []Remedy {
	if s.Note == "" {
		return s.fill(Remedy{"nothing to do: its pod exists, and may use it without showing it", ""})
	}
	while := "a pod of that name exists"
	if slices.ContainsFunc(s.Evidence, func(one Evidence) bool { return strings.HasPrefix(one.Source, fromStatefulSet) }) {
		while += ", or its StatefulSet wants one"
	}
	return s.fill(Remedy{"nothing to do: {note}, which does not prove that it has given this one up; no run releases it while " + while, ""})
}

// dropRule is for what a rule of the policy holds.
func dropRule(s Subject) []Remedy {
	rule, match, _ := strings.Cut(strings.TrimPrefix(s.Note, heldBy), ": ")
	return s.fill(Remedy{"remove " + rule + " (" + match + ") from {policy}", ""})
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

// endSandbox is for a sandbox that the container runtime has.
func endSandbox(s Subject) []Remedy {
	if s.Note == "" {
		return s.fill(Remedy{"it is in use until the kubelet removes its sandbox", "crictl inspectp {sandbox}"})
	}
	return s.fill(
		Remedy{"{note}: the kubelet stops and removes it; if it does not, stop it by hand, and the error says why", "crictl stopp {sandbox}"},
		Remedy{"once it is stopped, remove it, and a run releases the address if the plugin has not", "crictl rmp {sandbox}"},
	)
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
	var remedies []Remedy
	if _, also, held := strings.Cut(s.Note, Also); held {
		remedies = []Remedy{{"whatever becomes of its node, this holds it, too: " + also, ""}}
	}
	remedies = append(remedies, Remedy{"wait until the node is ready again", ""})
	if i := slices.Index(s.Kubectl, "--as"); i >= 0 { // the roles of ip-reaper may not write nodes
		s.Kubectl = s.Kubectl[:i]
	}
	for _, one := range s.Evidence {
		if name, ok := strings.CutPrefix(one.Source, "node "); ok {
			s.Owner.Node = name
			remedies = append(remedies, s.fill(Remedy{
				"or fence it, once you are sure that nothing runs on {node} any more: its pods are deleted by force, and the taint must go when it is back (needs rights on nodes); then run ip-reaper again",
				"kubectl taint nodes {node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
			}, Remedy{
				"or, if its machine is gone for good or has joined again under another name, delete {node} (needs rights on nodes)",
				"kubectl delete node {node}",
			})...)
		}
	}
	return remedies
}

// DeletePod advises to delete the pod of the allocation.
func (s Subject) DeletePod(says string) []Remedy {
	return s.fill(Remedy{says, "kubectl -n {namespace} delete pod {pod}"})
}

// Fence advises what ends an allocation of a pod that the API server still lists on a node that does not
// answer.
func (s Subject) Fence(node, state string) []Remedy {
	s.Evidence = []Evidence{{Source: "node " + node}}
	first := Remedy{"its pod is still listed on node " + node + ", which " + state + ": whether it runs there is not known", ""}
	return append([]Remedy{first}, fence(s)...)
}

// leaveTunnel is for what is not a pod's. kube-controllers keep the tunnel of a node that is gone as long as a pod has an
// address of that node (checkAllocations in its node controller). A node that comes back has the same handle.
func leaveTunnel(s Subject) []Remedy {
	if !s.has(fromHandle) {
		return say("ip-reaper never releases it: {note}; if nothing needs it any more, it stays until what made it, or you, remove it")(s)
	}
	return s.fill(
		Remedy{"its node {node} does not exist: Calico's kube-controllers release it once no pod has an address of that node, and take back the block {pool} once nothing is allocated in it: see that they run", "kubectl get pods -A -l k8s-app=calico-kube-controllers"},
		Remedy{"or release it by hand, with a calicoctl that is set up for this cluster: first see that the node has not come back", "kubectl get nodes {node} --ignore-not-found"},
		Remedy{"and that the address still has the handle above, or for an older calicoctl, which shows none, that node", "calicoctl ipam show --ip {ip}"},
		Remedy{"then release it", "calicoctl ipam release --ip {ip}"},
	)
}

// unprotect is for what something outside the store keeps, or may keep.
func unprotect(s Subject) []Remedy {
	if strings.Contains(s.Note, ipam.UnreadSays) {
		return say("add that list to the files, or ask the cluster: {note}")(s)
	}
	return say("if nothing needs the address, edit or delete what protects it: {note}")(s)
}

// leave is for allocations of nodes that may be of another cluster. The evidence names the node.
func leave(s Subject) []Remedy {
	remedies := s.fill(Remedy{"if another cluster keeps its addresses in this store, leave it: only a run there can tell", ""})
	for _, one := range s.Evidence {
		if name, ok := strings.CutPrefix(one.Source, fromStoreNode); ok {
			s.Owner.Node = name
			remedies = append(remedies, s.fill(Remedy{"or, if no other cluster uses the store and the machine {node} is gone for good, delete its node, with all that its pods had", "calicoctl delete node {node}"})...)
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
	default:
		return unprotect(s)
	}
}
