package admission_test

import (
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// An API server refuses a policy that does not compile, but may have one, of another version. Then it
// refuses what the policy is for, and nothing of anyone else, and the policy can be taken away.
func TestPolicyThatDoesNotCompileRefusesOnlyWhatItIsFor(t *testing.T) {
	f := newFixture(t)
	f.user("administrator", "admin")
	const remove = `[{"op":"remove","path":"/spec/allocations/1"}]`
	release := write{"remove an allocation", "another error", "patch", "pool: kube-system/pool", remove}
	create := write{"create a pod", "", "create", "pod: ", pod("new")}
	passes := release
	passes.by = ""
	for policy, tt := range map[string]struct {
		right    string
		operator write
	}{
		"ip-reaper-writes": {"variables.journal ?", release},
		"ip-reaper-other":  {"variables.request in (", passes},
	} {
		t.Run(policy, func(t *testing.T) {
			defer func(was *testing.T) { f.T = was }(f.T)
			f.T = t
			f.spoil("/registry/validatingadmissionpolicies/"+policy, tt.right, func() bool {
				by, _ := f.try(reap.RunAccount, release)
				return by != ""
			})
			f.each(reap.OutageAccount, []write{release})
			f.each(operator, []write{tt.operator, create, {"delete the policy", "", "delete", "policy: " + policy, ``}})
			f.each("administrator", []write{passes, create})
		})
	}
}

// spoil makes a right expression in etcd one of the same length that does not compile, until the test
// ends, and returns when the API server has seen it.
func (f *fixture) spoil(key, right string, seen func() bool) {
	f.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{f.EtcdURL}, Logger: zap.NewNop()})
	f.must(err)
	got, err := client.Get(f.Context(), key)
	f.must(err)
	if len(got.Kvs) != 1 || strings.Count(string(got.Kvs[0].Value), right) != 1 {
		f.Fatalf("%s is not one policy with %q", key, right)
	}
	was := string(got.Kvs[0].Value)
	_, err = client.Put(f.Context(), key, strings.Replace(was, right, strings.ToUpper(right), 1))
	f.must(err)
	cluster.AwaitT(f, "the spoilt "+key, seen)
	f.Cleanup(func() { // f is of the whole test again
		_, err := client.Put(f.Context(), key, was)
		f.must(err)
		cluster.AwaitT(f, "the right "+key, func() bool { return !seen() })
		f.must(client.Close())
	})
}
