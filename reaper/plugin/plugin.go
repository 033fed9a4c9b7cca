// Package plugin is how a backend joins the program: a [Plugin] describes it, and
// cli.Main makes the commands, the policy and the run from a list of them.
//
// It is a separate package because a description names client-go's and RBAC's types,
// and package reaper imports no client of anything.
package plugin

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A Plugin describes one backend, or one protector. Name, Summary, and Open or Protect are required.
//
// The order of a list of plugins is the order in which their backends list and
// release; restore goes the other way. If the releases of one backend depend on those
// of another, it comes after that one.
type Plugin struct {
	// Name is the name of the backend in policies, logs and reports, the same as
	// the opened backend's. No two plugins have the same.
	Name string

	// Summary says in one line, in Markdown, what the store holds that the backend
	// releases: it is the row in the README's table of stores. Or it says what the protector reads.
	Summary string

	// Scope says where the store is. The zero value is Cluster.
	Scope Scope

	// Beside names the plugin of the store in whose networks this store has addresses, if that is another
	// one. While either cannot be read, a restore does not know who has an address of the other.
	Beside string

	// Settings returns what policy's backends.<Name> decodes into: see
	// policy.Known. Nil means that there is nothing besides enabled.
	Settings func() any

	// Access returns what the backend needs from the API server, with these
	// settings: what Settings returned, decoded; nil if Settings is nil. A nil
	// Access means that it needs nothing.
	Access func(settings any) Access

	// Open returns the backend. It contacts nothing: what is wrong with the store
	// shows when the backend lists. It gets the settings as Access does.
	//
	// The error names its subject, because the program prints it as it is. It is
	// an *ipam.InputError if a setting or a variable is wrong. ErrUnused says that
	// the settings give the backend nothing to do.
	Open func(ctx context.Context, env Env, settings any) (ipam.Backend, error)

	// Protect is Open of a protector, in place of Open.
	Protect func(ctx context.Context, env Env, settings any) (ipam.Protector, error)

	// Reads reports whether the backend reads a document of Env.Files that is no object of its Access. Nil: it
	// reads none.
	Reads func(ipam.Document) bool
}

// ErrUnused is Open's answer if the settings give the backend nothing to do. The
// backend is then in no report.
var ErrUnused = errors.New("the policy gives the backend nothing to do")

// Env is what a backend is opened with. Except for Config and Client, its fields are never nil.
type Env struct {
	// Config leads to the API server. It is shared: copy it before changing it. It is nil
	// for a backend of scope Node, which contacts no API server.
	Config *rest.Config

	// Client is a kube.RawClient over Config, which all backends share, so that they ask for the
	// version of the API server once. It is nil if Config is.
	Client rest.Interface

	// Files are the documents of dumped files if these stand for the cluster, and the Config leads to them: then
	// nothing is in reach but what they have. Otherwise, it is nil.
	Files []ipam.Document

	// Getenv returns the value of an environment variable; empty if it is not set.
	Getenv func(name string) string

	// InPod is set if the program runs in a pod of the cluster, which has its variables from
	// the manifest. Elsewhere they may be left over from work on another cluster, so they must
	// not decide which store a backend opens.
	InPod bool

	// Settings returns the settings of a backend by its name, as Open of that backend
	// gets them; nil if there is no such backend, or it has none. Two backends over
	// the stores of one program may share the settings of one of them, so that an
	// operator writes them once. They are shared: do not change them.
	Settings func(backend string) any

	// Opened are the backends that were opened before. Two backends over the stores of one program
	// may make their lists together.
	Opened []ipam.Backend

	// Concurrency is how many requests a run makes at the same time, at least 1. Those through
	// Config keep to it by themselves. A backend limits the others, and the requests with a
	// context from ipam.Unqueued.
	Concurrency int

	// On says that the policy has enabled: true for the backend. One that may do harm where
	// it was not asked for returns ErrUnused unless it is On or Off.
	On bool

	// Off says that the policy has the backend off. It is opened nevertheless, for
	// a restore and for its row in the report. Open then must not fail because of
	// a setting, a variable or a file.
	Off bool
}

// Scope says where a store is.
type Scope int

const (
	// Cluster is a store that all runs of a cluster share.
	Cluster Scope = iota

	// Node is a store of one node: the program runs there, with its own ledger,
	// lock and journal.
	Node
)

// A Right is what an account may do under the rules of an Access.
type Right string

// Each right comes on top of those before it: a release needs what a plan needs.
const (
	Plan    Right = "plan"    // list: a dry run
	Release Right = "release" // a run that releases
	Restore Right = "restore" // put back what a run released
)

// Access is what a backend needs from the API server, for each right. The rules
// apply in all namespaces. A right that has no rules needs nothing more than those
// before it.
type Access map[Right][]rbacv1.PolicyRule

// Rule is a rule for the verbs on a resource of an API group.
func Rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}
