package hostlocal

import (
	_ "embed"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// Plugin describes the backend.
func Plugin() plugin.Plugin {
	return plugin.Plugin{
		Name:     Name,
		Summary:  "Leases of the IPAM plugin `host-local`, in `/var/lib/cni/networks` of each node",
		Scope:    plugin.Node,
		Settings: func() any { return new(Settings) },
		Open:     plugin.With(func(_ plugin.Env, s *Settings) (ipam.Backend, error) { return New(*s), nil }),
	}
}

// Name is the name of the backend.
const Name = "hostlocal"

// Settings are backends.hostlocal of a policy. An empty list or string means the default.
type Settings struct {
	// DataDirs are folders that have one folder for each network. Those named in configurations
	// are added.
	DataDirs []string `json:"dataDirs,omitzero"`

	// ConfDir is the folder of the network configurations that the container runtime
	// loads.
	ConfDir string `json:"confDir,omitzero"`

	// CacheDir is the folder in which libcni keeps what it knows about attachments.
	CacheDir string `json:"cacheDir,omitzero"`

	// BinDirs are the folders of the CNI plugins.
	BinDirs []string `json:"binDirs,omitzero"`

	// Networks are the names of networks whose addresses are also released, although the
	// container runtime's configuration does not have them. Their folders must be this node's
	// alone.
	Networks []string `json:"networks,omitzero"`
}

// withDefaults returns the settings with a value in each field but Networks.
func (s Settings) withDefaults() Settings {
	if len(s.DataDirs) == 0 {
		s.DataDirs = []string{"/var/lib/cni/networks"}
	}
	if s.ConfDir == "" {
		s.ConfDir = "/etc/cni/net.d"
	}
	if s.CacheDir == "" {
		s.CacheDir = "/var/lib/cni"
	}
	if len(s.BinDirs) == 0 {
		s.BinDirs = []string{"/opt/cni/bin"}
	}
	return s
}

var (
	//go:embed schema.json
	schemaPart []byte
	//go:embed example.yaml
	examplePart []byte
)

// Schema implements policy.Schemer.
func (*Settings) Schema() []byte { return schemaPart }

// Example implements policy.Exampler.
func (*Settings) Example() []byte { return examplePart }

// networkName matches the names that CNI allows for a network. No such name leads out of a
// folder.
var networkName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.\-]*$`)

// Validate implements policy.Validator.
func (s *Settings) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	path := func(at *field.Path, value string) {
		if !strings.HasPrefix(value, "/") {
			errs = append(errs, field.Invalid(at, value, "must be an absolute path"))
		}
	}
	if s.ConfDir != "" {
		path(at.Child("confDir"), s.ConfDir)
	}
	if s.CacheDir != "" {
		path(at.Child("cacheDir"), s.CacheDir)
	}
	for i, dir := range s.DataDirs {
		path(at.Child("dataDirs").Index(i), dir)
	}
	for i, dir := range s.BinDirs {
		path(at.Child("binDirs").Index(i), dir)
	}
	for i, name := range s.Networks {
		if !networkName.MatchString(name) {
			errs = append(errs, field.Invalid(at.Child("networks").Index(i), name, "must be the name of a network"))
		}
	}
	return errs
}
