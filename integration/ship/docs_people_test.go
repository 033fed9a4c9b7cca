package ship_test

import (
	"regexp"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// The people who type. Who leaves the group does so as the page on the roles says, by impersonation.
const (
	viewer    = "-view"     // has ip-reaper-view
	operating = "-operator" // has ip-reaper-operator, in the group
	inGroup   = "-member"   // an administrator in the group
	left      = "-left"     // the same one, who has left the group
)

// with lets people of the roles type, as far as who says so.
func (o *operator) with(who func(sentence, typed string) (person string)) *operator {
	o.Helper()
	o.who = who
	must(o, o.cluster.CreateNamespace(o.Context(), home))
	for _, role := range []string{"view", "operator"} {
		for _, typed := range []string{
			"kubectl apply -f deploy/helm/ip-reaper/rights/people/" + role + ".yaml",
			"kubectl create clusterrolebinding people-" + role + " --clusterrole=ip-reaper-" + role + " --group=ip-reaper-" + role + "s",
			"kubectl create rolebinding people-" + role + " -n ip-reaper --role=ip-reaper-" + role + " --group=ip-reaper-" + role + "s",
		} {
			if out, err := o.bash(typed); err != nil {
				o.Fatalf("%v\n%s", err, out)
			}
		}
	}
	for person, groups := range map[string][]string{
		viewer: {"ip-reaper-views"}, operating: {reap.Operators}, inGroup: {reap.Operators, "system:masters"},
	} {
		config, err := o.cluster.User("jane"+person, groups...)
		must(o, err)
		o.kubeconfig(person, config)
		o.person = person
		cluster.AwaitT(o, "the rights of jane"+person, func() bool {
			_, err := o.bash("kubectl auth can-i list pods -A && kubectl auth can-i list configmaps -n ip-reaper")
			return err == nil
		})
		if person == inGroup {
			config.Impersonate = rest.ImpersonationConfig{UserName: "jane" + person, Groups: []string{"system:masters"}}
			o.kubeconfig(left, config)
		}
	}
	return o
}

var (
	looks  = regexp.MustCompile(`^(kubectl |bin/)?ip-reaper .*|^kubectl (-n \S+ )?(get|describe) `)
	writes = regexp.MustCompile(`ip-reaper .*(--dry-run=false|--remember)`)
)

// leastRole is the person with the fewest rights of those whom the pages name.
func leastRole(sentence, typed string) string {
	switch {
	case outside(sentence) || strings.Contains(typed, " --as "):
		return member(sentence, typed)
	case looks.MatchString(typed) && writes.MatchString(typed):
		return operating
	case looks.MatchString(typed):
		return viewer
	}
	return member(sentence, typed)
}

// member is the administrator in the group, who leaves it where the page says so.
func member(sentence, _ string) string {
	if outside(sentence) {
		return left
	}
	return inGroup
}

// outside reports whether the sentence before a command says who may type it.
func outside(sentence string) bool {
	return strings.Contains(sentence, "outside of the group `"+reap.Operators+"`")
}

// sentenceBefore is the last sentence before the block.
func (p page) sentenceBefore(b block) string {
	lines := strings.Split(p.text, "\n")[:b.line-2]
	text := strings.Join(strings.Fields(strings.Join(lines[max(0, len(lines)-12):], " ")), " ")
	return text[strings.LastIndex(text, ". ")+1:]
}
