package main

import (
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/krew/pkg/constants"
	"sigs.k8s.io/krew/pkg/index"
	"sigs.k8s.io/yaml"
)

const (
	longDescription = `Compares the allocations in the IPAM stores of Whereabouts and Calico with the pods of
the cluster. It releases the allocations without an owner, and gives a reason for each.
Without a policy that says "dryRun: false", a run only says what it would do.
`
	caveats = `kubectl completes the command line with Tab if it finds the program under a second name:

  ln -s kubectl-ip_reaper "${KREW_ROOT:-$HOME/.krew}/bin/kubectl_complete-ip_reaper"
`
)

// writeKrew writes the manifest of the plugin. krew wants the file to be called like the
// plugin.
func writeKrew(dist, version string, archives []archive) error {
	plugin := index.Plugin{
		TypeMeta:   metav1.TypeMeta{APIVersion: constants.CurrentAPIVersion, Kind: constants.PluginKind},
		ObjectMeta: metav1.ObjectMeta{Name: "ip-reaper"},
		Spec: index.PluginSpec{
			Version:          version,
			Homepage:         homepage,
			ShortDescription: description,
			Description:      longDescription,
			Caveats:          caveats,
		},
	}
	for _, a := range archives {
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, index.Platform{
			URI:      a.URL,
			Sha256:   a.SHA256,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"os": a.OS, "arch": a.Arch}},
			// All of them, for the licences belong to the program.
			Files: []index.FileOperation{{From: "*", To: "."}},
			Bin:   "ip-reaper",
		})
	}
	text, err := yaml.Marshal(plugin)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dist, plugin.Name+constants.ManifestExtension), text, 0o644)
}
