package calico_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/policy"
)

func TestMarshalledSettingsLoadAsThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawSettings(t)
		p := policy.Default()
		p.Backends["calico"] = policy.Backend{Enabled: policy.On, Settings: &want}
		for name, marshal := range map[string]func(any) ([]byte, error){"JSON": json.Marshal, "YAML": yaml.Marshal} {
			data, err := marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			got, err := policy.Load(data, known)
			if diff := cmp.Diff(p, got); err != nil || diff != "" {
				t.Fatalf("%s: %v (-want +got):\n%s\n%s", name, err, diff, data)
			}
		}
	})
}

// drawSettings draws settings as Load returns them.
func drawSettings(t *rapid.T) calico.Settings {
	return calico.Settings{Datastore: rapid.SampledFrom([]calico.Datastore{
		"", calico.DatastoreAuto, calico.DatastoreKubernetes, calico.DatastoreEtcd,
	}).Draw(t, "datastore")}
}
