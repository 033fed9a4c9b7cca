package cluster

import (
	"context"
	"path/filepath"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// whereaboutsCRDs returns the definitions that whereabouts itself ships.
func whereaboutsCRDs(ctx context.Context) ([]string, error) {
	dir, err := assets.ModuleDir(ctx, "github.com/k8snetworkplumbingwg/whereabouts")
	if err != nil {
		return nil, err
	}
	var files []string
	for _, kind := range []string{"ippools", "nodeslicepools", "overlappingrangeipreservations"} {
		files = append(files, filepath.Join(dir, "doc", "crds", "whereabouts.cni.cncf.io_"+kind+".yaml"))
	}
	return files, nil
}

// NetworkAttachmentCRD returns the file with the definition of network
// attachments, for Options.CRDs: a cluster without Multus has none.
func NetworkAttachmentCRD() (string, error) { return definition("network-attachments.yaml") }

// ReservedIPCRD returns the file with the definitions of resources that reserve
// addresses, one of namespaces and one of the cluster, for Options.CRDs.
func ReservedIPCRD() (string, error) { return definition("reserved-ips.yaml") }

// definition returns the path of a file of this package.
func definition(file string) (string, error) {
	root, err := assets.Root()
	return filepath.Join(root, "kit", "cluster", file), err
}
